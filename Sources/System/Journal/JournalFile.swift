import CSQLite
import Glibc
import Records
public import Wire

// Theory of operation
//
// One transaction holds all that a turn of the loop brought, or several turns. SQLite writes it to
// the write-ahead log and, with `.sync`, synchronises that file before `append` returns.
//
// A checkpoint copies the log into the file proper: it writes up to 4 MB and synchronises twice,
// and no commit should wait for it. SQLite's automatic checkpoint would run inside a commit, and
// would not report errors. So it is off, and the owner of the journal calls `checkpointIfDue` after
// `append`, when the commits have been announced.
//
// After an error nothing is tried again. A page that could not be synchronised is clean to the
// kernel, and the next `fsync` would succeed without it. Everything throws until `reopen`, which
// copies the write-ahead log, as far as it can be read, into a new file that is synchronised as a
// whole: nothing then rests on pages of which the kernel may have lost track.
//
// A small commit goes to a log of our own first (`CommitLog`), and to SQLite later.
//
// SQLite trusts the files that it finds: a log that is missing, or whose head is lost, counts as
// empty. So the durable position is recorded in a file beside the journal (`MarkerFile`) and
// compared when the journal is opened; and each commit checks that the log is as the last one left
// it.

/// A journal open for writing: the one process that has locked its directory stores there what its
/// daemon must know after a restart.
///
/// Used by one thread at a time; it may be handed to another. Every function blocks until the disk
/// has done its part. Once a write has failed, all writing functions throw until `reopen` has
/// succeeded.
public final class JournalFile: JournalReader {
  /// The crashes that appended data survives.
  public enum Mode: Sendable {
    /// A crash of the process and one of the machine (`synchronous=FULL`).
    case sync
    /// A crash of the process; one of the machine loses the last seconds (`synchronous=NORMAL`).
    case async
  }

  public let mode: Mode
  var directory: JournalDirectory
  let vfs: String?
  /// The marker file beside the journal, which outlives the process; nil while a journal is made
  /// from another one.
  public let marker: MarkerFile?
  /// The repair that was made to the write-ahead log at opening, for the administrator.
  public private(set) var repair: String?
  // Used by one thread at a time, and each of these is read or changed at an instant, by what runs no code of
  // others: no two accesses can overlap, and their checks took a tenth of a durable action.
  /// The write-ahead log as the last commit left it.
  @exclusivity(unchecked) private var log: LogWatch

  // Cached contents of the file, so that writing need not read.
  @exclusivity(unchecked) var state = WritingState()
  /// The log that small commits go to first; nil until `prepareCommitLog`, and with `.async`.
  @exclusivity(unchecked) var commits: CommitLog?
  /// Whether the commit log could not be made since the file was opened.
  @exclusivity(unchecked) var lacksCommitLog = false
  /// The error that forbids writing until the file is reopened.
  @exclusivity(unchecked) private(set) var broken: JournalError?
  /// Whether the system may have forgotten pages of the write-ahead log.
  private var needsNewLog = false
  private var isClosed = false
  /// Pages of deleted rows that the file may hold beyond three times the pages in use: a journal
  /// grows and is cut in turns, and should reuse free pages when it grows again. 16 MiB.
  package var spareFreePages: Int64 = 4096

  /// Frames in the write-ahead log at which a checkpoint is due: 4 MB, which is written and
  /// synchronised in some milliseconds, and read at a start in negligible time.
  package var checkpointFrames = 1000
  /// Frames in the log at which a checkpoint is retried after a reader was in the way.
  private var nextCheckpoint = 0

  /// Open the journal in a directory, and lock it for this process. `create` makes directory and
  /// journal if they are missing; the directory's parent must exist.
  ///
  /// O(sessions), and up to 4 MB of the write-ahead log are read. The rows are not checked: an
  /// error in them is found when they are read.
  public convenience init(
    directory: String, mode: Mode, create: Bool
  ) throws(JournalError) {
    try self.init(directory: directory, mode: mode, create: create, vfs: nil)
  }

