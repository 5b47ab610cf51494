import EventLoop
import Glibc
public import Lockstep

extension Timestamp {
  /// The time of day, by the system's clock.
  public static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}

extension DependencyValues {
  /// The default dependencies of a daemon's features: the system's time, a clock that sleeps by
  /// libuv, random numbers, and the live values of all other keys.
  public static var live: DependencyValues {
    var values = DependencyValues()
    values.clock = LoopClock()
    values.date = DateGenerator { .now }
    return values
  }
}
