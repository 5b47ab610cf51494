import CBOR
import Records
import Values
import Wire

// What goes to the commit log first, and from there to SQLite.
extension JournalFile {
  /// Whether the commit log is still to be made, which writes half a megabyte.
  public var needsCommitLog: Bool { mode == .sync && commits == nil && !lacksCommitLog }

  /// Make the commit log, so that small commits need not wait for SQLite. If it cannot be made, they
  /// do wait: the journal is none the worse.
  public func prepareCommitLog() {
    guard needsCommitLog, broken == nil else { return }
    do throws(JournalError) {
      commits = try CommitLog(beside: path, vfs: vfs)
    } catch {
      lacksCommitLog = true
    }
  }

  /// Whether anything is in the commit log alone.
  public var hasPendingCommits: Bool { !state.pending.isEmpty && broken == nil }

  /// Whether there is so much that it should go to SQLite when no commit waits.
  public var isTransferDue: Bool {
    hasPendingCommits && (commits?.end ?? 0) >= CommitLog.byteCount / 4
  }

  /// Move what is in the commit log alone to SQLite. One commit, if there is anything.
  public func transferCommits() throws(JournalError) {
    if hasPendingCommits { try write { () throws(JournalError) in } }
  }

  /// Store batches in the commit log. Returns false, and does nothing, if they must go to SQLite.
  func commitToLog(_ batches: [JournalBatch]) throws(JournalError) -> Bool {
    guard let commits, let identity = state.identity, let run = state.run,
      CommitLog.suits(batches)
    else { return false }
    commits.begin(
      CommitLogHead(
        epoch: identity.epoch, run: run.run.run, sequence: state.sequence, chain: state.chain))
    for index in batches.indices {
      let fits = try commits.add(batches[index]) { session throws(JournalError) in
        try number(of: session)
      }
      if !fits {
        commits.abandon()
        return false
      }
    }
    try noting { () throws(JournalError) in
      // What it goes on from is in the other log.
      try checkLogFile()
      if let damage = commits.damage { throw JournalError(.failed, damage) }
      try commits.commit()
    }
    state.pending += batches
    return true
  }

  /// Insert what is in the commit log alone, in the transaction that is open.
  func insertPending() throws(JournalError) {
    guard !state.pending.isEmpty, let identity = state.identity else { return }
    try insert(state.pending, identity)
  }

  /// Move what the commit log of an earlier process has, and SQLite has not, to SQLite. Does nothing if
  /// there is nothing.
  func restoreCommits() throws(JournalError) {
    guard let commits = try CommitRecords(beside: path), let unseen = try unseen(of: commits)
    else { return }
    try connection.transaction { () throws(JournalError) in try insert(unseen, into: "log") }
    try load()
  }

  /// The same for a journal that is about to be recovered, and then remove the log: its revisions may
  /// be given up. If they cannot be moved, the log is kept under another name.
  static func settleCommits(
    _ connection: Connection, _ path: String, in directory: borrowing JournalDirectory
  ) throws(JournalError) {
    let log = CommitLog.path(of: path)
    guard try JournalDirectory.checkFile(log) else { return }
    do throws(JournalError) {
      let reader = JournalReader(connection, path: path)
      if let commits = try CommitRecords(beside: path), let unseen = try reader.unseen(of: commits)
      {
        try connection.transaction { () throws(JournalError) in
          try reader.insert(unseen, into: "log")
        }
      }
      try directory.remove(log)
    } catch {
      guard error.kind == .corrupt else { throw error }
      try directory.rename(log, to: JournalDirectory.freeName(log + ".damaged"))
    }
  }
}

extension JournalReader {
  /// The records that a commit log has, and SQLite has not.
  struct UnseenCommits {
    fileprivate let identity: JournalIdentity
    fileprivate let records: [CommitRecords.Record]
    /// The last action that SQLite has, and the seal of the last row.
    fileprivate let (sequence, chain): (UInt64, UInt64)
  }

