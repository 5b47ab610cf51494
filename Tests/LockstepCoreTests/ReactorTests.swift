import CBOR
import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

/// The car list of the documents on ReactorKit.
struct CarList: Reactor {
  struct State: Described {
    var loading = false
    var cars: [String] = []
  }

  enum Action: DescribedAction {
    case reloadCarList, fail, swallowed, twice, firstFails, sort
  }

  enum Mutation: Equatable, Sendable {
    case setLoading(Bool)
    case requestCarList([String])
    case note(String)
    case dropped
  }

  struct Failure: Error {}

  var initialState: State { State() }
  @Dependency(\.clock) var clock

  func mutate(action: Action, state: State) -> Mutations<Mutation> {
    switch action {
    case .reloadCarList:
      .concat(.just(.setLoading(true)), request(), .just(.setLoading(false)))
    case .fail: .concat(.just(.setLoading(true)), Mutations { _ in throw Failure() })
    case .firstFails: Mutations { _ in throw Failure() }
    case .sort: .merge(.just(.dropped), .just(.requestCarList(state.cars.sorted())))
    case .swallowed, .twice: .just(.note("never"))
    }
  }

  private func request() -> Mutations<Mutation> {
    Mutations { [clock] send in
      try await clock.pause(for: .seconds(2))
      await send(.requestCarList(["KIA K5", "BMW 520d"]))
    }
  }

  func reduce(state: State, mutation: Mutation) -> State {
    var newState = state
    switch mutation {
    case .setLoading(let loading): newState.loading = loading
    case .requestCarList(let cars): newState.cars = cars
    case .note(let text): newState.cars.append(text)
    case .dropped: newState.cars.append("dropped")
    }
    return newState
  }

  func transform(action: Action) -> [Action] {
    switch action {
    case .swallowed: []
    case .twice: [.firstFails, .sort]
    default: [action]
    }
  }

  func transform(mutation: Mutation) -> [Mutation] { mutation == .dropped ? [] : [mutation] }
}

@Suite("Reactor")
struct ReactorTests {
  typealias Reduced = ReactorAction<CarList>

  func makeStore() -> TestStore<ReactorReducer<CarList>> {
    TestStore(initialState: CarList().initialState) { CarList().reducer }
  }

  @Test("RKT-06..RKT-13: a reload shows loading, then the cars, then the end of loading")
  func reload() async {
    let store = makeStore()
    await store.send(.action(.reloadCarList))
    #expect(store.log.newest?.cause.parent == 1)
    await store.receive(.mutation(.setLoading(true))) { $0.loading = true }
    await store.clock.advance(by: .milliseconds(1999))
    #expect(store.runningEffects.map(\.name) == ["reloadCarList"])
    await store.clock.advance(by: .milliseconds(1))
    await store.receive(.mutation(.requestCarList(["KIA K5", "BMW 520d"]))) {
      $0.cars = ["KIA K5", "BMW 520d"]
    }
    await store.receive(.mutation(.setLoading(false))) { $0.loading = false }
    await store.finish()
  }

  @Test("RKT-10: the action is acknowledged as accepted, and every mutation is a revision")
  func revisions() {
    var bench = Bench(CarList.State(), CarList().reducer)
    #expect(bench.send(.action(.reloadCarList)) == [.accepted])
    #expect(bench.send(.mutation(.setLoading(true)), by: "reloadCarList") == [.changed(1)])
    #expect(bench.send(.mutation(.requestCarList(["a"])), by: "reloadCarList") == [.changed(2)])
    #expect(bench.send(.mutation(.setLoading(false)), by: "reloadCarList") == [.changed(3)])
  }

  @Test("RKT-20: every action goes through mutate, with or without logic for it")
  func everyActionPasses() async {
    final class Asked: Sendable { let names = Mutex<[String]>([]) }
    /// Has logic for one action only.
    struct Gate: Reactor {
      typealias State = Trace
      typealias Action = Act
      let asked = Asked()
      var initialState: Trace { Trace() }

      func mutate(action: Act, state: Trace) -> Mutations<String> {
        asked.names.withLock { $0.append(action.name) }
        return action == "go" ? .just("gone") : .empty
      }

      func reduce(state: Trace, mutation: String) -> Trace { Trace(log: state.log + [mutation]) }
    }
    let reactor = Gate()
    let store = TestStore(initialState: Trace()) { reactor.reducer }
    await store.send(.action("a"))
    await store.send(.action("go"))
    await store.receive(.mutation("gone")) { $0.log = ["gone"] }
    await store.send(.action("b"))
    #expect(reactor.asked.names.withLock { $0 } == ["a", "go", "b"])
    await store.finish()
  }

