import IssueReporting
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite("TestStore: not exhaustive")
struct TestStoreNonExhaustiveTests {
  func makeStore() -> TestStore<Counter> {
    let store = TestStore(initialState: Counter.State()) { Counter() }
    store.exhaustivity = .off
    return store
  }

  @Test("2.1.12: changes, actions and effects that are not asserted are permitted")
  func passes() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.increment)
      await store.send(.increment) { $0.count = 2 }
      await store.send(.both)
      await store.receive(\.factResponse) { $0.fact = "both" }
      await store.send(.both)
      await store.send(.noise)
      #expect(store.state.count == 4)
      await store.send(.forever)
    }
    #expect(texts == [])
  }

  @Test("2.1.12: a wrong assertion still fails")
  func fails() async {
    let texts = await issues {
      await makeStore().send(.increment) { $0.count = 7 }
    }
    #expect(texts.count == 1)
    #expect(texts.first?.hasPrefix("A state change does not match expectation") == true)
  }

  @Test("2.1.12: skipped assertions are shown on request, and do not fail the test")
  func shown() async throws {
    let recorder = Recorder()
    await withIssueReporters([recorder]) {
      let store = makeStore()
      store.exhaustivity = .off(showSkippedAssertions: true)
      await store.send(.increment)
      await store.send(.both)
      await store.receive(\.factResponse)
      await store.send(.forever)
      await store.skipInFlightEffects()
    }
    #expect(recorder.issues == [])
    #expect(recorder.expected.allSatisfy { $0.hasPrefix("Skipped assertions: …\n\n") })
    try #require(recorder.expected.count == 4)
    #expect(recorder.expected[0].contains("State was not expected to change"))
    #expect(recorder.expected[1].contains("1 received action was skipped:\n\n    [\n"))
    #expect(recorder.expected[2].contains("State was not expected to change"))
    #expect(recorder.expected[3].contains("1 in-flight effect was cancelled: forever"))
  }

  @Test("2.1.12: exhaustivity can be changed for the duration of a closure")
  func forAWhile() async {
    let texts = await issues {
      let store = TestStore(initialState: Counter.State()) { Counter() }
      await store.withExhaustivity(.off) { await store.send(.increment) }
      #expect(store.exhaustivity == .on)
      await store.send(.increment)
    }
    #expect(texts.count == 1)
  }

  @Test func `skipped assertions do not fail a test of Swift Testing`() async {
    let store = makeStore()
    store.exhaustivity = .off(showSkippedAssertions: true)
    await store.send(.increment)
  }
}
