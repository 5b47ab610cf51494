import Foundation
import Testing

/// What the manual shows of a terminal is what a terminal shows.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct ManualTests {
  /// A command at a prompt, and the lines that follow it.
  private struct Step: Equatable {
    var command: String
    var lines: [String] = []
  }

  /// What `--experimental-dump-help` says of a command.
  private struct Described: Decodable {
    var commandName: String
    var discussion: String?
    var subcommands: [Described]?

    /// The command and all below it.
    var all: [Described] { [self] + (subcommands ?? []).flatMap(\.all) }

    /// The paragraphs of the discussion that begin at a prompt.
    var transcripts: [[Step]] {
      var transcripts: [[Step]] = []
      for paragraph in (discussion ?? "").components(separatedBy: "\n\n") {
        var steps: [Step] = []
        for line in paragraph.split(separator: "\n") {
          let text = String(line.dropFirst(2))
          if text.hasPrefix("$ ") {
            steps.append(Step(command: String(text.dropFirst(2))))
          } else if !steps.isEmpty {
            steps[steps.count - 1].lines.append(text)
          }
        }
        if !steps.isEmpty { transcripts.append(steps) }
      }
      return transcripts
    }
  }

  private struct Tool: Decodable { var command: Described }

  /// A line without what differs from run to run, also in its length: where it is cut, and where
  /// a column is padded to the longest (a process of number 9,999 above one of 10,000).
  private func masked(_ line: String) -> String {
    line.replacing(#/\d\d-\d\d \d\d:\d\d:\d\dZ/#, with: "TIME")
      .replacing(#/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/#, with: "TIME")
      .replacing(#/client \d+ \(pid \d+, uid \d+\)( .*…$| +(?= ))?/#, with: "CLIENT")
  }

  @Test func `what the manual shows of a terminal is what it shows`() async throws {
    let dump = try ChildProcess(Binaries.commandLine, ["--experimental-dump-help"])
    #expect(try await dump.end() == .exit(0))
    let tool = try JSONDecoder().decode(Tool.self, from: Data(dump.output.joined().utf8))
    let shown = tool.command.all.filter { !$0.transcripts.isEmpty }
    #expect(
      Set([
        "diff", "history", "increment", "insert", "jump", "log", "ls", "merge", "pause", "test",
        "undo",
      ]).isSubset(
        of: Set(shown.map(\.commandName))))
    for command in shown {
      for transcript in command.transcripts {
        try await withDaemon { served in
          try await eventually("there is a past") {
            try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
          }
          for step in transcript {
            let words = try #require(step.command.wholeMatch(of: #/lockstep (.*)/#)?.1)
            let lines = try await atTerminal(served.socket, columns: 80, String(words))
            #expect(
              lines.map(masked) == step.lines.map(masked), "\(command.commandName): \(step)")
          }
        }
      }
    }
  }
}
