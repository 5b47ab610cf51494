import ArgumentParser
import Documents
import EventLoop
import Values

struct Patch: ActingCommand {
  static let configuration = CommandConfiguration(
    commandName: "patch",
    abstract: "Apply a JSON Patch (RFC 6902): all of it, or nothing.",
    discussion: """
      The file is an array of operations: add, remove, replace, move, copy, test. If one fails, \
      the whole is rejected, and the message names it. Status 10 if a test did not hold: somebody \
      was faster.

      EXAMPLES:
        lockstep patch changes.json
        echo '[{"op":"test","path":"/n","value":1},
        {"op":"replace","path":"/n","value":2}]' | lockstep patch -
      """)

  @Argument(
    help: "A file; '-' is standard input.", completion: .file(), transform: ArgumentOrder.unmarked)
  var file: String

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func action() throws -> DocumentAction { try Self.action(of: operations(), in: File(file)) }

  func run() async throws {
    let patch = try operations()
    let action = try Self.action(of: patch, in: File(file))
    do {
      try await perform(action)
    } catch {
      guard var failure = Failure(error) else { throw error }
      failure.message = Self.naming(failure.message, in: patch)
      throw failure
    }
  }

  private func operations() throws(Failure) -> Value {
    let file = File(file)
    return try file.parsingJSON(file.read())
  }

  private static func action(of patch: Value, in file: File) throws(Failure) -> DocumentAction {
    do {
      return try JSONPatch.actions(from: patch)
    } catch {
      let place = error.index.map { "\(name(of: $0, in: patch)): " } ?? ""
      throw Failure(.usage, "\(file.name) is not a JSON Patch: \(place)\(error.message).")
    }
  }

  /// A daemon's message about a part of its transaction, with the part named as in the patch.
  static func naming(_ message: String, in patch: Value) -> String {
    guard let place = message.firstMatch(of: /transaction\[(\d+)\] \(\w+\)/),
      let index = Int(place.1)
    else { return message }
    return message.replacingCharacters(in: place.range, with: name(of: index, in: patch))
  }

  /// `operation 2 (add)`.
  private static func name(of index: Int, in patch: Value) -> String {
    let operation = patch.child(.integer(Int64(index)))?.child("op")
    guard case .text(let name)? = operation else { return "operation \(index)" }
    return "operation \(index) (\(name.shortened))"
  }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<Index>, with text: String) -> String {
    self[..<range.lowerBound] + text + self[range.upperBound...]
  }
}
