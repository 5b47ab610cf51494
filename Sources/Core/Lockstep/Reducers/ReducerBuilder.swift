public import Values

/// Combines several reducers into one: they run in the order in which they are written, on the same
/// state; their effects run concurrently.
@resultBuilder
public enum ReducerBuilder<State: Synchronizable, Action: SynchronizableAction> {
  public static func buildExpression<R: Reducer<State, Action>>(_ reducer: R) -> R { reducer }

  public static func buildBlock() -> EmptyReducer<State, Action> { EmptyReducer() }

  public static func buildPartialBlock<R: Reducer<State, Action>>(first: R) -> R { first }

  public static func buildPartialBlock<First: Reducer, Second: Reducer>(
    accumulated: First, next: Second
  ) -> ReducerPair<First, Second>
  where
    First.State == State, First.Action == Action, Second.State == State, Second.Action == Action
  {
    ReducerPair(first: accumulated, second: next)
  }

  public static func buildOptional<R: Reducer<State, Action>>(_ reducer: R?) -> OptionalReducer<R> {
    OptionalReducer(reducer: reducer)
  }

  public static func buildEither<First: Reducer<State, Action>, Second: Reducer<State, Action>>(
    first reducer: First
  ) -> EitherReducer<First, Second> {
    .first(reducer)
  }

  public static func buildEither<First: Reducer<State, Action>, Second: Reducer<State, Action>>(
    second reducer: Second
  ) -> EitherReducer<First, Second> {
    .second(reducer)
  }

  public static func buildArray<R: Reducer<State, Action>>(_ reducers: [R]) -> ReducerList<R> {
    ReducerList(reducers: reducers)
  }
}

/// A reducer that does nothing.
public struct EmptyReducer<State: Synchronizable, Action: SynchronizableAction>: Reducer {
  public init() {}

  public func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}

/// A reducer that is written where it is used.
///
///     Reduce { state, action in
///       state.total += 1
///       return .none
///     }
///
/// A closure that rejects actions says so, since Swift infers no type of thrown errors:
///
///     Reduce { (state: inout State, action: Action) throws(Rejection) in
///       if state.isLocked { throw Rejection(.refused, "it is locked") }
///       return .none
///     }
public struct Reduce<State: Synchronizable, Action: SynchronizableAction>: Reducer {
  public typealias Body = Never
  let run: @Sendable (inout State, Action) throws(Rejection) -> Effect<Action>
  /// The life cycle of a wrapped reducer, made lazily because a feature may contain itself.
  private var inner: (@Sendable () -> Lifecycle<State, Action>)?

  public init(
    _ reduce: @escaping @Sendable (inout State, Action) throws(Rejection) -> Effect<Action>
  ) {
    run = reduce
  }

  /// The Redux shape: a function from state and action to the next state.
  public init(redux reduce: @escaping @Sendable (State, Action) -> State) {
    run = { state, action in
      state = reduce(state, action)
      return .none
    }
  }

  /// The shape of The Composable Architecture's first part: a function that changes the state.
  public init(changing reduce: @escaping @Sendable (inout State, Action) -> Void) {
    run = { state, action in
      reduce(&state, action)
      return .none
    }
  }

  /// Wraps another reducer and erases its type.
  public init<R: Reducer<State, Action>>(_ reducer: R) {
    run = { (state, action) throws(Rejection) in try reducer.reduce(into: &state, action: action) }
    inner = { reducer.composedLifecycle }
  }

  public func reduce(
    into state: inout State, action: Action
  ) throws(Rejection) -> Effect<Action> {
    try run(&state, action)
  }

  public var composedLifecycle: Lifecycle<State, Action> { inner?() ?? .none }
}

/// Combines several reducers into one, so that a modifier can be applied to it.
///
///     CombineReducers {
///       First()
///       Second()
///     }
///     .logging()
public struct CombineReducers<
  State: Synchronizable, Action: SynchronizableAction, Content: Reducer<State, Action>
>: Reducer {
  public typealias Body = Never
  let content: Content

  public init(@ReducerBuilder<State, Action> _ content: () -> Content) {
    self.content = content()
  }

  public func reduce(
    into state: inout State, action: Action
  ) throws(Rejection) -> Effect<Action> {
    try content.reduce(into: &state, action: action)
  }

  public var composedLifecycle: Lifecycle<State, Action> { content.composedLifecycle }
}

/// One reducer, then another.
public struct ReducerPair<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
  public typealias State = First.State
  public typealias Action = First.Action
  public typealias Body = Never
  let first: First
  let second: Second

  public func reduce(
    into state: inout First.State, action: First.Action
  ) throws(Rejection) -> Effect<First.Action> {
    let effect = try first.reduce(into: &state, action: action)
    return .merge(effect, try second.reduce(into: &state, action: action))
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    .merge(first.composedLifecycle, second.composedLifecycle)
  }
}

/// The reducer that the builder makes of an `if` without `else`.
public struct OptionalReducer<R: Reducer>: Reducer {
  public typealias State = R.State
  public typealias Action = R.Action
  public typealias Body = Never
  let reducer: R?

  public func reduce(
    into state: inout R.State, action: R.Action
  ) throws(Rejection) -> Effect<R.Action> {
    guard let reducer else { return .none }
    return try reducer.reduce(into: &state, action: action)
  }

  public var composedLifecycle: Lifecycle<State, Action> { reducer?.composedLifecycle ?? .none }
}

/// The reducer that the builder makes of an `if` with `else`, or of a `switch`.
public enum EitherReducer<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
  public typealias State = First.State
  public typealias Action = First.Action
  public typealias Body = Never
  case first(First)
  case second(Second)

  public func reduce(
    into state: inout First.State, action: First.Action
  ) throws(Rejection) -> Effect<First.Action> {
    switch self {
    case .first(let reducer): try reducer.reduce(into: &state, action: action)
    case .second(let reducer): try reducer.reduce(into: &state, action: action)
    }
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    switch self {
    case .first(let reducer): reducer.composedLifecycle
    case .second(let reducer): reducer.composedLifecycle
    }
  }
}

/// The reducer that the builder makes of a loop.
public struct ReducerList<R: Reducer>: Reducer {
  public typealias State = R.State
  public typealias Action = R.Action
  public typealias Body = Never
  let reducers: [R]

  public func reduce(
    into state: inout R.State, action: R.Action
  ) throws(Rejection) -> Effect<R.Action> {
    var effects: [Effect<R.Action>] = []
    for reducer in reducers {
      effects.append(try reducer.reduce(into: &state, action: action))
    }
    return .merge(effects)
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    .merge(reducers.map(\.composedLifecycle))
  }
}
