import EventLoop
import Glibc

/// Prepares file descriptors at a daemon's start, so that it survives running out of them.
enum Descriptors {
  /// Open descriptors that are otherwise opened at their first use, before clients can have taken
  /// all.
  ///
  /// The global pool opens an epoll, an event and a timer descriptor; libdispatch ends the process
  /// if there are none left. The clock opens those that the sleeps of effects need.
  static func openEarly() {
    let begun = Gate()
    Task.detached { begun.open() }
    begun.wait()
    LoopClock.prepare()
  }

  /// Raise the limit on descriptors to the most that the process may have. Code that needs a low
  /// limit for compatibility (`select`) is not used here. Returns the limit.
  static func raiseLimit() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
    if limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    return Int(clamping: limit.rlim_cur)
  }

  /// The most descriptors that the daemon itself opens: sockets, loops, the journal's files.
  static let own = 48
}
