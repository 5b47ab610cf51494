import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite("Effects: equality")
struct EffectEqualityTests {
  /// The counter from the README of ReducerKit.
  struct CounterReducer: Reducer {
    struct State: Described {
      var count = 0
      var isLoading = false
      var numberFact: String?

      init(count: Int = 0) { self.count = count }
    }

    enum Action: DescribedAction {
      case increment, decrement, numberFactButtonTapped
      case numberFactResponse(String)
    }

    func reduce(into state: inout State, action: Action) -> Effect<Action> {
      switch action {
      case .increment:
        state.count += 1
        return .none
      case .decrement:
        state.count -= 1
        return .none
      case .numberFactButtonTapped:
        state.isLoading = true
        state.numberFact = nil
        return .run(name: "fact") { [count = state.count] send in
          await send(.numberFactResponse("\(count)"))
        }
      case .numberFactResponse(let fact):
        state.isLoading = false
        state.numberFact = fact
        return .none
      }
    }
  }

  let reducer = CounterReducer()

  @Test("RED-07, RED-14: increment")
  func testIncrement() {
    var state = CounterReducer.State(count: 0)
    let effect = reducer.reduce(into: &state, action: .increment)
    #expect(state.count == 1)
    #expect(effect == .none)
  }

  @Test("RED-14: decrement")
  func testDecrement() {
    var state = CounterReducer.State(count: 5)
    let effect = reducer.reduce(into: &state, action: .decrement)
    #expect(state.count == 4)
    #expect(effect == .none)
  }

  @Test("RED-10, RED-14: the fact is asked for")
  func testNumberFactButtonTapped() {
    var state = CounterReducer.State(count: 42)
    state.numberFact = "old"
    let effect = reducer.reduce(into: &state, action: .numberFactButtonTapped)
    #expect(state.isLoading)
    #expect(state.numberFact == nil)
    #expect(effect != .none)
  }

  @Test("RED-19, 3.3.H: effects are equal when the same operators made them of equal parts")
  func structure() {
    typealias E = Effect<Act>
    #expect(E.none == .none && E.send("a") == .send("a") && E.send("a") != .send("b"))
    #expect(E.job("a") == .job("a") && E.job("a") != .job("b") && E.job("a") != .none)
    #expect(E.job("a").cancellable(id: 1) == .job("a").cancellable(id: 1))
    #expect(E.job("a").cancellable(id: 1) != .job("a").cancellable(id: Int8(1)))
    #expect(
      E.job("a").cancellable(id: 1) != .job("a").cancellable(id: 1, cancelInFlight: true))
    #expect(E.cancel(id: 1) == .cancel(id: 1) && E.cancel(id: 1) != .cancel(id: 2))
    #expect(E.merge(.job("a"), .job("b")) != .merge(.job("b"), .job("a")))
    #expect(E.merge(.job("a"), .job("b")) != .concatenate(.job("a"), .job("b")))
    let second = Duration.seconds(1)
    #expect(E.job("a").debounce(id: 1, for: second) == .job("a").debounce(id: 1, for: second))
    #expect(
      E.job("a").throttle(id: 1, for: second, latest: true)
        != .job("a").throttle(id: 1, for: second, latest: false))
    #expect(E.job("a").accepted != .job("a") && E.job("a").ownedByClient != .job("a"))
  }

  @Test("2.1.7: merge and concatenate omit none, and flatten nested effects of their own kind")
  func fusing() {
    typealias E = Effect<Act>
    #expect(E.merge() == .none && E.merge(.none, .none) == .none)
    #expect(E.merge(.none, .job("a")) == .job("a"))
    #expect(
      E.merge(.job("a"), .merge(.job("b"), .job("c"))) == .merge(.job("a"), .job("b"), .job("c")))
    #expect(E.concatenate(.none, .job("a"), .none) == .job("a"))
    #expect(
      E.concatenate(.concatenate(.job("a"), .job("b")), .job("c"))
        == .concatenate(.job("a"), .job("b"), .job("c")))
    #expect(E.concatenate([]) == .none)
  }

  @Test("2.1.3: an operator on none is none")
  func operatorsOnNone() {
    let none = Effect<Act>.none
    #expect(none.cancellable(id: 1) == .none && none.unlessRunning(id: 1) == .none)
    #expect(none.debounce(id: 1, for: .seconds(1)) == .none)
    #expect(none.throttle(id: 1, for: .seconds(1), latest: true) == .none)
    #expect(none.ownedByClient == .none)
    #expect(none.map { Act("\($0)") } == Effect<Act>.none)
  }
}
