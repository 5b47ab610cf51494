import Lockstep
import LockstepTesting
import Testing
import Values

/// Each way to fail, and its text.
@Suite("TestStore: failures")
struct TestStoreFailureTests {
  func makeStore(_ count: Int = 0) -> TestStore<Counter> {
    TestStore(initialState: Counter.State(count: count)) { Counter() }
  }

  @Test("2.1.12: expected state to change")
  func unnecessaryUpdate() async {
    let texts = await issues {
      await makeStore().send(.noise) { _ in }
    }
    #expect(texts.count == 1)
    #expect(texts.first?.hasPrefix("Expected state to change, but no change occurred.") == true)
  }

  @Test("2.1.12: state was not expected to change")
  func unexpectedChange() async {
    let texts = await issues { await makeStore().send(.increment) }
    #expect(
      texts == [
        """
        State was not expected to change, but a change occurred: …

              Counter.State(
            −   count: 0,
            +   count: 1,
                isLoading: false,
                fact: nil,
                history: [],
                marks: [:]
              )

        (Expected: −, Actual: +)
        """
      ])
  }

  @Test("2.1.12: a state change does not match expectation, collections shown as such")
  func mismatch() async {
    let texts = await issues {
      await makeStore().send(.record(3)) {
        $0.history = [1, 2]
        $0.marks = ["3": 3, "2": 2]
      }
    }
    #expect(texts.count == 1)
    let text = texts.first ?? ""
    #expect(text.hasPrefix("A state change does not match expectation: …\n\n"))
    #expect(text.contains("−     [0]: 1,") && text.contains("+     [0]: 3"))
    #expect(text.contains("−     \"2\": 2,"))
    #expect(text.hasSuffix("(Expected: −, Actual: +)"))
  }

  @Test("2.1.12: the closure throws")
  func throwing() async {
    let texts = await issues {
      await makeStore().send(.increment) { _ in throw CancellationError() }
    }
    #expect(texts == ["The trailing closure threw: CancellationError()"])
  }

  @Test("2.1.12: received actions must be handled before sending")
  func mustHandle() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.both)
      await store.send(.noise)
    }
    #expect(
      texts == [
        """
        Must handle 2 received actions before sending an action.

        Unhandled actions: [
          [0]: .increment,
          [1]: .factResponse("both")
        ]
        """
      ])
  }

  @Test("2.1.12: received another action than expected")
  func unexpectedAction() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.both)
      await store.receive(.factResponse("both")) { $0.fact = "both" }
      await store.receive(.factResponse("x")) { $0.fact = "both" }
    }
    #expect(
      texts == [
        """
        Received unexpected action before this one: …

            − Counter.Action.factResponse("both")
            + Counter.Action.increment

        (Expected: −, Actual: +)
        """,
        """
        Received unexpected action: …

            − Counter.Action.factResponse("x")
            + Counter.Action.factResponse("both")

        (Expected: −, Actual: +)
        """,
      ])
  }

  @Test("2.1.12: received an action of another case than expected")
  func unexpectedCase() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.both)
      await store.receive(\.factResponse)
      await store.receive(where: { $0 == .increment })
    }
    #expect(
      texts == [
        "Received unexpected action before this one: …\n\n    Counter.Action.increment",
        "Received unexpected action: …\n\n    Counter.Action.factResponse(\"both\")",
      ])
  }

  @Test("2.1.12: no action received, and no effect runs")
  func noneReceived() async throws {
    let texts = await issues {
      let store = makeStore()
      await store.receive(.increment)
      await store.receive(\.factResponse, timeout: .milliseconds(1))
    }
    try #require(texts.count == 2)
    #expect(
      texts[0].hasPrefix(
        """
        Expected to receive the following action, but received none after 1.0 seconds.

        There are no in-flight effects that could deliver this action.
        """))
    #expect(texts[1].hasPrefix("Expected to receive an action matching case path, but received"))
  }

  @Test("2.1.12: no action received, and an effect runs")
  func noneReceivedYet() async throws {
    let texts = await issues {
      let store = makeStore()
      await store.send(.delayTapped)
      await store.receive(.increment, timeout: .zero)
      await store.skipInFlightEffects()
    }
    try #require(texts.count == 1)
    #expect(
      texts[0].hasPrefix(
        """
        Expected to receive the following action, but received none.

        There are effects in-flight: delay (returned for delayTapped).
        """))
  }

  @Test("2.1.12: a store that is not exhaustive receives other actions, and never this one")
  func neverReceived() async {
    let texts = await issues {
      let store = makeStore()
      store.exhaustivity = .off
      await store.send(.both)
      await store.receive(.factResponse("other"))
      await store.receive(where: { $0 == .noise })
    }
    #expect(
      texts == [
        """
        Expected to receive the following action, but didn't: …

            Counter.Action.factResponse("other")
        """,
        "Expected to receive an action matching predicate, but didn't get one.",
      ])
  }

  @Test("2.1.12: received actions are left at the end")
  func leftOver() async {
    let expected = """
      The store received 2 unexpected actions by the end of this test: …

      Unhandled actions: [
        [0]: .increment,
        [1]: .factResponse("both")
      ]
      """
    var texts = await issues {
      let store = makeStore()
      await store.send(.both)
      await store.finish()
    }
    #expect(texts == [expected])
    texts = await issues { await makeStore().send(.both) }
    #expect(texts == [expected])
  }

  @Test("2.1.12: an effect still runs at the end")
  func stillRunning() async {
    let texts = await issues { await makeStore().send(.forever) }
    #expect(texts.count == 1)
    let text = texts.first ?? ""
    #expect(text.hasPrefix("An effect returned for this action is still running. It must complete"))
    #expect(text.contains("Action: forever\nEffect: forever (LockstepTestingTests/Support.swift:"))
  }

  @Test("2.1.12: effects do not finish")
  func doesNotFinish() async {
    let texts = await issues {
      let store = makeStore()
      let task = await store.send(.delayTapped)
      await task.finish(timeout: .zero)
      await store.finish(timeout: .milliseconds(1))
    }
    #expect(
      texts == [
        "Expected task to finish, but it is still in-flight.",
        "Expected effects to finish, but there are still effects in-flight after 0.001 seconds: "
          + "delay (returned for delayTapped).",
      ])
  }

  @Test("2.1.12: an action is rejected, not rejected, or rejected for another reason than expected")
  func rejections() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.refuse)
      await store.send(.noise, rejected: .refused)
      await store.send(.refuse, rejected: .limit)
      await store.send(.refuse, rejected: Rejection(.refused, "never"))
    }
    #expect(
      texts.map { $0.split(separator: "\n").first } == [
        "The action was rejected, which was not expected: not today",
        "Expected the action to be rejected, but it was not: code 8",
        "The action was rejected for another reason than expected: …",
        "The action was rejected for another reason than expected: …",
      ])
  }

  @Test("2.1.6: a warning of the store is a failure")
  func warning() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.warn)
      await store.finish()
    }
    #expect(texts.count == 1)
    #expect(texts.first?.hasPrefix("The store warned: The effect \"failing\"") == true)
  }

  @Test("2.1.12: there is nothing to skip")
  func nothingToSkip() async {
    let texts = await issues {
      let store = makeStore()
      await store.skipReceivedActions()
      await store.skipInFlightEffects()
    }
    #expect(
      texts == [
        "There were no received actions to skip.", "There were no in-flight effects to skip.",
      ])
  }

  @Test func `a failure reaches Swift Testing`() async {
    await withKnownIssue {
      await makeStore().send(.increment)
    } matching: {
      $0.description.contains("State was not expected to change")
    }
  }
}
