import EventLoop
import Glibc

/// What a daemon does at its start about descriptors, so that it outlives a time without any.
enum Descriptors {
  /// Open now, before any client can have taken them, what is otherwise opened at its first use.
  ///
  /// Those of the global pool are an epoll, an event and a timer descriptor; libdispatch ends the
  /// process if there are none for it. Those of the clock are what effects sleep by.
  static func openEarly() {
    let begun = Gate()
    Task.detached { begun.open() }
    begun.wait()
    LoopClock.prepare()
  }

  /// Let the process have as many as it may. What needs few of them for compatibility (`select`) is not
  /// used here. Returns how many that are.
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

  /// What the daemon itself opens, at most: sockets, loops, the journal's files.
  static let own = 48
}
