import EventLoop
import Glibc
import Logging

/// What a daemon is told by signals. None of them ends the process without a goodbye but those that
/// say that it is broken, and SIGKILL.
final class DaemonSignals {
  enum Order {
    /// Read the configuration again; without one, stop.
    case reload
    /// Stop, or pass everything on to the next process.
    case terminate
    /// Stop, and at once if that is said twice.
    case stop
  }

  /// What is done. Orders that come before it is set are not lost: the loop does not run yet.
  var onOrder: ((Order) -> Void)?
  private let logger: Logger
  private var watchers: [SignalWatcher] = []

  init(_ logger: Logger) { self.logger = logger }

  private static func order(_ signal: Int32) -> Order? {
    switch signal {
    case SIGHUP: .reload
    case SIGTERM: .terminate
    // The last two: there will be no power, or no more processor time, in a moment.
    case SIGINT, SIGQUIT, SIGPWR, SIGXCPU: .stop
    default: nil
    }
  }

  private static let ending = [SIGTERM, SIGINT, SIGQUIT, SIGPWR, SIGXCPU]

  /// Those that would end the process and mean nothing to it. SIGXFSZ comes with an error of the
  /// write that it is about.
  private static let meaningless: [Int32] =
    [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT, SIGXFSZ]
    + Array(__libc_current_sigrtmin()...__libc_current_sigrtmax())

  /// Have signals arrive on a loop from now on, if they do not yet. They may come in any number
  /// until the process has ended.
  func watch(on loop: Loop) throws {
    guard watchers.isEmpty else { return }
    // A daemon that was started to survive the end of its terminal (nohup) does.
    let ending = Self.ending + (Signals.isIgnored(SIGHUP) ? [] : [SIGHUP])
    let meaningless = Self.meaningless.filter { !Signals.isIgnored($0) }
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
