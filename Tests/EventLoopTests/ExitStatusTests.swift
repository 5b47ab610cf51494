import EventLoop
import Testing

/// Swift Testing has a type of that name too.
private typealias ExitStatus = EventLoop.ExitStatus

struct ExitStatusTests {
  @Test func `no status is one of a shell's own, and each meaning begins with the status's name`() {
    // The statuses that a shell uses itself begin at 126.
    #expect(ExitStatus.allCases.allSatisfy { (0..<126).contains($0.rawValue) })
    for status in ExitStatus.allCases where status != .done {
      let meanings = [status.meaning(of: .commandLine), status.meaning(of: .daemon)].compactMap(
        \.self)
      #expect(!meanings.isEmpty && meanings.allSatisfy { $0.hasPrefix("\(status.name): ") })
    }
  }

  @Test func `each line of the help fits a terminal`() {
    for program in [ExitStatus.Program.commandLine, .daemon] {
      let lines = ExitStatus.help(of: program).split(separator: "\n")
      #expect(lines.first == "EXIT STATUS:")
      #expect(lines.allSatisfy { $0.count <= 80 })
      #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") })
    }
    #expect(ExitStatus.help(of: .daemon).contains("\n  2  usage: the command line is wrong\n"))
  }
}
