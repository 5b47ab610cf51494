import CSQLite
import Glibc
import Lockstep
import Records
import Values
import Wire

/// The result of going back to an earlier revision.
public struct JournalRecovery: Hashable, Sendable {
  /// The revision that the journal now ends with: the requested one, or the last stored one before
  /// it.
  public var revision: UInt64
  /// The path of the old file.
  public var backup: String
  /// The number of damaged runs, sessions and suspects, which are left out.
  public var lostCount: Int
}

extension JournalFile {
  /// Go back to a revision: everything after it is left out, and so is damaged data that is
  /// dispensable. No daemon may be using the journal.
  ///
  /// All sound data is written to a new file, which replaces the old one atomically at the end. The
  /// old file keeps all of its data, under another name: delete it when it is no longer needed.
  /// `UInt64.max` is the newest revision. Throws, and changes nothing, when the snapshot or a
  /// change before the revision is damaged. O(the file).
  public static func recover(
    directory name: String, to revision: UInt64
  ) throws(JournalError) -> JournalRecovery {
    let directory = try JournalDirectory(name, create: false)
    let path = directory.file
    do throws(JournalError) {
      try settle(path, to: revision, in: directory)
      return try recover(path, to: revision, in: directory)
    } catch {
      throw error.met(recovering: path)
    }
  }

  private static func recover(
    _ path: String, to revision: UInt64, in directory: consuming JournalDirectory
  ) throws(JournalError) -> JournalRecovery {
    let old = try JournalReader(reading: path)
    defer { old.close() }
    let source = try RecoverySource(old, revision)
    if let newest = try? old.contents().head.revision, revision > max(newest, source.sound),
      revision != .max
    {
      throw JournalError(
        .failed,
        "\(path): ends with revision \(newest): there is nothing to go back from. Name that or "
          + "an earlier revision.")
    }
    let draft = path + ".new"
    try make(draft, nil)
    let file = try JournalFile(directory, draft: draft)
    let lostCount = try file.write(source)
    let head = try file.contents().head
    try file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.connection.close()
    // All data must be in the new file, or the old file stays: a log would not be renamed with it.
    guard try !JournalDirectory.exists(draft + "-wal") else {
      throw JournalError(
        .failed,
        "\(draft): cannot be written as a whole. Make room on the file system; nothing has been "
          + "changed.")
    }

    let backup = try JournalDirectory.freeName(path + ".before-recovery-to-\(revision)")
    try file.directory.link(path, as: backup)
    // The discarded revisions are no longer expected.
    try MarkerFile(directory: file.directory.path).clearDurable()
    try file.directory.rename(draft, to: path)
    file.close()
    return JournalRecovery(revision: head.revision, backup: backup, lostCount: lostCount)
  }

  /// Copy the journal as it is, into its directory. Returns the copy's name. O(the file).
  ///
  /// The copy is complete: to restore it, rename it to the journal's name while no daemon runs.
  public func copy(suffix: String) throws(JournalError) -> String {
    let name = try JournalDirectory.freeName(path + suffix)
    try transferCommits()
    // Made before SQLite writes to it, so that only its owner may read it.
    try JournalDirectory.makeFile(name)
    do throws(JournalError) {
      let quoted = name.split(separator: "'", omittingEmptySubsequences: false)
      try connection.execute("VACUUM INTO '\(quoted.joined(separator: "''"))'")
      try directory.keep(name)
    } catch {
      unlink(name)
      throw error
    }
    return name
  }

