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
      let first = try await home.start(["--limit", "journalAgeMs=1000"])
      defer { first.process.signal(SIGKILL) }
      let writer = try await home.mirror(of: ["small"])
      let megabyte = Value.text(String(repeating: "x", count: 1 << 20))
      try await writer.send(DocumentAction.set(["big"], [:]))
      for number in 1...16 {
        try await writer.send(DocumentAction.set(["big", .text("\(number)")], megabyte))
      }
      try await eventually("a mirror of everything is refused") {
        // Allows what it needs at this moment, and less than a snapshot needs.
        try await limitMemory(of: first.process, toMore: 16 << 20)
        do {
          try await home.mirror().connection.close()
          return false
        } catch ClientError.refused(.memory) {
          return true
        }
      }
      try await writer.send(DocumentAction.set(["small"], 1))
      try await first.process.lines(
        with: "no memory for a client's snapshot", "the journal grows until a snapshot can be made")
      let last = try await writer.send(DocumentAction.set(["small"], 2), .durable)
      #expect(last.mark == .durable)
      #expect(writer.state?.isSame(as: 2) == true)
      let said = try await home.lockstep("get")
      #expect(said.status == .exit(1))
      #expect(said.lines.joined().contains("no memory for a snapshot"), "\(said.lines)")

      try await limitMemory(of: first.process, toMore: nil)
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

  /// Limits a process to `bytes` more of its own memory than it has now; nil for no limit.
  private func limitMemory(of process: ChildProcess, toMore bytes: Int?) async throws {
    var limit = "unlimited"
    if let bytes {
      let status = try String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmData:") })
      let kilobytes = try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
      limit = "\(kilobytes * 1024 + bytes)"
    }
    let prlimit = try ChildProcess(
      "/usr/bin/prlimit", ["--pid", "\(process.pid)", "--data=\(limit):"])
    #expect(try await prlimit.end() == .exit(0), "\(prlimit.output)")
  }
}
