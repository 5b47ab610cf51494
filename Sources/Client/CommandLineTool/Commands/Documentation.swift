import ArgumentParser
import EventLoop
import Values

struct Documentation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "documentation",
    abstract: "Make a manual page (mdoc) of what a tool says of itself.",
    discussion: """
      Reads what 'TOOL --experimental-dump-help' writes. Scripts/make-documentation uses it for \
      the tools of the project; completion scripts come from 'TOOL --generate-completion-script'.
      """,
    shouldDisplay: false)

  @Option(help: "The section of the manual.")
  var section = 1

  @Option(help: "The date on the page.")
  var date: String

  @Option(help: "A page to refer to, as 'name(section)'; may be repeated.")
  var seeAlso: [String] = []

  func run() throws {
    let file = File.standardInput
    let tool = try file.parsingJSON(file.read())
    guard let page = ManualPage(tool, section: section, date: date, seeAlso: seeAlso) else {
      throw Failure(.usage, "standard input is not a tool's description of itself.")
    }
    try StandardOutput.write(Array(page.text.utf8))
  }
}
