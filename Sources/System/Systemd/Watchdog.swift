public import Glibc

/// A manager's demand to hear from this process, again and again (`WatchdogSec=`).
public struct Watchdog: Equatable, Sendable {
  /// After so much silence the manager kills the service.
  public let timeout: Duration

  /// How often to send `Notification.watchdog`: twice in that time.
  public var interval: Duration { timeout / 2 }

  /// The demand of `$WATCHDOG_USEC`; nil if there is none, or `$WATCHDOG_PID` is another process.
  ///
  /// Throws when a variable is no number: a service that took that for "no watchdog" would be
  /// killed again and again.
  public init?(
    environment: Environment = .process, pid: pid_t = getpid()
  ) throws(EnvironmentError) {
    let addressee: pid_t? = try environment.number("WATCHDOG_PID")
    let microseconds: Int64? = try environment.number("WATCHDOG_USEC")
    guard addressee ?? pid == pid, let microseconds, microseconds > 0 else { return nil }
    timeout = .microseconds(microseconds)
  }
}
