import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

/// ReactorKit's `ReactorTests`, by their names.
@Suite("ReactorKit: ReactorTests")
struct ReactorUpstreamTests {
  struct Names: Described {
    var names: [String] = []
  }

  /// Upstream's `TestReactor`: every stage appends its name.
  struct TestReactor: StateTransformingReactor {
    struct Action: Described, SynchronizableAction {
      var names: [String]
      var name: String { names.joined(separator: " ") }
    }

    typealias State = Names
    var initialState: Names { Names() }

    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
      action.map { Action(names: $0.names + ["transformedAction"]) }
    }

    func mutate(action: Action, state: Names) -> Mutations<[String]> {
      .just(action.names + ["mutation"])
    }

    func transform(mutation: Mutations<[String]>) -> Mutations<[String]> {
      mutation.map { $0 + ["transformedMutation"] }
    }

    func reduce(state: Names, mutation: [String]) -> Names {
      Names(names: state.names + mutation + ["reduce"])
    }

    func transform(state: Names) -> Names { Names(names: state.names + ["transformedState"]) }
  }

  private func testStore() -> TestStore<TransformedStateReducer<TestReactor>> {
    let reactor = TestReactor()
    let state = TransformedState(reactor.initialState, of: reactor)
    return TestStore(initialState: state) { reactor.reducer }
  }

  private let all = [
    "action", "transformedAction", "mutation", "transformedMutation", "reduce",
  ]

  @Test func `testEachMethodsAreInvoked`() async {
    let store = testStore()
    store.exhaustivity = .off
    #expect(store.state.shown.names == ["transformedState"])
    await store.send(.action(.init(names: ["action"])))
    await store.receive(.transformed(.init(names: ["action", "transformedAction"])))
    await store.receive(
      .mutation(["action", "transformedAction", "mutation", "transformedMutation"]))
    #expect(store.state.shown.names == all + ["transformedState"])
    await store.skipInFlightEffects()
  }

  @Test func `the next mutation is reduced from the state before transform(state:)`() async {
    let store = testStore()
    store.exhaustivity = .off
    for _ in 0..<2 {
      await store.send(.action(.init(names: ["action"])))
      await store.skipReceivedActions(strict: false)
    }
    #expect(store.state.reduced.names == all + all)
    #expect(store.state.shown.names == all + all + ["transformedState"])
    await store.skipInFlightEffects()
  }

  /// Upstream's `MyReactor`, with State inferred from `reduce`.
  struct Appending: Reactor {
    enum Action: DescribedAction { case append([String]) }
    var initialState: Names { Names() }

    func mutate(action: Action, state: Names) -> Mutations<[String]> {
      guard case .append(let characters) = action else { return .empty }
      return characters.reduce(.empty) { stream, character in
        .concat(
          stream,
          Mutations { send in await send(try await currentState.names + [character]) })
      }
    }

    func reduce(state: Names, mutation: [String]) -> Names { Names(names: mutation) }
  }

  @Test func `testReduceIsExecutedRightAfterMutation`() async {
    let store = TestStore(initialState: Names()) { Appending().reducer }
    store.exhaustivity = .off
    for characters in [["a", "b"], ["c"], ["d", "e", "f"]] {
      await store.send(.action(.append(characters)))
      await store.skipReceivedActions(strict: false)
    }
    #expect(store.state.names == ["a", "b", "c", "d", "e", "f"])
    await store.finish()
  }

  /// Upstream's `CounterReactor`: its mutation is its action, so it needs no `mutate`.
  struct Counting: Reactor {
    enum Action: DescribedAction { case count }
    var initialState: Int { 0 }
    func reduce(state: Int, mutation: Action) -> Int { state + 1 }
  }

  @Test func `testCurrentState`() async {
    let store = TestStore(initialState: 0) { Counting().reducer }
    await store.send(.action(.count))
    await store.receive(.mutation(.count)) { $0 = 1 }
    await store.send(.action(.count))
    await store.receive(.mutation(.count)) { $0 = 2 }
    await store.finish()
  }

  /// Upstream's `CounterReactor` with a state at which the stream of an action fails.
  struct Failing: Reactor {
    enum Action: DescribedAction { case count }
    struct TestError: Error {}
    let failsAt: Int?
    var initialState: Int { 0 }

    func mutate(action: Action, state: Int) -> Mutations<Action> {
      if state == failsAt { return .concat(.just(action), Mutations { _ in throw TestError() }) }
      return .concat(.just(action), .empty)
    }

    func reduce(state: Int, mutation: Action) -> Int { state + 1 }
  }

  @Test(arguments: [2, nil])
  func `testStreamIgnoresErrorFromMutate, testStreamIgnoresCompletedFromMutate`(
    _ failsAt: Int?
  ) async {
    let store = TestStore(initialState: 0) { Failing(failsAt: failsAt).reducer }
    // An error is reported as a warning.
    store.exhaustivity = failsAt == nil ? .on : .off
    for count in 1...5 {
      await store.send(.action(.count))
      await store.receive(.mutation(.count)) { $0 = count }
    }
    #expect(store.runningEffects == [])
    await store.finish()
  }

  /// Fails once in its stream of actions, and ends once.
  struct Breaking: Reactor {
    enum Action: DescribedAction { case count, fail, end }
    struct TestError: Error {}
    var initialState: Int { 0 }

    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
      ReactorStream { send in
        for try await action in action {
          if action == .fail { throw TestError() }
          if action == .end { return }
          await send(action)
        }
      }
    }

    func reduce(state: Int, mutation: Action) -> Int { state + 1 }
  }

  @Test(arguments: [Breaking.Action.fail, .end])
  func `testStreamIgnoresErrorFromAction, testStreamIgnoresCompletedFromAction`(
    _ ending: Breaking.Action
  ) async {
    let store = TestStore(initialState: 0) { Breaking().reducer }
    store.exhaustivity = .off
    // An iterated stream runs on the store's executor, so that no action needs real time.
    store.timeout = .zero
    await store.send(.action(.count))
    await store.receive(.mutation(.count))
    await store.send(.action(ending))
    if ending == .fail { await store.receive(.failed("transform(action:)", "TestError()")) }
    for _ in 0..<3 {
      await store.send(.action(.count))
      await store.receive(.mutation(.count))
    }
    #expect(store.state == 4)
    await store.skipInFlightEffects()
  }

  /// Upstream's `StopwatchReactor`.
  struct Stopwatch: Reactor {
    enum Action: DescribedAction { case start, stop }
    var initialState: Int { 0 }

    func mutate(action: Action, state: Int) -> Mutations<Int> {
      @Dependency(\.clock) var clock
      switch action {
      case .start:
        return Mutations { [clock] send in
          try await withTaskCancellation(id: "ticks") {
            while true {
              try await clock.pause(for: .seconds(1))
              await send(1)
            }
          }
        }
      case .stop: return Mutations { _ in await Task.cancel(id: "ticks") }
      }
    }

    func reduce(state: Int, mutation: Int) -> Int { state + mutation }
  }

  @Test func `testCancel`() async {
    let store = TestStore(initialState: 0) { Stopwatch().reducer }
    store.exhaustivity = .off
    var seen: [Int] = []
    for (action, seconds) in [(Stopwatch.Action.start, 3), (.stop, 1), (.start, 2), (.stop, 5)] {
      await store.send(.action(action))
      for _ in 0..<seconds {
        await store.clock.advance(by: .seconds(1))
        await store.skipReceivedActions(strict: false)
        seen.append(store.state)
      }
    }
    #expect(seen == [1, 2, 3, 3, 4, 5, 5, 5, 5, 5, 5])
    await store.finish()
  }

  // MARK: Stubs

  @Test func `testStub_actions`() async {
    let store = TestStore(initialState: 0) { Stopwatch().stub }
    for action in [Stopwatch.Action.start, .start, .stop] { await store.send(.action(action)) }
    #expect(
      store.log.all.compactMap(\.action) == [.action(.start), .action(.start), .action(.stop)])
    #expect(store.runningEffects == [])
    await store.finish()
  }

  @Test func `testStub_state`() async {
    let store = TestStore(initialState: 0) { Stopwatch().stub }
    for state in [1, -10, 30] {
      await store.send(.stub(state)) { $0 = state }
    }
    await store.finish()
  }

  @Test func `testStub_ignoreAction`() async {
    let reactor = TestReactor()
    let state = TransformedState(reactor.initialState, of: reactor)
    let store = TestStore(initialState: state) { reactor.stub }
    await store.send(.action(.init(names: ["A"])))
    #expect(store.state == state)
    await store.send(.stub(Names(names: ["shown"]))) {
      $0 = TransformedState(Names(names: ["shown"]), of: Plain())
    }
    await store.finish()
  }

  /// Shows what it reduces.
  private struct Plain: StateTransformingReactor {
    typealias Action = TestReactor.Action
    var initialState: Names { Names() }
    func mutate(action: Action, state: Names) -> Mutations<Int> { .empty }
    func reduce(state: Names, mutation: Int) -> Names { state }
    func transform(state: Names) -> Names { state }
  }

  @Test func `only the state of a stub can be set`() {
    var bench = Bench(0, Stopwatch().reducer)
    let refusal = Rejection(.refused, "only the state of a stub can be set")
    #expect(bench.send(.stub(7)) == [.rejected(refusal)])
    #expect(bench.core.state == 0)
  }
}
