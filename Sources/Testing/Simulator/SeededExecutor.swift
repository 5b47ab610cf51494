import Glibc
import Synchronization

/// Collects the jobs of tasks, and runs one when told, on the thread that tells: which one, a seed
/// decides.
///
/// Jobs that come from another thread are never run: there, nothing repeats. Cost: one lock a job.
final class SeededExecutor: TaskExecutor, SerialExecutor {
  private struct Storage: Sendable {
    var jobs: [UnownedJob] = []
    var thread = pthread_self()
    var hasForeignJobs = false
  }

  private let storage = Mutex(Storage())

  /// Make the caller's thread the one whose jobs count.
  func enter() { storage.withLock { $0.thread = pthread_self() } }

  /// Whether the caller is on that thread.
  var isEntered: Bool { storage.withLock { $0.thread == pthread_self() } }

  /// How many jobs wait.
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

  /// Run the job at a place in the order of their coming.
  func run(at place: Int) {
    let job = storage.withLock { $0.jobs.remove(at: place) }
    // Both faces, so that neither actors of this executor nor tasks that prefer it go elsewhere.
    job.runSynchronously(
      isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
}
