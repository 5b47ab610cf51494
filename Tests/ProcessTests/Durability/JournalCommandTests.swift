import Documents
import Foundation
import LockstepClient
import Testing
import Values
import Wire

/// `--durable`, `lockstep journal` and `lockstep fsck`, as their users see them.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct JournalCommandTests {
  @Test func `a durable action reports its durability, in its output and its status`() async throws
  {
    try await withHome { home in
      let daemon = try await home.start()
      let commands = [
        ["set", "/a", #"{"l":[]}"#], ["merge", "/a", "{}"], ["increment", "/n"],
        ["append", "/a/l", "1"], ["insert", "/a/l/0", "0"], ["copy", "/n", "/m"],
        ["move", "/m", "/o"], ["test", "/n", "1"], ["remove", "/o"],
        ["send", #"{"increment":{"path":"/n","by":2}}"#],
      ]
      for command in commands {
        let done = try await home.lockstep(command + ["--durable"])
        #expect(done.status == .exit(0), "\(command): \(done.lines)")
        #expect(done.values.first?["durable"] == true, "\(command): \(done.lines)")
        #expect(done.values.first?["notDurable"] == nil, "\(command): \(done.lines)")
      }
      let plain = try await home.lockstep("increment", "/n")
      #expect(plain.values.first?["durable"] == nil)
      let rejected = try await home.lockstep("append", "/n", "1", "--durable")
      #expect(rejected.status == .exit(1))
      try await daemon.stop()
    }
  }

  @Test(arguments: ["async", "none"])
  func `an action is reported as not durable by a daemon that keeps nothing synchronously`(
    durability: String
  ) async throws {
    try await withHome { home in
      let daemon = try await home.start(["--durability", durability])
      let done = try await home.lockstep("set", "/a", "1", "--durable")
      #expect(done.status == .exit(6), "\(done.lines)")
      #expect(done.values.first?["durable"] == false)
      #expect(done.values.first?["outcome"] == "reduced")
      #expect(
        done.lines.last?.contains("done, but not durable: the daemon does not keep") == true,
        "\(done.lines)")
      #expect(try await home.lockstep("get", "/a").lines == ["1"])
      try await daemon.stop()
    }
  }

  @Test func `a journal is read while its daemon runs, and after its end`() async throws {
    try await withHome { home in
      let daemon = try await home.start()
      let mirror = try await home.mirror(label: "writer")
      try await mirror.send(DocumentAction.set(["a"], ["b": 1]), .durable)
      try await mirror.send(DocumentAction.increment(["a", "b"], by: 41), .durable)
      try await mirror.send(DocumentAction.remove(["a", "b"]), .durable)
      _ = try? await mirror.send(DocumentAction.remove(["none"]), .durable)
      try await mirror.send(DocumentAction.set(["big"], .text(String(repeating: "x", count: 9999))))
      try await mirror.send(DocumentAction.append(["l"], [true]), .durable)

      let running = try await home.lockstep("journal", home.state)
      #expect(running.status == .exit(0), "\(running.lines)")
      let rows = running.values
      #expect(rows.map { $0["sequence"] } == [1, 2, 3, 4, 5, 6])
      #expect(rows.map { $0["revision"] } == [1, 2, 3, 3, 4, 5])
      #expect(
        rows.map { $0["action"] } == ["set", "increment", "remove", "remove", "set", "append"])
      #expect(rows[0]["payload"] == ["set": ["path": "/a", "value": ["b": 1]]])
      #expect(rows[0]["label"] == "writer")
      #expect(rows[1]["patch"] == [["op": "add", "path": "/a/b", "value": 42]])
      #expect(rows[1]["base"] == 1)
      #expect(rows[1]["outcome"] == "changed")
      #expect(rows[2]["patch"] == [["op": "remove", "path": "/a/b"]])
      guard case .text(let outcome)? = rows[3]["outcome"] else { throw Unexpected(rows[3]) }
      #expect(outcome.hasPrefix("rejected: ") && outcome.contains("/none"), "\(outcome)")
      #expect(rows[3]["patch"] == nil)
      #expect(rows[4]["payload"] == nil, "too large to be kept")
      #expect(rows[5]["patch"] == [["op": "add", "path": "/l", "value": [[true]]]])

      let latest = try await home.lockstep("journal", home.journal, "--last", "2")
      #expect(latest.values == Array(rows.suffix(2)))
      let late = try await home.lockstep("journal", home.journal, "--from", "4")
      #expect(late.values == Array(rows.suffix(2)))
      #expect(try await home.lockstep("journal", home.state, "--last", "0").lines == [])
      #expect(try await home.lockstep("fsck", home.state).status == .exit(0))

      mirror.connection.close()
      try await daemon.process.kill()
      #expect(try await home.lockstep("journal", home.state).values.prefix(6) == rows[...])
      let none = try await home.lockstep("journal", home.folder + "/none")
      #expect(none.status == .exit(2), "\(none.lines)")
      #expect(none.lines.first?.contains("/none: cannot be reached") == true, "\(none.lines)")
    }
  }

  @Test func `fsck reports the daemon's revision and digest`() async throws {
    try await withHome { home in
      let daemon = try await home.start()
      let mirror = try await home.mirror()
      for number in 1...50 {
        let action = DocumentAction.set([.text("k\(number)")], .integer(Int64(number)))
        try await mirror.send(action, .durable)
      }
      let digest = try await mirror.nextDaemonDigest().digest
      let checked = try await home.lockstep("fsck", home.state)
      #expect(checked.status == .exit(0), "\(checked.lines)")
      #expect(checked.values.first?["digest"] == .text(digest.description))
      #expect(checked.values.first?["revision"] == 50)
      #expect(checked.values.first?["soundRevision"] == 50)
      #expect(checked.values.first?["findings"] == [])
      mirror.connection.close()
      try await daemon.stop()
      let later = try await home.lockstep("fsck", home.journal)
      #expect(later.values.first?["digest"] == .text(digest.description))
      let missing = try await home.lockstep("fsck", home.folder + "/none")
      #expect(missing.status == .exit(2), "\(missing.lines)")
    }
  }

  private struct Unexpected: Error {
    let value: Value
    init(_ value: Value) { self.value = value }
  }
}
