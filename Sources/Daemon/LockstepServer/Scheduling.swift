import CLinux
import Glibc

/// What the kernel's scheduler is asked for. Where it refuses (a service's filter of system calls), or
/// does not know the request, the daemon is slower beside other work, and nothing else.
enum Scheduling {
  /// Do work on a thread of the global pool, which goes after the loop.
  ///
  /// Here, and not in the generic daemon: the linker keeps whatever an asynchronous closure refers to, which
  /// would be the daemon's code for features that the program does not have.
  static func besideLoop(_ work: @escaping @Sendable () -> Void) {
    Task.detached {
      letLoopGoFirst()
      work()
    }
  }

  /// Let the loop go before the calling thread, which is one of the global pool: where they share a
  /// core, the loop otherwise waits for slices of several milliseconds. What the threads of the pool do
  /// later, as effects, comes after the loop, too.
  private static func letLoopGoFirst() {
    // The threads of a process have priorities of their own on Linux; 0 is the calling one.
    let one = Int32(PRIO_PROCESS.rawValue)
    _ = setpriority(one, 0, min(19, getpriority(one, id_t(getpid())) + 10))
  }

  /// Have the calling thread, the loop's, run soon after it wakes, also when a thread with a longer
  /// slice is in the middle of it (Linux 6.12: a lower priority alone does not end a slice early).
  static func wakePromptly() { _ = lockstep_request_slice(500_000) }
}
