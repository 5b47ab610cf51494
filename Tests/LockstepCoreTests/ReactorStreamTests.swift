import Lockstep
import LockstepTesting
import Testing
import Values

/// Whole streams of a reactor's actions and mutations, and the state that they read.
@Suite struct ReactorStreamTests {
  /// What is searched for, and how often.
  struct Search: Reactor {
    enum Action: DescribedAction { case type(String), clear }
    var initialState: Trace { Trace() }

    /// Typing is debounced, and a text that is equal to the one before is not searched for again.
    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> {
      .merge(
        action.filter { $0 == .clear },
        action.filter { $0 != .clear }.debounce(for: .milliseconds(300)).removeDuplicates())
    }

    func mutate(action: Action, state: Trace) -> Mutations<String> {
      if case .type(let text) = action { .just(text) } else { .just("clear") }
    }

    func reduce(state: Trace, mutation: String) -> Trace { Trace(log: state.log + [mutation]) }
  }

  private func send(
    _ text: String, then pause: Int, to store: TestStore<ReactorReducer<Search>>
  ) async {
    await store.send(.action(text == "clear" ? .clear : .type(text)))
    await store.clock.advance(by: .milliseconds(pause))
  }

  @Test func `actions are debounced, and repeated ones dropped, kind by kind`() async {
    let store = TestStore(initialState: Trace()) { Search().reducer }
    store.exhaustivity = .off
    await send("a", then: 299, to: store)
    await send("ab", then: 100, to: store)
    await send("clear", then: 199, to: store)
    await store.skipReceivedActions(strict: false)
    #expect(store.state.log == ["clear"])
    await store.clock.advance(by: .milliseconds(1))
    await store.skipReceivedActions(strict: false)
    #expect(store.state.log == ["clear", "ab"])
    await send("x", then: 200, to: store)
    await send("ab", then: 400, to: store)
    await send("abc", then: 400, to: store)
    await store.skipReceivedActions(strict: false)
    #expect(store.state.log == ["clear", "ab", "abc"])
    // The actions have ended; the stream goes on.
    #expect(store.runningEffects.map(\.name) == ["transform(action:)"])
    await store.skipInFlightEffects()
  }

  /// Counts, and shows what a global stream says.
  struct Merging: Reactor {
    enum Action: DescribedAction { case count(Int) }
    var initialState: Trace { Trace() }

    func mutate(action: Action, state: Trace) -> Mutations<String> {
      guard case .count(let count) = action else { return .empty }
      return Mutations { send in for number in 0..<count { await send("\(number)") } }
    }

    func transform(mutation: Mutations<String>) -> Mutations<String> {
      let global = Mutations<String> { send in
        @Dependency(\.clock) var clock
        try await clock.pause(for: .seconds(1))
        await send("global")
      }
      return mutation.filter { $0 != "1" }.merge(with: global)
    }

    func reduce(state: Trace, mutation: String) -> Trace { Trace(log: state.log + [mutation]) }
  }

  @Test func `a global state is merged into the mutations, from the start of the store on`() async {
    let store = TestStore(initialState: Trace()) { Merging().reducer }
    store.exhaustivity = .off
    await store.tell(.first)
    await store.clock.advance(by: .seconds(1))
    await store.send(.action(.count(3)))
    await store.skipReceivedActions(strict: false)
    #expect(store.state.log == ["global", "0", "2"])
    await store.skipInFlightEffects()
  }

  @Test func `the next mutation waits until the one before has been reduced`() async {
    /// The state that each mutation of an action saw.
    struct Watching: Reactor {
      enum Action: DescribedAction { case go }
      var initialState: Trace { Trace() }
      func mutate(action: Action, state: Trace) -> Mutations<String> {
        Mutations { send in
          for _ in 0..<5 { await send("\(try await currentState.log.count)") }
        }
      }
      func transform(mutation: Mutations<String>) -> Mutations<String> { mutation.map { $0 + "!" } }
      func reduce(state: Trace, mutation: String) -> Trace { Trace(log: state.log + [mutation]) }
    }
    let store = TestStore(initialState: Trace()) { Watching().reducer }
    store.exhaustivity = .off
    await store.send(.action(.go))
    await store.skipReceivedActions(strict: false)
    #expect(store.state.log == ["0!", "1!", "2!", "3!", "4!"])
    await store.skipInFlightEffects()
  }