  @Test("2.2, 3.2: the mutations of two reloads interleave")
  func interleaving() async {
    let store = makeStore()
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(true))) { $0.loading = true }
    await store.clock.advance(by: .seconds(1))
    await store.send(.action(.reloadCarList))
    await store.receive(.mutation(.setLoading(true)))
    await store.clock.advance(by: .seconds(1))
    await store.receive(.mutation(.requestCarList(["KIA K5", "BMW 520d"]))) {
      $0.cars = ["KIA K5", "BMW 520d"]
    }
    await store.receive(.mutation(.setLoading(false))) { $0.loading = false }
    #expect(store.runningEffects.count == 1)
    await store.clock.advance(by: .seconds(1))
    await store.receive(.mutation(.requestCarList(["KIA K5", "BMW 520d"])))
    await store.receive(.mutation(.setLoading(false)))
    await store.finish()
  }

  @Test("2.2: a stream that fails ends alone, and the reactor continues")
  func failure() async {
    let store = makeStore()
    store.exhaustivity = .off
    await store.send(.action(.fail))
    await store.receive(.mutation(.setLoading(true)))
    #expect(store.runningEffects == [])
    await store.send(.action(.sort))
    await store.receive(.mutation(.requestCarList([])))
    await store.finish()
  }

  @Test("2.2: transform(action:) drops or multiplies, and a failing part does not stop the next")
  func transformedActions() async {
    let store = makeStore()
    store.exhaustivity = .off
    await store.send(.action(.swallowed))
    #expect(store.log.newest?.outcome == .unchanged && store.runningEffects == [])
    await store.send(.action(.twice))
    await store.receive(.mutation(.requestCarList([])))
    await store.finish()
  }

  @Test("2.2: transform(mutation:) drops mutations")
  func transformedMutations() async {
    let store = makeStore()
    await store.send(.action(.sort))
    await store.receive(.mutation(.requestCarList([])))
    await store.finish()
  }

  /// Records the calls in order.
  struct Ordered: Reactor {
    typealias State = Trace
    typealias Action = Act

    final class Notes: Sendable {
      let list = Mutex<[String]>([])
      func add(_ text: String) { list.withLock { $0.append(text) } }
    }

    let notes = Notes()
    var initialState: Trace { Trace() }

    func transform(action: Act) -> [Act] {
      notes.add("transform action")
      return [action]
    }

    func mutate(action: Act, state: Trace) -> Mutations<String> {
      notes.add("mutate")
      return .concat(.just("1"), Mutations { _ in self.notes.add("next part") }, .just("2"))
    }

    func transform(mutation: String) -> [String] {
      notes.add("transform mutation \(mutation)")
      return [mutation]
    }

    func reduce(state: Trace, mutation: String) -> Trace {
      notes.add("reduce \(mutation)")
      return Trace(log: state.log + [mutation])
    }

    var events: Mutations<String>? { .just("shared") }
  }

  @Test("2.2, RKT-08: the transforms, mutate and reduce run in order, one part after the other")
  func order() async {
    let reactor = Ordered()
    let store = TestStore(initialState: Trace()) { reactor.reducer }
    await store.send(.action("go"))
    await store.receive(.mutation("1")) { $0.log = ["1"] }
    await store.receive(.mutation("2")) { $0.log = ["1", "2"] }
    #expect(
      reactor.notes.list.withLock { $0 } == [
        "transform action", "mutate", "transform mutation 1", "reduce 1", "next part",
        "transform mutation 2", "reduce 2",
      ])
    await store.finish()
  }

  @Test("2.2: mutations from events reach the store")
  func events() async throws {
    let reducer = Ordered().reducer
    let begin = try #require(
      reducer.composedLifecycle.actions(for: .started(.first), in: Trace()).first)
    let store = TestStore(initialState: Trace()) { reducer }
    await store.send(begin)
    await store.receive(.mutation("shared")) { $0.log = ["shared"] }
    await store.finish()
  }

  @Test("RKT-07: mutations have no encoding, and no name in the log")
  func hidden() throws {
    var encoder = CBOREncoder()
    Reduced.mutation(.requestCarList(["secret"])).encode(into: &encoder)
    #expect(encoder.bytes == [0xf6])
    #expect(Reduced.mutation(.setLoading(true)).name == "(mutation)")
    #expect(Reduced.action(.reloadCarList).name == "reloadCarList")
    var action = CBOREncoder()
    Reduced.action(.reloadCarList).encode(into: &action)
    var own = CBOREncoder()
    CarList.Action.reloadCarList.encode(into: &own)
    #expect(action.bytes == own.bytes)
  }
}
