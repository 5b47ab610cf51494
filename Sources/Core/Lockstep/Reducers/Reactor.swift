public import CBOR
public import Values

/// A feature in two stages, as in ReactorKit: an action becomes a stream of mutations, and each
/// mutation changes the state.
///
/// Mutations are the reactor's own: they never travel, and no peer learns their names. Every one
/// makes a revision of its own. The action is acknowledged as accepted at once; its mutations come
/// as they come, and those of two actions interleave. A stream that fails ends alone.
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

  /// The state of a daemon whose history begins, unless the daemon says another. In the scope of a
  /// larger feature it takes the place of the default that the field has there.
  var initialState: State { get }

  /// What an action leads to. `state` is the state when the action was taken.
  func mutate(action: Action, state: State) -> Stream

  /// The state behind a mutation. Pure.
  func reduce(state: State, mutation: Mutation) -> State

  /// The actions that an action stands for, in order; none to swallow it.
  func transform(action: Action) -> [Action]

  /// The mutations that a mutation stands for, in order; none to drop it.
  func transform(mutation: Mutation) -> [Mutation]

  /// The state that shows, of the one that `reduce` made.
  func transform(state: State) -> State

  /// Mutations that come from elsewhere for as long as the daemon lives, or the child of which the
  /// reactor is the feature: a state that features share, for example. They begin with the daemon;
  /// those of a child that comes later, when its parent sends it `ReactorAction.begin`.
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

/// A stream of mutations, put together of parts.
public struct Mutations<Mutation: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Mutation
  public typealias Failure = any Error
  public typealias AsyncIterator = AsyncThrowingStream<Mutation, any Error>.Iterator
  private let run: @Sendable (@escaping @Sendable (Mutation) async -> Void) async throws -> Void

  /// What an operation hands to its argument.
  public init(
    _ run: @escaping @Sendable (@escaping @Sendable (Mutation) async -> Void) async throws -> Void
  ) {
    self.run = run
  }

  /// Hand every mutation to `send`, and go on when it has returned.
  func forEach(_ send: @escaping @Sendable (Mutation) async -> Void) async throws {
    try await run(send)
  }

  /// What another sequence brings.
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

  /// Streams side by side.
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

/// What a store takes on behalf of a reactor: actions from outside, and mutations, which never
/// leave the store.
public enum ReactorAction<R: Reactor>: Sendable {
  case action(R.Action)
  case mutation(R.Mutation)
  /// The daemon has started, or the child has come: `events` begin.
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

  /// The mutations of an action, one by one.
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
    // As a sequence, mutations would be made ahead of their reduction.
    if let mutations = stream as? Mutations<R.Mutation> { return try await mutations.forEach(pass) }
    for try await mutation in stream { await pass(mutation) }
  }

  public var lifecycle: Lifecycle<State, Action> {
    .onStart { [reactor] _ in reactor.events == nil ? nil : .begin }
      .beginning { [reactor] in reactor.initialState }
  }
}

extension ReactorAction: Equatable where R.Action: Equatable, R.Mutation: Equatable {}

/// On the wire it is the reactor's action. What is the reactor's own has no form there.
extension ReactorAction: SynchronizableAction, SynchronizableScalar {
  public var name: String {
    switch self {
    case .action(let action): action.name
    // The names of mutations are nobody else's concern.
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
