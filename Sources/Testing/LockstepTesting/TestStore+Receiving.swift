import CustomDump
public import Lockstep
import Synchronization

extension TestStore {
  /// Assert that an effect has sent this action, and how it changed the state.
  ///
  /// The actions of effects are received in the order in which they were sent.
  public nonisolated(nonsending) func receive(
    _ expected: R.Action, timeout: Duration? = nil,
    assert update: ((inout R.State) throws -> Void)? = nil, fileID: StaticString = #fileID,
    filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
  ) async where R.Action: Equatable {
    let expectation = Expectation(
      phrase: "the following action",
      missing: TestStoreFailures.neverReceived(expected),
      difference: { TestStoreFailures.difference(expected, $0) },
      matches: { $0 == expected })
    await receive(
      expectation, timeout, update, SourcePlace(fileID, filePath, line, column))
  }

  /// Assert that an effect has sent an action of this case, `\.factResponse`, and how it changed
  /// the state.
  public nonisolated(nonsending) func receive<Value>(
    _ path: CaseKeyPath<R.Action, Value>, timeout: Duration? = nil,
    assert update: ((inout R.State) throws -> Void)? = nil, fileID: StaticString = #fileID,
    filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
  ) async where R.Action: CasePathable {
    let path = R.Action.allCasePaths[keyPath: path]
    let expectation = Expectation(matching: "case path") { path.extract(from: $0) != nil }
    await receive(
      expectation, timeout, update, SourcePlace(fileID, filePath, line, column))
  }

  /// Assert that an effect has sent an action of this case that carries this value, and how it
  /// changed the state.
  public nonisolated(nonsending) func receive<Value: Equatable & Sendable>(
    _ path: CaseKeyPath<R.Action, Value>, _ value: Value, timeout: Duration? = nil,
    assert update: ((inout R.State) throws -> Void)? = nil, fileID: StaticString = #fileID,
    filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
  ) async where R.Action: CasePathable {
    let path = R.Action.allCasePaths[keyPath: path]
    let expectation = Expectation(
      phrase: "the following action",
      missing: TestStoreFailures.neverReceived(path.embed(value)),
      difference: { TestStoreFailures.difference(path.embed(value), $0) },
      matches: { path.extract(from: $0) == value })
    await receive(
      expectation, timeout, update, SourcePlace(fileID, filePath, line, column))
  }

  /// Assert that an effect has sent an action for which `predicate` holds, and how it changed the
  /// state.
  public nonisolated(nonsending) func receive(
    where predicate: @escaping (R.Action) -> Bool, timeout: Duration? = nil,
    assert update: ((inout R.State) throws -> Void)? = nil, fileID: StaticString = #fileID,
    filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
  ) async {
    let expectation = Expectation(matching: "predicate", predicate)
    await receive(
      expectation, timeout, update, SourcePlace(fileID, filePath, line, column))
  }

  // MARK: How

  /// An expected action, with the texts for the case that it is not received.
  private struct Expectation {
    let phrase: String
    /// The text for the case that only other actions are received.
    let missing: String
    let difference: (R.Action) -> String
    let matches: (R.Action) -> Bool

    init(
      phrase: String, missing: String, difference: @escaping (R.Action) -> String,
      matches: @escaping (R.Action) -> Bool
    ) {
      self.phrase = phrase
      self.missing = missing
      self.difference = difference
      self.matches = matches
    }

    init(matching kind: String, _ matches: @escaping (R.Action) -> Bool) {
      phrase = "an action matching \(kind)"
      missing = "Expected to receive an action matching \(kind), but didn't get one."
      difference = { TestStoreFailures.indented(TestStoreFailures.dump($0)) }
      self.matches = matches
    }
  }

  private nonisolated(nonsending) func receive(
    _ expectation: Expectation, _ timeout: Duration?,
    _ update: ((inout R.State) throws -> Void)?, _ place: SourcePlace
  ) async {
    defer { reportWarnings(place) }
    guard await waitForAction(expectation, timeout ?? self.timeout, place) else { return }
    skipOthers(before: expectation, place)
    guard let received = engine.withLock({ $0.received.isEmpty ? nil : $0.received.removeFirst() })
    else { return place.report(expectation.missing) }
    defer { settings.withLock { $0.state = received.state } }
    guard expectation.matches(received.action) else {
      return reportUnexpected(received.action, expectation, place)
    }
    if case .rejected(let rejection) = received.reduction {
      place.report(TestStoreFailures.rejected(received.action, rejection))
    }
    compare(received.state, update, place)
  }

  /// Wait for an action that may match. Reports a failure and returns false when none arrives.
  private nonisolated(nonsending) func waitForAction(
    _ expectation: Expectation, _ timeout: Duration, _ place: SourcePlace
  ) async -> Bool {
    let isOn = exhaustivity == .on
    var seen = 0
    while true {
      let limit = seen
      _ = await engine.wait(timeout) {
        $0.received.count > limit || $0.core.effectCount == 0
      }
      let (actions, running) = engine.withLock {
        ($0.received.map(\.action), $0.core.runningEffects)
      }
      if actions.contains(where: expectation.matches) || (isOn && !actions.isEmpty) { return true }
      if actions.count > seen, !running.isEmpty {
        seen = actions.count
        continue
      }
      if actions.isEmpty {
        place.report(
          TestStoreFailures.noneReceived(expectation.phrase, timeout, running: running))
      } else {
        place.report(expectation.missing)
      }
      return false
    }
  }

  /// A store that is not exhaustive skips the actions before the expected one.
  private func skipOthers(before expectation: Expectation, _ place: SourcePlace) {
    if exhaustivity == .on { return }
    let skipped = engine.withLock { storage in
      let end = storage.received.firstIndex { expectation.matches($0.action) } ?? 0
      defer { storage.received.removeFirst(end) }
      return Array(storage.received[..<end])
    }
    guard let last = skipped.last else { return }
    settings.withLock { $0.state = last.state }
    show(TestStoreFailures.skipped(skipped.map(\.action)), place)
  }

  private func reportUnexpected(
    _ action: R.Action, _ expectation: Expectation, _ place: SourcePlace
  ) {
    let later = engine.withLock { $0.received.map(\.action) }
    place.report(
      TestStoreFailures.unexpectedlyReceived(
        expectation.difference(action), comesLater: later.contains(where: expectation.matches)))
  }
}
