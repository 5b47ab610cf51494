/// A feature's logic: how each action changes the state, and which effects it starts.
///
/// Write `reduce`, or compose other reducers in `body`.
///
///     struct Counter: Reducer {
///       @ObservableState struct State: Equatable { var count = 0 }
///       @Action enum Action { case increment }
///       func reduce(into state: inout State, action: Action) -> Effect<Action> {
///         state.count += 1
///         return .none
///       }
///     }
///
/// A reducer is pure: it reads its arguments and its dependencies, nothing else. It is never
/// re-entered, and the store calls it for one action at a time, in the order of their arrival.
public protocol Reducer<State, Action>: Feature {
  // Redeclared, so that they are inferred from the types of `reduce` where they are not named.
  associatedtype State
  associatedtype Action
  associatedtype Body = Never

  /// Change the state as the action asks, and return the effects that it starts; or throw to reject
  /// the action: its changes are rolled back.
  func reduce(into state: inout State, action: Action) throws(Rejection) -> Effect<Action>

  /// The reducers that this one is composed of, run one after the other.
  @ReducerBuilder<State, Action> var body: Body { get }

  /// The actions that notify the feature of the start of its store and of session events. Only its
  /// own: the reducers in its `body` are notified before it, without being listed.
  ///
  ///     var lifecycle: Lifecycle<State, Action> { .onStart { _ in .began } }
  var lifecycle: Lifecycle<State, Action> { get }

  /// The life cycles of the reducers that this one is composed of, then its own. For stores, and
  /// for combinators that run another reducer: a feature implements `lifecycle`.
  var composedLifecycle: Lifecycle<State, Action> { get }

  /// Whether reductions use dependencies, return effects, or have optional children. Returning
  /// false saves a tenth of a microsecond an action.
  static var usesContext: Bool { get }

  /// Work out what an action will do, as far as that takes long. For large actions: it is called on any
  /// thread, beside the store, and other actions may change the state before this one is performed. Nil,
  /// as by default, if it can only be known then.
  func foresee(_ action: Action, in state: State) -> Foresight?

  /// The same again, because others have changed the state so that `recall` returned false. By default
  /// it is worked out anew.
  func foresee(_ action: Action, in state: State, renewing former: Foresight) -> Foresight?

  /// Whether an action may take long on this state though its message is short: then it is foreseen,
  /// too. False by default. It must be fast: it is asked about every action of a client.
  func takesLong(_ action: Action, in state: State) -> Bool

  /// Whether an action may change what was foreseen about another. If so, it waits until that one has been
  /// performed, for which this is asked about the actions of clients after others have overtaken it some
  /// times. True by default.
  func mayChange(_ foresight: Foresight, by action: Action, in state: State) -> Bool

  /// The part of what was foreseen for which others are to wait (`mayChange`), if it is that at paths of
  /// which this is true; nil, the default, if that is all of it.
  func part(of foresight: Foresight, at isIncluded: (Path) -> Bool) -> Foresight?

  /// Remember what was foreseen until the next action has been performed, or forget it. Returns false
  /// if it does not hold any more for this state, or if it takes long to find out: then it is worked out
  /// again, some times, before the action is performed without it.
  @discardableResult
  func recall(_ foresight: Foresight?, in state: inout State) -> Bool
}

extension Reducer {
  public var lifecycle: Lifecycle<State, Action> { .none }

  public var composedLifecycle: Lifecycle<State, Action> { lifecycle }

  public static var usesContext: Bool { true }

  public func foresee(_ action: Action, in state: State) -> Foresight? { nil }

  public func foresee(
    _ action: Action, in state: State, renewing former: Foresight
  ) -> Foresight? {
    foresee(action, in: state)
  }

  @inlinable
  public func takesLong(_ action: Action, in state: State) -> Bool { false }

  public func mayChange(_ foresight: Foresight, by action: Action, in state: State) -> Bool { true }

  public func part(of foresight: Foresight, at isIncluded: (Path) -> Bool) -> Foresight? { nil }

  public func recall(_ foresight: Foresight?, in state: inout State) -> Bool { true }
}

extension Reducer where Body == Never {
  /// Never called: a reducer that implements `reduce` has no body.
  public var body: Never { preconditionFailure("\(Self.self) has no body.") }
}

extension Reducer where Body: Reducer, Body.State == State, Body.Action == Action {
  public func reduce(
    into state: inout State, action: Action
  ) throws(Rejection) -> Effect<Action> {
    try body.reduce(into: &state, action: action)
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    .merge(body.composedLifecycle, lifecycle)
  }
}
