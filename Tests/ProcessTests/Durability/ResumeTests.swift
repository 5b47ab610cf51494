import ClientCore
import DaemonCore
import Documents
import Foundation
import LockstepClient
import Testing
import Values
import Wire

/// A mirror continues after a restart without a snapshot if its revision was kept.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(5)))
struct ResumeTests {
  @Test func `what a policy hid is visible when the policy is removed`() async throws {
    try await withHome { home in
      let file = home.folder + "/policy.yaml"
      let policy = """
        version: 1
        rules:
          - users: [\(geteuid())]
            connect: true
            read: [/]
            deny-read: [/secret]
            act: ["*"]
        """
      let before = try await home.start()
      let writer = try await home.mirror()
      try await writer.send(DocumentAction.set(["secret"], "hush"), .durable)
      writer.connection.close()
      try await before.stop()
      try policy.write(toFile: file, atomically: true, encoding: .utf8)
      let first = try await home.start(["--policy", file])
      let mirror = try await home.mirror()
      try await mirror.send(DocumentAction.set(["open"], 1), .durable)
      #expect(mirror.state == ["open": 1])
      try await first.process.kill()
      let second = try await home.start()
      try await eventually("it sees all") { mirror.state == ["open": 1, "secret": "hush"] }
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
      mirror.connection.close()
      try await second.stop()
    }
  }

  /// Mirrors in other processes, and in this one.
  private struct Crowd {
    let processes: [ChildProcess]
    let mirrors: [Subscription<Value>]

    init(_ home: Home, processes: Int, mirrors: Int) async throws {
      var clients: [ChildProcess] = []
      for number in 1...processes {
        clients.append(try ChildProcess(Binaries.client, [home.socket, "mirror-\(number)"]))
      }
      for client in clients { try await client.line("live") }
      var own: [Subscription<Value>] = []
      for number in 1...mirrors { own.append(try await home.mirror(label: "own-\(number)")) }
      (self.processes, self.mirrors) = (clients, own)
    }

    /// Waits until all have reached a revision, and checks that each has the daemon's digest and
    /// has received exactly `snapshots` snapshots.
    func check(_ revision: UInt64, _ digest: Digest, snapshots: UInt64) async throws {
      for mirror in mirrors {
        try await mirror.reached(revision: revision)
        #expect(mirror.digest == digest)
        #expect(mirror.counters.snapshots == snapshots)
        #expect(mirror.connection.divergences == 0)
      }
      for client in processes {
        client.write("reached \(revision)")
        #expect(try await client.line("at") == "at \(revision) \(digest)")
        client.write("counters")
        let counters = try await client.line("counters").split(separator: " ")
        #expect(counters[1] == "\(snapshots)")
      }
    }
  }

  /// Writes `count` changes, and waits for the mirrors.
  private func write(_ count: Int, _ home: Home, _ crowd: Crowd) async throws {
    let writer = crowd.mirrors[0]
    for number in 1...count {
      writer.post(DocumentAction.append(["log"], .integer(Int64(number))))
    }
    let last = try await writer.send(DocumentAction.increment(["writes"], by: 1), .durable)
    #expect(last.mark == .durable)
    let (revision, digest) = try await writer.nextDaemonDigest()
    try await crowd.check(revision, digest, snapshots: 1)
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `fifty mirrors continue after a restart without a snapshot`(signal: Int32) async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let crowd = try await Crowd(home, processes: 15, mirrors: 35)
      try await write(300, home, crowd)
      first.process.signal(signal)
      let ending = try await first.process.end()
      #expect(ending == (signal == SIGTERM ? .exit(0) : .signal(SIGKILL)))

      let second = try await home.start()
      defer { second.process.signal(SIGKILL) }
      #expect(second.epoch == first.epoch)
      #expect(second.run == first.run + 1)
      // Changes after the restart arrive as patches.
      try await write(300, home, crowd)
      let status = try await crowd.mirrors[0].connection.report("status")
      #expect(status["clients"] == 50)
      #expect(status["snapshots"] == 0, "the daemon sent snapshots")
      let clients = try await home.lockstep("clients").values
      #expect(clients.count { $0["label"] != "lockstep clients" } == 50)
      try await second.stop()
      for client in crowd.processes { client.signal(SIGKILL) }
      for mirror in crowd.mirrors { mirror.connection.close() }
    }
  }

  @Test func `a mirror stopped during two restarts continues where it was`() async throws {
    try await withHome { home in
      let first = try await home.start()
      defer { first.process.signal(SIGKILL) }
      let crowd = try await Crowd(home, processes: 3, mirrors: 1)
      try await write(100, home, crowd)
      for client in crowd.processes { client.signal(SIGSTOP) }
      let writer = crowd.mirrors[0]
      // Three daemons make the changes that the stopped mirrors miss.
      try await writer.send(DocumentAction.set(["first"], true), .durable)
      try await first.process.kill()
      let second = try await home.start()
      defer { second.process.signal(SIGKILL) }
      try await writer.send(DocumentAction.set(["second"], true), .durable)
      try await second.process.kill()
      let third = try await home.start()
      for client in crowd.processes { client.signal(SIGCONT) }
      try await write(100, home, crowd)
      #expect(try await writer.connection.report("status")["snapshots"] == 0)
      #expect(third.run == first.run + 2)
      try await third.stop()
      for client in crowd.processes { client.signal(SIGKILL) }
      writer.connection.close()
    }
  }

  @Test func `a mirror ahead of the kept state gets a snapshot, and shows the kept state`()
    async throws
  {
    try await withHome { home in
      // Async, and never synced early: far more is applied than kept.
      let first = try await home.start(["--durability", "async"])
      defer { first.process.signal(SIGKILL) }
      let writer = try await home.mirror()
      let watcher = try await home.mirror()
      for number in 1...20_000 {
        writer.post(DocumentAction.set(["n"], .integer(Int64(number))))
      }
      try await eventually("it shows some") { watcher.value("/n") != nil }
      try await first.process.kill()
      // It also reads what its socket's buffer still holds.
      try await eventually("it has read to the end") { watcher.status != .live }
      let ahead = watcher.position?.revision ?? 0
      let kept = try KeptDocument(home.state)
      let second = try await home.start(["--durability", "async"])
      defer { second.process.signal(SIGKILL) }
      #expect(second.digest == kept.digest)
      let acknowledgement = try await writer.send(DocumentAction.set(["end"], true))
      // Its position in the former run may have a larger revision.
      try await eventually("it is back") {
        watcher.status == .live && watcher.position?.run == second.run
      }
      try await watcher.reached(revision: acknowledgement.revision)
      let (ours, theirs) = try await watcher.bothDigests()
      #expect(ours == theirs)
      #expect(watcher.connection.divergences == 0)
      #expect(watcher.counters.snapshots == (ahead > kept.revision ? 2 : 1))
      try await second.stop()
      writer.connection.close()
      watcher.connection.close()
    }
  }
}
