public import Lockstep
import Synchronization

extension DependencyValues {
  /// The dependencies of a test: test values, the time of a clock, and identifiers that count.
  public init(testing clock: TestClock) {
    self.init()
    isTesting = true
    self.clock = clock
    date = DateGenerator { clock.timestamp }
    uuid = .incrementing
  }
}

extension UniqueIDGenerator {
  /// A generator that counts, from 00000000-0000-0000-0000-000000000000.
  public static var incrementing: UniqueIDGenerator {
    let counter = Counter()
    return UniqueIDGenerator { UniqueID(high: 0, low: counter.next()) }
  }

  private final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)

    func next() -> UInt64 { count.wrappingAdd(1, ordering: .relaxed).oldValue }
  }
}
