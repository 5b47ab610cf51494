import FeedFeature
import Foundation
import LockstepClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct FeedTests {
  /// Starts a remote, and a daemon that connects to it on request.
  private func withFeed(
    _ body: (ServedExample, _ remote: ChildProcess) async throws -> Void
  ) async throws {
    try await withExample("feedd") { folder in
      ["--remote", folder + "/remote"]
    } _: { example in
      try await body(example, try await startRemote(example))
    }
  }

  private func startRemote(_ example: ServedExample) async throws -> ChildProcess {
    let remote = try ChildProcess(
      Binaries.example("feed"), ["serve-remote", example.folder + "/remote"])
    try await remote.line("serving")
    return remote
  }

  /// Connects the feed, and returns when it is connected.
  private func connect(_ example: ServedExample) async throws -> ChildProcess {
    let watcher = try example.start("feed", "watch")
    try await watcher.line("disconnected")
    _ = try await example.run("feed", "active")
    try await watcher.line("connected")
    return watcher
  }

  @Test("EFF-10: the cause of a message is explained over three levels")
  func chain() async throws {
    try await withFeed { example, remote in
      let watcher = try await connect(example)
      remote.write("hello")
      try await watcher.line("connected, 1 messages, the last: hello")
      let log = try await example.log()
      let update = try #require(log.last)
      let sequence = try #require(update["sequence"] as? Int)
      #expect(update["action"] as? String == "updateWebSocket")

      let why = try await example.lockstep("why", "\(sequence)").lines
      try #require(why.count == 3)
      #expect(why[0].contains(#""action":"updateWebSocket""#))
      #expect(why[1].contains(#""action":"connectWebSocket""#))
      #expect(why[2].contains(#""action":"scenePhaseEvent""#))
      #expect(why[2].contains(#""origin":"client"#))
      let tree = try await example.lockstep("log", "--tree").lines
      #expect(tree.count == log.count && tree[0].contains("scenePhaseEvent"))
    }
  }

  @Test("EFF-03: a long effect is listed with its action until it is cancelled")
  func table() async throws {
    try await withFeed { example, remote in
      let watcher = try await connect(example)
      let effects = try await example.lockstep("effects").lines
      try #require(effects.count == 1, "what completes at once is never listed")
      #expect(effects[0].contains(#""name":"web socket""#))
      #expect(effects[0].contains(#""key":"webSocket""#))
      #expect(effects[0].contains(#""action":"connectWebSocket""#))
      let id = try #require(effects[0].firstMatch(of: /"id":"([0-9a-f-]{36})"/)?.1)

      let done = try await example.lockstep("effects", "cancel", String(id))
      #expect(done.lines == [#"{"cancelled":1}"#])
      #expect(try await example.effects().isEmpty)
      #expect(try await example.lockstep("effects", "cancel", String(id)).status == .exit(8))
      remote.write("nobody listens")
      _ = try await example.run("feed", "background")
      _ = try await example.run("feed", "active")
      try await watcher.line("connected")
      remote.write("somebody listens")
      try await watcher.line("connected, 1 messages, the last: somebody listens")
    }
  }

  @Test("EFF-12: each line of the remote is one message, however its bytes are split")
  func lines() async throws {
    try await withFeed { example, remote in
      let watcher = try await connect(example)
      for number in 1...250 { remote.write("message \(number)") }
      try await watcher.line(with: "the last: message 250")
      let messages = watcher.output.compactMap { $0.firstMatch(of: /message (\d+)$/)?.1 }
      #expect(messages == (1...250).map { "\($0)" }, "every state is seen, in order")
      let last = try await example.lockstep("get", "/messages/0").lines
      #expect(last == [#""message 151""#], "the last 100 are kept")
    }
  }

  @Test("EFF-12: the background cancels the effect, and the foreground starts another")
  func background() async throws {
    try await withFeed { example, _ in
      let watcher = try await connect(example)
      _ = try await example.run("feed", "background")
      #expect(try await example.effects().isEmpty)
      try await watcher.line("disconnected")
      _ = try await example.run("feed", "active")
      try await watcher.line("connected")
      #expect(try await example.effects() == ["web socket"])
    }
  }

  @Test("EFF-12: when the remote dies, the feed waits, and reconnects to the next")
  func reconnect() async throws {
    try await withFeed { example, remote in
      let watcher = try await connect(example)
      try await remote.kill()
      try await watcher.line("waiting, for the remote has closed")
      let next = try await startRemote(example)
      try await watcher.line("connected")
      next.write("again")
      try await watcher.line(with: "the last: again")
      #expect(try await example.effects() == ["web socket"])
    }
  }

  @Test("EFF-11: an effect of a killed client is gone within a second")
  func ownedByClient() async throws {
    try await withFeed { example, remote in
      let watcher = try example.start("feed", "watch-while-connected")
      try await watcher.line("disconnected")
      #expect(try await example.effects() == ["watch"])
      remote.write("hello")
      try await watcher.line("disconnected, 1 messages, the last: hello")

      let feed = try await MirrorStore<Feed>.connect(.init(socket: example.socket))
      try await watcher.kill()
      try await eventually("the effect is gone", within: .seconds(1)) {
        try await feed.connection.report("effects").elements.isEmpty
      }
      await feed.connection.finish()
    }
  }

  @Test("EFF-11: 1,000 short effects leave nothing behind")
  func manyShortEffects() async throws {
    try await withFeed { example, remote in
      // There is no remote, so each effect ends at once.
      try await remote.kill()
      let feed = try await MirrorStore<Feed>.connect(.init(socket: example.socket))
      for _ in 0..<1000 { feed.post(.watchWhileConnected) }
      let acknowledgement = try await feed.send(.watchWhileConnected)
      #expect(acknowledgement.outcome == .accepted)
      try await eventually("no effect is left") {
        try await feed.connection.report("effects").elements.isEmpty
      }
      let status = try await feed.connection.report("status")
      #expect(status["actions"]?.number == 1001)
      await feed.connection.finish()
    }
  }
}
