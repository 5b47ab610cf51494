import CounterFeature
import Lockstep
import LockstepTesting
import Testing

@Suite struct CounterTests {
  /// Facts that arrive when the test's clock advances.
  private func store(
    _ state: Counter.State = Counter.State(),
    fact: @escaping @Sendable (Int) throws -> String = { "\($0) is a number" }
  ) -> TestStore<Counter> {
    TestStore(initialState: state) {
      Counter()
    } withDependencies: { dependencies in
      dependencies.numberFacts = NumberFacts { [clock = dependencies.clock] number in
        try await clock.pause(for: .seconds(1))
        return try fact(number)
      }
    }
  }

  // MARK: The README's own tests

  @Test("RED-14: increment, called directly")
  func increment() {
    var state = Counter.State(count: 0)
    let effect = Counter().reduce(into: &state, action: .increment)
    #expect(state.count == 1)
    #expect(effect == .none)
  }

  @Test("RED-14: decrement, called directly")
  func decrement() {
    var state = Counter.State(count: 5)
    let effect = Counter().reduce(into: &state, action: .decrement)
    #expect(state.count == 4)
    #expect(effect == .none)
  }

  @Test("RED-14: numberFactButtonTapped, called directly")
  func numberFactButtonTapped() {
    var state = Counter.State(numberFact: "old")
    let effect = Counter().reduce(into: &state, action: .numberFactButtonTapped)
    #expect(state.isLoading)
    #expect(state.numberFact == nil)
    #expect(effect != .none)
  }

  // MARK: The example's tests

  @Test("RED-10: the initial state is 0, not loading, without a fact")
  func initialState() {
    let state = Counter.State()
    #expect(state.count == 0 && !state.isLoading && state.numberFact == nil)
  }

  @Test("2.3: several increments, and numbers below zero")
  func counting() async {
    let store = store()
    for number in 1...3 { await store.send(.increment) { $0.count = number } }
    for number in [2, 1, 0, -1] { await store.send(.decrement) { $0.count = number } }
  }

  @Test("RED-10, RED-15: a tap shows at once that a fact is loading, and later the fact")
  func fact() async {
    let store = store(Counter.State(count: 7, numberFact: "old"))
    await store.send(.numberFactButtonTapped) {
      $0.isLoading = true
      $0.numberFact = nil
    }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.numberFactResponse("7 is a number")) {
      $0.isLoading = false
      $0.numberFact = "7 is a number"
    }
  }

  @Test("RED-10: a failure becomes the documented sentence")
  func failure() async {
    struct Offline: Error {}
    let store = store { _ in throw Offline() }
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    await store.clock.advance(by: .seconds(1))
    await store.receive(.numberFactResponse("팩트를 불러오는데 실패했습니다")) {
      $0.isLoading = false
      $0.numberFact = "팩트를 불러오는데 실패했습니다"
    }
  }

  @Test("RED-12: the fact is about the number at the time of the tap")
  func captureList() async {
    let store = store(Counter.State(count: 42))
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    // 2.3: an increment while loading keeps loading.
    await store.send(.increment) { $0.count = 43 }
    await store.clock.advance(by: .seconds(1))
    await store.receive(\.numberFactResponse) {
      $0.isLoading = false
      $0.numberFact = "42 is a number"
    }
  }

  @Test("RED-10: a running fact can be cancelled, and never arrives")
  func cancel() async {
    let store = store()
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    #expect(store.runningEffects.map(\.name) == ["fact"])
    await store.send(.cancelFact) { $0.isLoading = false }
    #expect(store.runningEffects.isEmpty)
    await store.clock.advance(by: .seconds(10))
    await store.finish()
  }

  @Test("RED-10: a second tap cancels the first")
  func secondTap() async {
    let store = store()
    await store.send(.numberFactButtonTapped) { $0.isLoading = true }
    await store.clock.advance(by: .milliseconds(500))
    await store.send(.increment) { $0.count = 1 }
    await store.send(.numberFactButtonTapped)
    await store.clock.advance(by: .seconds(1))
    await store.receive(.numberFactResponse("1 is a number")) {
      $0.isLoading = false
      $0.numberFact = "1 is a number"
    }
  }

  @Test("a response without a request changes the fact alone")
  func response() async {
    let store = store()
    await store.send(.numberFactResponse("so")) { $0.numberFact = "so" }
  }

  @Test("RED-10: facts come from a table, and other numbers get a sentence")
  func table() async throws {
    #expect(try await NumberFacts.builtIn.fact(42).hasPrefix("42 is the answer"))
    #expect(
      try await NumberFacts.builtIn.fact(-1) == "-1 is a number of which no fact is known.")
  }
}
