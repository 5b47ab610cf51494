import AppShellFeature
import CarsFeature
import CounterFeature
import FeedFeature
import Foundation
import Lockstep
import LockstepStore
import LockstepTesting
import Observation
import PrimeTimeFeature
import Synchronization
import Testing
import TodosFeature
import Values

/// The rows about the whole architecture, tested on the examples.
struct ArchitectureTests {
  typealias State = PrimeTimeFeature.AppState
  typealias Action = PrimeTimeFeature.AppAction

  // MARK: Store and reducer

  @Test("TCA-05 TCA-13 RED-09: a store, made of a state and a reducer, changes the state")
  func rootStore() {
    let store = LockstepStore.Store(initialState: State()) { PrimeTime() }
    store.send(.counter(.incrTapped))
    store.send(.primeModal(.saveFavoritePrimeTapped))
    #expect(store.count == 1)
    #expect(store.state.favoritePrimes == [1])
  }

  /// The type alias of the documents: a store of one's own state and action, whatever the reducer
  /// is.
  typealias AppStore = LockstepStore.Store<Reduce<State, Action>>

  @Test("RDX-14: the store of one's own state and action has one name, whatever its reducer")
  func alias() {
    let still = Reduce<State, Action> { _, _ in .none }
    let stores: [AppStore] = [
      AppStore(initialState: State()) { Reduce(PrimeTime()) },
      AppStore(initialState: State()) { still },
    ]
    for store in stores { store.send(.counter(.incrTapped)) }
    #expect(stores.map(\.state.count) == [1, 0])
  }

  @Test("RDX-06: there is no dispatcher: sending runs the reducer, and its result is the state")
  func reducerInPlaceOfDispatcher() {
    let asked = Mutex<[String]>([])
    typealias Steps = Reduce<Counter.State, Counter.Action>
    for step in [1, -5] {
      let reducer = Steps(redux: { state, action in
        asked.withLock { $0.append("\(action.name) at \(state.count)") }
        return Counter.State(count: state.count + step)
      })
      let store = LockstepStore.Store(initialState: Counter.State()) { reducer }
      store.send(.increment)
      #expect(asked.withLock { $0.last } == "increment at 0" && store.count == step)
      store.send(.decrement)
      #expect(asked.withLock { $0.last } == "decrement at \(step)" && store.count == 2 * step)
    }
    #expect(asked.withLock { $0.count } == 4)
  }

  // MARK: Actions

