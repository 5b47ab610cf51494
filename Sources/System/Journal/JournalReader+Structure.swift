extension JournalReader {
  /// Make sure that the file hangs together. Seals find what has changed in a row, but not that rows
  /// are missing at an end, or a whole table. O(the file), and half a microsecond a row.
  public func checkStructure() throws(JournalError) {
    let found = try connection.text("PRAGMA quick_check(1)")
    if found != "ok" { throw contradiction("the file is damaged: \(found)") }
  }

  /// Whether nothing has been kept yet: the journal was made, and perhaps daemons began to use it,
  /// but none has come to serve anybody. Throws when something was kept, and what it goes on from is
  /// missing.
  public func isUnused() throws(JournalError) -> Bool {
    guard try identity() != nil else {
      let rows = try connection.number(
        """
        SELECT EXISTS(SELECT 1 FROM run) + EXISTS(SELECT 1 FROM log) + EXISTS(SELECT 1 FROM session)
          + EXISTS(SELECT 1 FROM snapshot)
        """)
      if rows != 0 { throw contradiction("the epoch and the seed are missing") }
      return true
    }
    let contents = try contents()
    if contents.snapshot != nil { return false }
    if contents.head.sequence > 0 {
      throw contradiction("the snapshot is missing that the changes go on from")
    }
    return true
  }
}
