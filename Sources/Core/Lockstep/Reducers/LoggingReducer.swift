extension Reducer {
  /// Call `write` with every action and the state after it: a higher-order reducer.
  ///
  /// Describing a state is O(its size): for development.
  public func logging(
    _ write: @escaping @Sendable (_ action: Action, _ state: State) -> Void
  ) -> LoggingReducer<Self> {
    LoggingReducer(base: self, write: write)
  }
}

/// The reducer that `logging` returns.
public struct LoggingReducer<Base: Reducer>: Reducer {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let write: @Sendable (Base.Action, Base.State) -> Void

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    let effect = try base.reduce(into: &state, action: action)
    write(action, state)
    return effect
  }

  public var composedLifecycle: Lifecycle<State, Action> { base.composedLifecycle }
}
