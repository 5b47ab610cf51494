import ClientCore
import Values
import Wire

// Handles the session's notices, under the mutex: all calls of user code are queued in
// `deliveries`.
extension Link {
  func wakeReached(_ state: inout State) {
    guard !state.reached.isEmpty else { return }
    state.reached.removeAll { item in
      guard let position = state.session.position(of: item.subscription),
        position.revision >= item.revision
      else { return false }
      state.deliveries.append { item.waiter.resume() }
      return true
    }
  }

  func tell(_ notice: Session.Notice, _ state: inout State) {
    switch notice {
    case .connection(let connection): tell(connection, &state)
    case .changed(let subscription):
      guard let mirror = state.session.mirror(subscription) else { return }
      for observer in state.observers.values where observer.subscription == subscription {
        if let onChange = observer.onChange { state.deliver { onChange(mirror) } }
      }
    case .revised(let subscription, let value, let revision, let patch):
      for observer in state.observers.values where observer.subscription == subscription {
        if let onRevision = observer.onRevision {
          state.deliver { onRevision(value, revision, patch) }
        }
      }
    case .refused(let subscription, let reason):
      state.refusals[subscription] = reason
      fail(.refused(reason), subscription, &state)
    case .unreadable(let subscription, let why):
      state.unreadable[subscription] = (Self.now(), why)
      fail(.closed(why), subscription, &state)
      let stale = state.connection(of: subscription)
      for observer in state.observers.values where observer.subscription == subscription {
        if let onConnection = observer.onConnection { state.deliver { onConnection(stale) } }
      }
    case .acknowledged(let actions, let acknowledgement, let undone):
      acknowledge(actions, acknowledgement, undone, &state)
    case .pong(let number, let revision):
      if let waiter = state.pongs.removeValue(forKey: number) {
        state.deliver { waiter.resume(returning: revision) }
      }
    case .report(let number, let value):
      if let waiter = state.reports.removeValue(forKey: number) {
        state.deliver { waiter.resume(returning: value) }
      }
      if let stream = state.reportStreams[number] { state.deliver { stream.yield(value) } }
    case .digest(let subscription, let revision, let digest):
      for waiter in state.digests.removeValue(forKey: subscription) ?? [] {
        state.deliver { waiter.resume(returning: (revision, digest)) }
      }
    case .diverged(_, let why):
      state.divergences += 1
      state.lastDivergence = why
    // This client asks for values with the patches.
    case .schema, .patched: break
    }
  }

  private func tell(_ connection: Session.ConnectionState, _ state: inout State) {
    state.connection = connection
    // Every subscription starts over with a new connection.
    if connection == .live { (state.refusals, state.unreadable) = ([:], [:]) }
    for case let onConnection? in state.observers.values.map(\.onConnection) {
      state.deliver { onConnection(connection) }
    }
    switch connection {
    case .live:
      state.hasBeenLive = true
      for waiter in state.connecting { state.deliver { waiter.resume() } }
      state.connecting = []
    case .closed(let goodbye): end(goodbye, &state)
    case .stale:
      // These requests are never answered: they belong to the connection, not to the session.
      failRequests(ClientError.closed(Goodbye(.done, "the connection was lost")), &state)
    case .connecting: break
    }
  }

  /// Fail everything that waits for a subscription that cannot progress.
  private func fail(_ error: ClientError, _ subscription: UInt64, _ state: inout State) {
    state.reached.removeAll { item in
      guard item.subscription == subscription else { return false }
      state.deliveries.append { item.waiter.resume(throwing: error) }
      return true
    }
  }

  private func acknowledge(
    _ actions: ClosedRange<ActionID>, _ acknowledgement: Acknowledgement, _ undone: [[UInt8]],
    _ state: inout State
  ) {
    if case .rejected = acknowledgement.outcome { state.rejections += 1 }
    if !undone.isEmpty { tellFailures(actions, acknowledgement, undone, &state) }
    guard !state.actions.isEmpty else { return }
    for number in actions.lowerBound.rawValue...actions.upperBound.rawValue {
      guard let waiter = state.actions.removeValue(forKey: ActionID(number)) else { continue }
      state.answers.append { waiter.resume(with: Self.result(acknowledgement)) }
    }
  }

  /// Tell those that follow failed posts of these actions, but for those of them that were sent: their
  /// senders wait for the answer.
  private func tellFailures(
    _ actions: ClosedRange<ActionID>, _ acknowledgement: Acknowledgement, _ undone: [[UInt8]],
    _ state: inout State
  ) {
    let observers = state.observers.values.compactMap(\.onFailure)
    guard !observers.isEmpty,
      let error = Self.failure(acknowledgement)
    else { return }
    for (number, payload) in zip(actions.lowerBound.rawValue..., undone)
    where state.actions[ActionID(number)] == nil {
      for onFailure in observers { state.deliver { onFailure(payload, error) } }
    }
  }

  /// The result that the sender of an action receives: that a middleware took it is an answer.
  private static func result(
    _ acknowledgement: Acknowledgement
  ) -> Result<Acknowledgement, any Error> {
    if case .swallowed = acknowledgement.outcome { return .success(acknowledgement) }
    return failure(acknowledgement).map { .failure($0) } ?? .success(acknowledgement)
  }

  /// Why an action was not done; nil if it was.
  private static func failure(_ acknowledgement: Acknowledgement) -> ClientError? {
    switch acknowledgement.outcome {
    case .rejected(let rejection) where rejection.code == 0:
      .closed(Goodbye(.done, rejection.message))
    case .rejected(let rejection): .rejected(rejection)
    case .outcomeUnknown: .outcomeUnknown
    case .swallowed: .swallowed
    case .reduced, .unchanged, .accepted: nil
    }
  }

  private func failRequests(_ error: ClientError, _ state: inout State) {
    for waiter in state.pongs.values { state.deliver { waiter.resume(throwing: error) } }
    for waiter in state.reports.values { state.deliver { waiter.resume(throwing: error) } }
    for waiter in state.digests.values.joined() { state.deliver { waiter.resume(throwing: error) } }
    for stream in state.reportStreams.values { state.deliver { stream.finish(throwing: error) } }
    state.pongs = [:]
    state.reports = [:]
    state.reportStreams = [:]
    state.digests = [:]
  }

  private func end(_ goodbye: Goodbye, _ state: inout State) {
    let error = closedError(goodbye, state)
    failRequests(error, &state)
    for waiter in state.reached.map(\.waiter) + state.connecting {
      state.deliver { waiter.resume(throwing: error) }
    }
    state.reached = []
    state.connecting = []
    for waiter in state.actions.values { state.deliver { waiter.resume(throwing: error) } }
    state.actions = [:]
    let observers = state.observers
    state.observers = [:]
    // Holds the observers until then, because releasing them may release objects that use the
    // connection.
    state.deliver { for observer in observers.values { observer.onEnd() } }
  }
}