  package init(
    directory name: String, mode: Mode, create: Bool, vfs: String?
  ) throws(JournalError) {
    directory = try JournalDirectory(name, create: create)
    self.mode = mode
    self.vfs = vfs
    let path = directory.file
    log = LogWatch(path + "-wal")
    let isThere = try JournalDirectory.checkFile(path)
    guard isThere || create else {
      throw JournalError(.unreachable, "\(path): there is no journal. Name the directory of one.")
    }
    let marker = try MarkerFile(directory: directory.path)
    self.marker = marker
    if isThere {
      try JournalDirectory.checkContents(path)
      repair = try Self.restoreLog(of: path, in: directory)
    } else {
      try Self.makeFirst(path, in: directory, marker, vfs)
    }
    super.init(try Self.open(path, mode, vfs), path: path)
    do throws(JournalError) {
      if mode == .sync { try checkLog(isMarked: marker.durable != nil) }
      try load()
      try restoreCommits()
      try checkDurable(marker)
    } catch {
      // Keep the log: it may be the only remains of the missing data.
      connection.close(keepingLog: true)
      throw error
    }
  }

  /// Open a draft in a directory that is locked already.
  init(_ directory: consuming JournalDirectory, draft path: String) throws(JournalError) {
    self.directory = directory
    (mode, vfs, marker) = (.sync, nil, nil)
    log = LogWatch(path + "-wal")
    super.init(try Self.open(path, mode, nil), path: path)
  }

  /// Make the journal file of a directory that has none.
  private static func makeFirst(
    _ path: String, in directory: borrowing JournalDirectory, _ marker: MarkerFile, _ vfs: String?
  ) throws(JournalError) {
    // SQLite would take the frames of the old log into the new file.
    if JournalDirectory.size(path + "-wal") > 0 {
      throw JournalError(
        .unreachable,
        "\(path): there is no journal, and its write-ahead log (\(path)-wal) is there: both belong "
          + "together. Put the journal back, or move the log away to begin anew.")
    }
    let draft = path + ".new"
    try make(draft, vfs)
    marker.clearDurable()
    try directory.rename(draft, to: path)
  }

  /// Make a new file, in place of the remains of an earlier attempt.
  static func make(_ draft: String, _ vfs: String?) throws(JournalError) {
    for suffix in ["", "-journal", "-wal", "-shm"] { unlink(draft + suffix) }
    try JournalDirectory.makeFile(draft)
    let connection = try Connection(
      draft, path: draft, flags: SQLITE_OPEN_READWRITE, vfs: vfs)
    defer { connection.close() }
    try connection.execute(JournalSchema.layout)
    try connection.execute("BEGIN; \(JournalSchema.tables) COMMIT;")
    // The mode is a property of the file; closing leaves no log behind.
    try connection.execute("PRAGMA journal_mode = WAL")
  }

  private static func open(
    _ path: String, _ mode: Mode, _ vfs: String?
  ) throws(JournalError) -> Connection {
    for suffix in ["-wal", "-shm"] { _ = try JournalDirectory.checkFile(path + suffix) }
    let connection = try Connection(path, path: path, flags: SQLITE_OPEN_READWRITE, vfs: vfs)
    do throws(JournalError) {
      try connection.checkKind()
      try connection.configure(mode)
      try connection.renewLayout()
    } catch {
      connection.close(keepingLog: true)
      throw error
    }
    return connection
  }

  /// Whether a state directory has a journal.
  public static func exists(_ directory: String) throws(JournalError) -> Bool {
    try JournalDirectory.exists(directory + "/journal.sqlite")
  }

  /// Whether a session has been introduced, and not been forgotten. O(1).
  public func knows(_ session: SessionToken) -> Bool { state.numbers[session] != nil }

  /// Read the `state` that writing needs.
  func load() throws(JournalError) {
    state = WritingState()
    guard let origin = try origin() else { return }
    let contents = try contents()
    state.identity = origin.identity
    state.chain =
      try connection.number("SELECT seal FROM log ORDER BY sequence DESC LIMIT 1")
      .map { UInt64(bitPattern: $0) } ?? origin.cutSeal
    state.sequence = contents.head.sequence
    state.base = contents.head.base
    state.revision = contents.head.revision
    state.run = contents.runs.last
    for (session, _) in try liveSessions(origin) {
      state.numbers[session.token] = session.number
    }
  }

  /// Close the file and release the directory. Committed data stays; both logs are emptied if
  /// possible.
  public override func close() {
    // If that is impossible, they stay in the commit log.
    try? transferCommits()
    connection.close(keepingLog: broken != nil || log.damage != nil)
    directory.release()
    isClosed = true
  }

