public import Lockstep
import Synchronization
import Values

/// A store for tests of a feature: the test must assert every change of the state, every action of
/// an effect, and the end of every effect.
///
///     let store = TestStore(initialState: Counter.State()) { Counter() }
///     await store.send(.factTapped) { $0.isLoading = true }
///     await store.receive(\.factResponse) {
///       $0.isLoading = false
///       $0.fact = "0 is nothing"
///     }
///     await store.finish()
///
/// Effects run as tasks, with the store's dependencies: test values, and the time of `clock`.
/// Anything not asserted is a failure, reported to Swift Testing or XCTest, with the difference
/// between the expected (−) and the actual value (+). A test uses its store one call after the
/// other; at the store's end, anything left is a failure.
public final class TestStore<R: Reducer>: Sendable where R.State: Equatable {
  struct Settings: Sendable {
    /// The state as far as the test has asserted it.
    var state: R.State
    var exhaustivity = Exhaustivity.on
    var timeout = Duration.seconds(1)
    /// The source locations at which the test sent its actions.
    var places: [UInt64: SourcePlace] = [:]
  }

  /// The clock of the store's effects, unless the test gave them another.
  public let clock: TestClock
  let engine: TestStoreEngine<R>
  let settings: Mutex<Settings>
  let place: SourcePlace

