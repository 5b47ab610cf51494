import ClientCore
import DaemonCore
import Documents
import EventLoop
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct ExactlyOnceTests {
  @Test(arguments: [1, 2, 3] as [UInt64])
  func `over a connection cut at random bytes each action is performed once, in order`(
    seed: UInt64
  ) async throws {
    try await withDaemon { served in
      let proxy = try ForwardingProxy(
        at: served.folder + "/proxy", to: served.socket, cuttingWith: seed)
      defer { proxy.close() }
      var options = served.options(at: proxy.path)
      options.waitsForDaemon = true
      let mirror = try Connection.open(options).subscribe(as: Value.self)
      let watcher = try await served.mirror()
      try await watcher.send(DocumentAction.set(["log"], []))
      var number: Int64 = 0
      while proxy.cuts < 40 {
        // In small batches, so that cuts fall between actions as well as into them.
        for _ in 0..<20 {
          number += 1
          mirror.post(DocumentAction.append(["log"], .integer(number)))
        }
        try await LoopClock().sleep(for: .milliseconds(2))
      }
      proxy.letThrough()
      try await mirror.send(DocumentAction.set(["last"], .integer(number)))
      #expect(mirror.connection.unacknowledged == 0)
      #expect(mirror.connection.rejections == 0)
      let revision = try await watcher.nextDaemonDigest().revision
      let log = try #require(watcher.value("/log")).elements.compactMap(\.number)
      #expect(log == Array(1...number))
      try await mirror.reached(revision: revision)
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
      mirror.connection.close()
    }
  }

  @Test func `sends over a connection that is cut return once each, with rising revisions`()
    async throws
  {
    try await withDaemon { served in
      let proxy = try ForwardingProxy(
        at: served.folder + "/proxy", to: served.socket, cuttingWith: 99)
      defer { proxy.close() }
      var options = served.options(at: proxy.path)
      options.waitsForDaemon = true
      let mirror = try await Subscription<Value>.connect(options)
      var last: UInt64 = 0
      var count = 0
      while proxy.cuts < 20 {
        let acknowledgement = try await mirror.send(DocumentAction.increment(["n"], by: 1))
        count += 1
        #expect(acknowledgement.outcome == .reduced)
        #expect(acknowledgement.revision > last)
        last = acknowledgement.revision
        #expect(mirror.value("/n") == .integer(Int64(count)))
      }
      #expect(last == UInt64(count))
      proxy.letThrough()
      mirror.connection.close()
    }
  }

  @Test(arguments: [1, 2] as [UInt64])
  func `a client that is killed and resumes its session performs each action once`(
    seed: UInt64
  ) async throws {
    try await withDaemon { served in
      var random = SplitMix64(seed)
      var acknowledged: UInt64 = 0
      var isDone = false
      var kills = 0
      while !isDone {
        let client = try ChildProcess(
          Binaries.client, [served.socket, "append", served.folder + "/token", "2000"])
        if kills < 25 {
          // At random moments: while it starts, says hello, sends, waits, or has just received.
          let pause = Int.random(in: 0..<30_000, using: &random)
          try await LoopClock().sleep(for: .microseconds(pause))
          kills += 1
          client.signal(SIGKILL)
        }
        let ending = try await client.end()
        #expect(ending == .exit(0) || ending == .signal(SIGKILL), "\(client.output.suffix(3))")
        isDone = client.output.last == "done"
        for line in client.output where line.hasPrefix("acks ") {
          let numbers = line.split(separator: " ").dropFirst().compactMap { UInt64($0) }
          // The kill may truncate the last line.
          if numbers.count == 3 { acknowledged = max(acknowledged, numbers[1]) }
        }
        let mirror = try await served.mirror()
        let log = mirror.value("/log")?.elements.compactMap(\.number) ?? []
        #expect(log == Array(1..<(Int64(log.count) + 1)), "something is missing or done twice")
        #expect(UInt64(log.count) >= acknowledged, "an acknowledged action is lost")
      }
      let mirror = try await served.mirror()
      #expect(mirror.value("/log")?.elements.count == 2000)
    }
  }

  @Test
  func `the acknowledged actions of a killed client stay, and other clients are not affected`()
    async throws
  {
    try await withDaemon { served in
      let watcher = try await served.mirror()
      for round in 0..<5 {
        let client = try await served.client("victim")
        client.write("increment /n\(round) 100000")
        try await eventually("some acknowledgements") { client.output.count > 50 + round * 37 }
        try await client.kill()
        let count = client.output.count { $0.hasPrefix("ack ") }
        try await eventually("the daemon notices") {
          try await !watcher.connection.report("clients").elements.contains {
            $0["label"] == "victim"
          }
        }
        _ = try await watcher.nextDaemonDigest()
        let done = try #require(watcher.value("/n\(round)")?.number)
        #expect(done == count || done == count + 1)
      }
      #expect(watcher.counters.snapshots == 1)
    }
  }

  @Test func `a session resumed by a second connection ends the first as replaced`() async throws {
    try await withDaemon { served in
      try await blocking {
        let first = try served.raw()
        let welcome = try first.greet()
        try first.act(1, .increment(["n"], by: 1))
        _ = try first.acknowledgements(through: 1)
        let second = try served.raw()
        let resumed = try second.greet(token: welcome.token)
        #expect(resumed.isResumed)
        #expect(resumed.lastAction == 1)
        #expect(try first.goodbye()?.code == .replaced)
        // A repeated action is acknowledged again, and not performed again.
        try second.act(1, .increment(["n"], by: 1))
        try second.act(2, .increment(["n"], by: 1))
        #expect(try second.acknowledgements(through: 2).last?.revision == 2)
      }
    }
  }

  @Test
  func `a mirror whose session is taken over while it sends is closed, and does not reconnect`()
    async throws
  {
    try await withDaemon { served in
      let mirror = try await served.mirror()
      let token = try #require(mirror.connection.welcome?.token)
      for _ in 0..<5000 { mirror.post(DocumentAction.increment(["n"], by: 1)) }
      let thief = try served.raw()
      #expect(try thief.greet(token: token).isResumed)
      try await eventually("the mirror is closed") {
        mirror.post(DocumentAction.increment(["n"], by: 1))
        guard case .closed(let goodbye) = mirror.status else { return false }
        return goodbye.code == .replaced
      }
      await #expect(throws: ClientError.self) {
        try await mirror.send(DocumentAction.set(["a"], 1))
      }
      let watcher = try await served.mirror()
      // The mirror did not reconnect, or it would have replaced the thief.
      #expect(try await watcher.connection.report("status")["connections"] == 3)
      thief.close()
    }
  }
}
