public import Glibc

/// The service manager's watchdog, which expects a heartbeat from this process (`WatchdogSec=`).
public struct Watchdog: Equatable, Sendable {
  /// The manager kills the service after this long without a heartbeat.
  public let timeout: Duration

  /// How often to send `Notification.watchdog`: twice per `timeout`.
  public var interval: Duration { timeout / 2 }

  /// The watchdog that `$WATCHDOG_USEC` demands; nil if there is none, or `$WATCHDOG_PID` is
  /// another process.
  ///
  /// Throws when a variable is not a number: a service that took that for "no watchdog" would be
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
