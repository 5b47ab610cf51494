public import Values

extension Reducer {
  /// Run another reducer after this one whenever a part of the state has changed.
  ///
  ///     .onChange(of: \.settings) { old, new in
  ///       Reduce { state, action in .run { … } }
  ///     }
  public func onChange<Part: Synchronizable, Follower: Reducer<State, Action>>(
    of part: any KeyPath<State, Part> & Sendable,
    @ReducerBuilder<State, Action> _ follow: @escaping @Sendable (Part, Part) -> Follower
  ) -> OnChangeReducer<Self, Part, Follower> {
    OnChangeReducer(base: self, part: part, follow: follow)
  }
}

/// The reducer that `onChange` returns.
public struct OnChangeReducer<Base: Reducer, Part: Synchronizable, Follower: Reducer>: Reducer
where Follower.State == Base.State, Follower.Action == Base.Action {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let part: any KeyPath<Base.State, Part> & Sendable
  let follow: @Sendable (Part, Part) -> Follower

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    let old = state[keyPath: part]
    let effect = try base.reduce(into: &state, action: action)
    let new = state[keyPath: part]
    if new.isSame(as: old) { return effect }
    return .merge(effect, try follow(old, new).reduce(into: &state, action: action))
  }

  public var composedLifecycle: Lifecycle<State, Action> { base.composedLifecycle }
}