  /// Checkpoint the write-ahead log into the file, as every start of a daemon does.
  private static func settle(
    _ path: String, to revision: UInt64, in directory: borrowing JournalDirectory
  ) throws(JournalError) {
    guard try JournalDirectory.checkFile(path) else {
      throw JournalError(.unreachable, "\(path): there is no journal. Name the directory of one.")
    }
    try JournalDirectory.checkContents(path)
    for suffix in ["-wal", "-shm"] { _ = try JournalDirectory.checkFile(path + suffix) }
    do throws(JournalError) {
      _ = try restoreLog(of: path, in: directory)
    } catch  where error.kind == .corrupt {
      // Recovery goes on from the file without its log.
    }
    // What cannot be recovered stays as it is, and so does its log.
    let reader = try JournalReader(reading: path)
    defer { reader.close() }
    try RecoverySource(reader, revision).check()
    reader.close()
    try keepDamagedLog(path + "-wal")
    let connection = try Connection(path, path: path, flags: SQLITE_OPEN_READWRITE, vfs: nil)
    defer { connection.close() }
    try connection.checkKind()
    try settleCommits(connection, path, in: directory)
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    guard try !JournalDirectory.exists(path + "-wal") else {
      throw JournalError(
        .failed, "\(path): another program has the file open. Let it end, and try again.")
    }
  }

  /// Copy a log that SQLite does not read to its end, because SQLite empties it.
  private static func keepDamagedLog(_ log: String) throws(JournalError) {
    let found = try WriteAheadLog(log)
    guard found.lacksHead || found.lostCommits > 0 else { return }
    try JournalDirectory.copy(log, to: try JournalDirectory.freeName(log + ".damaged"))
  }

  /// Write the sound data of another journal into this new one. Returns the number of entries left
  /// out.
  private func write(_ source: borrowing RecoverySource) throws(JournalError) -> Int {
    let identity = source.origin.identity
    try create(epoch: identity.epoch, seed: identity.seed)
    var lostCount = try copyRuns(source)
    lostCount += try copySessions(source, identity)
    if let snapshot = source.snapshot {
      let id = try beginSnapshot(snapshot.head)
      try source.reader.forEachPart(of: snapshot, source.origin) { part throws(JournalError) in
        try addPart(id, part)
      }
      try finishSnapshot(id)
    }
    try copyRows(source)
    lostCount += try copySuspects(source)
    return lostCount
  }

  private func copyRuns(_ source: borrowing RecoverySource) throws(JournalError) -> Int {
    let runs = try source.reader.runs(source.origin, isLenient: true)
    for run in runs {
      try begin(run: run.run, schema: run.schema, revision: run.began, time: run.time)
      // A run that ended after the revision counts as crashed there.
      if let ended = run.ended, ended <= source.revision { try endRun(revision: ended) }
    }
    let all = try source.reader.connection.number("SELECT count(*) FROM run") ?? 0
    return Int(all) - runs.count
  }

  /// Copy sessions, including forgotten ones: rows may name them. Later sessions are left out.
  private func copySessions(
    _ source: borrowing RecoverySource, _ identity: JournalIdentity
  ) throws(JournalError) -> Int {
    // Without the sessions, actions that are sent again are answered `outcomeUnknown`.
    guard
      let sessions = try readable({ () throws(JournalError) in
        try source.reader.sessions(source.origin)
      })
    else {
      return 1
    }
    try write { () throws(JournalError) in
      for (session, since, until) in sessions.sound where since <= source.sequence {
        try keep(session, since: since, until: until, identity, "REPLACE")
      }
    }
    return sessions.lostCount
  }

  private func copyRows(_ source: borrowing RecoverySource) throws(JournalError) {
    let identity = source.origin.identity
    var rows = try RowReader(
      source.reader, source.origin, after: source.snapshot?.head.sequence ?? 0, isLenient: true)
    defer { rows.finish() }
    var last = source.snapshot?.head.sequence ?? 0
    var more = true
    while more {
      more = try write { () throws(JournalError) in
        var writer = try RowWriter(connection, epoch: identity.epoch, chain: state.chain)
        defer { state.chain = writer.chain }
        for _ in 0..<1000 {
          // Read no further than necessary: the file may be damaged there.
          guard last < source.sequence, try rows.step(),
            rows.position.sequence <= source.sequence
          else { return false }
          last = rows.position.sequence
          try rows.read()
          try copy(rows.entry, session: rows.session, source.revision, &writer)
        }
        return true
      }
      try checkpointIfDue()
    }
  }

