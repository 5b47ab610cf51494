/// Accepts a feature's actions and does nothing: for tests of the code around the feature. The
/// store's log records all actions.
public struct StubReducer<Base: Feature>: Reducer {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never

  public init() {}

  public func reduce(into state: inout Base.State, action: Base.Action) -> Effect<Base.Action> {
    .none
  }
}

extension Feature {
  /// A reducer that takes the feature's actions and does nothing.
  public var stub: StubReducer<Self> { StubReducer() }
}

extension Reactor {
  /// The reactor as a stub, for tests of its views: it takes the same actions as `reducer` and does
  /// nothing, the store's log records them, and a test sets the state.
  ///
  ///     let store = Store(initialState: Cars.State()) { Cars().stub }
  ///     store.send(.stub(Cars.State(loading: true)))
  public var stub: ReactorReducer<Self> { ReactorReducer(self, isStub: true) }
}
