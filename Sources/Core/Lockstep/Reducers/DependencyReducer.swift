extension Reducer {
  /// Set a dependency of this reducer, of the reducers in it, and of the effects that they return.
  ///
  ///     Lamp().dependency(\.device, .kitchen)
  ///
  /// A value that is set closer to its use wins: by a reducer inside, or by an earlier modifier.
  public func dependency<Value>(
    _ property: any WritableKeyPath<DependencyValues, Value> & Sendable, _ value: Value
  ) -> DependencyReducer<Self> where Value: Sendable {
    DependencyReducer(base: self) { $0.set(property, to: value) }
  }

  /// Change a dependency of this reducer, of the reducers in it, and of the effects that they
  /// return.
  ///
  ///     Lamp().transformDependency(\.log) { $0.prefix = "kitchen" }
  public func transformDependency<Value>(
    _ property: any WritableKeyPath<DependencyValues, Value> & Sendable,
    transform: @escaping @Sendable (inout Value) -> Void
  ) -> DependencyReducer<Self> {
    DependencyReducer(base: self) { transform(&$0[keyPath: property]) }
  }
}

/// The reducer that `dependency` returns.
///
/// An action costs a copy of the dependencies, O(the keys that are set), however many modifiers
/// follow each other.
public struct DependencyReducer<Base: Reducer>: Reducer {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let change: @Sendable (inout DependencyValues) -> Void

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    var values = DependencyValues.current
    change(&values)
    return try values.run { () throws(Rejection) in
      try base.reduce(into: &state, action: action)
    }
  }

  public var composedLifecycle: Lifecycle<State, Action> { base.composedLifecycle }

  // Modifiers that follow each other are one reducer. The earlier ones are closer to the base: they
  // change the values last.

  /// Set a dependency of the same reducer, unless it is set already.
  public func dependency<Value>(
    _ property: any WritableKeyPath<DependencyValues, Value> & Sendable, _ value: Value
  ) -> DependencyReducer where Value: Sendable {
    DependencyReducer(base: base) { [change] values in
      values.set(property, to: value)
      change(&values)
    }
  }

  /// Change a dependency of the same reducer, before the earlier modifiers do.
  public func transformDependency<Value>(
    _ property: any WritableKeyPath<DependencyValues, Value> & Sendable,
    transform: @escaping @Sendable (inout Value) -> Void
  ) -> DependencyReducer {
    DependencyReducer(base: base) { [change] values in
      transform(&values[keyPath: property])
      change(&values)
    }
  }
}
