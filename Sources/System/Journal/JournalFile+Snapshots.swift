import Lockstep
public import Records
import Values
import Wire

/// A snapshot that is being written.
struct SnapshotDraft {
  var id: Int64
  var head: JournalSnapshot
  /// The sessions that have not been written yet.
  var pending: [JournalSession]
  var sessionRows: Int64 = 0
  var partCount: Int64 = 0
  var byteCount = 0
}

/// Names a snapshot that is being written.
public struct JournalSnapshotID: Hashable, Sendable {
  let rawValue: Int64
}

extension JournalFile {
  /// The number of sessions written in one transaction, which takes some milliseconds.
  private static let sessionsPerSlice = 1000

  /// Begin to write a snapshot, in place of any unfinished one. Batches may be appended meanwhile;
  /// those up to its `sequence` must have been appended before. Writes nothing yet. O(1).
  public func beginSnapshot(
    _ snapshot: JournalSnapshot
  ) throws(JournalError) -> JournalSnapshotID {
    _ = try knownIdentity()
    try checkUsable()
    let newest = try connection.number(
      """
      SELECT max(coalesce((SELECT max(id) FROM snapshot), 0),
        coalesce((SELECT max(snapshot) FROM part), 0),
        coalesce((SELECT max(snapshot) FROM outcomes), 0))
      """)
    let id = (newest ?? 0) &+ 1
    state.snapshot = SnapshotDraft(id: id, head: snapshot, pending: snapshot.sessions.reversed())
    return JournalSnapshotID(rawValue: id)
  }

  /// The bytes of the state are to be added in parts of at most this length.
  public static var partBytes: Int { 1 << 20 }

  /// Add the next bytes of the state: one commit, and another while sessions are left to write,
  /// during which batches wait. A part of a megabyte takes some milliseconds.
  public func addPart(_ id: JournalSnapshotID, _ bytes: ArraySlice<UInt8>) throws(JournalError) {
    let identity = try knownIdentity()
    guard let draft = state.snapshot, draft.id == id.rawValue else {
      throw defect("snapshot \(id.rawValue) is not being written")
    }
    var seal = Seal(epoch: identity.epoch)
    let sealed = bytes.withUnsafeBytes { Self.seal(draft.id, draft.partCount, $0, &seal) }
    try write { () throws(JournalError) in
      let insert = try connection.statement(
        "INSERT INTO part(snapshot, number, bytes, seal) VALUES(?, ?, ?, ?)")
      defer { insert.reset() }
      insert.bind(1, draft.id)
      insert.bind(2, draft.partCount)
      bytes.withUnsafeBytes { insert.bind(3, copying: $0) }
      insert.bind(4, sealed)
      try insert.run()
    }
    state.snapshot?.partCount += 1
    state.snapshot?.byteCount += bytes.count
    try addSessions(identity)
    try checkpointIfDue()
  }

  /// Write the next slice of sessions.
  private func addSessions(_ identity: JournalIdentity) throws(JournalError) {
    guard let draft = state.snapshot, !draft.pending.isEmpty else { return }
    let slice = draft.pending.suffix(Self.sessionsPerSlice)
    var seal = Seal(epoch: identity.epoch)
    try write { () throws(JournalError) in
      for session in slice.reversed() {
        try keep(session, since: draft.head.sequence, identity, "INSERT OR IGNORE")
        let runs = OutcomesFormat.encode(session.outcomes)
        let insert = try connection.statement(
          "INSERT INTO outcomes(snapshot, number, runs, seal) VALUES(?, ?, ?, ?)")
        defer { insert.reset() }
        insert.bind(1, draft.id)
        insert.bind(2, session.number)
        runs.withUnsafeBytes { bytes in
          insert.bind(3, copying: bytes)
          insert.bind(
            4, Self.seal(draft.id, Int64(bitPattern: session.number), bytes, &seal))
        }
        try insert.run()
      }
    }
    state.snapshot?.pending.removeLast(slice.count)
    state.snapshot?.sessionRows += Int64(slice.count)
  }

  /// Make the journal continue from this snapshot. One commit, and one for every thousand sessions
  /// that were not written along with the parts. `cut` removes the data that it replaces.
  public func finishSnapshot(_ id: JournalSnapshotID) throws(JournalError) {
    let identity = try knownIdentity()
    guard state.snapshot?.id == id.rawValue else {
      throw defect("snapshot \(id.rawValue) is not being written")
    }
    while state.snapshot?.pending.isEmpty == false { try addSessions(identity) }
    guard let draft = state.snapshot else { return }
    try write { () throws(JournalError) in
      try keep(draft, identity)
      // A session that is missing from the snapshot was forgotten in batches that were lost.
      for number in try sessions(lackedBy: draft) {
        try close(session: number, until: draft.head.sequence)
      }
    }
    state.snapshot = nil
    if draft.head.sequence > state.sequence {
      state.sequence = draft.head.sequence
      state.base = draft.head.base
      state.revision = draft.head.revision
    }
    noteDurable()
    if let origin = try origin() {
      let live = try liveSessions(origin).map { ($0.session.token, $0.session.number) }
      state.numbers = Dictionary(live) { $1 }
    }
  }

  private func sessions(lackedBy draft: SnapshotDraft) throws(JournalError) -> [UInt64] {
    let statement = try connection.statement(
      """
      SELECT number FROM session WHERE until IS NULL AND since <= ? AND number NOT IN
        (SELECT number FROM outcomes WHERE snapshot = ?)
      """)
    defer { statement.reset() }
    statement.bind(1, draft.head.sequence)
    statement.bind(2, draft.id)
    var numbers: [UInt64] = []
    while try statement.step() { numbers.append(statement.unsigned(0)) }
    return numbers
  }

  private func keep(
    _ draft: SnapshotDraft, _ identity: JournalIdentity
  ) throws(JournalError) {
    let head = draft.head
    let kept = PendingSnapshot(
      id: draft.id, head: head, partCount: draft.partCount, byteCount: draft.byteCount)
    let words = [
      head.revision, head.base, head.sequence, UInt64(bitPattern: head.time.nanoseconds),
      head.digest.rawValue, head.sessionCount,
    ].map { Int64(bitPattern: $0) }
    try connection.run(
      """
      INSERT INTO snapshot(
        id, revision, base, sequence, time, digest, session_count, sessions, parts, bytes, seal)
      VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      draft.id, words[0], words[1], words[2], words[3], words[4], words[5], draft.sessionRows,
      draft.partCount, Int64(draft.byteCount),
      Int64(bitPattern: kept.seal(epoch: identity.epoch, sessionRows: draft.sessionRows)))
    try connection.run("DELETE FROM snapshot WHERE id < ?", draft.id)
  }
}
