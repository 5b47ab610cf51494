import DaemonCore
import Lockstep
import Records
import Values
import Wire

// What a daemon keeps, in a simulation: a queue of tasks as the journal's thread has it, and what
// has come to the platter. The seed decides when something is written, when writing fails, and how
// much of the queue a crash has still let through.

/// The file of a simulated daemon.
struct SimulatedDisk: Sendable {
  enum Task: Sendable {
    case batch(JournalBatch, order: Int)
    case snapshot(JournalSnapshot, [UInt8], heals: Bool, order: Int)
    case reopen
  }

  /// What a crash leaves.
  struct Contents: Sendable {
    var snapshot: JournalSnapshot
    var bytes: [UInt8]
    /// Batches behind the snapshot.
    var batches: [JournalBatch] = []
    var sessions: [SessionToken: JournalSession] = [:]
    var epoch: UInt64
    var seed: HashSeed
    var runs: [JournalRun]
    /// Where the last run ended, if it said so.
    var ended: UInt64?
    /// How many entries of the ledger are kept.
    var order = 0
  }

  private(set) var contents: Contents?
  private(set) var queue: [Task] = []
  /// Writing fails until the file is opened anew.
  private(set) var isBroken = false
  /// What follows a failure waits for the snapshot that heals it.
  private var isHealing = false
  /// The entries of the ledger that some news has called committed.
  var news: [JournalEvent] = []

  /// A new file, with the state that the epoch begins with.
  mutating func create(
    _ snapshot: JournalSnapshot, _ bytes: [UInt8], epoch: UInt64, seed: HashSeed, run: JournalRun,
    order: Int
  ) {
    self = SimulatedDisk()
    contents = Contents(
      snapshot: snapshot, bytes: bytes, epoch: epoch, seed: seed, runs: [run], order: order)
  }

  mutating func begin(_ run: JournalRun) {
    contents?.runs.append(run)
    contents?.ended = nil
  }

  mutating func add(_ task: Task) { queue.append(task) }

  var isIdle: Bool { queue.isEmpty && news.isEmpty }

  /// Do the first tasks, as one transaction where they are batches.
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

  /// Returns the number of the batch if it is one that is committed.
  private mutating func write(_ task: Task) -> UInt64? {
    switch task {
    case .batch(let batch, let order):
      // Invariant: the snapshot that heals stands before the batches that follow it.
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
      if heals {
        contents?.sessions = Dictionary(
          uniqueKeysWithValues: head.sessions.map { ($0.token, $0) })
      }
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

  /// Writing fails: the first so many tasks have been written all the same.
  mutating func fail(after count: Int) {
    guard !isBroken else { return }
    let known = news
    work(count)
    // Nobody is told.
    news = known
    queue.removeAll { if case .reopen = $0 { false } else { true } }
    isBroken = true
    isHealing = false
    news.append(.failed("the disk is full"))
  }

  /// Still full.
  mutating func refuse() {
    guard isBroken,
      let place = queue.firstIndex(where: { if case .reopen = $0 { true } else { false } })
    else { return }
    queue.remove(at: place)
    news.append(.stillFailing("the disk is full"))
  }

  /// The process ends: the first so many tasks come through.
  mutating func crash(after count: Int) {
    if !isBroken { work(count) }
    queue = []
    news = []
    isBroken = false
    isHealing = false
  }

  /// The process ends in order: all tasks come through, and the file says where the run ended, if
  /// it lacks nothing.
  mutating func end(at revision: UInt64) {
    if !isBroken { work(queue.count) }
    if !isBroken && !isHealing { contents?.ended = revision }
    crash(after: 0)
  }
}
