import EventLoop
import Glibc
import Logging

/// Turns signals into orders to the daemon. No signal ends the process without a goodbye, except
/// those that report that it is broken, and SIGKILL.
final class DaemonSignals {
  enum Order {
    /// Reload the configuration; without one, stop.
    case reload
    /// Stop, or hand everything over to the next process.
    case terminate
    /// Stop; at once if ordered twice.
    case stop
  }

  /// Called with each order. No order is lost before it is set: the loop does not run yet.
  var onOrder: ((Order) -> Void)?
  private let logger: Logger
  private var watchers: [SignalWatcher] = []
  /// What the process was started to ignore. Read once: a part of the daemon may ignore more until
  /// the signals are watched.
  private let ignored: Set<Int32>

  init(_ logger: Logger) {
    self.logger = logger
    ignored = Set(([SIGHUP] + Self.meaningless).filter(Signals.isIgnored))
  }

  private static func order(_ signal: Int32) -> Order? {
    switch signal {
    case SIGHUP: .reload
    case SIGTERM: .terminate
    // SIGPWR and SIGXCPU: power, or processor time, is about to run out.
    case SIGINT, SIGQUIT, SIGPWR, SIGXCPU: .stop
    default: nil
    }
  }

  private static let ending = [SIGTERM, SIGINT, SIGQUIT, SIGPWR, SIGXCPU]

  /// Signals that would end the process and mean nothing to it. SIGXFSZ comes with an error of the
  /// write that exceeded the limit.
  private static let meaningless: [Int32] =
    [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT, SIGXFSZ]
    + Array(__libc_current_sigrtmin()...__libc_current_sigrtmax())

  /// Watch the signals on a loop, unless they are watched already. Any number of them may come
  /// until the process has ended.
  func watch(on loop: Loop) throws {
    guard watchers.isEmpty else { return }
    // A daemon that was started to ignore SIGHUP (nohup) survives the end of its terminal.
    let ending = Self.ending + (ignored.contains(SIGHUP) ? [] : [SIGHUP])
    let meaningless = Self.meaningless.filter { !ignored.contains($0) }
    try Signals.outlive(ending + meaningless)
    watchers = [
      try SignalWatcher(ending, on: loop) { [unowned self] signal in
        if let order = Self.order(signal) { onOrder?(order) }
      },
      try SignalWatcher(meaningless, on: loop) { [logger] signal in
        logger.notice(
          "a signal that means nothing to the daemon",
          metadata: ["signal": .number(signal), "name": "\(String(cString: strsignal(signal)))"])
      },
    ]
  }
}
