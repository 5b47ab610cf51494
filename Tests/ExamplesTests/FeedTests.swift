import FeedFeature
import Lockstep
import LockstepTesting
import Synchronization
import Testing

@Suite struct FeedTests {
  private func store(
    _ webSocket: WebSocket, _ state: Feed.State = Feed.State()
  ) -> TestStore<Feed> {
    TestStore(initialState: state, reducer: { Feed() }) { $0.webSocket = webSocket }
  }

  private func connected() -> Feed.State {
    var state = Feed.State()
    state.scenePhase = .active
    state.connection = .connected
    return state
  }

  @Test("EFF-10: a scene that becomes active connects, and each message becomes an action")
  func chain() async {
    let remote = FakeRemote()
    let store = store(remote.webSocket)
    await store.send(.scenePhaseEvent(.active)) { $0.scenePhase = .active }
    await store.receive(.connectWebSocket) { $0.connection = .connecting }
    await store.receive(.webSocketConnected) { $0.connection = .connected }
    remote.say("hello")
    await store.receive(.updateWebSocket("hello")) { $0.messages = ["hello"] }

    let chain = store.log.chain(of: store.log.newest?.sequence ?? 0)
    #expect(chain.map(\.name) == ["updateWebSocket", "connectWebSocket", "scenePhaseEvent"])
    await store.send(.disconnectWebSocket) { $0.connection = .disconnected }
    await store.finish()
  }

  @Test("EFF-09: the web socket is in the table of effects, an immediate effect is not")
  func table() async {
    let remote = FakeRemote()
    let store = store(remote.webSocket)
    store.exhaustivity = .off
    await store.send(.scenePhaseEvent(.active))
    await store.receive(.webSocketConnected)
    #expect(store.runningEffects.map(\.name) == ["web socket"])
    #expect(store.runningEffects.first?.action == "connectWebSocket")
    await store.send(.disconnectWebSocket)
    #expect(store.runningEffects.isEmpty)
  }

  @Test("EFF-12: a background scene cancels the web socket, and no further message arrives")
  func background() async {
    let remote = FakeRemote()
    let store = store(remote.webSocket)
    await store.send(.scenePhaseEvent(.active)) { $0.scenePhase = .active }
    await store.receive(.connectWebSocket) { $0.connection = .connecting }
    await store.receive(.webSocketConnected) { $0.connection = .connected }
    await store.send(.scenePhaseEvent(.background)) {
      $0.scenePhase = .background
      $0.connection = .disconnected
    }
    remote.say("too late")
    await store.finish()
  }

  @Test("a scene that is already active does not connect twice")
  func once() async {
    let store = store(FakeRemote().webSocket, connected())
    await store.send(.scenePhaseEvent(.active))
  }

  @Test("the feed keeps the last 100 messages")
  func bounded() async {
    let store = store(FakeRemote().webSocket, connected())
    store.exhaustivity = .off
    for number in 1...130 { await store.send(.updateWebSocket("\(number)")) }
    #expect(store.state.messages.count == 100)
    #expect(store.state.messages.first == "31" && store.state.messages.last == "130")
  }

  @Test("EFF-12: after a remote closes, the feed waits and reconnects")
  func reconnect() async {
    let remote = FakeRemote()
    let store = store(remote.webSocket)
    await store.send(.scenePhaseEvent(.active)) { $0.scenePhase = .active }
    await store.receive(.connectWebSocket) { $0.connection = .connecting }
    await store.receive(.webSocketConnected) { $0.connection = .connected }
    remote.close()
    await store.receive(.webSocketClosed("the remote has closed")) {
      $0.connection = .waiting("the remote has closed")
      $0.failures = 1
    }
    await store.clock.advance(by: .milliseconds(250))
    await store.receive(.connectWebSocket) { $0.connection = .connecting }
    await store.receive(.webSocketConnected) { $0.connection = .connected }
    remote.say("again")
    await store.receive(.updateWebSocket("again")) {
      $0.messages = ["again"]
      $0.failures = 0
    }
    await store.send(.disconnectWebSocket) { $0.connection = .disconnected }
    await store.finish()
  }

  @Test("the backoff doubles, up to 5 s")
  func backoff() async {
    let store = store(WebSocket { throw Unreachable() })
    await store.send(.connectWebSocket) { $0.connection = .connecting }
    for (number, wait) in [250, 500, 1000, 2000, 4000, 5000, 5000].enumerated() {
      await store.receive(.webSocketClosed("unreachable")) {
        $0.connection = .waiting("unreachable")
        $0.failures = number + 1
      }
      await store.clock.advance(by: .milliseconds(wait - 1))
      #expect(store.log.newest?.name == "webSocketClosed")
      await store.clock.advance(by: .milliseconds(1))
      await store.receive(.connectWebSocket) { $0.connection = .connecting }
    }
    await store.skipReceivedActions()
    await store.send(.disconnectWebSocket) { $0.connection = .disconnected }
    await store.finish()
  }

  @Test("disconnecting cancels the backoff too")
  func noReconnect() async {
    let store = store(WebSocket { throw Unreachable() })
    await store.send(.connectWebSocket) { $0.connection = .connecting }
    await store.receive(\.webSocketClosed) {
      $0.connection = .waiting("unreachable")
      $0.failures = 1
    }
    await store.send(.disconnectWebSocket) { $0.connection = .disconnected }
    await store.clock.advance(by: .seconds(10))
    await store.finish()
  }

  @Test("EFF-09: watching changes nothing, is accepted, and is owned by its client")
  func watching() async {
    let remote = FakeRemote()
    let store = store(remote.webSocket)
    let task = await store.send(.watchWhileConnected)
    #expect(store.log.newest?.outcome == .accepted)
    #expect(store.runningEffects.map(\.isOwned) == [true])
    remote.say("hello")
    await store.receive(.updateWebSocket("hello")) { $0.messages = ["hello"] }
    await task.cancel()
    #expect(store.runningEffects.isEmpty)
  }

  @Test("EFF-11: 1,000 short effects leave nothing in the table")
  func manyShortEffects() async {
    let store = store(WebSocket { throw Unreachable() })
    for _ in 0..<1000 { await store.send(.watchWhileConnected) }
    await store.finish()
    #expect(store.runningEffects.isEmpty)
  }
}

/// A remote that sends what the test tells it to, to every connection.
private final class FakeRemote: Sendable {
  private let connections = Mutex<[AsyncThrowingStream<String, any Error>.Continuation]>([])

  var webSocket: WebSocket {
    WebSocket {
      let (messages, continuation) = AsyncThrowingStream<String, any Error>.makeStream()
      self.connections.withLock { $0.append(continuation) }
      return messages
    }
  }

  func say(_ message: String) {
    connections.withLock { for connection in $0 { connection.yield(message) } }
  }

  func close() {
    connections.withLock { connections in
      for connection in connections { connection.finish() }
      connections = []
    }
  }
}

private struct Unreachable: Error, CustomStringConvertible {
  var description: String { "unreachable" }
}
