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

  /// The action that tells the feature that its store, or its daemon, has started. Those of all
  /// features are reduced before any other action, children's before their parent's. A child that
  /// comes and goes (`forEach`, `ifLet`, `ifCaseLet`) is told if it is there at the start; one that
  /// comes later begins by an action of its parent.
  func action(for start: Start) -> Action?

  /// The action that tells the feature what became of a client's session.
  func action(for news: SessionEvent) -> Action?

  /// The actions that tell the feature what became of a client's session, where that depends on the
  /// state. If it is not written, `action(for:)` is asked.
  func actions(for news: SessionEvent, in state: State) -> [Action]

  /// Whether the feature wants to be told what became of sessions. To be written by those that
  /// write `actions(for:in:)`; for others, `action(for:)` is tried.
  var watchesSessions: Bool { get }

  /// How the feature, with those of which it is made, follows the life of its store. To be written
  /// by a reducer whose `reduce` runs another's, which it forwards: `base.lifecycle`.
  var lifecycle: Lifecycle<State, Action> { get }

  /// Whether reductions ask for dependencies, have effects, or have children that come and go.
  /// Saying no saves a tenth of a microsecond an action.
  static var usesContext: Bool { get }
}

extension Reducer {
  public func action(for start: Start) -> Action? { nil }

  public func action(for news: SessionEvent) -> Action? { nil }

  public func actions(for news: SessionEvent, in state: State) -> [Action] {
    action(for: news).map { [$0] } ?? []
  }

  public var watchesSessions: Bool {
    let news: [SessionEvent] = [
      .lost(session: 0), .returned(session: 0), .ended(session: 0, reason: .exited),
    ]
    return news.contains { action(for: $0) != nil }
  }

  public var lifecycle: Lifecycle<State, Action> { Lifecycle(of: self) }

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

  public var lifecycle: Lifecycle<State, Action> {
    .merge(body.lifecycle, Lifecycle(of: self))
  }
}
