import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// A client in another language, written from `Protocols/wire.md` alone.
@Suite(.enabled(if: Binaries.hasPython, Binaries.pythonComment), .timeLimit(.minutes(2)))
struct PythonClientTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `a client written from the document alone mirrors a daemon`(seed: UInt64) async throws {
    try await withDaemon { served in
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(.root, RandomChanges.beginning))
      // A long text, so that the snapshot has more than one part.
      let long = String(repeating: "é", count: 50_000)
      try await mirror.send(DocumentAction.set(["long"], .text(long)))

      let script = (#filePath as NSString).deletingLastPathComponent + "/lockstep_client.py"
      let python = try ChildProcess(
        try #require(Binaries.python),
        [
          "-B", script, served.socket, "/objects", "/objects/o1/z~1~0", "/lists",
          "/lists/l0/1", "/counts/c1", "/nothing",
        ])
      defer { python.signal(SIGKILL) }
      try await python.line(#"{"live""#)
      var changes = RandomChanges(seed: seed)
      for number in 0..<2000 {
        let change = changes.next()
        // Waits sometimes, so that the patches arrive one by one.
        if number % 4 == 0 { _ = try? await mirror.send(change) } else { mirror.post(change) }
      }
      try await eventually("it has come back three times and sent its actions") {
        mirror.value("/python") == 20
      }
      try await mirror.send(DocumentAction.set(["end"], true))
      #expect(try await python.end() == .exit(0), "\(python.output)")

      let said = try python.output.map { try JSON.parse(Array($0.utf8)) }
      #expect(said.count == 9, "\(python.output)")
      for line in said.dropFirst().dropLast() {
        #expect(line["equal"] == true, "\(line)")
        #expect(line["resyncs"] == 0)
      }
      let whole = try #require(said.dropFirst().first)
      #expect(whole["digest"] == .text("\(try await mirror.daemonDigest().digest)"))
      #expect(whole["snapshots"] == 1, "it came back by patches")
      #expect(try #require(whole["patches"]?.number) > 100)
      let last = try #require(said.last)
      #expect(last["connections"] == 4)
      #expect(last["resumed"] == 3)
      #expect(last["actions"] == 40)
      #expect(last["rejected"] == 20)
      #expect(last["unknown"] == 0)
      #expect(last["actionCases"] == 11)
    }
  }
}
