import EventLoop
import Glibc
import Journal
import Sessions

// Theory of operation
//
// The journal has a thread of its own (a loop without sockets). Whoever adds a task wakes it unless
// it is awake. Awake, it takes all tasks there are: batches that stand together become one
// transaction, so that while the disk synchronises one turn, the turns behind it gather (group
// commit). What can wait (a part of a snapshot, a slice of what it makes superfluous, a checkpoint)
// is done one piece at a time, each behind the batches that have come meanwhile.

/// Keeps what the server wants to be kept.
final class JournalWriter: Sendable {
  enum Task: Sendable {
    case batch(JournalBatch)
    /// What follows must stay behind a snapshot that is being encoded.
    case holdForSnapshot
    case snapshot(JournalSnapshot, parts: [[UInt8]])
    case reopen
    /// The daemon stops at this revision. The answer says whether all is kept.
    case end(revision: UInt64, @Sendable (Bool) -> Void)
  }

  private struct Inbox {
    var tasks: [Task] = []
    var isAwake = false
  }

  private let inbox = Locked(Inbox())
  private let thread: Loop
  private let worker: Worker

  /// Own a journal from now on: nobody else uses it any more. `onNews` is called on the journal's
  /// thread.
  init(
    _ file: JournalFile, onNews: @escaping @Sendable (JournalNews) -> Void
  ) throws(LoopError) {
    thread = try Loop.startThread(name: "journal")
    worker = Worker(file, onNews)
  }

  func add(_ task: Task) {
    let mustWake = inbox.withLock { inbox in
      inbox.tasks.append(task)
      defer { inbox.isAwake = true }
      return !inbox.isAwake
    }
    if mustWake { thread.execute { self.work() } }
  }

  /// End the thread, once what it has been given is done.
  func close() { thread.stop() }

  /// On the journal's thread.
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
        return
      }
    }
  }
}

/// What runs on the journal's thread.
///
/// Unchecked: only that thread uses it, and the file in it, after it has been made.
private final class Worker: @unchecked Sendable {
  private let file: JournalFile
  private let onNews: @Sendable (JournalNews) -> Void
  /// Why nothing is written until the file is opened anew.
  private var failure: String?
  /// Batches that must stay behind a snapshot on its way.
  private var held: [JournalBatch]?
  private var snapshot: (id: JournalSnapshotID, parts: [[UInt8]], next: Int, bytes: Int)?
  private var mayCut = false
  private let place: FilePlace

  init(_ file: JournalFile, _ onNews: @escaping @Sendable (JournalNews) -> Void) {
    self.file = file
    self.onNews = onNews
    place = FilePlace(path: file.path)
  }

  var hasLeisureWork: Bool {
    failure == nil && (snapshot != nil || mayCut || file.isCheckpointDue)
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
      case .holdForSnapshot: if failure == nil { held = [] }
      case .snapshot(let head, let parts): begin(head, parts)
      case .reopen: reopen()
      case .end(let revision, let done): end(revision, done)
      }
    }
    flush()
  }

  private func attempt(_ body: () throws(JournalError) -> Void) {
    guard failure == nil else { return }
    do throws(JournalError) {
      try body()
    } catch {
      fail("\(error)")
    }
  }

  private func fail(_ reason: String) {
    failure = reason
    held = nil
    snapshot = nil
    onNews(.failed(reason))
  }

  private func append(_ batches: [JournalBatch]) {
    if held != nil {
      held?.append(contentsOf: batches)
      return
    }
    attempt { () throws(JournalError) in
      if let what = place.isLost { throw JournalError(.unreachable, what) }
      try file.append(batches)
      if let last = batches.last { onNews(.committed(through: last.number)) }
    }
  }

  private func begin(_ head: JournalSnapshot, _ parts: [[UInt8]]) {
    attempt { () throws(JournalError) in
      let bytes = parts.reduce(0) { $0 + $1.count }
      snapshot = (try file.beginSnapshot(head), parts, 0, bytes)
    }
  }

  /// Do one piece of what can wait. Returns false when there is none.
  func work() -> Bool {
    guard hasLeisureWork else { return false }
    attempt { () throws(JournalError) in
      if var pending = snapshot {
        if pending.next < pending.parts.count {
          try file.addPart(pending.id, pending.parts[pending.next])
          pending.parts[pending.next] = []
          pending.next += 1
          snapshot = pending
        } else {
          try file.finishSnapshot(pending.id)
          snapshot = nil
          mayCut = true
          onNews(.snapshotKept(bytes: pending.bytes))
          if let batches = held {
            held = nil
            if !batches.isEmpty { append(batches) }
          }
        }
      } else if mayCut {
        mayCut = try file.cut(limit: 2000)
      } else {
        try file.checkpointIfDue()
      }
    }
    return true
  }

  private func reopen() {
    guard failure != nil else { return }
    do throws(JournalError) {
      try file.reopen()
      try file.probe()
      if let what = place.isLost { throw JournalError(.unreachable, what) }
      failure = nil
      onNews(.reopened)
    } catch {
      failure = "\(error)"
      onNews(.stillFailing("\(error)"))
    }
  }

  private func end(_ revision: UInt64, _ done: @Sendable (Bool) -> Void) {
    attempt { () throws(JournalError) in try file.endRun(revision: revision) }
    file.close()
    done(failure == nil)
    failure = failure ?? "the daemon has stopped"
  }
}

/// Whether a path still leads to the file that was opened: SQLite would go on writing to one that
/// has been removed.
private struct FilePlace {
  let path: String
  private let identity: (device: UInt64, inode: UInt64)?

  init(path: String) {
    self.path = path
    identity = Self.identity(path)
  }

  private static func identity(_ path: String) -> (device: UInt64, inode: UInt64)? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    return (UInt64(status.st_dev), UInt64(status.st_ino))
  }

  /// What is wrong; nil if it does. One system call.
  var isLost: String? {
    guard let found = Self.identity(path) else {
      return "\(path) has vanished. Put it back, or restart the daemon to begin anew."
    }
    guard let identity, identity == found else {
      return "\(path) has been replaced by another file. Put it back, or restart the daemon."
    }
    return nil
  }
}
