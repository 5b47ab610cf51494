import DaemonCore
import EventLoop
import Glibc
import Journal
import Records

// Theory of operation
//
// The journal has a thread of its own (a loop without sockets). Adding a task wakes the thread
// unless it is awake. Awake, it takes all waiting tasks: adjacent batches become one transaction,
// so that while the disk synchronises one turn, later turns gather (group commit). Background work
// (a part of a snapshot, a slice of the data that it makes superfluous, a checkpoint) is done one
// piece at a time, each after the batches that have arrived meanwhile.

/// Stores the server's batches and snapshots in the journal.
final class JournalWriter: Sendable {
  enum Task: Sendable {
    case batch(JournalBatch)
    /// Hold later batches until after the snapshot that heals under this number.
    case holdForSnapshot(UInt64)
    /// An encoded snapshot. `heals` is its number, if it closes the gap that an error left.
    case snapshot(JournalSnapshot, bytes: [UInt8], heals: UInt64?)
    case reopen
    /// The daemon stops at this revision.
    case end(revision: UInt64, @Sendable (RunEnd) -> Void)
  }

  /// What is in the journal when a daemon has stopped.
  enum RunEnd: Sendable {
    /// Everything, and that the run has ended.
    case noted
    /// Everything but the end: to the next start the run seems to have crashed.
    case unnoted
    case changesLost
  }

  private struct Inbox {
    var tasks: [Task] = []
    var isAwake = false
  }

  private let inbox = Locked(Inbox())
  private let thread: Loop
  private let worker: Worker
  /// How long small commits stay in the commit log alone when no more come.
  private static let quietTime = Duration.milliseconds(100)

  /// Take over a journal: no other code may use it from now on. Of the actions that a snapshot covers
  /// the latest `logged` stay, for the log of the next process. `onNews` is called on the journal's
  /// thread.
  init(
    _ journal: JournalAccess, logged: Int, onNews: @escaping @Sendable (JournalEvent) -> Void
  ) throws(LoopError) {
    thread = try Loop.startThread(name: "journal")
    worker = Worker(journal, logged, onNews)
    thread.execute { [worker, thread] in
      Scheduling.wakePromptly()
      worker.watchQuiet(on: thread, for: Self.quietTime)
    }
  }

  func add(_ task: Task) {
    let mustWake = inbox.withLock { inbox in
      inbox.tasks.append(task)
      defer { inbox.isAwake = true }
      return !inbox.isAwake
    }
    if mustWake { thread.execute { self.work() } }
  }

  /// End the thread once its tasks are done.
  func close() { thread.stop() }

  /// Runs on the journal's thread.
  private func work() {
    while true {
      let tasks = inbox.withLock { inbox -> [Task] in
        defer { inbox.tasks = [] }
        if inbox.tasks.isEmpty && !worker.hasLeisureWork { inbox.isAwake = false }
        return inbox.tasks
      }
      if !tasks.isEmpty {
        worker.perform(tasks)
      } else if !worker.work() {
        // Nothing was added, and nothing is left: `isAwake` has been cleared above.
        worker.rest()
        return
      }
    }
  }
}

/// The work of the journal's thread.
///
/// Unchecked: only that thread uses it, and the file in it, after it has been made.
private final class Worker: @unchecked Sendable {
  // What is `@exclusivity(unchecked)` here is read or changed at an instant, by what runs no code of others: no
  // two accesses can overlap.
  /// Nil until it can be opened.
  @exclusivity(unchecked) private var file: JournalFile?
  private let opening: JournalOpening?
  private let logged: Int
  private let onNews: @Sendable (JournalEvent) -> Void
  /// The error that stops all writing until the file is reopened.
  @exclusivity(unchecked) private var failure: String?
  /// Whether the file has a gap, from an error until a snapshot has healed it. Until then nothing
  /// may be appended that would seem to follow the stored batches.
  @exclusivity(unchecked) private var hasGap = false
  /// Batches held until after the snapshot that heals under this number.
  @exclusivity(unchecked) private var held: (number: UInt64, batches: [JournalBatch])?
  /// The newest batch after the gap and before the healing snapshot was taken; the snapshot
  /// contains its changes.
  @exclusivity(unchecked) private var covered: UInt64?
  /// The snapshot that is being written, and what of it is not written yet.
  @exclusivity(unchecked) private var snapshot:
    (id: JournalSnapshotID, bytes: [UInt8], rest: Range<Int>)?
  @exclusivity(unchecked) private var mayCut = false
  @exclusivity(unchecked) private var place: FilePlace?
  /// The place of the write-ahead log, which is a new file after an error.
  @exclusivity(unchecked) private var logPlace: FilePlace?
  private var quiet: Timer?
  private var quietTime = Duration.zero

  init(
    _ journal: JournalAccess, _ logged: Int, _ onNews: @escaping @Sendable (JournalEvent) -> Void
  ) {
    self.logged = logged
    self.onNews = onNews
    switch journal {
    case .open(let file):
      (self.file, opening) = (file, nil)
      place = FilePlace(path: file.path)
      logPlace = FilePlace(path: file.path + "-wal")
    case .later(let opening, let error):
      self.opening = opening
      (failure, hasGap) = ("\(error)", true)
    }
  }

  var hasLeisureWork: Bool {
    guard failure == nil, let file else { return false }
    return snapshot != nil || mayCut || file.needsCommitLog || file.isTransferDue
      || file.isCheckpointDue
  }