  /// What is to be added to the file, if anything. Throws if the log goes on from what is not there.
  func unseen(of commits: CommitRecords) throws(JournalError) -> UnseenCommits? {
    guard !commits.records.isEmpty, let origin = try origin(),
      origin.identity.epoch == commits.head.epoch
    else { return nil }
    let run = try connection.number("SELECT max(run) FROM run").map(UInt64.init(bitPattern:)) ?? 0
    // A later run began with all of it.
    if run > commits.head.run { return nil }
    let last = try connection.statement(
      """
      SELECT sequence, seal, coalesce(turn, revision) FROM main.log ORDER BY sequence DESC LIMIT 1
      """)
    defer { last.reset() }
    let hasRows = try last.step()
    let stored = hasRows ? last.unsigned(0) : origin.cutSequence
    let chain = hasRows ? last.unsigned(1) : origin.cutSeal
    let snapshot = try connection.statement(
      "SELECT sequence, revision FROM snapshot ORDER BY id DESC LIMIT 1")
    defer { snapshot.reset() }
    let hasSnapshot = try snapshot.step()
    let sequence = max(stored, hasSnapshot ? snapshot.unsigned(0) : 0)
    guard run == commits.head.run, commits.head.sequence <= sequence else {
      let revision = max(
        hasRows ? last.unsigned(2) : 0, hasSnapshot ? snapshot.unsigned(1) : 0)
      throw JournalError(
        .corrupt,
        "\(CommitLog.path(of: path)): goes on from action \(commits.head.sequence) of run "
          + "\(commits.head.run), and the journal ends with action \(sequence) of run \(run): its "
          + "write-ahead log (\(path)-wal) is missing or damaged, or it is an older copy.",
        advice: "Restore the newest of all three files; or give up what is missing with "
          + "`\(JournalError.recovery(of: path, to: revision))`.")
    }
    let unseen = UnseenCommits(
      identity: origin.identity, records: commits.records, sequence: sequence, chain: chain)
    return try isEmpty(unseen) ? nil : unseen
  }

  private func isEmpty(_ unseen: UnseenCommits) throws(JournalError) -> Bool {
    var count = 0
    try forEachRow(of: unseen) { _, _, _ throws(JournalError) in count += 1 }
    return count == 0
  }

  /// Call `body` with each row, what read it, and the digest if there is one behind it.
  private func forEachRow(
    of unseen: UnseenCommits,
    _ body: (JournalRow, RowPackReader, Digest?) throws(JournalError) -> Void
  ) throws(JournalError) {
    for record in unseen.records {
      var pack = RowPackReader()
      record.pack.withUnsafeBytes { pack.begin($0, count: record.count) }
      while pack.left > 0 {
        do throws(CBORError) {
          try pack.next()
        } catch {
          throw contradiction("a record of the commit log cannot be read: \(error)")
        }
        // The file has the session's number, and not its token.
        let token = pack.session.map { _ in SessionToken(high: 0, low: 0) }
        guard let row = pack.row(token: token, salt: unseen.identity.seed.rawValue) else {
          throw contradiction("an action of the commit log comes from nobody")
        }
        if row.sequence <= unseen.sequence { continue }
        try body(row, pack, pack.left == 0 ? record.digest : nil)
      }
    }
  }

  /// Insert them into a table of the columns of the log, in the transaction that is open.
  func insert(_ unseen: UnseenCommits, into table: String) throws(JournalError) {
    var writer = try RowWriter(
      connection, epoch: unseen.identity.epoch, chain: unseen.chain, table: table)
    try forEachRow(of: unseen) { row, pack, digest throws(JournalError) in
      let result = pack.bytes.withUnsafeBytes { bytes -> Result<Void, JournalError> in
        do throws(JournalError) {
          return .success(
            try withUnsafePointer(to: row) { row throws(JournalError) in
              try writer.write(
                row, bytes, session: pack.session, turn: pack.turn, digest: digest)
            })
        } catch {
          return .failure(error)
        }
      }
      try result.get()
    }
  }

  /// Have this transaction see the records that a commit log has beyond the file: `log` is then both.
  /// Nothing of it stays, and nothing is written to the file.
  func show(_ commits: CommitRecords) throws(JournalError) {
    guard let unseen = try unseen(of: commits) else { return }
    try connection.execute(
      """
      CREATE TEMP TABLE unseen AS SELECT * FROM main.log LIMIT 0;
      CREATE TEMP VIEW log AS SELECT * FROM main.log UNION ALL SELECT * FROM unseen;
      """)
    try insert(unseen, into: "temp.unseen")
  }
}
