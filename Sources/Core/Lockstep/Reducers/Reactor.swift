public import CBOR
public import Values

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
public protocol Reactor<State, Action>: Feature {
  associatedtype Mutation: Sendable = Action
  associatedtype Stream: AsyncSequence & Sendable where Stream.Element == Mutation

  /// The initial state of a daemon's new history, unless the daemon gives another. In the scope of
  /// a larger feature it replaces the default of the field.
  var initialState: State { get }

  /// The mutations of an action. `state` is the state when the action was taken.
  func mutate(action: Action, state: State) -> Stream

  /// The state after a mutation. Pure.
  func reduce(state: State, mutation: Mutation) -> State

  /// The actions that replace an action, in order; none to swallow it.
  func transform(action: Action) -> [Action]

  /// The mutations that replace a mutation, in order; none to drop it.
  func transform(mutation: Mutation) -> [Mutation]

  /// The state to publish, made from the one that `reduce` returned.
  func transform(state: State) -> State

  /// Mutations from other sources, for as long as the daemon lives, or the child whose feature is
  /// the reactor: from a state that features share, for example. They begin when the daemon starts;
  /// those of a child that is created later begin when its parent sends it `ReactorAction.begin`.
  var events: Mutations<Mutation>? { get }
}

extension Reactor {
  public func transform(action: Action) -> [Action] { [action] }
  public func transform(mutation: Mutation) -> [Mutation] { [mutation] }
  public func transform(state: State) -> State { state }
  public var events: Mutations<Mutation>? { nil }

  /// The reactor as a reducer, to be hosted or composed.
  public var reducer: ReactorReducer<Self> { ReactorReducer(self) }
}

/// A stream of mutations, composed of parts.
public struct Mutations<Mutation: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Mutation
  public typealias Failure = any Error
  public typealias AsyncIterator = AsyncThrowingStream<Mutation, any Error>.Iterator
  private let run: @Sendable (@escaping @Sendable (Mutation) async -> Void) async throws -> Void

  /// The mutations that an operation passes to its argument.
  public init(
    _ run: @escaping @Sendable (@escaping @Sendable (Mutation) async -> Void) async throws -> Void
  ) {
    self.run = run
  }

  /// Pass every mutation to `send`, and continue when it has returned.
  func forEach(_ send: @escaping @Sendable (Mutation) async -> Void) async throws {
    try await run(send)
  }

  /// The elements of another sequence.
  public init<Source: AsyncSequence & Sendable>(_ source: Source)
  where Source.Element == Mutation {
    self.init { send in for try await mutation in source { await send(mutation) } }
  }

  /// No mutation.
  public static var empty: Mutations { Mutations { _ in } }

  /// One mutation, at once.
  public static func just(_ mutation: Mutation) -> Mutations {
    Mutations { send in await send(mutation) }
  }

  /// One stream after the other: the next begins when the one before has ended.
  public static func concat(_ parts: Mutations...) -> Mutations {
    Mutations { send in for part in parts { try await part.run(send) } }
  }

  /// Streams that run concurrently.
  public static func merge(_ parts: Mutations...) -> Mutations {
    Mutations { send in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for part in parts {
          group.addTask { try await part.run(send) }
        }
        try await group.waitForAll()
      }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncThrowingStream { continuation in
      let task = Task {
        do {
          try await run { continuation.yield($0) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }.makeAsyncIterator()
  }
}

/// The actions of a reactor's store: actions from outside, and mutations, which never leave the
/// store.
public enum ReactorAction<R: Reactor>: Sendable {
  case action(R.Action)
  case mutation(R.Mutation)
  /// The daemon has started, or the child was created: `events` begin.
  case begin
}

/// A reactor as a reducer.
public struct ReactorReducer<R: Reactor>: Reducer {
  public typealias State = R.State
  public typealias Action = ReactorAction<R>
  public typealias Body = Never
  public let reactor: R

  public init(_ reactor: R) { self.reactor = reactor }

  public func reduce(
    into state: inout R.State, action: ReactorAction<R>
  ) throws(Rejection) -> Effect<ReactorAction<R>> {
    switch action {
    case .action(let action):
      return work(action, state)
    case .mutation(let mutation):
      state = reactor.transform(state: reactor.reduce(state: state, mutation: mutation))
      return .none
    case .begin:
      guard let events = reactor.events else { return .none }
      return .run(name: "events") { send in try await pass(events, send) }
    }
  }

  /// The effect that sends the mutations of an action, one by one.
  private func work(_ action: R.Action, _ state: R.State) -> Effect<ReactorAction<R>> {
    let streams = reactor.transform(action: action).map { action in
      Effect.run(name: action.name) { send in
        try await pass(reactor.mutate(action: action, state: state), send)
      }
    }
    return streams.isEmpty ? .none : Effect.concatenate(streams).accepted
  }

  /// Send the mutations of a stream, each when the one before has been reduced.
  private func pass<Stream: AsyncSequence & Sendable>(
    _ stream: Stream, _ send: Send<ReactorAction<R>>
  ) async throws where Stream.Element == R.Mutation {
    let pass: @Sendable (R.Mutation) async -> Void = { mutation in
      for mutation in reactor.transform(mutation: mutation) { await send(.mutation(mutation)) }
    }
    // Iterated as a sequence, `Mutations` would be produced ahead of their reduction.
    if let mutations = stream as? Mutations<R.Mutation> { return try await mutations.forEach(pass) }
    for try await mutation in stream { await pass(mutation) }
  }

  public var lifecycle: Lifecycle<State, Action> {
    .onStart { [reactor] _ in reactor.events == nil ? nil : .begin }
      .beginning { [reactor] in reactor.initialState }
  }
}

extension ReactorAction: Equatable where R.Action: Equatable, R.Mutation: Equatable {}

/// On the wire it is the reactor's action. Mutations and `begin` have no form there.
extension ReactorAction: SynchronizableAction, SynchronizableScalar {
  public var name: String {
    switch self {
    case .action(let action): action.name
    // Mutations are private, so their names are not shown.
    case .mutation: "(mutation)"
    case .begin: "(begin)"
    }
  }

  public func isSame(as other: ReactorAction) -> Bool {
    guard case .action(let first) = self, case .action(let second) = other else { return false }
    return first.isSame(as: second)
  }

  public func encode(into encoder: inout CBOREncoder) {
    if case .action(let action) = self {
      action.encode(into: &encoder)
    } else {
      encoder.encodeNull()
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = .action(try R.Action(from: &decoder, seed: seed))
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    R.Action.schemaKind(in: &schema)
  }
}
