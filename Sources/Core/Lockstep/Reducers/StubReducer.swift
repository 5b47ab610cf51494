/// Takes a feature's actions and does nothing with them: for tests of what is around the feature.
/// The store's log has them all.
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
  /// The feature with nothing behind its actions: a reactor's `stub`.
  public var stub: StubReducer<Self> { StubReducer() }
}
