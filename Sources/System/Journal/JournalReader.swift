import CSQLite
import Lockstep
import Records
import Values
import Wire

/// A journal open for reading. Used by one thread at a time.
///
/// Every function reads the file again, so that it sees what has been written since. None of them
/// trusts the file: reading damaged data throws a `JournalError` that names what is damaged.
public class JournalReader {
  var connection: Connection
  /// The path of the file.
  public let path: String
  /// Whether closing leaves the write-ahead log as it is.
  private let keepsLog: Bool
  /// Whether what only the commit log has is read, too.
  var readsCommits = true

  init(_ connection: Connection, path: String, keepsLog: Bool = false) {
    self.connection = connection
    self.path = path
    self.keepsLog = keepsLog
  }

  /// Open a journal for reading: a file, or the directory of one. A daemon may go on writing it. A
  /// copy works too, with its write-ahead log beside it if it has one.
  ///
  /// Nothing is changed or locked; if there is a write-ahead log without an index (`-shm`), SQLite
  /// makes one. O(1).
  public convenience init(reading name: String) throws(JournalError) {
    let path = try JournalDirectory.file(at: name)
    try JournalDirectory.checkContents(path)
    // A writer of the file has a log beside it. Without one the file does not change; `immutable`
    // says so to SQLite, which would otherwise make files.
    let isStill = try !JournalDirectory.exists(path + "-wal")
    let connection = try Connection(
      "file:\(Self.escaped(path))" + (isStill ? "?immutable=1" : ""), path: path,
      flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, vfs: nil)
    do throws(JournalError) {
      try connection.checkKind()
      try connection.execute("PRAGMA temp_store = MEMORY")
    } catch {
      connection.close()
      throw error
    }
    self.init(connection, path: path)
  }

  /// Open the journal of a directory that this process has locked (`JournalLock`), on a full disk:
  /// nothing is written, not even an index of the write-ahead log. O(1).
  public convenience init(withoutRoomIn directory: String) throws(JournalError) {
    let path = try JournalDirectory.file(at: directory)
    try JournalDirectory.checkContents(path)
    let connection = try Connection(path, path: path, flags: SQLITE_OPEN_READWRITE, vfs: nil)
    do throws(JournalError) {
      // Before the log is read, so that the index is in this process's memory.
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY")
      try connection.checkKind()
    } catch {
      connection.close(keepingLog: true)
      throw error
    }
    self.init(connection, path: path, keepsLog: true)
  }

  /// A path escaped for a URI.
  private static func escaped(_ path: String) -> String {
    // Not `replacing(_:with:)`, which would link regular expressions: 1.5 MB.
    path.unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case "%": escaped += "%25"
      case "?": escaped += "%3f"
      case "#": escaped += "%23"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
  }

  /// Close the file. Later calls throw.
  public func close() { connection.close(keepingLog: keepsLog) }

  /// Run `body` on one unchanging view of the journal, while others may write. A long read keeps the
  /// write-ahead log from being restarted: it grows. O(the commit log), which is small.
  public func reading<R>(_ body: () throws(JournalError) -> R) throws(JournalError) -> R {
    if connection.isInTransaction { return try body() }
    // Before SQLite's view begins: what leaves the log goes there.
    let commits = readsCommits ? try CommitRecords(beside: path) : nil
    return try connection.reading { () throws(JournalError) in
      if let commits { try show(commits) }
      return try body()
    }
  }

  // MARK: Contents

  /// Epoch and seed; nil when the journal has none yet.
  public func identity() throws(JournalError) -> JournalIdentity? { try origin()?.identity }

  /// Everything but the state's bytes and the rows. O(runs + sessions of the snapshot).
  public func contents() throws(JournalError) -> JournalContents {
    try reading { () throws(JournalError) in
      guard let origin = try origin() else { throw noIdentity }
      let kept = try snapshot(origin)
      let runs = try runs(origin)
      return JournalContents(
        identity: origin.identity, runs: runs, head: try head(origin, kept?.head, runs),
        snapshot: kept?.head, snapshotBytes: kept?.byteCount ?? 0,
        sessionCount: max(
          kept?.head.sessionCount ?? 0,
          try connection.number("SELECT max(number) FROM session").map(UInt64.init(bitPattern:))
            ?? 0))
    }
  }

  /// The revision with which the file ends by itself, without the commit log: what a recovery can go
  /// back to when that does not fit. Nil if the file cannot be read.
  var ownRevision: UInt64? {
    let former = readsCommits
    readsCommits = false
    defer { readsCommits = former }
    return try? contents().head.revision
  }

  var noIdentity: JournalError {
    JournalError(
      .corrupt,
      "\(path): the journal has no epoch: it was made and never used. Move it away to begin anew.")
  }

  /// The one row of `journal`.
  struct Origin {
    var identity: JournalIdentity
    var cutSequence: UInt64
    var cutSeal: UInt64

