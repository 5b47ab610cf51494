import CBOR
import Lockstep
import Values

/// The identity of an action in a simulation: its client, and its ordinal among that client's
/// actions.
struct Tag: Hashable, Sendable, CustomStringConvertible {
  var client: UInt64
  var number: UInt64

  /// The tag of every action that no client sent, but an effect, a middleware or the daemon itself.
  static let inside = Tag(client: 0, number: 0)

  var description: String {
    self == .inside ? "an action from inside" : "action \(number) of client \(client)"
  }
}

/// An action with its sender, so that the simulation sees how often and in which order the daemon
/// performs it.
struct Tagged<Action: SynchronizableAction>: SynchronizableAction, SynchronizableScalar {
  var tag: Tag
  var action: Action

  var name: String { action.name }

  init(_ tag: Tag, _ action: Action) {
    self.tag = tag
    self.action = action
  }

  func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(tag.client)
    encoder.encode(tag.number)
    action.encode(into: &encoder)
  }

  func isSame(as other: Tagged) -> Bool { tag == other.tag && action.isSame(as: other.action) }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    guard try decoder.array() == 3 else { throw CBORError(.numberOutOfRange, at: 0) }
    tag = Tag(client: try decoder.unsigned(), number: try decoder.unsigned())
    action = try Action(from: &decoder, seed: seed)
    decoder.close()
  }
}

extension Tagged: PathNaming where Action: PathNaming {
  var heldNames: [String] { action.heldNames }
  var readPaths: [Path] { action.readPaths }
  var writtenPaths: [Path] { action.writtenPaths }
}

/// The daemon's actions since the last check.
///
/// Sendable: a simulation runs on one thread at a time, and nothing else uses its log.
final class WitnessLog<State: Sendable>: @unchecked Sendable {
  struct Entry {
    var tag: Tag
    /// The state when the reducer was called: a copy, so that every later write meets a shared
    /// tree. Nil if the reducer was not called.
    var before: State?
    /// The result of the action, if it is known.
    var reduction: Reduction?
  }

  var entries: [Entry] = []

  func note(_ reduction: Reduction) { entries[entries.count - 1].reduction = reduction }
}

/// A reducer that calls another, and records the calls.
struct Witness<R: Reducer>: Reducer {
  let base: R
  let log: WitnessLog<R.State>
  /// Whether a `WitnessGate` has already begun the entry.
  let isGated: Bool

  static var usesContext: Bool { R.usesContext }

  func foresee(_ action: Tagged<R.Action>, in state: R.State) -> Foresight? {
    base.foresee(action.action, in: state)
  }

  func foresee(
    _ action: Tagged<R.Action>, in state: R.State, renewing former: Foresight
  ) -> Foresight? {
    base.foresee(action.action, in: state, renewing: former)
  }

  func takesLong(_ action: Tagged<R.Action>, in state: R.State) -> Bool {
    base.takesLong(action.action, in: state)
  }

  func mayChange(
    _ foresight: Foresight, by action: Tagged<R.Action>, in state: R.State
  ) -> Bool {
    base.mayChange(foresight, by: action.action, in: state)
  }

  func part(of foresight: Foresight, at isIncluded: (Path) -> Bool) -> Foresight? {
    base.part(of: foresight, at: isIncluded)
  }

  func recall(_ foresight: Foresight?, in state: inout R.State) -> Bool {
    base.recall(foresight, in: &state)
  }

  func reduce(
    into state: inout R.State, action: Tagged<R.Action>
  ) throws(Rejection) -> Effect<Tagged<R.Action>> {
    if isGated {
      log.entries[log.entries.count - 1].before = state
    } else {
      log.entries.append(.init(tag: action.tag, before: state))
    }
    do throws(Rejection) {
      return try base.reduce(into: &state, action: action.action).map { Tagged(.inside, $0) }
    } catch {
      log.note(.rejected(error))
      throw error
    }
  }

  var lifecycle: Lifecycle<R.State, Tagged<R.Action>> {
    .part(base, at: \.self) { Tagged(.inside, $0) }
  }
}

// MARK: Middleware

/// The first of a simulation's middleware: records every action and its result.
struct WitnessGate<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  let log: WitnessLog<State>

  func before(
    _ action: inout Tagged<Action>, state: State, context: inout MiddlewareContext<Tagged<Action>>
  ) throws(Rejection) -> MiddlewareVerdict {
    log.entries.append(.init(tag: action.tag))
    return .proceed
  }

  func after(
    _ action: Tagged<Action>, state: State, reduction: Reduction,
    context: MiddlewareContext<Tagged<Action>>
  ) -> Effect<Tagged<Action>> {
    log.note(reduction)
    return .none
  }
}

/// A middleware that calls another, and records the actions that it stops.
struct WitnessMiddleware<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  let base: any Middleware<State, Action>
  let log: WitnessLog<State>

  var name: String { base.name }

  func before(
    _ action: inout Tagged<Action>, state: State, context: inout MiddlewareContext<Tagged<Action>>
  ) throws(Rejection) -> MiddlewareVerdict {
    try before(base, &action, state, &context)
  }

  private func before<M: Middleware<State, Action>>(
    _ base: M, _ action: inout Tagged<Action>, _ state: State,
    _ context: inout MiddlewareContext<Tagged<Action>>
  ) throws(Rejection) -> MiddlewareVerdict {
    var inner = MiddlewareContext<Action>(
      sequence: context.sequence, cause: context.cause, time: context.time)
    let verdict: MiddlewareVerdict
    do throws(Rejection) {
      verdict = try base.before(&action.action, state: state, context: &inner)
    } catch {
      log.note(.rejected(error))
      throw error
    }
    for added in inner.added { context.add(Tagged(.inside, added)) }
    if verdict == .swallow { log.note(.swallowed) }
    return verdict
  }

  func after(
    _ action: Tagged<Action>, state: State, reduction: Reduction,
    context: MiddlewareContext<Tagged<Action>>
  ) -> Effect<Tagged<Action>> {
    let inner = MiddlewareContext<Action>(
      sequence: context.sequence, cause: context.cause, time: context.time)
    return base.after(action.action, state: state, reduction: reduction, context: inner)
      .map { Tagged(.inside, $0) }
  }
}
