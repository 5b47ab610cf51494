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
    let number = try connection.number(
      "SELECT sequence FROM log ORDER BY sequence DESC LIMIT 1 OFFSET ?", Int64(count))
    return number.map { UInt64(bitPattern: $0) } ?? 0
  }
}
