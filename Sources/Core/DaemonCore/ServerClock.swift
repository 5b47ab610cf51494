import Lockstep
import Wire

/// The time that the shell passes with events: monotonic, and the time of day.
///
/// Invariant: `now` never goes back, whatever time an event has.
struct ServerClock: Sendable {
  private(set) var now: Instant
  /// The time at which the server was made.
  let start: Instant
  /// The time of day at which the monotonic clock was zero, in nanoseconds.
  private var wallOffset: Int64 = 0

  init(at now: Instant) {
    self.now = now
    start = now
  }

  /// The time of day; 1970 until it is set.
  var timeOfDay: Timestamp {
    Timestamp(nanoseconds: wallOffset &+ Int64(clamping: now.nanoseconds))
  }

  /// Whole milliseconds since the server was made.
  var uptimeMilliseconds: UInt64 { now.milliseconds(since: start) }

  @inline(__always)
  mutating func advance(to now: Instant) {
    if now > self.now { self.now = now }
  }

  /// Set the time of day at an instant of the monotonic clock. It may go back, because wall clocks
  /// are adjusted.
  mutating func set(_ time: Timestamp, at now: Instant) {
    wallOffset = time.nanoseconds &- Int64(clamping: now.nanoseconds)
    advance(to: now)
  }
}
