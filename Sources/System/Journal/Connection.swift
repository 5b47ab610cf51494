import CSQLite
import Glibc

/// A connection to an SQLite file, with its prepared statements. Used by one thread at a time.
final class Connection {
  let path: String
  private var handle: OpaquePointer?
  private var statements: [String: Statement] = [:]
  /// Frames in the write-ahead log, as of the last commit.
  private(set) var logFrames = 0
  /// SQLite's code of the last error.
  private(set) var lastFailure: Int32 = SQLITE_OK

  /// Open a file that exists. `path` may be a URI when `flags` say so.
  init(_ name: String, path: String, flags: Int32, vfs: String?) throws(JournalError) {
    self.path = path
    // Used by one thread at a time, so SQLite need not lock; every code is an extended one.
    let flags = flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(name, &handle, flags, vfs)
    guard code == SQLITE_OK else {
      let error = failure("cannot be opened", code)
      close()
      throw error
    }
    try check(lockstep_defend(handle), "cannot be opened")
    // A person with `sqlite3` may lock the file for a moment; a longer lock is an error.
    try check(sqlite3_busy_timeout(handle, 1000), "cannot be opened")
  }

  deinit { close() }

  /// Close the connection. Its hold on the file is released in any case.
  func close(keepingLog: Bool = false) {
    guard let handle else { return }
    for statement in statements.values { statement.finish() }
    statements = [:]
    if keepingLog { _ = lockstep_keep_log_on_close(handle) }
    _ = sqlite3_close_v2(handle)
    self.handle = nil
  }

  private func opened() throws(JournalError) -> OpaquePointer {
    guard let handle else { throw JournalError(.failed, "\(path): the journal is closed.") }
    return handle
  }

  /// Count the frames of the write-ahead log, and turn off SQLite's automatic checkpoint: that is a
  /// hook too, which this one replaces.
  func watchLog() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = sqlite3_wal_hook(
      handle,
      { context, _, _, frames in
        if let context {
          Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().logFrames = Int(frames)
        }
        return SQLITE_OK
      }, context)
  }

  // MARK: Statements

  /// A cached statement, prepared once. Reset it after use.
  func statement(_ sql: String) throws(JournalError) -> Statement {
    if let statement = statements[sql] { return statement }
    let statement = try prepare(sql)
    statements[sql] = statement
    return statement
  }

  /// A statement for one use. Finish it after use.
  func prepare(_ sql: String) throws(JournalError) -> Statement {
    let handle = try opened()
    var pointer: OpaquePointer?
    try check(
      sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil),
      "does not answer as a journal does")
    guard let pointer else { throw JournalError(.failed, "\(path): nothing to do in \(sql)") }
    return Statement(pointer, self)
  }

  /// Run statements that give no rows.
  func execute(_ sql: String) throws(JournalError) {
    let handle = try opened()
    try check(sqlite3_exec(handle, sql, nil, nil, nil), "cannot be written")
  }

  /// Run a prepared statement that gives no rows.
  func run(_ sql: String, _ values: Int64?...) throws(JournalError) {
    let statement = try statement(sql)
    defer { statement.reset() }
    for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
    try statement.run()
  }

  /// The first column of the first row; nil when there is no row, or it is NULL.
  func number(_ sql: String, _ values: Int64?...) throws(JournalError) -> Int64? {
    let statement = try statement(sql)
    defer { statement.reset() }
    for (index, value) in values.enumerated() { statement.bind(Int32(index + 1), value) }
    guard try statement.step() else { return nil }
    return statement.optional(0)
  }

  /// The first column of the only row, as text.
  func text(_ sql: String) throws(JournalError) -> String {
    let statement = try prepare(sql)
    defer { statement.finish() }
    guard try statement.step() else { return "" }
    return statement.text(0)
  }

  /// How many rows the last statement changed.
  var changes: Int { Int(sqlite3_changes64(handle)) }

  /// Run `body` as one transaction: all of it is committed, or nothing.
  func transaction<R>(_ body: () throws(JournalError) -> R) throws(JournalError) -> R {
    try run("BEGIN IMMEDIATE")
    do throws(JournalError) {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  /// Whether a transaction has begun.
  var isInTransaction: Bool { handle.map { sqlite3_get_autocommit($0) == 0 } ?? false }

  /// Run `body` on one unchanging view of the file.
  func reading<R>(_ body: () throws(JournalError) -> R) throws(JournalError) -> R {
    if isInTransaction { return try body() }
    try run("BEGIN")
    defer { rollBack() }
    return try body()
  }

  private func rollBack() {
    guard let handle else { return }
    if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  /// Checkpoint: copy the write-ahead log into the file, as far as no reader needs it.
  func checkpoint() throws(JournalError) {
    let handle = try opened()
    var (frames, done): (Int32, Int32) = (0, 0)
    let code = sqlite3_wal_checkpoint_v2(
      handle, nil, SQLITE_CHECKPOINT_PASSIVE, &frames, &done)
    if code & 0xff == SQLITE_BUSY { return }
    try check(code, "cannot be written")
    if frames == done { logFrames = 0 }
  }

  // MARK: Errors

  func check(_ code: Int32, _ what: String) throws(JournalError) {
    if code != SQLITE_OK { throw failure(what, code) }
  }

  /// An error with SQLite's message and the system's.
  func failure(_ what: String, _ code: Int32) -> JournalError {
    lastFailure = code
    var text = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
    let standard = String(cString: sqlite3_errstr(code))
    if text != standard { text = "\(standard): \(text)" }
    let number = handle.map { sqlite3_system_errno($0) } ?? 0
    let isSystem = [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL].contains(code & 0xff)
    let system = isSystem && number != 0 ? ", \(SystemFailure(number))" : ""
    let isFull = isSystem && (number == ENOSPC || number == EDQUOT)
    let kind = isFull ? .full : Self.kind(of: code)
    return JournalError(
      kind, "\(path): \(what): \(text) (SQLite \(code)\(system)).",
      advice: Self.advice(kind, code, path))
  }

  private static func kind(of code: Int32) -> JournalError.Kind {
    switch code & 0xff {
    case SQLITE_FULL: .full
    case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .unreachable
    // A missing table or column.
    case SQLITE_CORRUPT, SQLITE_ERROR: .corrupt
    case SQLITE_NOTADB: .foreign
    default: .failed
    }
  }

  private static func advice(
    _ kind: JournalError.Kind, _ code: Int32, _ path: String
  ) -> String? {
    switch kind {
    case .full: "Make room on the file system; a daemon that runs tries again by itself."
    case .unreachable: "See to it that the file and its directory can be read and written."
    case .corrupt: JournalError.repair(path)
    case .foreign: "Move the file away, or name another directory."
    case .failed where code & 0xff == SQLITE_BUSY:
      "Another program writes to the file or holds it: let it end."
    case .failed: "Look for errors of the disk in the system's log; the file must be opened anew."
    case .locked, .newer: nil
    }
  }
}

/// An error number of the system, in words.
struct SystemFailure: CustomStringConvertible {
  let number: Int32
  init(_ number: Int32 = errno) { self.number = number }
  var description: String { "errno \(number): \(String(cString: strerror(number)))" }
}
