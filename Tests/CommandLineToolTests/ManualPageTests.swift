import ArgumentParser
import Documents
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

  @Test func `a page has every command, and the exit status`() throws {
    let tool = try JSON.parse(LockstepCommand._dumpHelp())
    let page = try #require(
      ManualPage(tool, section: 1, date: "January 1, 2026", seeAlso: ["lockstepd(8)"]))
    let lines = page.text.split(separator: "\n").map(String.init)
    for name in LockstepCommand.commandNames where name != "help" && name != "documentation" {
      #expect(lines.contains(".Ss \(name)"))
    }
    for status in ExitStatus.allCases { #expect(lines.contains(".It \\&\(status.rawValue)")) }
    #expect(lines.contains(".Xr lockstepd 8"))
    #expect(!page.text.contains(".Ss documentation"))
    #expect(ManualPage(nil, section: 1, date: "", seeAlso: []) == nil)
  }
}