  private func copy(
    _ entry: JournalEntry, session: UInt64?, _ revision: UInt64, _ writer: inout RowWriter
  ) throws(JournalError) {
    var row = entry.row
    let isKnown =
      try connection.number(
        "SELECT 1 FROM session WHERE number = ?", session.map { Int64(bitPattern: $0) }) != nil
    if !isKnown { row.answer = nil }
    guard row.answer != nil || row.change != nil else { return }
    let result = entry.bytes.withUnsafeBytes { bytes -> Result<Void, JournalError> in
      do throws(JournalError) {
        return .success(
          try writer.write(
            &row, bytes, session: isKnown ? session : nil,
            turn: entry.turn.map { min($0, revision) },
            digest: entry.digest))
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  /// The result of reading a dispensable part of the file; nil if its pages are damaged.
  private func readable<R>(
    _ body: () throws(JournalError) -> R
  ) throws(JournalError) -> R? {
    do throws(JournalError) {
      return try body()
    } catch {
      if error.kind == .corrupt { return nil }
      throw error
    }
  }

  private func copySuspects(_ source: borrowing RecoverySource) throws(JournalError) -> Int {
    let identity = source.origin.identity
    guard
      let suspects = try readable({ () throws(JournalError) in
        try source.reader.suspects(source.origin)
      })
    else {
      return 1
    }
    try write { () throws(JournalError) in
      for (action, kills) in suspects.sound { try keep(action, kills: kills, identity) }
    }
    return suspects.lostCount
  }
}

extension JournalError {
  /// The error of a recovery that met it: the advice says to go back to a revision, which was tried.
  fileprivate func met(recovering path: String) -> JournalError {
    guard kind == .corrupt, advice == JournalError.repair(path) else { return self }
    let sound = JournalReader.fsck(path).soundRevision
    return JournalError(
      kind, problem,
      advice: (sound.map { "The newest revision to go back to is \($0), or restore" } ?? "Restore")
        + " the file from a backup.")
  }
}

/// The journal that a recovery reads.
private struct RecoverySource {
  let reader: JournalReader
  let origin: JournalReader.Origin
  let snapshot: JournalReader.PendingSnapshot?
  /// Nothing after this revision is kept.
  let revision: UInt64
  /// The last action to keep, and its revision.
  let sequence: UInt64
  let sound: UInt64

  /// Check that everything up to a revision is sound.
  init(_ reader: JournalReader, _ revision: UInt64) throws(JournalError) {
    guard let origin = try reader.origin() else { throw reader.noIdentity }
    let path = reader.path
    let snapshot = try reader.snapshot(origin, isLenient: true)
    guard snapshot != nil || origin.cutSequence == 0 else {
      throw JournalError(
        .corrupt,
        "\(path): the snapshot is missing that the changes go on from. Restore the file from a "
          + "backup.")
    }
    if let first = snapshot?.head.revision, revision < first {
      throw JournalError(
        .failed,
        "\(path): the journal begins with a snapshot of revision \(first): \(revision) is gone. "
          + "Name \(first) or a later revision, or restore the file from a backup.")
    }
    var sequence = snapshot?.head.sequence ?? 0
    var sound = snapshot?.head.revision ?? 0
    var rows = try RowReader(reader, origin, after: sequence)
    defer { rows.finish() }
    while true {
      do throws(JournalError) {
        guard try rows.step() else { break }
      } catch {
        // A damaged page hides even the number of its rows.
        guard error.kind == .corrupt, sound >= revision else { throw error }
        break
      }
      let position = rows.position
      if rows.isIntact, position.revision > revision { break }
      guard rows.isIntact else {
        if sound >= revision { break }
        throw JournalError(
          .corrupt,
          "\(path): damaged: \(rows.damagedRow). The newest revision to go back to is \(sound).")
      }
      (sequence, sound) = (position.sequence, position.revision)
    }
    self.reader = reader
    self.origin = origin
    self.snapshot = snapshot
    self.revision = revision
    self.sequence = sequence
    self.sound = sound
  }

  /// Check that all can be read that a recovery cannot do without. O(the bytes of the snapshot).
  func check() throws(JournalError) {
    _ = try reader.runs(origin, isLenient: true)
    if let snapshot { try reader.forEachPart(of: snapshot, origin) { _ in } }
  }
}
