/// A reactor as a reducer.
public struct ReactorReducer<R: Reactor>: Reducer {
  public typealias State = R.State
  public typealias Action = ReactorAction<R>
  public typealias Body = Never
  public let reactor: R
  /// Whether the reactor is only shown: its actions are recorded and do nothing, and its state is
  /// set by `ReactorAction.stub`.
  public let isStub: Bool
  /// Whether the reactor transforms the streams of its actions, and of its mutations.
  private let transforms: (actions: Bool, mutations: Bool)

  public init(_ reactor: R, isStub: Bool = false) {
    self.reactor = reactor
    self.isStub = isStub
    let actions: ReactorStream<R.Action> = reactor.transform(action: .probe)
    let mutations: ReactorStream<R.Mutation> = reactor.transform(mutation: .probe)
    transforms = (!actions.isProbe, !mutations.isProbe)
  }

  public func reduce(
    into state: inout R.State, action: ReactorAction<R>
  ) throws(Rejection) -> Effect<ReactorAction<R>> {
    switch action {
    case .stub(let shown):
      guard isStub else { throw Rejection(.refused, "only the state of a stub can be set") }
      state = shown
      return .none
    case _ where isStub: return .none
    case .action(let action): return take(reactor.transform(action: action), state)
    case .transformed(let action): return work([action], state)
    case .mutation(let mutation):
      state = reactor.reduce(state: state, mutation: mutation)
      return .none
    case .begin: return .merge(begin(.actions), begin(.mutations), events)
    case .failed(let pipe, let message):
      return .run(name: pipe) { _ in throw ReactorStreamError(description: message) }
    }
  }

  // MARK: Actions

  /// Mutate actions, or let them enter the stream of actions.
  private func take(_ actions: [R.Action], _ state: R.State) -> Effect<ReactorAction<R>> {
    guard transforms.actions else { return work(actions, state) }
    if actions.isEmpty { return .none }
    let entering = actions.map { action -> Effect<ReactorAction<R>> in
      ReactorPipe.actions.effect(entering: action, named: action.name)
    }
    return Effect.merge([begin(.actions)] + entering).accepted
  }

  /// The effect that sends the mutations of actions, one by one.
  private func work(_ actions: [R.Action], _ state: R.State) -> Effect<ReactorAction<R>> {
    if actions.isEmpty { return .none }
    let streams = actions.map { action in
      Effect.run(name: action.name) { send in
        try await pass(reactor.mutate(action: action, state: state), send)
      }
    }
    return .merge(begin(.mutations), .concatenate(streams)).accepted
  }

  private var events: Effect<ReactorAction<R>> {
    guard let events = reactor.events else { return .none }
    return .run(name: "events") { send in try await pass(events, send) }
  }

  /// Send the mutations of a stream, each when the one before has been reduced.
  private func pass<Stream: AsyncSequence & Sendable>(
    _ stream: Stream, _ send: Send<ReactorAction<R>>
  ) async throws where Stream.Element == R.Mutation {
    let surroundings = EffectSurroundings.current
    let pass: @Sendable (R.Mutation) async -> Void = { mutation in
      for mutation in reactor.transform(mutation: mutation) {
        if transforms.mutations {
          await ReactorPipe.mutations.enter(mutation, surroundings)
        } else {
          await send(.mutation(mutation))
        }
      }
    }
    // Iterated as a sequence, `Mutations` would be produced ahead of their reduction.
    if let mutations = stream as? Mutations<R.Mutation> { return try await mutations.forEach(pass) }
    for try await mutation in stream { await pass(mutation) }
  }

  // MARK: Whole streams

  /// The effect that runs a transformed stream, unless it runs, or the reactor has none.
  private func begin(_ pipe: ReactorPipe) -> Effect<ReactorAction<R>> {
    guard pipe == .actions ? transforms.actions : transforms.mutations else { return .none }
    return Effect.run(name: pipe.name) { send in
      let report: @Sendable (any Error) async -> Void = { error in
        await send(.failed(pipe.name, "\(error)"))
      }
      switch pipe {
      case .actions:
        await pipe.run(reactor.transform(action:), { await send(.transformed($0)) }, report)
      case .mutations:
        await pipe.run(reactor.transform(mutation:), { await send(.mutation($0)) }, report)
      }
    }.unlessRunning(id: pipe)
  }

  /// Whether there is anything to begin with the store.
  var begins: Bool {
    !isStub && (transforms.actions || transforms.mutations || reactor.events != nil)
  }

  public var lifecycle: Lifecycle<State, Action> {
    .onStart { [self] _ in begins ? .begin : nil }
      .beginning { [reactor] in reactor.initialState }
  }
}

/// An error of a transformed stream, for the warning about it.
private struct ReactorStreamError: Error, CustomStringConvertible {
  let description: String
}