  /// A store with the dependencies that are set for the code that makes it, and those of a test for
  /// the other keys; `withDependencies` changes them. The use of a live dependency is a failure,
  /// once for each key.
  public init<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R,
    withDependencies change: (inout DependencyValues) -> Void = { _ in },
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) where R: Reducer<FeatureState, FeatureAction> {
    let clock = TestClock()
    let place = SourcePlace(fileID, filePath, line, column)
    let testing = DependencyValues(testing: clock, reportingTo: place)
    var dependencies = DependencyValues.current.over(testing)
    change(&dependencies)
    let core = StoreCore(
      initialState, reducer: reducer(), middleware: middleware, seed: .unseeded,
      dependencies: dependencies)
    settings = Mutex(Settings(state: core.state))
    engine = TestStoreEngine(core, clock: clock)
    self.clock = clock
    self.place = place
  }

  deinit {
    reportLeftOver(place)
    _ = engine.cancelAll()
  }

  // MARK: Properties

  /// The state as far as the test has asserted it.
  public var state: R.State { settings.withLock { $0.state } }

  /// The dependencies of later reductions and their effects.
  public var dependencies: DependencyValues {
    get { engine.withLock { $0.core.dependencies } }
    set { engine.withLock { $0.core.dependencies = newValue } }
  }

  /// Which changes the test must assert.
  public var exhaustivity: Exhaustivity {
    get { settings.withLock { $0.exhaustivity } }
    set { settings.withLock { $0.exhaustivity = newValue } }
  }

  /// How long to wait, in real time, for an expected event. Matters only for effects that wait for
  /// something other than `clock`.
  public var timeout: Duration {
    get { settings.withLock { $0.timeout } }
    set { settings.withLock { $0.timeout = newValue } }
  }

  /// The running effects.
  public var runningEffects: [RunningEffect] { engine.withLock { $0.core.runningEffects } }

  /// The log of the actions, each with its cause.
  public var log: ActionLog<R.Action> { engine.withLock { $0.core.log } }

  // MARK: Sending

  /// Send an action, and assert with `assert` how it changes the state: the closure turns the state
  /// before into the state after. Without a closure, nothing may change. The action is the owner's
  /// or, with `from: .client(session: 1)`, a client's.
  ///
  /// Returns when the action's effects wait for something or have ended.
  @discardableResult
  public nonisolated(nonsending) func send(
    _ action: R.Action, from cause: Cause = .owner,
    assert update: ((inout R.State) throws -> Void)? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) async -> TestStoreTask {
    let place = SourcePlace(fileID, filePath, line, column)
    let sent = await take(action, cause, place)
    if case .rejected(let rejection) = sent.reduction {
      place.report(TestStoreFailures.rejected(action, rejection))
    }
    return await conclude(sent, update, place)
  }

  /// Send an action that must be rejected with this reason, and then changes nothing.
  @discardableResult
  public nonisolated(nonsending) func send(
    _ action: R.Action, from cause: Cause = .owner, rejected expected: Rejection,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) async -> TestStoreTask {
    let place = SourcePlace(fileID, filePath, line, column)
    let sent = await take(action, cause, place)
    if case .rejected(let actual) = sent.reduction {
      if actual != expected {
        place.report(TestStoreFailures.rejectedOtherwise(expected, actual))
      }
    } else {
      place.report(TestStoreFailures.notRejected(action, "\(expected)"))
    }
    return await conclude(sent, nil, place)
  }

  /// Send an action that must be rejected with this code, and then changes nothing.
  @discardableResult
  public nonisolated(nonsending) func send(
    _ action: R.Action, from cause: Cause = .owner, rejected expected: Rejection.Code,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) async -> TestStoreTask {
    let place = SourcePlace(fileID, filePath, line, column)
    let sent = await take(action, cause, place)
    if case .rejected(let actual) = sent.reduction {
      if actual.code != expected {
        place.report(TestStoreFailures.rejectedOtherwise(expected, actual.code))
      }
    } else {
      place.report(TestStoreFailures.notRejected(action, "code \(expected.rawValue)"))
    }
    return await conclude(sent, nil, place)
  }

  /// Deliver a session event to the feature, as a daemon does, and assert how the resulting actions
  /// change the state. A feature that does not watch sessions has none.
  public nonisolated(nonsending) func tell(
    _ news: SessionEvent, assert update: ((inout R.State) throws -> Void)? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) async {
    await tell(.session(news), update, SourcePlace(fileID, filePath, line, column))
  }

  /// Tell the features that the store has started, as a daemon does before anything else, and
  /// assert how the actions of their life cycle change the state. A test store does not do so by
  /// itself.
  public nonisolated(nonsending) func tell(
    _ start: Start, assert update: ((inout R.State) throws -> Void)? = nil,
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) async {
    await tell(.started(start), update, SourcePlace(fileID, filePath, line, column))
  }

  private nonisolated(nonsending) func tell(
    _ event: LifecycleEvent, _ update: ((inout R.State) throws -> Void)?, _ place: SourcePlace
  ) async {
    await prepare(place)
    let told = engine.tell(event)
    for (action, rejection) in told.rejected {
      place.report(TestStoreFailures.rejected(action, rejection))
    }
    compare(told.state, update, place)
    settings.withLock { $0.state = told.state }
    await engine.settle()
    reportWarnings(place)
  }

  /// Send an action after every received action has been handled.
  private nonisolated(nonsending) func take(
    _ action: R.Action, _ cause: Cause, _ place: SourcePlace
  ) async -> TestStoreEngine<R>.Sent {
    await prepare(place)
    let sent = engine.send(action, from: cause)
    settings.withLock { $0.places[sent.sequence] = place }
    return sent
  }

  /// Require that every received action has been handled.
  private nonisolated(nonsending) func prepare(_ place: SourcePlace) async {
    await engine.settle()
    reportWarnings(place)
    let unhandled = takeReceived()
    if !unhandled.isEmpty {
      if exhaustivity == .on {
        place.report(TestStoreFailures.mustHandle(unhandled.map(\.action)))
      } else {
        show(TestStoreFailures.skipped(unhandled.map(\.action)), place)
      }
    }
  }

  private nonisolated(nonsending) func conclude(
    _ sent: TestStoreEngine<R>.Sent, _ update: ((inout R.State) throws -> Void)?,
    _ place: SourcePlace
  ) async -> TestStoreTask {
    compare(sent.state, update, place)
    settings.withLock { $0.state = sent.state }
    await engine.settle()
    reportWarnings(place)
    return task(sent.sequence)
  }

  private func task(_ sequence: UInt64) -> TestStoreTask {
    TestStoreTask(
      end: { [engine, timeout] limit, place in
        let limit = limit ?? timeout
        if await !engine.wait(limit, until: { $0.core.isDone(sequence) }) {
          place.report(TestStoreFailures.taskStillInFlight(limit))
        }
      },
      stop: { [engine] in
        engine.cancelCascade(of: sequence)
        await engine.settle()
      },
      isDone: { [engine] in engine.withLock { $0.core.isDone(sequence) } })
  }

  // MARK: Asserting

  /// Assert a part of the current state; properties that the closure does not set are not compared.
  public func assert(
    _ update: (inout R.State) throws -> Void, fileID: StaticString = #fileID,
    filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
  ) {
    compareInPart(state, update, SourcePlace(fileID, filePath, line, column))
  }

  /// Run an operation with another exhaustivity.
  @discardableResult
  public nonisolated(nonsending) func withExhaustivity<T>(
    _ exhaustivity: Exhaustivity, _ operation: () async throws -> T
  ) async rethrows -> T {
    let previous = self.exhaustivity
    self.exhaustivity = exhaustivity
    defer { self.exhaustivity = previous }
    return try await operation()
  }

  /// Compare the actual state with the asserted state after `update`.
  func compare(
    _ actual: R.State, _ update: ((inout R.State) throws -> Void)?, _ place: SourcePlace
  ) {
    switch exhaustivity {
    case .on: compareWhole(actual, update, place)
    case .off(let showsSkipped):
      let isAsExpected = compareInPart(actual, update ?? { _ in }, place)
      if isAsExpected, showsSkipped { showUnasserted(actual, update, place) }
    }
  }

  private func compareWhole(
    _ actual: R.State, _ update: ((inout R.State) throws -> Void)?, _ place: SourcePlace
  ) {
    let previous = state
    var expected = previous
    do { try update?(&expected) } catch { return place.report(TestStoreFailures.threw(error)) }
    if !Self.areSame(expected, actual) {
      place.report(TestStoreFailures.mismatch(expected, actual, isUpdated: update != nil))
    } else if update != nil, Self.areSame(expected, previous) {
      place.report(TestStoreFailures.unnecessaryUpdate)
    }
  }

  @discardableResult
  private func compareInPart(
    _ actual: R.State, _ update: (inout R.State) throws -> Void, _ place: SourcePlace
  ) -> Bool {
    var expected = actual
    do { try update(&expected) } catch {
      place.report(TestStoreFailures.threw(error))
      return false
    }
    if Self.areSame(expected, actual) { return true }
    place.report(TestStoreFailures.mismatch(expected, actual, isUpdated: true))
    return false
  }

  private func showUnasserted(
    _ actual: R.State, _ update: ((inout R.State) throws -> Void)?, _ place: SourcePlace
  ) {
    var expected = state
    try? update?(&expected)
    if Self.areSame(expected, actual) { return }
    show(TestStoreFailures.mismatch(expected, actual, isUpdated: update != nil), place)
  }

  /// Whether two states are equal for Swift and for every mirror.
  private static func areSame(_ first: R.State, _ second: R.State) -> Bool {
    first == second && first.isSame(as: second)
  }

  // MARK: Reporting

  /// Show what an exhaustive store would report, if the test wants to see it.
  func show(_ text: String, _ place: SourcePlace) {
    if exhaustivity == .off(showSkippedAssertions: true) {
      place.show("Skipped assertions: …\n\n\(text)")
    }
  }

  /// Remove the received actions, and accept the state after them as asserted.
  func takeReceived() -> [TestStoreEngine<R>.Received] {
    let received = engine.withLock { storage in
      defer { storage.received = [] }
      return storage.received
    }
    if let last = received.last { settings.withLock { $0.state = last.state } }
    return received
  }

  func reportWarnings(_ place: SourcePlace) {
    for warning in engine.withLock({ $0.core.takeWarnings() }) {
      let text = TestStoreFailures.warned(warning)
      if exhaustivity == .on { place.report(text) } else { show(text, place) }
    }
  }
}
