import CounterFeature
import Lockstep
import LockstepClient
import LockstepTesting
import PrimeTimeFeature
import Testing
import Values

/// The rows that speak of the whole rather than of a part, on the examples.
struct ArchitectureTests {
  @Test("TCA-04: a state is a value, so a change of a copy stays with the copy")
  func values() {
    let state = AppState()
    var copy = state
    copy.favoritePrimes.append(7)
    copy.count = 7
    #expect(state == AppState())
    #expect(copy != state)
  }

  @Test("TCA-05 TCA-13 RED-09: a store, made of a state and a reducer, is what changes the state")
  func rootStore() {
    let store = LockstepClient.Store(initialState: AppState(), reducer: PrimeTime())
    store.send(.counter(.incrTapped))
    store.send(.primeModal(.saveFavoritePrimeTapped))
    #expect(store.count == 1)
    #expect(store.state.favoritePrimes == [1])
  }

  @Test("TCA-08 RED-06: an action names the act, of a user or of the system, and nothing else")
  func names() {
    #expect(AppAction.counter(.incrTapped).name == "counter.incrTapped")
    #expect(
      AppAction.favoritePrimes(.deleteFavoritePrime([1])).name
        == "favoritePrimes.deleteFavoritePrime")
    #expect(Counter.Action.numberFactButtonTapped.name == "numberFactButtonTapped")
    #expect(Counter.Action.numberFactResponse("42").name == "numberFactResponse")
  }

  @Test("RED-04: @ObservableState knows the fields of a state, by name and number")
  func fields() {
    #expect(Counter.State.fields.map(\.name) == ["count", "isLoading", "numberFact"])
    #expect(Counter.State.fields.map(\.number) == [0, 1, 2])
    #expect(Counter.State.path(of: \.numberFact) == [2])
    #expect(Counter.State.initialValue == Counter.State())
  }

  @Test(
    "RED-01 RED-02: a feature is tested alone: one way, typed, its effects apart from its state")
  func alone() async {
    let store = TestStore(initialState: Counter.State()) {
      Counter()
    } withDependencies: {
      $0.numberFacts = NumberFacts { "\($0) is a fact" }
    }
    await store.send(.increment) { $0.count = 1 }
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    await store.receive(.numberFactResponse("1 is a fact")) {
      $0.isLoading = false
      $0.numberFact = "1 is a fact"
    }
    await store.finish()
  }

  @Test("RED-03: everything is compiled in the language mode of Swift 6")
  func languageMode() {
    #if swift(>=6)
      let mode = 6
    #else
      let mode = 5
    #endif
    #expect(mode == 6)
  }

  @Test("RDX-06: the reducer, a function of state and action, decides what is next")
  func reducer() {
    var state = Counter.State(count: 41)
    let effect = Counter().reduce(into: &state, action: .increment)
    #expect(state.count == 42)
    #expect(effect == .none)
  }

  @Test("RDX-14: the store of one's own types has a name of its own")
  func alias() {
    typealias AppStore = LockstepClient.Store<PrimeTime>
    let store = AppStore(initialState: AppState(), reducer: PrimeTime())
    #expect(store.count == 0)
  }
}
