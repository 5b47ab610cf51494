import ArgumentParser
import Documents
import EventLoop
import Testing
import Values

@testable import CommandLineTool

struct ManualPageTests {
  @Test func `help text becomes paragraphs, lists, examples and sections`() {
    let text = ManualText(
      """
      One line.
        term  meaning
        other   with - and \\

      .dots

      EXAMPLES:
        tool do 'it'

      EXIT STATUS:
        0  done
      """)
    #expect(
      text.body == [
        ".Pp", "One line.", ".Bl -tag -width Ds", ".It \\&term", "meaning", ".It \\&other",
        "with \\- and \\e", ".El", ".Pp", "\\&.dots",
      ])
    #expect(
      text.sections["EXAMPLES"] == [
        ".Bd -literal -offset indent", "tool do \\(aqit\\(aq", ".Ed",
      ])
    #expect(
      text.sections["EXIT STATUS"] == [".Bl -tag -width Ds", ".It \\&0", "done", ".El"])
  }

  private func section(_ name: String, of page: String) -> [String] {
    let lines = page.split(separator: "\n").map(String.init)
    return Array(lines.drop { $0 != ".Sh \(name)" }.dropFirst().prefix { !$0.hasPrefix(".Sh") })
  }

  @Test func `the section on exit statuses is their table and nothing else`() throws {
    let tool = try JSON.parse(LockstepCommand._dumpHelp())
    let page = try #require(ManualPage(tool, section: 1, date: "", seeAlso: []))
    let rows = EventLoop.ExitStatus.allCases.flatMap { status in
      status.meaning(of: .commandLine).map { [".It \\&\(status.rawValue)", $0.roff] } ?? []
    }
    #expect(section("EXIT STATUS", of: page.text) == [".Bl -tag -width Ds"] + rows + [".El"])
  }

  @Test func `a page has every command, its examples, and the form of errors`() throws {
    let tool = try JSON.parse(LockstepCommand._dumpHelp())
    let page = try #require(
      ManualPage(tool, section: 1, date: "January 1, 2026", seeAlso: ["lockstepd(8)"]))
    let lines = page.text.split(separator: "\n").map(String.init)
    for name in LockstepCommand.commandNames where name != "help" && name != "documentation" {
      #expect(lines.contains(".Ss \(name)"))
    }
    #expect(lines.contains(".Xr lockstepd 8"))
    #expect(lines.contains("lockstep get /lamps/hall"))
    #expect(section("DIAGNOSTICS", of: page.text).joined().contains(#""code":"testFailed""#))
    #expect(section("OTHER NAMES", of: page.text).contains(".It \\&rm"))
    #expect(!page.text.contains(".Ss documentation"))
    #expect(ManualPage(nil, section: 1, date: "", seeAlso: []) == nil)
  }
}
