public import Lockstep
import Simulator
import Synchronization

extension DependencyValues {
  /// The dependencies of a test: test values, the time of a clock, and identifiers that count. The
  /// use of a live value, because its key has no test value, is a failure, once for each key.
  public init(
    testing clock: TestClock, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
    line: UInt = #line, column: UInt = #column
  ) {
    self.init(testing: clock, reportingTo: SourcePlace(fileID, filePath, line, column))
  }

  init(testing clock: TestClock, reportingTo place: SourcePlace) {
    self.init()
    self.clock = clock
    date = DateGenerator { clock.timestamp }
    uuid = .incrementing
    test(reportingTo: place)
  }

  /// Make the values those of a test, in which the use of a live one is a failure, once for each
  /// key.
  mutating func test(reportingTo place: SourcePlace) {
    let reported = ReportedKeys()
    test { use in if reported.insert(use.key) { place.report(use.text) } }
  }
}

/// The keys whose live use was reported.
private final class ReportedKeys: Sendable {
  private let keys = Mutex<Set<ObjectIdentifier>>([])

  /// Returns whether the key is new.
  func insert(_ key: ObjectIdentifier) -> Bool { keys.withLock { $0.insert(key).inserted } }
}

extension UniqueIDGenerator {
  /// A generator that counts, from 00000000-0000-0000-0000-000000000000.
  public static var incrementing: UniqueIDGenerator { .counting }
}
