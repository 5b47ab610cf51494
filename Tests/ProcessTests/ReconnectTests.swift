import ClientCore
import DaemonCore
import Documents
import EventLoop
import Foundation
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct ReconnectTests {
  @Test func `mirrors of a killed daemon are stale, and live again with its successor`()
    async throws
  {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let first = try await startDaemon(socket)
      defer { first.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: first)
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(["before"], true))
      let epoch = try #require(mirror.position?.epoch)

      try await first.kill()
      try await eventually("the mirror is stale") {
        if case .stale = mirror.status { true } else { false }
      }
      #expect(mirror.value("/before") == true, "a stale mirror still shows what was")
      mirror.post(DocumentAction.set(["meanwhile"], true))

      let second = try await startDaemon(socket)
      defer { second.signal(SIGKILL) }
      try await mirror.send(DocumentAction.set(["after"], true))
      #expect(mirror.status == .live)
      #expect(mirror.position?.epoch != epoch)
      #expect(mirror.counters.snapshots == 2)
      #expect(mirror.state?.isSame(as: ["meanwhile": true, "after": true]) == true)
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
      mirror.connection.close()
      try await second.kill()
    }
  }

  @Test func `after a daemon's death sent actions are unknown, and unsent ones are performed once`()
    async throws
  {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let first = try await startDaemon(socket)
      defer { first.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: first)
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.increment(["n"], by: 1))

      // A stopped daemon receives bytes and does not process them.
      first.signal(SIGSTOP)
      async let sent = Self.outcome(of: mirror)
      try await eventually("the action is on its way") { mirror.connection.unacknowledged == 1 }
      try await LoopClock().sleep(for: .milliseconds(50))
      try await first.kill()
      try await eventually("the mirror is stale") {
        if case .stale = mirror.status { true } else { false }
      }
      // Never sent, because no daemon is serving.
      async let unsent = Self.outcome(of: mirror)
      try await eventually("both wait") { mirror.connection.unacknowledged == 2 }

      let second = try await startDaemon(socket)
      defer { second.signal(SIGKILL) }
      #expect(await sent == "outcomeUnknown")
      #expect(await unsent == "reduced")
      #expect(mirror.value("/n") == 1)
      mirror.connection.close()
      try await second.kill()
    }
  }

  private static func outcome(of mirror: Subscription<Value>) async -> String {
    do {
      return "\(try await mirror.send(DocumentAction.increment(["n"], by: 1)).outcome)"
    } catch ClientError.outcomeUnknown {
      return "outcomeUnknown"
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: [false, true])
  func `F4: what waits when the daemon dies is done by the next, or shows no more and is told`(
    keepsState: Bool
  ) async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let arguments = keepsState ? ["--state-dir", folder + "/state", "--durability", "sync"] : []
      let first = try await startDaemon(socket, arguments)
      defer { first.signal(SIGKILL) }
      // What has come through is sent, and nothing answers it.
      let proxy = try ForwardingProxy(at: folder + "/proxy", to: socket)
      defer { proxy.close() }
      let mirror = try await MirrorStore.connect(
        optimistic: DocumentFeature(), .init(socket: proxy.path))
      var failed = mirror.failedPosts.makeAsyncIterator()
      try await mirror.send(.increment(["n"], by: 1), keepsState ? .durable : .applied)
      first.signal(SIGSTOP)
      let before = proxy.fromClients.count
      mirror.post(.increment(["n"], by: 10), .optimistic)
      #expect(mirror.state.root == ["n": 11] && mirror.confirmed.root == ["n": 1])
      try await eventually("it is sent") { proxy.fromClients.count > before }
      try await first.kill()
      try await eventually("the mirror is stale") { mirror.connection.state != .live }
      mirror.post(.increment(["n"], by: 100), .optimistic)
      #expect(mirror.state.root == ["n": 111] && mirror.pending.count == 2)

      let second = try await startDaemon(socket, arguments)
      defer { second.signal(SIGKILL) }
      try await mirror.send(.set(["end"], true), .optimistic)
      #expect(mirror.pending.isEmpty)
      if keepsState {
        #expect(mirror.state.root == ["n": 111, "end": true])
      } else {
        #expect(mirror.state.root == ["n": 100, "end": true])
        let post = try #require(await failed.next())
        #expect(post.action == .increment(["n"], by: 10))
        guard case .outcomeUnknown = post.error else {
          Issue.record("\(post.error)")
          return
        }
      }
      #expect(mirror.state.root.isSame(as: mirror.confirmed.root))
      await mirror.connection.finish()
      // Nothing else has failed.
      #expect(await failed.next() == nil)
    }
  }

  @Test func `a client that is told of a restart reconnects to the next daemon`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let first = try await startDaemon(socket)
      defer { first.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: first)
      let client = try await served.client("returns")
      first.signal(SIGTERM)
      #expect(try await first.end() == .exit(0))
      let second = try await startDaemon(socket)
      defer { second.signal(SIGKILL) }
      client.write("increment /n 3")
      try await client.line("done")
      try await client.kill()
      try await second.kill()
    }
  }

  @Test func `a client that waits for its daemon is served when it starts`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      var options = Connection.Options(socket: socket, label: "early")
      options.waitsForDaemon = true
      let mirror = try Connection.open(options).subscribe(as: Value.self)
      mirror.post(DocumentAction.set(["early"], true))
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      try await mirror.reached(revision: 1)
      #expect(mirror.value("/early") == true)
      mirror.connection.close()
      try await daemon.kill()
    }
  }

  @Test func `a client without a daemon fails at once`() async throws {
    try await withFolder { folder in
      let options = Connection.Options(socket: folder + "/socket", label: "test")
      let error = await #expect(throws: ClientError.self) {
        try await Subscription<Value>.connect(options)
      }
      #expect(error?.description.contains("Is lockstepd running?") == true)
    }
  }

  @Test func `a mirror without references says goodbye`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: daemon)
      let watcher = try await served.mirror()
      var mirror: Subscription<Value>? = try await served.mirror()
      try await mirror?.send(DocumentAction.set(["a"], 1))
      #expect(try await watcher.connection.report("clients").elements.count == 2)
      mirror = nil
      try await eventually("the daemon serves one client", within: .seconds(5)) {
        try await watcher.connection.report("clients").elements.count == 1
      }
      try await daemon.kill()
    }
  }

  @Test func `an idle client gets its position, and stays connected`() async throws {
    try await withDaemon(["--limit", "bookmarkIntervalMs=1500"]) { served in
      let idle = try await served.mirror(of: ["nothing"])
      #expect(
        idle.connection.welcome?.limits.first { $0.name == "bookmarkIntervalMs" }?.value == 1500)
      let writer = try await served.mirror()
      try await writer.send(DocumentAction.set(["a"], 1))
      try await idle.reached(revision: 1)
      #expect(idle.state == nil)
      // After several ticks of both ends it is still the same connection.
      try await LoopClock().sleep(for: .seconds(4))
      #expect(try await writer.connection.report("status")["connections"] == 2)
      #expect(idle.status == .live)
    }
  }

  @Test func `a client stopped for longer than the daemon's silence limit keeps its connection`()
    async throws
  {
    try await withDaemon(["--limit", "bookmarkIntervalMs=1000"]) { served in
      let writer = try await served.mirror()
      let client = try await served.client("sleeper")
      client.signal(SIGSTOP)
      // After four intervals of silence it would take the daemon for dead.
      try await LoopClock().sleep(for: .milliseconds(5500))
      try await writer.send(DocumentAction.set(["a"], 1))
      client.signal(SIGCONT)
      client.write("reached 1")
      try await client.line("done")
      #expect(try await writer.connection.report("status")["connections"] == 2)
      client.signal(SIGKILL)
    }
  }

  @Test func `two mirrors of one path on one connection share a subscription`() async throws {
    try await withDaemon { served in
      let first = try await served.mirror(of: ["a"])
      var second: Subscription<Value>? = first.connection.subscribe(to: ["a"])
      try await second?.reached(revision: 0)
      try await first.send(DocumentAction.set(["a"], 7))
      #expect(first.state?.isSame(as: 7) == true)
      #expect(second?.state?.isSame(as: 7) == true)
      #expect(try await first.connection.report("status")["scopes"] == 1)
      // Ending one does not affect the other.
      second = nil
      try await first.send(DocumentAction.set(["a"], 8))
      #expect(first.state?.isSame(as: 8) == true)
    }
  }
}
