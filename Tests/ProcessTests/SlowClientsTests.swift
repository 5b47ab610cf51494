import CBOR
import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)), .serialized)
struct SlowClientsTests {
  @Test func `a client stopped during a million changes gets one patch over what it missed`()
    async throws
  {
    try await withDaemon { served in
      let client = try await served.client("sleeper")
      let mirror = try await served.mirror(of: ["nothing"])
      try await Self.change(served, times: 1)
      client.write("reached 10000")
      try await client.line("done")
      client.signal(SIGSTOP)
      let before = served.daemon.residentBytes

      try await Self.change(served, times: 100)
      let grown = served.daemon.residentBytes - before
      #expect(grown < 64 << 20, "the daemon grew by \(grown >> 20) MiB")
      let report = try await mirror.connection.report("clients").elements.first {
        $0["label"] == "sleeper"
      }
      #expect(report?["lagBytes"]?.number ?? 0 > 0)
      let status = try await mirror.connection.report("status")
      #expect(status["heldStates"] == 1)

      client.signal(SIGCONT)
      client.write("reached 1010000")
      let digest = try #require(status["digest"])
      #expect(try await client.line("at") == "at 1010000 \(try text(digest))")
      client.write("counters")
      let counters = try await client.line("counters").split(separator: " ")
        .compactMap { UInt64($0) }
      let (snapshots, patches, coalesced) = (counters[0], counters[1], counters[2])
      #expect(snapshots == 1)
      // The changes in the socket's buffer came one by one; all the rest came as one patch.
      #expect(coalesced > 900_000)
      #expect(patches < 110_000)
      #expect(patches + coalesced == 1_010_000)
      client.signal(SIGKILL)
    }
  }

  @Test func `a watch whose output nobody reads stays small, and then shows the newest value`()
    async throws
  {
    try await withDaemon { served in
      // The reader begins when it is told to.
      let script = """
        exec 3<&0; sh -c 'echo pid $$ >&2; exec "$@"' sh "$@" | { read go <&3; cat; }
        """
      let watch = try ChildProcess(
        "/bin/sh",
        ["-c", script, "sh", Binaries.commandLine, "--socket", served.socket]
          + ["watch", "/c", "--format", "patch"])
      let pid = try #require(pid_t(try await watch.line("pid").dropFirst(4)))
      defer { kill(pid, SIGKILL) }
      let mirror = try await served.mirror(of: ["nothing"])
      func report() async throws -> Value? {
        try await mirror.connection.report("clients").elements.first {
          $0["label"] == "lockstep watch"
        }
      }
      try await eventually("it watches") { try await report() != nil }
      let count = 600
      for number in 1...count {
        let text = "\(number) " + String(repeating: "x", count: 100_000)
        try await mirror.send(DocumentAction.set(["c"], .text(text)))
      }
      try await eventually("all of it has come") { try await report()?["lagRevisions"] == 0 }
      let taken = ChildProcess.residentBytes(of: pid)
      #expect(taken < 100 << 20, "it takes \(taken >> 20) MiB for \(count / 10) MB")
      watch.write("go")
      let last = try await watch.line(with: "\"\(count) xxx")
      #expect(last.contains(#""revision":\#(count)"#), "\(last.suffix(40))")
      #expect(watch.output.count < count / 2)
    }
  }

  private func text(_ value: Value) throws -> String {
    guard case .text(let text) = value else {
      throw ChildProcess.Failure(description: "\(value) is no text")
    }
    return text
  }

  /// Makes ten thousand changes, `times` times. Each time is a session of its own, so that the
  /// bytes of the actions are equal and encoded only once.
  private static func change(_ served: Served, times: Int) async throws {
    try await blocking {
      var bytes: [UInt8] = []
      for number in 1...10_000 as ClosedRange<UInt64> {
        let action = DocumentAction.increment([.text("k\(number % 1000)")], by: 1)
        bytes += Frame.encode {
          ClientMessage.action(number: number, .applied, payload: action.payload).encode(into: &$0)
        }
      }
      for _ in 0..<times {
        let feeder = try served.raw()
        try feeder.greet(label: "feeder")
        try feeder.send(bytes)
        _ = try feeder.acknowledgements(through: 10_000)
        feeder.close()
      }
    }
  }
}
