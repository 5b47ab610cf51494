import Foundation
import LockstepClient
import Testing

/// The first console block of the README: its commands are run at terminals of 80 columns, and must
/// print what it shows.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct ReadmeTests {
  /// A line of the block, in the left or the right terminal.
  private struct Line {
    let isRight: Bool
    let text: String

    init(_ line: String) {
      let text = line.drop { $0 == " " }
      isRight = line.count - text.count >= 30
      self.text = String(text)
    }

    /// The command without its remark; nil for a line of output.
    var command: String? {
      guard text.hasPrefix("$ ") else { return nil }
      let typed = text.dropFirst(2)
      let end = typed.firstRange(of: "  #")?.lowerBound ?? typed.endIndex
      return typed[..<end].trimmingCharacters(in: .whitespaces)
    }
  }

  private func block() throws -> [Line] {
    let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let readme = try String(contentsOfFile: "/\(root)/README.md", encoding: .utf8)
    let start = try #require(readme.firstRange(of: "```console\n")).upperBound
    let end = try #require(readme[start...].firstRange(of: "\n```")).lowerBound
    return readme[start..<end].split(separator: "\n").map { Line(String($0)) }
  }

  @Test func `the README's first commands print what it shows`() async throws {
    let lines = try block()
    #expect(lines.compactMap(\.command).count >= 6)
    try await withFolder { folder in
      let environment = [
        "PATH": "\(Binaries.folder ?? "."):/usr/bin:/bin", "XDG_RUNTIME_DIR": folder,
        "NO_COLOR": "1",
        "TERM": "xterm", "COLUMNS": "80", "LOCKSTEP_SOCKET": "",
      ]
      var running: [ChildProcess] = []
      defer { for process in running { process.signal(SIGKILL) } }
      // The last command of each terminal.
      var left: ChildProcess?
      var right: ChildProcess?
      for line in lines {
        guard let command = line.command else {
          let process = try #require(line.isRight ? right : left)
          let said = try await process.line(line.text)
          #expect(said.trimmingCharacters(in: .newlines) == line.text)
          continue
        }
        // The programs are built already.
        if command.hasPrefix("export PATH=") { continue }
        let isServing = command.hasSuffix("&")
        let process = try terminal(isServing ? String(command.dropLast()) : command, environment)
        running.append(process)
        if isServing {
          try await eventually("it serves") {
            FileManager.default.fileExists(atPath: folder + "/lockstep.sock")
          }
        } else if line.isRight {
          right = process
        } else {
          left = process
        }
      }
      let said = running.flatMap(\.output)
      #expect(said.count == lines.count { $0.command == nil }, "nothing else is said: \(said)")
    }
  }

  /// Runs a command at a terminal of its own.
  private func terminal(
    _ command: String, _ environment: [String: String]
  ) throws -> ChildProcess {
    try ChildProcess(
      "/usr/bin/script",
      ["--quiet", "--return", "--flush", "--command", "exec \(command)", "/dev/null"],
      environment: environment)
  }
}
