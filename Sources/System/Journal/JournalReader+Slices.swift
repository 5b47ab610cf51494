public import Records

extension JournalReader {
  /// At most `limit` rows after a sequence number, in order. Every row's seal is checked, and that
  /// none is missing. O(their bytes).
  public func rows(
    after sequence: UInt64, limit: Int
  ) throws(JournalError) -> [JournalEntry] {
    try reading { () throws(JournalError) in
      var entries: [JournalEntry] = []
      guard let origin = try origin() else { return entries }
      var rows = try RowReader(self, origin, after: sequence)
      defer { rows.finish() }
      while entries.count < limit, try rows.next() { entries.append(rows.entry) }
      return entries
    }
  }

  /// The sequence number after which `count` rows follow, or all if there are fewer.
  public func sequence(before count: Int) throws(JournalError) -> UInt64 {
    try reading { () throws(JournalError) in
      let packed = try connection.hasPacks() ? "coalesce(packed, 0)" : "0"
      let rows = try connection.prepare(
        "SELECT sequence, \(packed) FROM log ORDER BY sequence DESC")
      defer { rows.finish() }
      var left = UInt64(clamping: count)
      while try rows.step() {
        let (last, packed) = (rows.unsigned(0), rows.unsigned(1))
        if left == 0 { return last }
        if left <= packed {
          let before = try rows.step() ? rows.unsigned(0) : 0
          let skipped = try self.rows(after: before, limit: Int(clamping: packed &+ 1 &- left))
          return skipped.last?.row.sequence ?? before
        }
        left -= packed &+ 1
      }
      return 0
    }
  }
}
