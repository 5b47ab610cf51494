/// Work that a reducer asks for: it runs outside of the store, and its results come back as
/// actions.
///
/// An effect is a description. The store starts it once the change of its reduction is on its way
/// to every mirror, and lists it (`lockstep effects`) until it ends.
public struct Effect<Action: Sendable>: Sendable {
  indirect enum Node: Sendable {
    case send(Action)
    case run(Work)
    case merge([Effect])
    case concatenate([Effect])
    case cancellable(Effect, EffectKey, EffectInFlight)
    case cancel(EffectKey)
    /// Cancel all effects of a child that was removed.
    case cancelScope(EffectKey)
    case throttle(Effect, EffectKey, Throttle)
    /// An effect of a child, with its names in the child's scope.
    case scoped(EffectKey, Effect)
    /// An effect that is cancelled when the client whose action started it disconnects.
    case owned(Effect)
    /// The action is acknowledged as accepted, and its work continues.
    case accepted(Effect)
  }

  struct Throttle: Sendable, Equatable {
    let interval: Duration
    let latest: Bool
    /// The wait until the interval is over.
    let wait: Work

    static func == (first: Throttle, second: Throttle) -> Bool {
      first.interval == second.interval && first.latest == second.latest
    }
  }

  /// An operation that runs as a task.
  struct Work: Sendable {
    var name: String
    var priority: TaskPriority?
    /// The place in the source, for warnings.
    var place: String
    var isTimer = false
    /// The dependencies of the operation, captured when the reducer made the effect.
    var dependencies: DependencyValues
    var operation: @Sendable (Send<Action>) async throws -> Void
    var handler: (@Sendable (any Error, Send<Action>) async -> Void)?
    /// Called when the shell starts the operation, in the order of starts, with its scope.
    var entry: EffectEntry?
  }

  let node: Node?

  /// No work.
  public static var none: Effect { Effect(node: nil) }

  /// Send an action to the store, after those that already wait.
  public static func send(_ action: Action) -> Effect { Effect(node: .send(action)) }

  /// Run an asynchronous operation, which may send any number of actions. It starts once, on the
  /// global executor.
  ///
  /// The operation is given no state: capture the current values that it needs (`[count =
  /// state.count]`). An error that it throws goes to `catch`; without one it is reported.
  /// `CancellationError` is ignored. Effects compare by name, so give different names to effects
  /// that tests must distinguish.
  public static func run(
    priority: TaskPriority? = nil, name: String = "run", fileID: StaticString = #fileID,
    line: UInt = #line, operation: @escaping @Sendable (Send<Action>) async throws -> Void,
    catch handler: (@Sendable (any Error, Send<Action>) async -> Void)? = nil
  ) -> Effect {
    Effect(
      node: .run(
        Work(
          name: name, priority: priority, place: "\(fileID):\(line)",
          dependencies: DependencyValues.current.outsideReduction, operation: operation,
          handler: handler)))
  }

  /// Run an operation, of which the shell is told in the order in which effects start.
  static func run(
    name: String, entering entry: @escaping EffectEntry,
    operation: @escaping @Sendable (Send<Action>) async throws -> Void
  ) -> Effect {
    let effect = run(name: name, operation: operation)
    guard case .run(var work)? = effect.node else { return effect }
    work.entry = entry
    return Effect(node: .run(work))
  }

  /// Run effects concurrently; done when all are.
  public static func merge(_ effects: Effect...) -> Effect { merge(effects) }

  public static func merge(_ effects: some Sequence<Effect>) -> Effect {
    var parts: [Effect] = []
    for effect in effects {
      guard let node = effect.node else { continue }
      if case .merge(let inner) = node { parts += inner } else { parts.append(effect) }
    }
    return parts.count > 1 ? Effect(node: .merge(parts)) : parts.first ?? .none
  }

  /// Run effects one after the other: each starts when the one before is done.
  public static func concatenate(_ effects: Effect...) -> Effect { concatenate(effects) }

  public static func concatenate(_ effects: some Sequence<Effect>) -> Effect {
    var parts: [Effect] = []
    for effect in effects {
      guard let node = effect.node else { continue }
      if case .concatenate(let inner) = node { parts += inner } else { parts.append(effect) }
    }
    return parts.count > 1 ? Effect(node: .concatenate(parts)) : parts.first ?? .none
  }

  /// Cancel everything that this feature, and those inside it, run under a name.
  public static func cancel(id: some Hashable & Sendable) -> Effect {
    Effect(node: .cancel(EffectKey(id)))
  }

  /// Cancel all effects of a child that was removed.
  static func cancelScope(_ step: EffectKey) -> Effect { Effect(node: .cancelScope(step)) }

  /// Whether the action is acknowledged as accepted while its work continues.
  var isAccepted: Bool {
    switch node {
    case .accepted: true
    case .cancellable(let effect, _, _), .throttle(let effect, _, _), .scoped(_, let effect),
      .owned(let effect):
      effect.isAccepted
    case .merge(let effects), .concatenate(let effects): effects.contains { $0.isAccepted }
    case .send, .run, .cancel, .cancelScope, nil: false
    }
  }
}

/// How to treat effects that already run under a name.
enum EffectInFlight: Sendable {
  case keep, cancel
  /// Keep them, and do not start this one.
  case join
}

/// Effects are equal when they are made in the same way of equal parts. Operations cannot be
/// compared, so those of one name are taken to be equal.
extension Effect: Equatable {
  public static func == (first: Effect, second: Effect) -> Bool {
    switch (first.node, second.node) {
    case (nil, nil): true
    case (let first?, let second?): first.equals(second)
    case (nil, _?), (_?, nil): false
    }
  }
}

extension Effect.Node {
  fileprivate func equals(_ other: Self) -> Bool {
    switch (self, other) {
    case (.send(let first), .send(let second)): areEqual(first, second)
    case (.run(let first), .run(let second)): first.name == second.name
    case (.merge(let first), .merge(let second)): first == second
    case (.concatenate(let first), .concatenate(let second)): first == second
    case (
      .cancellable(let first, let name, let inFlight),
      .cancellable(let second, let otherName, let otherInFlight)
    ):
      first == second && name == otherName && inFlight == otherInFlight
    case (.cancel(let first), .cancel(let second)): first == second
    case (.cancelScope(let first), .cancelScope(let second)): first == second
    case (.throttle(let first, let name, let how), .throttle(let second, let other, let otherHow)):
      first == second && name == other && how == otherHow
    case (.scoped(let step, let first), .scoped(let otherStep, let second)):
      step == otherStep && first == second
    case (.owned(let first), .owned(let second)): first == second
    case (.accepted(let first), .accepted(let second)): first == second
    default: false
    }
  }
}

private func areEqual<T>(_ first: T, _ second: T) -> Bool {
  guard let first = first as? any Equatable else { return false }
  return first.isEqual(to: second)
}

extension Equatable {
  fileprivate func isEqual(to other: Any) -> Bool { (other as? Self) == self }
}
