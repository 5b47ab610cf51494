/// A reactor that shows another state than the one it reduces, as ReactorKit's `transform(state:)`
/// does: mutations go on from the state that `reduce` returned, and views see the transformed one.
///
/// There is one authoritative state nevertheless, and every mirror equals it: a struct of both
/// (`TransformedState`). A view connects to its part `shown`; a policy can hide `reduced`.
public protocol StateTransformingReactor: Reactor {
  /// The state to show, made from the one that mutations change. Pure.
  func transform(state: State) -> State
}

extension StateTransformingReactor {
  /// The reactor as a reducer, to be hosted or composed.
  public var reducer: TransformedStateReducer<Self> {
    TransformedStateReducer(ReactorReducer(self))
  }

  /// A stub of the reactor: `ReactorAction.stub` sets the state that is shown.
  public var stub: TransformedStateReducer<Self> {
    TransformedStateReducer(ReactorReducer(self, isStub: true))
  }
}

/// A reactor that transforms its state, as a reducer.
public struct TransformedStateReducer<R: StateTransformingReactor>: Reducer {
  public typealias State = TransformedState<R.State>
  public typealias Action = ReactorAction<R>
  public typealias Body = Never
  let base: ReactorReducer<R>

  init(_ base: ReactorReducer<R>) { self.base = base }

  public func reduce(
    into state: inout TransformedState<R.State>, action: ReactorAction<R>
  ) throws(Rejection) -> Effect<ReactorAction<R>> {
    switch action {
    case .mutation:
      let effect = try base.reduce(into: &state.reduced, action: action)
      if !base.isStub { state.shown = base.reactor.transform(state: state.reduced) }
      return effect
    case .stub:
      let effect = try base.reduce(into: &state.shown, action: action)
      state.reduced = state.shown
      return effect
    case .action, .transformed, .begin, .failed:
      // Only `shown` is the state for an action, as it is ReactorKit's `currentState`.
      return try base.reduce(into: &state.shown, action: action)
    }
  }

  public var lifecycle: Lifecycle<State, Action> {
    let reactor = base.reactor
    return .onStart { [base] _ in base.begins ? .begin : nil }
      .beginning { TransformedState(reactor.initialState, of: reactor) }
  }
}

/// A state with a part that its feature takes for its own.
protocol ShowingState {
  var shownState: Any { get }
}

extension TransformedState: ShowingState {
  var shownState: Any { shown }
}
