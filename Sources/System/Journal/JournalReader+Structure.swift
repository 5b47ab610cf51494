extension JournalReader {
  /// Check the structure of the file. Seals detect a changed row, but not rows that are missing at
  /// an end, or a missing table. O(the file), and half a microsecond per row.
  public func checkStructure() throws(JournalError) {
    let found = try connection.text("PRAGMA quick_check(1)")
    if found == "ok" { return }
    // A heading, and one finding in a line.
    let findings = found.split(separator: "\n").filter { !$0.hasPrefix("***") }
    throw contradiction("the file is damaged: \(findings.joined(separator: "; "))")
  }

  /// Whether nothing has been stored yet: the journal was made, and daemons may have begun to use
  /// it, but none has served a client. Throws when something was stored, and the data that it
  /// continues from is missing.
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
