import Glibc
import Synchronization

/// Collects the jobs of tasks. The simulation runs them one by one on its own thread, in an order
/// that a seed decides.
///
/// Jobs from another thread never run, because their order is not reproducible. Cost: one lock for
/// each job.
final class SeededExecutor: TaskExecutor, SerialExecutor {
  private struct Storage: Sendable {
    var jobs: [UnownedJob] = []
    var thread = pthread_self()
    var hasForeignJobs = false
  }

  private let storage = Mutex(Storage())

  /// Make the caller's thread the one whose jobs run.
  func enter() { storage.withLock { $0.thread = pthread_self() } }

  /// Whether the caller is on that thread.
  var isEntered: Bool { storage.withLock { $0.thread == pthread_self() } }

  /// The number of waiting jobs.
  var count: Int { storage.withLock { $0.jobs.count } }

  /// Whether a job came from another thread.
  var hasForeignJobs: Bool { storage.withLock { $0.hasForeignJobs } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    storage.withLock { storage in
      if storage.thread == pthread_self() {
        storage.jobs.append(job)
      } else {
        storage.hasForeignJobs = true
      }
    }
  }

  /// Run the job at this index, in the order of arrival.
  func run(at place: Int) {
    let job = storage.withLock { $0.jobs.remove(at: place) }
    // As both kinds of executor, so that neither actors of this executor nor tasks that prefer it
    // leave it.
    job.runSynchronously(
      isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
}
