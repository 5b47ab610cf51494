public import Values

/// Sees every action on its way through a store: before it is reduced, and after.
///
/// The two stages are the two meanings of middleware in Redux: *before*, it sees the state and may
/// change, swallow, add or reject actions; *after*, it sees the new state and may start effects. In
/// each stage, a store calls its middleware in the order of its list.
public protocol Middleware<State, Action>: Sendable {
  associatedtype State: Synchronizable
  associatedtype Action: SynchronizableAction

  /// The name of the middleware in the log.
  var name: String { get }

  /// Called before an action is reduced, with the state that it would change. Change the action in
  /// place, add others after it (`context.add`), return `.swallow` to stop it, or throw to reject
  /// it: authorisation and validation by the state.
  ///
  /// The state is lent for the call, not copied: the reducer then edits it in place, unless a
  /// middleware keeps a copy.
  func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict

  /// Called after an action was reduced, with the resulting state. The returned effect is listed
  /// like any other; actions that it sends have this middleware as their origin.
  ///
  /// Keep the state only if necessary: while a copy is kept, the next change to the state must copy
  /// a path.
  func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action>
}

extension Middleware {
  public var name: String { "\(Self.self)" }

  public func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    .proceed
  }

  public func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action> {
    .none
  }
}

/// Whether an action proceeds.
public enum MiddlewareVerdict: Hashable, Sendable {
  case proceed
  /// The action is acknowledged as swallowed; later middleware and the reducer do not see it.
  case swallow
}

/// The context of an action, as middleware sees it.
public struct MiddlewareContext<Action: Sendable>: Sendable {
  /// The number of the action in the store's log.
  public let sequence: UInt64
  public let cause: Cause
  public let time: Timestamp
  /// Actions to be reduced after this one.
  public private(set) var added: [Action] = []

  package init(sequence: UInt64, cause: Cause, time: Timestamp) {
    self.sequence = sequence
    self.cause = cause
    self.time = time
  }

  /// Queue an action after this one.
  public mutating func add(_ action: Action) { added.append(action) }
}
