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
  /// A reducer that takes the feature's actions and does nothing: a reactor's `stub`.
  public var stub: StubReducer<Self> { StubReducer() }
}
