import Dispatch
import Synchronization

/// Runs the tasks of a test's effects, one job at a time, and knows when no job is left: then every
/// effect waits for something outside.
final class TestStoreExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "effects of a test store")
  private let jobs = Atomic(0)

  /// Whether no effect can continue by itself.
  var isIdle: Bool { jobs.load(ordering: .sequentiallyConsistent) == 0 }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.add(1, ordering: .sequentiallyConsistent)
    queue.async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
      jobs.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  /// Return when no effect can continue by itself, or after `limit` if effects never pause.
  func settle(limit: Duration = .seconds(10)) async {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: limit)
    var polls = 0
    while !isIdle, clock.now < deadline {
      polls += 1
      if polls < 100 { await Task.yield() } else { try? await clock.sleep(for: .microseconds(100)) }
    }
  }
}
