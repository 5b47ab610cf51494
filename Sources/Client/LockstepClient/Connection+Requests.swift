import CBOR
import ClientCore
public import Lockstep
public import Values
public import Wire

extension Connection {
  // MARK: Actions

  /// Send an action, and return when every mirror of this connection contains its change. Throws
  /// `ClientError.rejected` when it was rejected, `.outcomeUnknown` when its outcome cannot be
  /// known.
  ///
  /// The cancellation of the task ends the wait with `CancellationError`, and does not take the
  /// action back: it goes on as one that was posted. A task that is cancelled already sends nothing.
  @discardableResult
  public func send(
    _ action: some SynchronizableAction, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await send(payload: Self.payload(action), mark)
  }

  /// Send an action that is already encoded.
  @discardableResult
  public func send(payload: [UInt8], _ mark: Mark = .applied) async throws -> Acknowledgement {
    try await send(payload: payload, mark, isOptimistic: false)
  }

  func send(
    payload: [UInt8], _ mark: Mark, isOptimistic: Bool
  ) async throws -> Acknowledgement {
    try await link.wait { state, waiter in
      if case .closed(let goodbye) = state.connection {
        return state.deliver { waiter.resume(throwing: ClientError.closed(goodbye)) }
      }
      let id = state.session.send(payload, mark, isOptimistic: isOptimistic, into: &state.commands)
      state.actions[id] = waiter
    }
  }

  /// Send an action without waiting. Like any other, it is kept until acknowledged, and retried
  /// after a reconnect; a rejection is only counted (`rejections`), and a store tells of it, as of
  /// all that is not done (`MirrorStore.failedPosts`).
  public func post(_ action: some SynchronizableAction) { post(payload: Self.payload(action)) }

  /// Send an action that is already encoded, without waiting.
  public func post(payload: [UInt8]) { post(payload: payload, .applied, isOptimistic: false) }

  func post(payload: [UInt8], _ mark: Mark, isOptimistic: Bool) {
    link.perform { state in
      if case .closed = state.connection { return }
      _ = state.session.send(payload, mark, isOptimistic: isOptimistic, into: &state.commands)
    }
  }

  static func payload(_ action: some SynchronizableAction) -> [UInt8] {
    var encoder = CBOREncoder()
    action.encode(into: &encoder)
    return encoder.bytes
  }

  /// The action that a payload was made of; nil if it was one of another type.
  static func action<Action: SynchronizableAction>(
    _ payload: [UInt8], seed: HashSeed = .unseeded
  ) -> Action? {
    try? CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try Action(from: &decoder, seed: seed)
    }
  }

  // MARK: Questions

  /// The round-trip time through the daemon's loop.
  public func ping() async throws -> Duration {
    let clock = ContinuousClock()
    let start = clock.now
    _ = try await link.request { state, waiter in
      let number = state.nextNumber()
      state.pongs[number] = waiter
      state.session.ping(number, into: &state.commands)
    }
    return start.duration(to: clock.now)
  }

  /// A report of the daemon about itself: "status", "clients" or "limits", or about the things that
  /// the arguments name.
  public func report(_ name: String, arguments: [String] = []) async throws -> Value {
    try await link.request { state, waiter in
      let number = state.nextNumber()
      state.reports[number] = waiter
      state.session.query(number, name, arguments: arguments, into: &state.commands)
    }
  }

  /// The reports of a query that the daemon keeps answering, such as "log.follow". The stream ends
  /// with the connection, and throws its error. A reader that is slower than the daemon makes the
  /// stream grow.
  public func reports(
    _ name: String, arguments: [String] = []
  ) -> AsyncThrowingStream<Value, any Error> {
    AsyncThrowingStream { continuation in
      let number = link.perform { state -> UInt64? in
        guard state.session.isLive else {
          let error = link.downError(state)
          state.deliver { continuation.finish(throwing: error) }
          return nil
        }
        let number = state.nextNumber()
        state.reportStreams[number] = continuation
        state.session.query(number, name, arguments: arguments, into: &state.commands)
        return number
      }
      guard let number else { return }
      continuation.onTermination = { [link] reason in
        // A finished stream has already been removed.
        guard case .cancelled = reason else { return }
        _ = link.perform { state in state.reportStreams.removeValue(forKey: number) }
      }
    }
  }
}
