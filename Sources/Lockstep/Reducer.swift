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

  /// The action that tells the feature of the start of its daemon: the first in the queue.
  func action(for start: Start) -> Action?

  /// The action that tells the feature what became of a client's session. Asked of a feature only
  /// if `watchesSessions`.
  func action(for news: SessionNews) -> Action?

  /// The actions that tell the feature, and the features of which it is made, what became of a
  /// client's session, in order: what the owner of a store asks, and reduces at once, as its own.
  ///
  /// A reducer that runs others writes it. A feature writes `action(for:)`, unless it depends on
  /// the state whether the news is of interest.
  func actions(for news: SessionNews, in state: State) -> [Action]

  /// Whether the feature, or one of which it is made, wants to hear what became of sessions.
  var watchesSessions: Bool { get }

  /// Whether reductions ask for dependencies, have effects, or have children that come and go.
  /// Saying no saves a tenth of a microsecond an action.
  static var usesContext: Bool { get }
}

/// How a daemon came to life.
public enum Start: Hashable, Sendable {
  /// Its history begins.
  case first
  /// It was stopped in order, and goes on.
  case restarted
  /// It goes on after a crash.
  case crashed
}

extension Reducer {
  public func action(for start: Start) -> Action? { nil }

  public func action(for news: SessionNews) -> Action? { nil }

  public func actions(for news: SessionNews, in state: State) -> [Action] {
    action(for: news).map { [$0] } ?? []
  }

  public var watchesSessions: Bool { false }

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

  public func actions(for news: SessionNews, in state: State) -> [Action] {
    let body = body
    let inner = body.watchesSessions ? body.actions(for: news, in: state) : []
    guard let own = action(for: news) else { return inner }
    return inner + [own]
  }

  public var watchesSessions: Bool { body.watchesSessions }
}
