/// A feature in two stages, as in ReactorKit: an action becomes a stream of mutations, and each
/// mutation changes the state.
///
/// Mutations are private to the reactor: they never travel, and no peer learns their names. Every
/// one makes a revision of its own. The action is acknowledged as accepted at once; its mutations
/// follow later, and those of two actions interleave. A stream that fails does not end the others.
///
///     struct Cars: Reactor {
///       func mutate(action: Action, state: State) -> Mutations<Mutation> {
///         .concat(.just(.setLoading(true)), fetch(), .just(.setLoading(false)))
///       }
///       func reduce(state: State, mutation: Mutation) -> State { … }
///     }
///
/// A reactor whose mutations are its actions needs no `mutate`. One that shows another state than
/// it reduces is a `StateTransformingReactor`.
public protocol Reactor<State, Action>: Feature {
  // Redeclared, so that they are inferred from the types of `reduce` where they are not named.
  associatedtype State
  associatedtype Action
  associatedtype Mutation: Sendable = Action
  associatedtype Stream: AsyncSequence & Sendable = Mutations<Mutation>
  where Stream.Element == Mutation

  /// The initial state of a daemon's new history, unless the daemon gives another. In the scope of
  /// a larger feature it replaces the default of the field.
  var initialState: State { get }

  /// The mutations of an action. `state` is the state when the action was taken; `currentState` is
  /// the state when it is read.
  func mutate(action: Action, state: State) -> Stream

  /// The state after a mutation. Pure.
  func reduce(state: State, mutation: Mutation) -> State

  /// The actions that replace an action, in order; none to swallow it.
  func transform(action: Action) -> [Action]

  /// The mutations that replace a mutation, in order; none to drop it.
  func transform(mutation: Mutation) -> [Mutation]

  /// The stream of all actions, transformed: to debounce them, for example, or to drop repetitions.
  ///
  ///     func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
  ///       action.debounce(for: .milliseconds(300))
  ///     }
  ///
  /// Every element of the result is mutated as an action of its own,
  /// `ReactorAction.transformed`. The stream begins with the store, or with a child's first action,
  /// and again after it has ended. Actions enter it in the order in which they were taken, after
  /// `transform(action: Action)`.
  func transform(action: ReactorStream<Action>) -> ReactorStream<Action>

  /// The stream of the mutations of all actions and of `events`, transformed; after
  /// `transform(mutation: Mutation)`. It begins and ends as that of the actions.
  func transform(mutation: ReactorStream<Mutation>) -> ReactorStream<Mutation>

  /// Mutations from other sources, for as long as the daemon lives, or the child whose feature is
  /// the reactor: from a state that features share, for example. They begin when the daemon starts;
  /// those of a child that is created later begin when its parent sends it `ReactorAction.begin`.
  var events: Mutations<Mutation>? { get }
}

extension Reactor {
  public func transform(action: Action) -> [Action] { [action] }
  public func transform(mutation: Mutation) -> [Mutation] { [mutation] }
  public func transform(action: ReactorStream<Action>) -> ReactorStream<Action> { action }
  public func transform(mutation: ReactorStream<Mutation>) -> ReactorStream<Mutation> { mutation }
  public var events: Mutations<Mutation>? { nil }

  /// The reactor as a reducer, to be hosted or composed.
  public var reducer: ReactorReducer<Self> { ReactorReducer(self) }
}

extension Reactor where Mutation == Action {
  /// The action itself is the mutation.
  public func mutate(action: Action, state: State) -> Mutations<Action> { .just(action) }
}

extension Reactor {
  /// The state as it is now. In the stream that `mutate` returns it includes what the earlier
  /// mutations of the stream have changed.
  ///
  ///     .concat(
  ///       .just(.add(item)),
  ///       Mutations { send in await send(.setTotal(try await currentState.items.count)) })
  ///
  /// Other actions may be reduced before the next mutation is: prefer mutations that say how to
  /// change the state to those that carry a new value. O(1) for a persistent state, and a wait for
  /// the store's turn.
  ///
  /// Throws `CancellationError` when the reactor is a child that was removed, or the store is gone,
  /// and `NoCurrentState` outside of the reactor's streams.
  public var currentState: State {
    get async throws {
      guard let surroundings = EffectSurroundings.current else { throw NoCurrentState() }
      return try await surroundings.state(as: State.self)
    }
  }
}

/// `Reactor.currentState` was read outside of the streams of the reactor.
public struct NoCurrentState: Error, Hashable, Sendable, CustomStringConvertible {
  public init() {}

  public var description: String {
    "a reactor's current state is read in its own streams, in a store that runs it"
  }
}