  /// Ignores its actions.
  struct Deaf: Reactor {
    enum Action: DescribedAction { case go }
    var initialState: Int { 0 }
    func transform(action: ReactorStream<Action>) -> ReactorStream<Action> { .empty }
    func reduce(state: Int, mutation: Action) -> Int { state + 1 }
  }

  @Test func `actions that the transformed stream does not take end without effect`() async {
    let store = TestStore(initialState: 0) { Deaf().reducer }
    store.exhaustivity = .off
    for _ in 0..<3 { await store.send(.action(.go)) }
    await store.skipReceivedActions(strict: false)
    #expect(store.state == 0 && store.runningEffects.map(\.name) == ["transform(action:)"])
    await store.skipInFlightEffects()
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `actions enter the stream in the order in which they were taken`(_ seed: UInt64) async {
    struct Ordered: Reactor {
      enum Action: DescribedAction { case add(Int) }
      var initialState: Trace { Trace() }
      /// Several, which wait for the stream at once.
      func transform(action: Action) -> [Action] {
        guard case .add(let number) = action else { return [] }
        return (0..<5).map { .add(number * 5 + $0) }
      }
      func transform(action: ReactorStream<Action>) -> ReactorStream<Action> { action.map { $0 } }
      func mutate(action: Action, state: Trace) -> Mutations<String> { .empty }
      func reduce(state: Trace, mutation: String) -> Trace { state }
    }
    let store = TestStore(initialState: Trace()) { Ordered().reducer }
    store.exhaustivity = .off
    var random = SplitMix64(seed)
    for number in 0..<40 {
      await store.send(.action(.add(number)))
      if random.next() % 4 == 0 { await store.skipReceivedActions(strict: false) }
    }
    await store.skipReceivedActions(strict: false)
    let transformed = store.log.all.compactMap { record -> Int? in
      if case .transformed(.add(let number))? = record.action { number } else { nil }
    }
    #expect(transformed == Array(0..<200))
    await store.skipInFlightEffects()
  }

  // MARK: The current state of a child

  /// Adds to what it reads.
  struct Adding: Reactor {
    enum Action: DescribedAction { case add(Int), late }
    struct State: Described, Identifiable {
      var id = 0
      var sum = 0
    }
    var initialState: State { State() }

    func mutate(action: Action, state: State) -> Mutations<Int> {
      @Dependency(\.clock) var clock
      switch action {
      case .add(let number):
        return .concat(
          .just(number), Mutations { send in await send(try await currentState.sum * 10) })
      case .late:
        return Mutations { [clock] send in
          try? await clock.pause(for: .seconds(1))
          let sum = try? await currentState.sum
          await send(sum ?? -1)
        }
      }
    }

    func reduce(state: State, mutation: Int) -> State {
      State(id: state.id, sum: state.sum + mutation)
    }
  }

  /// The reactor wherever a child can be.
  struct Places: Reducer {
    @ObservableState struct State: Equatable {
      var first = Adding.State()
      var second = Adding.State()
      var maybe: Adding.State?
      var rows: SyncMap<Int, Adding.State> = [:]
      var page = Page.other
    }

    @ObservableState(frozen: true) enum Page: Equatable {
      case other
      case sum(Adding.State)
    }

    @Action enum Action: Equatable {
      case first(ReactorAction<Adding>)
      case second(ReactorAction<Adding>)
      case maybe(ReactorAction<Adding>)
      case row(Int, ReactorAction<Adding>)
      case page(PageAction)
      case set(State)
    }

    @Action enum PageAction: Equatable { case sum(ReactorAction<Adding>) }

    var body: some Reducer<State, Action> {
      Reduce<State, Action> { state, action in
        if case .set(let new) = action { state = new }
        return .none
      }
      .ifLet(\.maybe, action: \.maybe) { Adding().reducer }
      .forEach(\.rows, action: \.row) { Adding().reducer }
      Scope(state: \.first, action: \.first) { Adding().reducer }
      Scope(state: \.second, action: \.second) { Adding().reducer }
      Scope(state: \.page, action: \.page) {
        EmptyReducer<Page, PageAction>().ifCaseLet(\.sum, action: \.sum) { Adding().reducer }
      }
    }
  }

  private let full = Places.State(
    first: .init(sum: 1), second: .init(sum: 2), maybe: .init(sum: 3),
    rows: [4: .init(id: 4, sum: 4), 5: .init(id: 5, sum: 7)], page: .sum(.init(sum: 6)))

  @Test func `the current state is that of the child, wherever it is`() async {
    let store = TestStore(initialState: full) { Places() }
    store.exhaustivity = .off
    let add = ReactorAction<Adding>.action(.add(1))
    for action in [
      Places.Action.first(add), .second(add), .maybe(add), .row(4, add), .row(5, add),
      .page(.sum(add)),
    ] {
      await store.send(action)
      await store.skipReceivedActions(strict: false)
    }
    var expected = full
    expected.first.sum = 22
    expected.second.sum = 33
    expected.maybe?.sum = 44
    expected.rows[4]?.sum = 55
    expected.rows[5]?.sum = 88
    expected.page = .sum(.init(sum: 77))
    #expect(store.state == expected)
    await store.finish()
  }

  @Test func `a child that was removed has no current state, and its stream ends`() async {
    let store = TestStore(initialState: full) { Places() }
    store.exhaustivity = .off
    for action in [Places.Action.maybe(.action(.late)), .row(4, .action(.late))] {
      await store.send(action)
    }
    var rest = full
    (rest.maybe, rest.rows[4]) = (nil, nil)
    await store.send(.set(rest))
    await store.clock.advance(by: .seconds(2))
    await store.skipReceivedActions(strict: false)
    #expect(store.state == rest && store.runningEffects == [])
    await store.finish()
  }

  @Test func `outside of a reactor's streams there is no current state`() async {
    await #expect(throws: NoCurrentState.self) { try await Adding().currentState }
  }

  // MARK: Operators

  @Test func `the elements of composed streams are those of their parts`() async throws {
    let three = ReactorStream<Int>.concat(.just(1), .just(2), .empty, .just(3))
    #expect(try await elements(three.map { $0 * 2 }) == [2, 4, 6])
    #expect(try await elements(three.filter { $0 != 2 }) == [1, 3])
    #expect(try await elements(three.compactMap { $0 == 3 ? nil : "\($0)" }) == ["1", "2"])
    let pairs = ReactorStream<Int>.concat(three, three.map { 4 - $0 })
    #expect(try await elements(pairs.removeDuplicates()) == [1, 2, 3, 2, 1])
    #expect(try await elements(pairs.removeDuplicates { $0 % 2 == $1 % 2 }) == [1, 2, 3, 2, 1])
    #expect(try await elements(three.merge(with: .just(9))).sorted() == [1, 2, 3, 9])
    #expect(try await elements(ReactorStream(three)) == [1, 2, 3])
  }

  @Test func `a debounced stream ends with its last element`() async throws {
    let stream = ReactorStream<Int>.concat(.just(1), .just(2)).debounce(for: .milliseconds(1))
    #expect(try await elements(stream) == [2])
    struct Failure: Error {}
    let failing = ReactorStream<Int> { _ in throw Failure() }
    await #expect(throws: Failure.self) {
      try await elements(failing.debounce(for: .seconds(1000)))
    }
  }

  private func elements<Element>(_ stream: ReactorStream<Element>) async throws -> [Element] {
    var elements: [Element] = []
    for try await element in stream { elements.append(element) }
    return elements
  }
}
