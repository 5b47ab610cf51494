import Glibc
public import Lockstep

extension DependencyValues {
  /// The default dependencies of a store's features: the system's time, the clock of Swift's
  /// concurrency, random numbers, and the live values of all other keys. `LockstepServer` has the
  /// same for daemons, with a clock driven by libuv.
  public static var ofLiveStore: DependencyValues {
    var values = DependencyValues()
    values.clock = ContinuousClock()
    values.date = DateGenerator { .ofSystemClock }
    return values
  }
}

extension Timestamp {
  fileprivate static var ofSystemClock: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}
