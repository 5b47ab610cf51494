/// A feature's logic: how each action changes the state, and what work it begins.
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
  // Said again, so that they follow from the types of `reduce` where nobody names them.
  associatedtype State
  associatedtype Action
  associatedtype Body = Never

  /// Change the state as the action says, and return the work that it begins; or throw to reject
  /// the action: what had been changed is undone.
  func reduce(into state: inout State, action: Action) throws(Rejection) -> Effect<Action>

  /// The reducers of which this one is made, run one after the other.
  @ReducerBuilder<State, Action> var body: Body { get }

  /// Which actions tell the feature that its store has started, or what became of a client's
  /// session. Only its own: the reducers in its `body` are told before it, without being named.
  ///
  ///     var lifecycle: Lifecycle<State, Action> { .onStart { _ in .began } }
  var lifecycle: Lifecycle<State, Action> { get }

  /// That of the reducers of which this one is made, then its own. For stores, and for combinators
  /// that run another reducer: a feature writes `lifecycle`.
  var composedLifecycle: Lifecycle<State, Action> { get }

  /// Whether reductions ask for dependencies, have effects, or have children that come and go.
  /// Saying no saves a tenth of a microsecond an action.
  static var usesContext: Bool { get }
}

extension Reducer {
  public var lifecycle: Lifecycle<State, Action> { .none }

  public var composedLifecycle: Lifecycle<State, Action> { lifecycle }

  public static var usesContext: Bool { true }
}

extension Reducer where Body == Never {
  /// A reducer that writes `reduce` has no body, and nobody asks for it.
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
