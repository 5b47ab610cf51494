import Lockstep

/// What is searched for. A text that is equal to the one before is not searched for again.
public struct Search: Reactor {
  @ObservableState public struct State: Equatable {
    public var texts: [String] = []
    /// How often its events have begun.
    public var starts = 0

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable { case type(String) }

  public enum Mutation: Equatable, Sendable { case typed(String), began }

  public var initialState: State { State() }

  public init() {}

  public func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
    action.removeDuplicates()
  }

  public var events: Mutations<Mutation>? { .just(.began) }

  public func mutate(action: Action, state: State) -> Mutations<Mutation> {
    switch action {
    case .type(let text): .just(.typed(text))
    }
  }

  public func reduce(state: State, mutation: Mutation) -> State {
    var state = state
    switch mutation {
    case .typed(let text): state.texts.append(text)
    case .began: state.starts += 1
    }
    return state
  }
}

/// Counts the records that were heard, and shows how many sides they have: two each.
public struct Sides: StateTransformingReactor {
  @ObservableState public struct State: Equatable {
    public var count = 0

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable { case hear }

  public var initialState: State { State() }

  public init() {}

  public func reduce(state: State, mutation: Action) -> State {
    var state = state
    state.count += 1
    return state
  }

  public func transform(state: State) -> State {
    var shown = state
    shown.count *= 2
    return shown
  }
}
