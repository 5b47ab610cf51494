import Lockstep
import LockstepTesting
import Testing

/// Which dependencies a test has.
@Suite("TestStore: dependencies")
struct LiveDependencyTests {
  private let text = """
    @Dependency(\\.device) has no test implementation, but was used in a test.

    The live value, a String, was used. Give the store another one ("withDependencies: { $0.device \
    = … }"), or the key a "testValue".
    """

  private func makeStore(
    _ reducer: Probe = Probe(), _ change: (inout DependencyValues) -> Void = { _ in }
  ) -> TestStore<Probe> {
    TestStore(initialState: "", reducer: { reducer }, withDependencies: change)
  }

  @Test func `a live dependency fails the test with its name, once, and is used`() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.use) { $0 = "real" }
      await store.send(.use)
      await store.finish()
    }
    #expect(texts == [text])
  }

  @Test func `a live dependency that only an effect uses fails the test, too`() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.run)
      await store.receive(.got("real")) { $0 = "real" }
      await store.finish()
    }
    #expect(texts == [text])
  }

  @Test func `each key fails by itself, one that is used directly under its type`() async {
    let texts = await issues {
      let store = makeStore()
      await store.send(.both) { $0 = "real 1" }
      await store.finish()
    }
    #expect(texts.count == 2 && texts.first == text)
    #expect(texts.last?.hasPrefix("The dependency NumberKey has no test implementation") == true)
  }

  @Test func `a value that the test sets, and a test value, are no failures`() async {
    let texts = await issues {
      let set = makeStore { $0.device = "fake" }
      await set.send(.use) { $0 = "fake" }
      await set.finish()
      let known = makeStore()
      await known.send(.safe) { $0 = "tested" }
      await known.finish()
    }
    #expect(texts == [])
  }

  @Test func `a dependency of a reducer is no failure`() async {
    let texts = await issues {
      let store = TestStore(initialState: "") { Probe().dependency(\.device, "own") }
      await store.send(.use) { $0 = "own" }
      await store.send(.run)
      await store.receive(.got("own"))
      await store.finish()
    }
    #expect(texts == [])
  }

  @Test func `a change of a dependency uses the live one`() async {
    let texts = await issues {
      let store = makeStore { $0.device += "!" }
      await store.send(.use) { $0 = "real!" }
      await store.finish()
    }
    #expect(texts == [text])
  }

  @Test func `random numbers of an effect are a failure, those of a reducer follow from the seed`()
    async
  {
    let texts = await issues {
      let store = makeStore()
      store.exhaustivity = .off
      await store.send(.roll)
      await store.send(.rollLater)
      await store.skipReceivedActions(strict: false)
      await store.finish()
    }
    #expect(texts.count == 1)
    #expect(texts.first?.hasPrefix("@Dependency(\\.random) has no test") == true)
  }

  @Test func `the store takes the dependencies around it, and its own come first`() async {
    let texts = await issues {
      let (around, own) = withDependencies {
        $0.device = "around"
        $0.date = .constant(Timestamp(nanoseconds: 5))
      } operation: {
        (makeStore(), makeStore { $0.device = "own" })
      }
      await around.send(.use) { $0 = "around" }
      await own.send(.use) { $0 = "own" }
      await own.send(.time) { $0 = "5" }
      await own.send(.run)
      await own.receive(.got("own")) { $0 = "own" }
      // What is not set around it is of a test.
      await around.send(.safe) { $0 = "tested" }
      await around.finish()
      await own.finish()
    }
    #expect(texts == [])
  }

  @Test func `a synchronising store takes the dependencies around it, and fails as well`()
    async throws
  {
    let texts = try await issues {
      let live = try SyncTestStore(initialState: "", seed: 1) { Probe() }
      try live.send(.use, from: 0)
      try live.settle()
      #expect(live.state == "real")
      let around = try withDependencies {
        $0.device = "around"
      } operation: {
        try SyncTestStore(initialState: "", seed: 1) { Probe() }
      }
      try around.send(.use, from: 0)
      try around.settle()
      #expect(around.state == "around")
    }
    #expect(texts == [text])
  }
}

private struct Probe: Reducer {
  typealias State = String

  @Action enum Action: Equatable {
    case use, run, both, safe, time, roll, rollLater
    case got(String)
  }

  @Dependency(\.device) var device
  @Dependency(\.random) var random

  func reduce(into state: inout String, action: Action) -> Effect<Action> {
    switch action {
    case .use: state = device
    case .run: return .run { send in await send(.got(device)) }
    case .both: state = "\(device) \(DependencyValues.current[NumberKey.self])"
    case .safe: state = DependencyValues.current.safe
    case .time: state = "\(DependencyValues.current.date().nanoseconds)"
    case .roll: state = "\(random { Int.random(in: 1...6, using: &$0) })"
    case .rollLater:
      return .run { send in
        await send(.got("\(random { Int.random(in: 1...6, using: &$0) })"))
      }
    case .got(let text): state = text
    }
    return .none
  }
}

private enum DeviceKey: DependencyKey {
  static let liveValue = "real"
}

private enum NumberKey: DependencyKey {
  static let liveValue = 1
}

private enum SafeKey: DependencyKey {
  static let liveValue = "live"
  static let testValue = "tested"
}

extension DependencyValues {
  fileprivate var device: String {
    get { self[DeviceKey.self] }
    set { self[DeviceKey.self] = newValue }
  }

  fileprivate var safe: String { self[SafeKey.self] }
}