    var seal: UInt64 {
      var seal = Seal(epoch: identity.epoch)
      for word in [identity.epoch, identity.seed.rawValue, cutSequence, cutSeal] { seal.add(word) }
      return seal.value
    }
  }

  func origin() throws(JournalError) -> Origin? {
    let statement = try connection.statement(
      "SELECT epoch, seed, cut_sequence, cut_seal, seal FROM journal")
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    let origin = Origin(
      identity: JournalIdentity(
        epoch: statement.unsigned(0), seed: HashSeed(statement.unsigned(1))),
      cutSequence: statement.unsigned(2), cutSeal: statement.unsigned(3))
    guard origin.seal == statement.unsigned(4) else { throw damaged("the epoch and the seed") }
    return origin
  }

  func damaged(_ what: String) -> JournalError {
    JournalError(
      .corrupt, "\(path): damaged: \(what) (the seal does not fit).",
      advice: JournalError.repair(path))
  }

  func contradiction(_ what: String) -> JournalError {
    JournalError(.corrupt, "\(path): \(what).", advice: JournalError.repair(path))
  }

  // MARK: Runs

  /// No counter gets this far: the numbers after it could not be counted.
  private static var countLimit: UInt64 { 1 << 62 }

  /// The runs in ascending order. With `isLenient`, damaged runs are skipped.
  func runs(
    _ origin: Origin, isLenient: Bool = false
  ) throws(JournalError) -> [JournalContents.Run] {
    var schemas: [Int64: [UInt8]] = [:]
    var seal = Seal(epoch: origin.identity.epoch)
    let schema = try connection.statement("SELECT id, bytes, seal FROM schema")
    defer { schema.reset() }
    while try schema.step() {
      seal.begin()
      seal.add(schema.bytes(1))
      guard seal.value == schema.unsigned(2) else {
        if isLenient { continue }
        throw damaged("schema \(schema.integer(0)) of the feature")
      }
      schemas[schema.integer(0)] = Array(schema.bytes(1))
    }
    var runs: [JournalContents.Run] = []
    let statement = try connection.statement(
      "SELECT run, base, time, began, ended, schema, seal FROM run ORDER BY run")
    defer { statement.reset() }
    while try statement.step() {
      let id = statement.integer(5)
      let run = JournalContents.Run(
        run: JournalRun(run: statement.unsigned(0), base: statement.unsigned(1)),
        time: Timestamp(nanoseconds: statement.integer(2)), began: statement.unsigned(3),
        ended: statement.optionalUnsigned(4), schema: schemas[id] ?? [])
      let isPossible = [run.run.run, run.run.base, run.began, run.ended ?? 0].allSatisfy {
        $0 < Self.countLimit
      }
      guard isPossible, Self.seal(run, schema: id, &seal) == statement.unsigned(6),
        schemas[id] != nil
      else {
        if isLenient { continue }
        throw damaged("run \(run.run.run)")
      }
      runs.append(run)
    }
    return runs
  }

  static func seal(_ run: JournalContents.Run, schema: Int64, _ seal: inout Seal) -> UInt64 {
    seal.begin()
    seal.add(run.run.run)
    seal.add(run.run.base)
    seal.add(run.time.nanoseconds)
    seal.add(run.began)
    seal.add(run.ended)
    seal.add(schema)
    return seal.value
  }

  private func head(
    _ origin: Origin, _ snapshot: JournalSnapshot?, _ runs: [JournalContents.Run]
  ) throws(JournalError) -> JournalContents.Head {
    let last = try connection.statement(
      "SELECT sequence, coalesce(turn, revision) FROM log ORDER BY sequence DESC LIMIT 1")
    defer { last.reset() }
    var head = JournalContents.Head(
      run: runs.last?.run.run ?? 0,
      revision: max(snapshot?.revision ?? 0, runs.last?.ended ?? 0),
      sequence: max(snapshot?.sequence ?? 0, origin.cutSequence),
      base: try base(behind: snapshot))
    if try last.step() {
      head.sequence = max(head.sequence, last.unsigned(0))
      head.revision = max(head.revision, last.unsigned(1))
    }
    return head
  }

  /// The revision of the newest stored change.
  private func base(behind snapshot: JournalSnapshot?) throws(JournalError) -> UInt64? {
    let sequence = snapshot.map { Int64(bitPattern: $0.sequence) } ?? -1
    let packed = try connection.hasPacks() ? "changed" : "NULL"
    let newest = try connection.number(
      """
      SELECT iif(patch IS NULL, \(packed), revision) FROM log
      WHERE (patch IS NOT NULL OR \(packed) IS NOT NULL) AND sequence > ?
      ORDER BY sequence DESC LIMIT 1
      """, sequence)
    return newest.map { UInt64(bitPattern: $0) } ?? snapshot?.base
  }
}