  @Test("TCA-08: an action names the act and nothing else: how it is done is the reducer's matter")
  func acts() throws {
    #expect(Action.counter(.incrTapped).name == "counter.incrTapped")
    #expect(
      Action.favoritePrimes(.deleteFavoritePrime([1])).name == "favoritePrimes.deleteFavoritePrime")
    // On the wire there is only its number.
    var encoder = CBOREncoder()
    Counter.Action.increment.encode(into: &encoder)
    #expect(encoder.bytes == [0])
    // One action, reduced in two ways.
    let spoon = Reduce<Counter.State, Counter.Action>(changing: { state, _ in state.count += 1 })
    let fork = Reduce<Counter.State, Counter.Action>(changing: { state, _ in state.count += 2 })
    var (first, second) = (Counter.State(), Counter.State())
    _ = try spoon.reduce(into: &first, action: .increment)
    _ = try fork.reduce(into: &second, action: .increment)
    #expect(first.count == 1 && second.count == 2)
  }

  @Test("RED-06: user actions and system actions are of one type, each with its origin")
  func origins() async {
    let store = TestStore(initialState: Counter.State()) {
      Counter()
    } withDependencies: {
      $0.numberFacts = NumberFacts { "\($0) is a fact" }
    }
    let user = Cause(.client(ClientOrigin(connection: 1, pid: 2, uid: 3, gid: 4)))
    await store.send(.numberFactButtonTapped, from: user) { $0.isLoading = true }
    await store.receive(.numberFactResponse("0 is a fact")) {
      $0.isLoading = false
      $0.numberFact = "0 is a fact"
    }
    await store.finish()
    guard case .client? = store.log.all.first?.cause.origin,
      case .effect(_, name: "fact")? = store.log.newest?.cause.origin
    else {
      Issue.record("\(store.log.all.map(\.cause.origin))")
      return
    }
    // The start of the daemon, and the actions that follow.
    let shell = TestStore(initialState: AppShellFeature.AppState()) { AppShell() }
    await shell.tell(.first)
    #expect(shell.log.newest?.action == .launch && shell.log.newest?.cause.origin == .owner)
  }

  // MARK: The whole

  /// Two counters, each with facts, and a sum of both.
  struct Two: Reducer {
    @ObservableState struct State: Equatable {
      var left = Counter.State()
      var right = Counter.State(count: 10)
      var total = 10
    }

    @Action enum Action: Equatable {
      case left(Counter.Action)
      case right(Counter.Action)
    }

    var body: some Reducer<State, Action> {
      Scope(state: \.left, action: \.left) { Counter() }
      Scope(state: \.right, action: \.right) { Counter() }
      Reduce { state, _ in
        state.total = state.left.count + state.right.count
        return .none
      }
    }
  }

  @Test("TCA-01: values, composition and effects are tested for a part alone, and for the whole")
  func fiveAims() async {
    let facts = NumberFacts { "\($0) is a fact" }
    // The part alone.
    let part = TestStore(initialState: Counter.State(count: 10)) {
      Counter()
    } withDependencies: {
      $0.numberFacts = facts
    }
    await part.send(.numberFactButtonTapped) { $0.isLoading = true }
    await part.receive(.numberFactResponse("10 is a fact")) {
      $0.isLoading = false
      $0.numberFact = "10 is a fact"
    }
    await part.finish()
    // The same part, twice, in a larger feature, without new code for the part.
    let whole = TestStore(initialState: Two.State()) {
      Two()
    } withDependencies: {
      $0.numberFacts = facts
    }
    let before = whole.state
    await whole.send(.left(.increment)) {
      $0.left.count = 1
      $0.total = 11
    }
    await whole.send(.right(.numberFactButtonTapped)) { $0.right.isLoading = true }
    await whole.receive(.right(.numberFactResponse("10 is a fact"))) {
      $0.right.isLoading = false
      $0.right.numberFact = "10 is a fact"
    }
    await whole.finish()
    #expect(before == Two.State())
  }

  @Test("RED-04: @ObservableState knows the fields of a state, by name and number")
  func fields() {
    #expect(Counter.State.fields.map(\.name) == ["count", "isLoading", "numberFact"])
    #expect(Counter.State.fields.map(\.number) == [0, 1, 2])
    #expect(Counter.State.path(of: \.numberFact) == [2])
    #expect(Counter.State.initialValue == Counter.State())
  }

  // MARK: The eight features

  @Test("RED-02: one way: only an action changes the state, and its effect is separate from that")
  func oneWay() async {
    let asked = Mutex<[Int]>([])
    let facts = NumberFacts { number in
      asked.withLock { $0.append(number) }
      return "\(number) is a fact"
    }
    var state = Counter.State(count: 4)
    let effect = withDependencies {
      $0.numberFacts = facts
    } operation: {
      Counter().reduce(into: &state, action: .numberFactButtonTapped)
    }
    // The reducer has returned an effect, and has not run it.
    #expect(state.isLoading && effect != .none && asked.withLock { $0 } == [])
    let store = LockstepStore.Store.unchecked(initialState: Counter.State(count: 4)) {
      Counter()
    } withDependencies: {
      $0.numberFacts = facts
    }
    await store.send(.numberFactButtonTapped).finish()
    #expect(asked.withLock { $0 } == [4] && store.numberFact == "4 is a fact")
    // No code here could set the state.
    let path: AnyKeyPath = \LockstepStore.Store<Counter>.state
    #expect(!"\(type(of: path))".contains("Writable"))
  }

  @Test("RED-02: the state is observed property by property, and safe to pass to other threads")
  func observedAndSendable() {
    func isSendable<T: Sendable>(_ type: T.Type) -> Bool { true }
    #expect(isSendable(LockstepStore.Store<Counter>.self) && isSendable(Counter.State.self))
    #expect(isSendable(Counter.Action.self) && isSendable(Effect<Counter.Action>.self))
    let store = LockstepStore.Store.unchecked(initialState: Counter.State()) { Counter() }
    #expect((store as Any) is any Observable)
    let told = Mutex<[String]>([])
    withObservationTracking {
      _ = store.count
    } onChange: {
      told.withLock { $0.append("count") }
    }
    withObservationTracking {
      _ = store.numberFact
    } onChange: {
      told.withLock { $0.append("fact") }
    }
    store.send(.numberFactResponse("a"))
    #expect(told.withLock { $0 } == ["fact"])
    store.send(.increment)
    #expect(told.withLock { $0 } == ["fact", "count"])
  }

  @Test("RED-02: the modules a feature needs have no other dependencies")
  func fewDependencies() throws {
    for target in ["CBOR", "Values", "Lockstep"] {
      let folder = Self.repository.appending(path: "Sources/Core/" + target)
      let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      let swift = files.filter { $0.hasSuffix(".swift") }
      #expect(!swift.isEmpty)
      for file in swift {
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        let imports = text.split(separator: "\n").compactMap { line -> Substring? in
          let words = line.split(separator: " ")
          guard let place = words.firstIndex(of: "import"), place < 3, words.count == place + 2
          else { return nil }
          return words[place + 1]
        }
        // `Synchronization` is part of the toolchain, and `CPrefetch` one function of ours.
        let known: Set<Substring> = ["CBOR", "Values", "Synchronization", "CPrefetch"]
        #expect(Set(imports).isSubset(of: known), "\(target)/\(file)")
      }
    }
    let header = try String(
      contentsOf: Self.repository.appending(path: "Sources/Core/CPrefetch/include/CPrefetch.h"),
      encoding: .utf8)
    #expect(header.contains("prefetch_line") && !header.contains("#include"))
  }

  @Test("RED-03: the package uses Swift 6, and no target asks for an older language mode")
  func languageMode() throws {
    let package = try String(
      contentsOf: Self.repository.appending(path: "Package.swift"), encoding: .utf8)
    let line = try #require(package.split(separator: "\n").first)
    let version = try #require(line.split(separator: ": ").last?.split(separator: ".").first)
    #expect(try #require(Int(version)) >= 6)
    for older in ["swiftLanguageMode", "swiftLanguageVersion", "-swift-version"] {
      #expect(!package.contains(older))
    }
  }

  private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../..").standardized

  // MARK: The eight practices

  @Test("RED-16: an example's state is one @ObservableState, its actions are nested by domain")
  func statesAndActions() {
    let states: [Any.Type] = [
      AppShellFeature.AppState.self, Cars.State.self, Counter.State.self, Feed.State.self,
      PrimeTimeFeature.AppState.self, Todos.State.self,
    ]
    for state in states { #expect(state is any ObservableState.Type, "\(state)") }
    #expect(AppShellFeature.AppAction.tabAction(.select(.home)).name == "tabAction.select")
    let save = Action.primeModal(.saveFavoritePrimeTapped)
    #expect(save.name == "primeModal.saveFavoritePrimeTapped" && save.is(\.primeModal))
    // A view reads a property of the store by its name.
    let store = LockstepStore.Store.unchecked(initialState: Counter.State(count: 3)) { Counter() }
    #expect(store.count == 3)
  }

  @Test("RED-16: reducers are pure: tested without their effects, twice, with the same result")
  func purity() {
    var (first, second) = (Counter.State(count: 7), Counter.State(count: 7))
    let nothing = NumberFacts { _ in
      Issue.record("no effect runs")
      return ""
    }
    withDependencies {
      $0.numberFacts = nothing
    } operation: {
      for action in [Counter.Action.increment, .numberFactButtonTapped, .cancelFact, .decrement] {
        let effects = [
          Counter().reduce(into: &first, action: action),
          Counter().reduce(into: &second, action: action),
        ]
        #expect(first == second && effects[0] == effects[1])
      }
    }
    #expect(first.count == 7 && !first.isLoading)
  }

  @Test("RED-16: an effect captures what it needs from the state when it is made")
  func captured() async {
    let store = TestStore(initialState: Counter.State(count: 42)) {
      Counter()
    } withDependencies: { dependencies in
      dependencies.numberFacts = NumberFacts { [clock = dependencies.clock] number in
        try await clock.pause(for: .seconds(1))
        return "\(number)"
      }
    }
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    await store.send(.increment) { $0.count = 43 }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.numberFactResponse("42")) {
      $0.isLoading = false
      $0.numberFact = "42"
    }
  }
}
