import DaemonCore
import Lockstep
import Records
import Values
import Wire

// A simulated daemon's journal: a queue of tasks like that of the journal's thread, and the
// contents that have reached the disk. The seed decides when something is written, when a write
// fails, and how much of the queue is written despite a crash.

/// The file of a simulated daemon.
struct SimulatedDisk: Sendable {
  enum Task: Sendable {
    case batch(JournalBatch, order: Int)
    case snapshot(JournalSnapshot, [UInt8], heals: Bool, order: Int)
    case reopen
  }

  /// The contents that a crash leaves.
  struct Contents: Sendable {
    var snapshot: JournalSnapshot
    var bytes: [UInt8]
    /// Batches after the snapshot.
    var batches: [JournalBatch] = []
    var sessions: [SessionToken: JournalSession] = [:]
    var epoch: UInt64
    var seed: HashSeed
    var runs: [JournalRun]
    /// The revision at which the last run ended, if it recorded one.
    var ended: UInt64?
    /// The number of the ledger's entries that are kept.
    var order = 0
  }

  private(set) var contents: Contents?
  private(set) var queue: [Task] = []
  /// Writes fail until the file is reopened.
  private(set) var isBroken = false
  /// After a failure, later batches wait for the snapshot that repairs the file.
  private var isHealing = false
  /// The events that the daemon has not received yet.
  var news: [JournalEvent] = []

  /// A new file, with the first state of the epoch.
  mutating func create(
    _ snapshot: JournalSnapshot, _ bytes: [UInt8], epoch: UInt64, seed: HashSeed, run: JournalRun,
    order: Int
  ) {
    self = SimulatedDisk()
    contents = Contents(
      snapshot: snapshot, bytes: bytes, epoch: epoch, seed: seed, runs: [run], order: order)
    note(snapshot.sessions)
  }

  /// Sessions that only a snapshot has are known, too.
  private mutating func note(_ sessions: [JournalSession]) {
    for session in sessions where contents?.sessions[session.token] == nil {
      contents?.sessions[session.token] = session
    }
  }

  mutating func begin(_ run: JournalRun) {
    contents?.runs.append(run)
    contents?.ended = nil
  }

  mutating func add(_ task: Task) { queue.append(task) }

  var isIdle: Bool { queue.isEmpty && news.isEmpty }

  /// Perform the first tasks, consecutive batches as one transaction.
  mutating func work(_ count: Int) {
    var committed: UInt64?
    for _ in 0..<min(count, queue.count) {
      let task = queue.removeFirst()
      if isBroken, case .reopen = task {
        isBroken = false
        isHealing = true
        news.append(.reopened)
      } else if !isBroken, let number = write(task) {
        committed = max(committed ?? 0, number)
      }
    }
    if let committed { news.append(.committed(through: committed)) }
  }

  /// Returns the number of a committed batch; nil for any other task.
  private mutating func write(_ task: Task) -> UInt64? {
    switch task {
    case .batch(let batch, let order):
      // Invariant: the repairing snapshot is written before the batches that follow it.
      guard !isHealing else { return nil }
      for session in batch.sessions { contents?.sessions[session.token] = session }
      for token in batch.forgotten { contents?.sessions[token] = nil }
      contents?.batches.append(batch)
      note(order)
      return batch.number
    case .snapshot(let head, let bytes, let heals, let order):
      if isHealing && !heals { return nil }
      isHealing = false
      contents?.snapshot = head
      contents?.bytes = bytes
      contents?.batches.removeAll { ($0.rows.last?.sequence ?? 0) <= head.sequence }
      if heals { contents?.sessions = [:] }
      note(head.sessions)
      note(order)
      news.append(.snapshotKept(bytes: bytes.count))
      return nil
    case .reopen: return nil
    }
  }

  private mutating func note(_ order: Int) {
    let known = contents?.order ?? 0
    contents?.order = max(known, order)
  }

  /// A write fails, though the first `count` tasks have been written.
  mutating func fail(after count: Int) {
    guard !isBroken else { return }
    let known = news
    work(count)
    // The daemon does not learn of the written tasks.
    news = known
    queue.removeAll { if case .reopen = $0 { false } else { true } }
    isBroken = true
    isHealing = false
    news.append(.failed("the disk is full"))
  }

  /// The disk is still full: a reopen fails.
  mutating func refuse() {
    guard isBroken,
      let place = queue.firstIndex(where: { if case .reopen = $0 { true } else { false } })
    else { return }
    queue.remove(at: place)
    news.append(.stillFailing("the disk is full"))
  }

  /// The process crashes: the first `count` tasks are written.
  mutating func crash(after count: Int) {
    if !isBroken { work(count) }
    queue = []
    news = []
    isBroken = false
    isHealing = false
  }

  /// The process ends in order: all tasks are written, and the file records the end of the run if
  /// nothing is missing in it.
  mutating func end(at revision: UInt64) {
    if !isBroken { work(queue.count) }
    if !isBroken && !isHealing { contents?.ended = revision }
    crash(after: 0)
  }
}
