public import Lockstep

/// Follows a web socket while the app is in the foreground.
public struct Feed: Reducer {
  @ObservableState
  public struct State: Equatable, Sendable {
    public var scenePhase = ScenePhase.background
    public var connection = Connection.disconnected
    /// The latest messages, newest last.
    public var messages: SyncArray<String> = []
    /// The number of consecutive connections without a message.
    public var failures = 0

    public init() {}
  }

  @ObservableState(frozen: true)
  public enum ScenePhase: Equatable, Sendable {
    case background, active
  }

  @ObservableState(frozen: true)
  public enum Connection: Equatable, Sendable {
    case disconnected, connecting, connected
    /// The connection was lost for this reason; the next attempt follows after a backoff.
    case waiting(String)
  }

  @Action
  public enum Action: Equatable, Sendable {
    case scenePhaseEvent(ScenePhase)
    case connectWebSocket
    case webSocketConnected
    case updateWebSocket(String)
    case webSocketClosed(String)
    case disconnectWebSocket
    /// Follow the web socket until the client that asked for it disconnects.
    case watchWhileConnected
  }

  /// The number of messages kept.
  static let messageLimit = 100

  private enum CancelID { case webSocket }

  @Dependency(\.webSocket) private var webSocket
  @Dependency(\.clock) private var clock

  public init() {}

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .scenePhaseEvent(.active):
      state.scenePhase = .active
      return state.connection == .disconnected ? .send(.connectWebSocket) : .none

    case .scenePhaseEvent(.background):
      state.scenePhase = .background
      state.connection = .disconnected
      return .cancel(id: CancelID.webSocket)

    case .connectWebSocket:
      state.connection = .connecting
      return follow()

    case .webSocketConnected:
      state.connection = .connected
      return .none

    case .updateWebSocket(let message):
      state.failures = 0
      state.messages.append(message)
      if state.messages.count > Self.messageLimit { state.messages.removeFirst() }
      return .none

    case .webSocketClosed(let reason):
      state.connection = .waiting(reason)
      state.failures += 1
      return connectAgain(afterFailures: state.failures)

    case .disconnectWebSocket:
      state.connection = .disconnected
      return .cancel(id: CancelID.webSocket)

    case .watchWhileConnected:
      return watch()
    }
  }

  /// Connect, and send every message as an action until the remote closes.
  private func follow() -> Effect<Action> {
    .run(name: "web socket") { [webSocket] send in
      let messages = try await webSocket.connect()
      await send(.webSocketConnected)
      for try await message in messages { await send(.updateWebSocket(message)) }
      await send(.webSocketClosed("the remote has closed"))
    } catch: { error, send in
      await send(.webSocketClosed("\(error)"))
    }
    .cancellable(id: CancelID.webSocket, cancelInFlight: true)
  }

  /// Wait a quarter of a second, then twice as long for each further failure, at most 5 s.
  private func connectAgain(afterFailures failures: Int) -> Effect<Action> {
    let wait = min(.milliseconds(250) * (1 << min(failures - 1, 5)), Duration.seconds(5))
    return .run(name: "reconnect") { [clock] send in
      try await clock.pause(for: wait)
      await send(.connectWebSocket)
    }
    .cancellable(id: CancelID.webSocket, cancelInFlight: true)
  }

  /// Send every message as an action until the remote closes, cannot be reached, or the client is
  /// gone.
  private func watch() -> Effect<Action> {
    .run(name: "watch") { [webSocket] send in
      for try await message in try await webSocket.connect() {
        await send(.updateWebSocket(message))
      }
    } catch: { _, _ in
    }
    .ownedByClient.accepted
  }
}
