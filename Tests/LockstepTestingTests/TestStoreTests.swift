import CBOR
import Lockstep
import LockstepTesting
import Synchronization
import Testing
import Values

@Suite("TestStore")
struct TestStoreTests {
  func makeStore(_ count: Int = 0) -> TestStore<Counter> {
    TestStore(initialState: Counter.State(count: count)) { Counter() }
  }

  @Test("RED-14: a test that asserts everything passes")
  func wholeFlow() async {
    let store = makeStore(42)
    await store.send(.increment) { $0.count = 43 }
    await store.send(.factTapped) { $0.isLoading = true }
    await store.receive(.factResponse("43 is a number")) {
      $0.isLoading = false
      $0.fact = "43 is a number"
    }
    await store.finish()
    #expect(store.state.count == 43)
  }

  @Test("2.1.12: actions are received by case, by case and payload, and by predicate")
  func waysToReceive() async {
    let store = makeStore()
    for round in 0..<3 {
      await store.send(.both)
      if round == 0 {
        await store.receive(\.increment) { $0.count = 1 }
        await store.receive(\.factResponse) { $0.fact = "both" }
      } else if round == 1 {
        await store.receive(where: { $0 == .increment }) { $0.count = 2 }
        await store.receive(\.factResponse, "both")
      } else {
        await store.receive(.increment) { $0.count = 3 }
        await store.receive(where: { $0.is(\.factResponse) })
      }
    }
    await store.finish()
  }

  @Test("2.1.12: effects wait for the test's clock")
  func clock() async {
    let store = makeStore()
    await store.send(.delayTapped)
    #expect(store.clock.sleepers == 1)
    await store.clock.advance(by: .milliseconds(999))
    #expect(store.runningEffects.map(\.name) == ["delay"])
    await store.clock.advance(by: .milliseconds(1))
    await store.receive(\.factResponse, "0, later") { $0.fact = "0, later" }
    await store.finish()
  }

  @Test("2.1.10: a task is finished when the action's whole cascade has ended")
  func taskFinishes() async {
    let store = makeStore()
    let task = await store.send(.delayTapped)
    #expect(!task.isFinished)
    await store.clock.advance(by: .seconds(1))
    await task.finish()
    #expect(task.isFinished)
    await store.receive(\.factResponse) { $0.fact = "0, later" }
  }

  @Test("2.1.10: cancelling a task cancels the action's cascade")
  func taskCancels() async {
    let store = makeStore()
    let task = await store.send(.delayTapped)
    await task.cancel()
    #expect(task.isFinished && store.clock.sleepers == 0 && store.runningEffects == [])
    await store.finish()
  }

  @Test("EFF-11: an effect that an action cancels ends at once")
  func cancel() async {
    let store = makeStore()
    await store.send(.delayTapped)
    await store.send(.cancelTapped)
    #expect(store.clock.sleepers == 0)
    await store.finish()
  }

  /// The effects that run in the store while one is being cancelled.
  private final class Question: Sendable {
    typealias Store = TestStore<Reduce<Counter.State, Counter.Action>>
    let store = Mutex<Store?>(nil)
    let answer = Mutex<[String]?>(nil)

    func ask() {
      let running = store.withLock { $0 }?.runningEffects.map(\.name)
      answer.withLock { $0 = running }
    }
  }

  @Test("2.1.10: a cancelled effect may read its store at once")
  func askedWhenCancelled() async {
    let question = Question()
    let store = TestStore(initialState: Counter.State()) {
      Reduce<Counter.State, Counter.Action> { _, action in
        if action == .cancelTapped { return .cancel(id: "delay") }
        return .run(name: "delay") { _ in
          try await withTaskCancellationHandler {
            try await Task.sleep(for: .seconds(600))
          } onCancel: {
            question.ask()
          }
        }.cancellable(id: "delay")
      }
    }
    question.store.withLock { $0 = store }
    await store.send(.delayTapped)
    await store.send(.cancelTapped)
    #expect(question.answer.withLock { $0 } == [])
    question.store.withLock { $0 = nil }
    await store.finish()
  }

  @Test("2.1.12: an expected rejection passes")
  func rejected() async {
    let store = makeStore()
    await store.send(.refuse, rejected: Rejection(.refused, "not today"))
    await store.send(.refuse, rejected: .refused)
    await store.finish()
  }

  @Test("2.1.12: received actions and running effects can be skipped")
  func skipping() async {
    let store = makeStore()
    await store.send(.both)
    await store.skipReceivedActions()
    #expect(store.state.count == 1 && store.state.fact == "both")
    await store.send(.delayTapped)
    await store.skipInFlightEffects()
    await store.skipReceivedActions(strict: false)
    await store.skipInFlightEffects(strict: false)
    await store.finish()
  }

  @Test("2.1.12: assert checks a part of the state")
  func assertion() async {
    let store = makeStore(3)
    store.assert { $0.count = 3 }
    await store.finish()
  }

  @Test("RED-08: dependencies can be replaced, and have test values by default")
  func dependencies() async {
    let store = TestStore(initialState: Counter.State()) {
      Reduce<Counter.State, Counter.Action> { state, action in
        let values = DependencyValues.current
        state.fact = "\(values.date.now) \(values.uuid()) \(values.isTesting)"
        return .none
      }
    } withDependencies: {
      $0.date = .constant(Timestamp(nanoseconds: 1_000_000_000))
    }
    let zero = "00000000-0000-0000-0000-00000000000"
    await store.send(.noise) { $0.fact = "1970-01-01T00:00:01.000Z \(zero)0 true" }
    store.dependencies.date = .constant(Timestamp(nanoseconds: 0))
    await store.send(.noise) { $0.fact = "1970-01-01T00:00:00.000Z \(zero)1 true" }
    await store.finish()
  }

  @Test("RED-12: the time of a test's store is that of its clock")
  func time() async {
    let store = TestStore(initialState: Counter.State()) {
      Reduce<Counter.State, Counter.Action> { state, action in
        state.fact = "\(DependencyValues.current.date())"
        return .none
      }
    }
    await store.clock.advance(by: .seconds(90))
    await store.send(.noise) { $0.fact = "1970-01-01T00:01:30.000Z" }
    #expect(store.log.newest?.time == Timestamp(nanoseconds: 90_000_000_000))
  }
}