  deinit { connection.close(keepingLog: broken != nil || log.damage != nil) }

  /// The value of a PRAGMA of the connection.
  package func setting(_ name: String) throws(JournalError) -> String {
    try connection.text("PRAGMA \(name)")
  }

  /// Whatever is read of the file has what was in the commit log alone.
  public override func reading<R>(
    _ body: () throws(JournalError) -> R
  ) throws(JournalError) -> R {
    if !connection.isInTransaction { try transferCommits() }
    return try connection.reading(body)
  }

  // MARK: After an error

  /// Reopen the file after an error. Nothing that failed is retried: read `contents` to see what is
  /// stored. O(sessions), and after an error of the disk a copy of the write-ahead log.
  public func reopen() throws(JournalError) {
    guard !isClosed else { throw defect("it has been closed") }
    // What is not in SQLite is read again from the commit log.
    state.pending = []
    (commits, lacksCommitLog, readsCommits) = (nil, false, true)
    // Another program may have removed the log, which we still have open.
    if !needsNewLog { try? connection.checkpoint() }
    connection.close(keepingLog: true)
    if needsNewLog { try renewLog() }
    connection = try Self.open(path, mode, vfs)
    log = LogWatch(path + "-wal")
    try load()
    do throws(JournalError) {
      try restoreCommits()
    } catch  where error.kind == .corrupt {
      // What the commit log goes on from is lost. The caller has it in memory, and keeps it anew when
      // it sees what is stored; should this process end before, the next one refuses to start.
      readsCommits = false
    }
    needsNewLog = false
    broken = nil
  }

  /// Replace the write-ahead log by a synchronised copy.
  private func renewLog() throws(JournalError) {
    let (log, draft) = (path + "-wal", path + "-wal.new")
    // The index describes the old log.
    unlink(path + "-shm")
    guard try JournalDirectory.checkFile(log) else { return }
    unlink(draft)
    try JournalDirectory.copy(log, to: draft)
    try directory.rename(draft, to: log)
  }

  /// Commit something small, to test whether that is possible.
  public func probe() throws(JournalError) {
    try write { () throws(JournalError) in
      try connection.run("UPDATE journal SET probes = probes + 1")
    }
    try checkpointIfDue()
  }

  /// Run `body` as one transaction, behind what is in the commit log alone. After an error the journal
  /// must be reopened.
  func write<R>(_ body: () throws(JournalError) -> R) throws(JournalError) -> R {
    try checkUsable()
    return try noting { () throws(JournalError) in
      try checkLogFile()
      let result = try connection.transaction { () throws(JournalError) in
        try insertPending()
        return try body()
      }
      // Check again: damage between the first check and the commit would never be noticed.
      try checkLogFile()
      log.note(frames: connection.logFrames)
      state.pending = []
      commits?.restart()
      return result
    }
  }

  /// Make sure that the write-ahead log is as the last commit left it.
  func checkLogFile() throws(JournalError) {
    guard let damage = log.damage else { return }
    // SQLite does not verify what it copies into the file.
    needsNewLog = true
    throw JournalError(.failed, damage)
  }

  func checkUsable() throws(JournalError) {
    if let broken {
      throw JournalError(
        broken.kind,
        "\(path): not written since an error; it must be opened anew. The error: \(broken)")
    }
  }

  /// Run `body`, and remember its error.
  func noting<R>(_ body: () throws(JournalError) -> R) throws(JournalError) -> R {
    do throws(JournalError) {
      return try body()
    } catch {
      broken = error
      // Other errors are reported before anything is written, and leave nothing in doubt.
      needsNewLog = needsNewLog || connection.lastFailure & 0xff == SQLITE_IOERR
      throw error
    }
  }

  // MARK: Checkpoints

  /// Whether the write-ahead log has grown so much that a checkpoint is due.
  public var isCheckpointDue: Bool { connection.logFrames >= max(checkpointFrames, nextCheckpoint) }

  /// Checkpoint the write-ahead log into the file if that is due: up to 4 MB and two
  /// synchronisations. Call it after `append`, when no commit waits. While a program reads the
  /// file, the log grows: the next checkpoint is due when it has grown by as much again.
  public func checkpointIfDue() throws(JournalError) {
    guard isCheckpointDue else { return }
    try checkpoint()
  }

