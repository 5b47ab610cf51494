extension Effect {
  /// The effect with every action that it sends transformed: a child's effect as its parent's.
  public func map<Parent: Sendable>(
    _ transform: @escaping @Sendable (Action) -> Parent
  ) -> Effect<Parent> {
    guard let node else { return .none }
    return Effect<Parent>(node: node.map(transform))
  }

  /// Give the effect a name by which its feature, and the enclosing ones, can cancel it. Effects
  /// may share a name. With `cancelInFlight`, those that already run under the name are cancelled
  /// first.
  public func cancellable(
    id: some Hashable & Sendable, cancelInFlight: Bool = false
  ) -> Effect {
    named(EffectKey(id), cancelInFlight ? .cancel : .keep)
  }

  /// Start the effect unless the feature itself already runs one under the name.
  public func unlessRunning(id: some Hashable & Sendable) -> Effect { named(EffectKey(id), .join) }

  private func named(_ key: EffectKey, _ inFlight: EffectInFlight) -> Effect {
    node == nil ? .none : Effect(node: .cancellable(self, key, inFlight))
  }

  /// Cancel the effect when the client whose action started it disconnects.
  public var ownedByClient: Effect { node == nil ? .none : Effect(node: .owned(self)) }

  /// Acknowledge the action as accepted, although it changed nothing: its work continues.
  public var accepted: Effect { Effect(node: .accepted(self)) }

  func scoped(to step: EffectKey) -> Effect {
    node == nil ? .none : Effect(node: .scoped(step, self))
  }

  /// Start the effect once nothing was requested under the name for the interval: each request
  /// restarts the wait.
  public func debounce(
    id: some Hashable & Sendable, for interval: Duration
  ) -> Effect {
    if node == nil { return .none }
    return .concatenate(.wait(interval, "debounce"), self)
      .cancellable(id: id, cancelInFlight: true)
  }

  /// Start the effect at once, then at most one of those requested under the name in each interval:
  /// the latest or the first.
  public func throttle(
    id: some Hashable & Sendable, for interval: Duration, latest: Bool
  ) -> Effect {
    guard node != nil, case .run(let wait)? = Effect.wait(interval, "throttle").node else {
      return .none
    }
    let how = Throttle(interval: interval, latest: latest, wait: wait)
    return Effect(node: .throttle(self, EffectKey(id), how))
  }

  /// Send an action each time an interval has passed, until cancelled.
  public static func timer(
    every interval: Duration, name: String = "timer",
    _ action: @escaping @Sendable () -> Action
  ) -> Effect {
    let clock = DependencyValues.current.clock
    guard
      case .run(var work)? = Effect.run(
        name: name,
        operation: { send in
          while !Task.isCancelled {
            try await clock.pause(for: interval)
            await send(action())
          }
        }
      ).node
    else { return .none }
    work.isTimer = true
    return Effect(node: .run(work))
  }

  /// Send the elements of a sequence, until it ends.
  public static func stream<Actions: AsyncSequence & Sendable>(
    name: String = "stream", fileID: StaticString = #fileID, line: UInt = #line,
    _ actions: Actions
  ) -> Effect where Actions.Element == Action {
    .run(name: name, fileID: fileID, line: line) { send in
      for try await action in actions { await send(action) }
    }
  }

  private static func wait(_ interval: Duration, _ name: String) -> Effect {
    let clock = DependencyValues.current.clock
    return .run(name: name) { _ in try await clock.pause(for: interval) }
  }
}

extension Clock<Duration> {
  /// Return when the time has passed.
  public func pause(for duration: Duration) async throws {
    try await sleep(until: now.advanced(by: duration), tolerance: nil)
  }
}

extension Effect.Node {
  fileprivate func map<Parent: Sendable>(
    _ transform: @escaping @Sendable (Action) -> Parent
  ) -> Effect<Parent>.Node {
    switch self {
    case .send(let action): return .send(transform(action))
    case .run(let work): return .run(work.map(transform))
    case .merge(let effects): return .merge(effects.map { $0.map(transform) })
    case .concatenate(let effects): return .concatenate(effects.map { $0.map(transform) })
    case .cancellable(let effect, let key, let inFlight):
      return .cancellable(effect.map(transform), key, inFlight)
    case .cancel(let key): return .cancel(key)
    case .cancelScope(let step): return .cancelScope(step)
    case .throttle(let effect, let key, let how):
      let wait = how.wait.map(transform)
      return .throttle(
        effect.map(transform), key,
        Effect<Parent>.Throttle(interval: how.interval, latest: how.latest, wait: wait))
    case .scoped(let step, let effect): return .scoped(step, effect.map(transform))
    case .owned(let effect): return .owned(effect.map(transform))
    case .accepted(let effect): return .accepted(effect.map(transform))
    }
  }
}

extension Effect.Work {
  fileprivate func map<Parent: Sendable>(
    _ transform: @escaping @Sendable (Action) -> Parent
  ) -> Effect<Parent>.Work {
    let operation = operation
    var mapped = Effect<Parent>.Work(
      name: name, priority: priority, place: place, isTimer: isTimer, dependencies: dependencies,
      operation: { send in try await operation(send.map(transform)) })
    mapped.entry = entry
    if let handler {
      mapped.handler = { error, send in await handler(error, send.map(transform)) }
    }
    return mapped
  }
}
