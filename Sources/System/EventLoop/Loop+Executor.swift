internal import CLibuv
internal import Glibc
internal import Synchronization

/// One thing to run on the loop.
///
/// Sendable because one thread makes it and the loop runs it, with a lock in between.
enum Work: @unchecked Sendable {
  case job(UnownedJob)
  case body(() -> Void)
  /// One of the two is called: the second when the loop ends first.
  case either(() -> Void, orElse: () -> Void)
  /// It has been run.
  case done
}

/// Work that other threads gave to the loop.
struct Inbox {
  /// False before the wake-up handle exists, and from the end of `run`.
  var isOpen = false
  var work: [Work] = []
}

extension Loop {
  /// Runs `body` on the loop, after everything this thread has given to it before.
  ///
  /// Any thread may call it. It never runs `body` inside the call, not even on the loop. It costs
  /// one lock, and a wake-up when nothing else was waiting; on the loop it costs neither. After
  /// the end of `run` the body is dropped.
  public func execute(_ body: @escaping @Sendable () -> Void) {
    _ = put(.body(body))
  }

  /// Runs `body` as `execute` does, or `dropped` if the loop ends first: exactly one of the two, so
  /// that no caller waits for ever.
  public func execute(
    orElse dropped: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () -> Void
  ) {
    if !put(.either(body, orElse: dropped)) { dropped() }
  }

  /// Runs `body` later on, for callers that are on the loop.
  func afterwards(_ body: @escaping () -> Void) {
    assert(isOnLoop)
    _ = put(.body(body))
  }

  /// Queues `work`; returns false if the loop no longer accepts any.
  private func put(_ work: Work) -> Bool {
    if runner.load(ordering: .relaxed) == pthread_self() {
      local.append(work)
      return true
    }
    return inbox.withLock { inbox in
      guard inbox.isOpen else { return false }
      inbox.work.append(work)
      // Inside the lock: otherwise the loop could end in between, and the handle be gone.
      if inbox.work.count == 1 { uv_async_send(async) }
      return true
    }
  }
}

extension Loop: SerialExecutor, TaskExecutor {
  /// Queues a job of an actor or a task; see `execute`. A job given to a loop that has ended
  /// never runs.
  public func enqueue(_ job: consuming ExecutorJob) {
    _ = put(.job(UnownedJob(job)))
  }

  /// The loop as the executor of an actor: return it from `unownedExecutor`.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }

  /// The loop as the executor that a task prefers.
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor {
    UnownedTaskExecutor(ordinary: self)
  }

  /// Stops the program unless the caller is on the loop, which makes `assumeIsolated` work in
  /// callbacks.
  public func checkIsolated() {
    preconditionOnLoop()
  }

  /// Whether the caller is isolated to this loop: being on its thread is enough.
  public func isIsolatingCurrentContext() -> Bool? {
    isOnLoop
  }
}
