import EventLoop
import Glibc
import Synchronization

/// A request, by a signal or the deadline, that a command with something to clean up ends soon.
/// Other commands just end.
enum Interruption {
  enum Reason: Int, Sendable {
    case none, signal, timeout
  }

  private static let noted = Atomic<Int>(0)
  private static let arrived = Atomic<Int>(0)
  private static let watched = Atomic<Bool>(false)

  static var isWatched: Bool { watched.load(ordering: .relaxed) }

  /// Note SIGINT and SIGTERM instead of ending; the second signal of the same kind ends the
  /// process.
  static func watch() {
    watched.store(true, ordering: .relaxed)
    for number in [SIGINT, SIGTERM] {
      signal(number) { number in
        // The release below publishes the number together with the reason.
        Interruption.arrived.store(Int(number), ordering: .relaxed)
        Interruption.noted.store(Reason.signal.rawValue, ordering: .releasing)
        signal(number, SIG_DFL)
      }
    }
  }

  static func note(_ reason: Reason) { noted.store(reason.rawValue, ordering: .relaxed) }

  /// End by the signal that arrived, if one did, so that the shell sees it.
  static func endBySignal() {
    let number = Int32(arrived.load(ordering: .relaxed))
    if number != 0 { end(by: number) }
  }

  /// End by a signal, whatever handles it.
  static func end(by number: Int32) {
    signal(number, SIG_DFL)
    // The threads that run tasks block all signals.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
  }

  /// Throw if the end was requested.
  static func check() throws(Failure) {
    switch Reason(rawValue: noted.load(ordering: .acquiring)) ?? .none {
    case .none: return
    case .signal: throw Failure(.goodbye, code: "interrupted", "interrupted.")
    case .timeout: throw Failure(.timeout, "not done within --timeout.")
    }
  }
}
