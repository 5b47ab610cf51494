import ArgumentParser
import Documents

struct Patch: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "patch",
    abstract: "Apply a JSON Patch (RFC 6902): all of it, or nothing.",
    discussion: """
      The file is an array of operations: add, remove, replace, move, copy, test. If one fails, \
      the whole is rejected, and the message names it.
      """)

  @Argument(
    help: "A file; '-' is standard input.", completion: .file(), transform: ArgumentOrder.unmarked)
  var file: String

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction {
    let file = File(file)
    let patch = try file.parsingJSON(file.read())
    do {
      return try JSONPatch.actions(from: patch)
    } catch {
      throw Failure(.usage, "\(file.name) is not a JSON Patch: \(error).")
    }
  }
}
