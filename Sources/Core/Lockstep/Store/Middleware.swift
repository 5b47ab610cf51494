public import Values

/// Something that looks at every action on its way through a store: before it is reduced, and
/// after.
///
/// The two stages are the two meanings of middleware in Redux: *before* it may change, swallow,
/// add or reject actions; *after*, it sees the new state and may begin further work. In each
/// stage, a store's middleware is asked in the order of its list.
///
/// One that has only the first stage says what its state is: `typealias State = App.State`.
public protocol Middleware<State, Action>: Sendable {
  associatedtype State: Synchronizable
  associatedtype Action: SynchronizableAction

  /// What the middleware is called in the log.
  var name: String { get }

  /// Look at an action before it is reduced. Change it in place, add others behind it
  /// (`context.add`), say `.swallow` and it goes no further, or throw to reject it.
  func before(
    _ action: inout Action, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict

  /// Look at an action that was reduced, and at the state that it led to. The work that is
  /// returned is listed as any effect; what it sends names this middleware as its origin.
  ///
  /// Whoever keeps the state makes the next change of it copy a path: keep it only if need be.
  func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action>
}

extension Middleware {
  public var name: String { "\(Self.self)" }

  public func before(
    _ action: inout Action, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    .proceed
  }

  public func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action> {
    .none
  }
}

/// Whether an action goes on.
public enum MiddlewareVerdict: Hashable, Sendable {
  case proceed
  /// The action is acknowledged as swallowed, and nobody behind sees it.
  case swallow
}

/// What a middleware is told of an action beside itself.
public struct MiddlewareContext<Action: Sendable>: Sendable {
  /// The number of the action in the store's log.
  public let sequence: UInt64
  public let cause: Cause
  public let time: Timestamp
  /// Actions to be reduced behind this one.
  public private(set) var added: [Action] = []

  package init(sequence: UInt64, cause: Cause, time: Timestamp) {
    self.sequence = sequence
    self.cause = cause
    self.time = time
  }

  /// Put an action behind this one.
  public mutating func add(_ action: Action) { added.append(action) }
}
