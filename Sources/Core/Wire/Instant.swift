/// A point in time on the shell's clock: nanoseconds since an arbitrary start, never decreasing.
public struct Instant: Comparable, Hashable, Sendable {
  public var nanoseconds: UInt64

  public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  public static func < (first: Instant, second: Instant) -> Bool {
    first.nanoseconds < second.nanoseconds
  }

  public static func + (instant: Instant, duration: Duration) -> Instant {
    let (seconds, attoseconds) = duration.components
    let nanoseconds =
      UInt64(clamping: seconds) &* 1_000_000_000
      &+ UInt64(clamping: attoseconds / 1_000_000_000)
    return Instant(nanoseconds: instant.nanoseconds &+ nanoseconds)
  }

  /// Whole milliseconds since an earlier instant; 0 if it is later.
  public func milliseconds(since earlier: Instant) -> UInt64 {
    self > earlier ? (nanoseconds - earlier.nanoseconds) / 1_000_000 : 0
  }
}
