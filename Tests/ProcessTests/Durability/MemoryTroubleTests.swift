import Documents
import Foundation
import LockstepClient
import Testing
import Values
import Wire

/// A daemon that cannot allocate more memory.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct MemoryTroubleTests {
  @Test
  func `without memory for a snapshot the daemon serves, refuses that one, and loses nothing`()
    async throws
  {
    try await withHome { home in
      // What has been granted its memory takes it, so nothing large may be in the making when that becomes
      // less: no snapshot of the journal, for which too little is written, and no checkpoint of a past.
      let limits = ["journalBytes=\((16 << 20) + (1 << 14))", "historyBytes=0"]
      let first = try await home.start(limits.flatMap { ["--limit", $0] })
      defer { first.process.signal(SIGKILL) }
      let writer = try await home.mirror(of: ["small"])
      let megabyte = Value.text(String(repeating: "x", count: 1 << 20))
      try await writer.send(DocumentAction.set(["big"], [:]))
      for number in 1...16 {
        try await writer.send(DocumentAction.set(["big", .text("\(number)")], megabyte))
      }
      try await writer.send(DocumentAction.set(["count"], 0))
      // What it needs at this moment, and less than a snapshot needs.
      let limit = try memory(of: first.process) + (16 << 20)
      try await limitMemory(of: first.process, to: "\(limit)")
      await #expect {
        try await home.mirror().connection.close()
      } throws: {
        if case ClientError.refused(.memory) = $0 { true } else { false }
      }
      // Small actions are done however little memory is left.
      try await eventually("the journal's snapshot is refused, too") {
        for _ in 0..<50 { try await writer.send(DocumentAction.increment(["count"], by: 1)) }
        return first.process.output.contains {
          $0.contains("the journal grows until a snapshot can be made")
        }
      }
      try await first.process.lines(with: "no memory for a client's snapshot")
      let last = try await writer.send(DocumentAction.set(["small"], 2), .durable)
      #expect(last.mark == .durable)
      #expect(writer.state?.isSame(as: 2) == true)
      let said = try await home.lockstep("get")
      #expect(said.status == .exit(1))
      #expect(said.lines.joined().contains("no memory for a snapshot"), "\(said.lines)")

      try await limitMemory(of: first.process, to: "unlimited")
      let mirror = try await home.mirror()
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
      mirror.connection.close()
      try await first.process.kill()
      let kept = try KeptDocument(home.state)
      #expect(kept.root["small"] == 2)
      #expect(kept.digest == theirs.description)
      let second = try await home.start()
      #expect(second.digest == kept.digest)
      try await second.stop()
      writer.connection.close()
    }
  }

  /// The bytes of a process's own memory.
  private func memory(of process: ChildProcess) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmData:") })
    return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1])) << 10
  }

  /// Limits the bytes of a process's own memory.
  private func limitMemory(of process: ChildProcess, to limit: String) async throws {
    let prlimit = try ChildProcess(
      "/usr/bin/prlimit", ["--pid", "\(process.pid)", "--data=\(limit):"])
    #expect(try await prlimit.end() == .exit(0), "\(prlimit.output)")
  }
}