  /// Move what is in the commit log alone when the thread has rested for this long.
  func watchQuiet(on thread: Loop, for time: Duration) {
    quietTime = time
    quiet = Timer(on: thread) { [weak self] in
      self?.attempt { file throws(JournalError) in try file.transferCommits() }
    }
  }

  /// Note that there is nothing to do at present.
  func rest() {
    if file?.hasPendingCommits == true { quiet?.start(after: quietTime) }
  }

  func perform(_ tasks: [JournalWriter.Task]) {
    var batches: [JournalBatch] = []
    func flush() {
      if !batches.isEmpty { append(batches) }
      batches = []
    }
    for task in tasks {
      if case .batch(let batch) = task {
        batches.append(batch)
        continue
      }
      flush()
      switch task {
      case .batch: break
      case .holdForSnapshot(let number): if failure == nil { held = (number, []) }
      case .snapshot(let head, let bytes, let number): begin(head, bytes, number)
      case .reopen: reopen()
      case .end(let revision, let done): end(revision, done)
      }
    }
    flush()
  }

  private func attempt(_ body: (JournalFile) throws(JournalError) -> Void) {
    guard failure == nil, let file else { return }
    do throws(JournalError) {
      try body(file)
    } catch {
      fail("\(error)")
    }
  }

  private func fail(_ reason: String) {
    failure = reason
    hasGap = true
    held = nil
    covered = nil
    snapshot = nil
    onNews(.failed(reason))
  }

  private func append(_ batches: [JournalBatch]) {
    if held != nil {
      held?.batches.append(contentsOf: batches)
      return
    }
    if hasGap {
      if failure == nil { covered = batches.last?.number ?? covered }
      return
    }
    attempt { file throws(JournalError) in
      if let what = place?.loss ?? logPlace?.loss { throw JournalError(.unreachable, what) }
      try file.append(batches)
      if let last = batches.last { onNews(.committed(through: last.number)) }
    }
  }

  private func begin(_ head: JournalSnapshot, _ bytes: [UInt8], _ number: UInt64?) {
    // A snapshot that was being encoded at an error, or at a later one, is older than the gap.
    guard number == held?.number, number != nil || !hasGap else { return }
    attempt { file throws(JournalError) in
      snapshot = (try file.beginSnapshot(head), bytes, bytes.indices)
    }
  }

  /// Do one piece of background work. Returns false when there is none.
  func work() -> Bool {
    guard hasLeisureWork else { return false }
    attempt { file throws(JournalError) in
      if let (id, bytes, rest) = snapshot {
        if !rest.isEmpty {
          let part = rest.prefix(JournalFile.partBytes)
          try file.addPart(id, bytes[part])
          snapshot?.rest = part.upperBound..<rest.upperBound
        } else {
          try file.finishSnapshot(id)
          snapshot = nil
          mayCut = true
          hasGap = false
          if let number = covered { onNews(.committed(through: number)) }
          covered = nil
          onNews(.snapshotKept(bytes: bytes.count))
          if let batches = held?.batches {
            held = nil
            if !batches.isEmpty { append(batches) }
          }
        }
      } else if file.needsCommitLog {
        file.prepareCommitLog()
      } else if mayCut {
        mayCut = try file.cut(limit: 2000, keeping: logged)
      } else if file.isTransferDue {
        try file.transferCommits()
      } else {
        try file.checkpointIfDue()
      }
    }
    return true
  }

  private func reopen() {
    // Open already: the healing snapshot could not be made, and is requested again.
    guard failure != nil else { return onNews(.reopened) }
    do throws(JournalError) {
      let file = try reopened()
      try file.probe()
      if let what = place?.loss { throw JournalError(.unreachable, what) }
      logPlace = FilePlace(path: file.path + "-wal")
      failure = nil
      onNews(.reopened)
    } catch {
      failure = "\(error)"
      onNews(.stillFailing("\(error)"))
    }
  }

  /// Open the file for the first time, or reopen it.
  private func reopened() throws(JournalError) -> JournalFile {
    if let file {
      try file.reopen()
      return file
    }
    guard let opening else { throw JournalError(.failed, "there is no journal") }
    let opened = try opening.open()
    file = opened
    place = FilePlace(path: opened.path)
    return opened
  }

  private func end(_ revision: UInt64, _ done: @Sendable (JournalWriter.RunEnd) -> Void) {
    let isKept = failure == nil && !hasGap
    // A file with a gap has not reached that revision: the run counts as crashed.
    if !hasGap { attempt { file throws(JournalError) in try file.endRun(revision: revision) } }
    file?.close()
    done(!isKept ? .changesLost : failure == nil ? .noted : .unnoted)
    failure = failure ?? "the daemon has stopped"
  }
}

/// The path and the identity of a file at its opening: SQLite would go on writing to a removed one.
private struct FilePlace {
  let path: String
  private let identity: FileIdentity?

  init(path: String) {
    self.path = path
    identity = FileIdentity(path)
  }

  /// The reason that the path no longer leads to the file; nil if it does. One system call.
  var loss: String? {
    guard let found = FileIdentity(path) else {
      return "\(path) has vanished. Put it back. Until then the state is in memory alone: "
        + "'lockstep export' saves it."
    }
    guard found == identity else {
      return "\(path) has been replaced by another file. Put it back. Until then the state is in "
        + "memory alone: 'lockstep export' saves it."
    }
    return nil
  }
}
