public import Lockstep
import Simulator

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
  public static var incrementing: UniqueIDGenerator { .counting }
}