  /// Checkpoint the write-ahead log into the file, as far as no reader needs it: the copied part
  /// then no longer depends on the log.
  public func checkpoint() throws(JournalError) {
    try checkUsable()
    try noting { () throws(JournalError) in
      try checkLogFile()
      try connection.checkpoint()
      // Once all of it is in the file, SQLite begins the log anew.
      log.note(frames: connection.logFrames)
    }
    nextCheckpoint = connection.logFrames == 0 ? 0 : connection.logFrames + checkpointFrames
  }
}

/// The cached contents of a file that is being written.
struct WritingState {
  var identity: JournalIdentity?
  /// The newest run.
  var run: JournalContents.Run?
  /// The seal of the last row in SQLite.
  var chain: UInt64 = 0
  /// The sequence number of the last action that is stored or that the snapshot covers.
  var sequence: UInt64 = 0
  /// The revision at the end of the last stored turn.
  var revision: UInt64 = 0
  /// The revision of the newest stored change.
  var base: UInt64?
  /// Batches that are stored in the commit log alone.
  var pending: [JournalBatch] = []
  /// The numbers of the sessions that are not forgotten.
  var numbers: [SessionToken: UInt64] = [:] {
    didSet { lastNumber = nil }
  }
  /// The one that was asked for last: most actions of a turn are of few sessions.
  var lastNumber: (token: SessionToken, number: UInt64)?
  var snapshot: SnapshotDraft?
  /// The last row that need not stay, of those that a snapshot covers when so many actions are kept.
  var cut: (covered: Int64, kept: Int, last: Int64?)?
}

extension Connection {
  /// Throw if the file is not a journal, or is of a version that this one does not know.
  func checkKind() throws(JournalError) {
    let (id, version) = (
      try number("PRAGMA application_id"), try number("PRAGMA user_version") ?? 0
    )
    guard id == JournalSchema.applicationID else {
      throw JournalError(
        .foreign,
        "\(path): a database of SQLite, and not a journal. Move it away, or name another directory."
      )
    }
    guard version <= JournalSchema.version else {
      throw JournalError(
        .newer,
        "\(path): written by a newer version (format \(version), and this one knows up to "
          + "\(JournalSchema.version)). Use the newer version.")
    }
    guard version >= JournalSchema.oldest,
      try number("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'") == 0
    else {
      throw JournalError(
        .corrupt, "\(path): not as a journal is laid out.", advice: JournalError.repair(path))
    }
  }

  /// Whether rows of the log may have packs: not in a file of the first version.
  func hasPacks() throws(JournalError) -> Bool {
    try number("PRAGMA user_version") ?? 0 >= 2
  }

  /// Bring a file of an older version to this one. O(1), one commit.
  func renewLayout() throws(JournalError) {
    if try number("PRAGMA user_version") == JournalSchema.version { return }
    let renewal =
      try hasPacks()
      ? "PRAGMA user_version = \(JournalSchema.version);" : JournalSchema.renewal
    try execute("BEGIN IMMEDIATE; \(renewal) COMMIT;")
  }

  /// Configure how the file is written, and check that the settings took effect.
  func configure(_ mode: JournalFile.Mode) throws(JournalError) {
    guard try text("PRAGMA journal_mode = WAL") == "wal" else {
      throw JournalError(
        .failed,
        "\(path): the write-ahead log cannot be used. Put the journal on a local file system.")
    }
    let level: Int64 = mode == .sync ? 2 : 1
    try execute(
      """
      PRAGMA synchronous = \(level);
      PRAGMA journal_size_limit = 16777216;
      PRAGMA secure_delete = FAST;
      PRAGMA temp_store = MEMORY;
      PRAGMA cell_size_check = ON;
      """)
    watchLog()
    try checkSettings(level)
  }

  /// Check the settings: an SQLite library may override them, and some do so silently.
  private func checkSettings(_ level: Int64) throws(JournalError) {
    let (found, log) = (try number("PRAGMA synchronous"), try text("PRAGMA journal_mode"))
    guard found == level, log == "wal" else {
      throw JournalError(
        .failed,
        "\(path): SQLite says synchronous=\(found ?? -1) and journal_mode=\(log), not "
          + "synchronous=\(level) and wal: what is committed would not be safe. "
          + "Use another build of SQLite.")
    }
  }
}
