import Lockstep
import Synchronization

extension TestStore {
  /// Wait until every effect has ended, and report what the test has not handled: running effects,
  /// and actions not received.
  public nonisolated(nonsending) func finish(
    timeout: Duration? = nil, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: UInt = #column
  ) async {
    let place = SourcePlace(fileID, filePath, line, column)
    let timeout = timeout ?? self.timeout
    if await !engine.wait(timeout, until: { $0.core.effectCount == 0 }) {
      let text = TestStoreFailures.stillInFlight(timeout, runningEffects)
      if exhaustivity == .on { place.report(text) } else { show(text, place) }
      _ = engine.cancelAll()
    }
    reportLeftOver(place)
  }

  /// Skip the received actions. With `strict`, there must be at least one.
  public nonisolated(nonsending) func skipReceivedActions(
    strict: Bool = true, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: UInt = #column
  ) async {
    let place = SourcePlace(fileID, filePath, line, column)
    await engine.settle()
    let skipped = takeReceived()
    if !skipped.isEmpty {
      show(TestStoreFailures.skipped(skipped.map(\.action)), place)
    } else if strict {
      place.report(TestStoreFailures.nothingToSkip)
    }
  }

  /// Cancel the running effects. With `strict`, there must be at least one.
  public nonisolated(nonsending) func skipInFlightEffects(
    strict: Bool = true, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: UInt = #column
  ) async {
    let place = SourcePlace(fileID, filePath, line, column)
    await engine.settle()
    let running = engine.cancelAll()
    await engine.settle()
    if !running.isEmpty {
      show(TestStoreFailures.skippedEffects(running), place)
    } else if strict {
      place.report(TestStoreFailures.noEffectsToSkip)
    }
  }

  /// Report what the test has not asserted by its end.
  func reportLeftOver(_ place: SourcePlace) {
    reportWarnings(place)
    let unhandled = takeReceived()
    if !unhandled.isEmpty {
      let text = TestStoreFailures.unexpected(unhandled.map(\.action))
      if exhaustivity == .on { place.report(text) } else { show(text, place) }
    }
    for effect in runningEffects {
      let origin = settings.withLock { $0.places[effect.sequence] } ?? place
      let text = TestStoreFailures.stillRunning(effect)
      if exhaustivity == .on { origin.report(text) } else { show(text, origin) }
    }
  }
}
