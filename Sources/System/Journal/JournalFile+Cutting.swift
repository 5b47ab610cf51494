import Records

extension JournalFile {
  /// Remove some of the data that the snapshot has replaced, or that unfinished snapshots left: at
  /// most `limit` actions, one pack more, or 4 parts. Returns whether there is more. One commit,
  /// during which batches wait.
  ///
  /// Of the actions before the snapshot the latest `kept` stay, or those of the latest 4 MiB: nothing
  /// is restored from them, but the log of the next process begins with them (`forEachLoggedRow`).
  ///
  /// Call it between batches until it returns false: after opening, and after each snapshot.
  public func cut(limit: Int, keeping kept: Int = 0) throws(JournalError) -> Bool {
    guard let identity = state.identity else { return false }
    let limit = Int64(max(limit, 1))
    let more = try write { () throws(JournalError) in
      if try cutSnapshots(limit) { return true }
      if try cutRows(limit, keeping: kept, identity) { return true }
      try cutSessions()
      return try shrink(limit)
    }
    try checkpointIfDue()
    return more
  }

  private func cutSnapshots(_ limit: Int64) throws(JournalError) -> Bool {
    let newest = try connection.number("SELECT max(id) FROM snapshot") ?? 0
    let draft = state.snapshot?.id ?? 0
    try connection.run(
      """
      DELETE FROM part WHERE rowid IN
        (SELECT rowid FROM part WHERE snapshot <> ?1 AND snapshot <> ?2 LIMIT 4)
      """, newest, draft)
    if connection.changes > 0 { return true }
    try connection.run(
      """
      DELETE FROM outcomes WHERE rowid IN
        (SELECT rowid FROM outcomes WHERE snapshot <> ?1 AND snapshot <> ?2 LIMIT ?3)
      """, newest, draft, limit)
    return connection.changes > 0
  }

  private func cutRows(
    _ limit: Int64, keeping kept: Int, _ identity: JournalIdentity
  ) throws(JournalError) -> Bool {
    guard let covered = try connection.number("SELECT max(sequence) FROM snapshot") else {
      return false
    }
    if state.cut?.covered != covered || state.cut?.kept != kept {
      state.cut = (covered, kept, try lastBeforeLog(covered, Int64(clamping: kept)))
    }
    guard let dispensable = state.cut?.last, let last = try lastToCut(dispensable, limit) else {
      return false
    }
    let origin = Origin(identity: identity, cutSequence: last.sequence, cutSeal: last.seal)
    let sequence = Int64(bitPattern: origin.cutSequence)
    try connection.run("DELETE FROM log WHERE sequence <= ?", sequence)
    try connection.run(
      "UPDATE journal SET cut_sequence = ?, cut_seal = ?, seal = ?", sequence,
      Int64(bitPattern: origin.cutSeal), Int64(bitPattern: origin.seal))
    return true
  }

  /// The bytes of actions and changes that stay for the log.
  private static let loggedBytes: Int64 = 4 << 20

  /// The row after which the latest `kept` actions of those that the snapshot covers begin; nil if
  /// there are no more. O(the rows that stay), without their bytes.
  private func lastBeforeLog(_ covered: Int64, _ kept: Int64) throws(JournalError) -> Int64? {
    let rows = try connection.statement(
      """
      SELECT sequence, coalesce(packed, 0), coalesce(length(action), 0)
        + coalesce(length(patch), 0) + coalesce(length(pack), 0) FROM log
      WHERE sequence <= ? ORDER BY sequence DESC
      """)
    defer { rows.reset() }
    rows.bind(1, covered)
    var (actions, bytes): (Int64, Int64) = (0, 0)
    while try rows.step() {
      bytes = bytes &+ rows.integer(2)
      if actions >= kept || bytes > Self.loggedBytes { return rows.integer(0) }
      actions = actions &+ 1 &+ max(0, min(rows.integer(1), kept))
    }
    return nil
  }

  /// The row up to which a slice of those that are not needed is cut; nil if there are none.
  private func lastToCut(
    _ dispensable: Int64, _ limit: Int64
  ) throws(JournalError) -> (sequence: UInt64, seal: UInt64)? {
    let rows = try connection.statement(
      """
      SELECT sequence, seal, coalesce(packed, 0) FROM log WHERE sequence <= ?
      ORDER BY sequence LIMIT ?
      """)
    defer { rows.reset() }
    rows.bind(1, dispensable)
    rows.bind(2, limit)
    var last: (sequence: UInt64, seal: UInt64)?
    var count: Int64 = 0
    while count < limit, try rows.step() {
      last = (rows.unsigned(0), rows.unsigned(1))
      count = count &+ 1 &+ max(0, min(rows.integer(2), limit))
    }
    return last
  }

  /// Remove forgotten sessions that no row names any more.
  private func cutSessions() throws(JournalError) {
    try connection.run(
      """
      DELETE FROM session WHERE until <= (SELECT cut_sequence FROM journal)
        AND number NOT IN (SELECT number FROM outcomes)
      """)
  }

  /// Return free pages to the file system if there are very many.
  private func shrink(_ limit: Int64) throws(JournalError) -> Bool {
    let free = try connection.number("PRAGMA freelist_count") ?? 0
    let used = (try connection.number("PRAGMA page_count") ?? 0) - free
    let excess = free - 3 * used - spareFreePages
    guard excess > 0 else { return false }
    // A page costs about as much as a row.
    let count = min(excess, limit)
    try connection.execute("PRAGMA incremental_vacuum(\(count))")
    return excess > count
  }
}
