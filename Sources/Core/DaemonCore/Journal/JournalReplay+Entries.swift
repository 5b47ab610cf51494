public import Records
import Values

extension JournalReplay {
  /// Note an action from before the snapshot, for the log alone: what it did is in the snapshot. What
  /// another schema wrote keeps its name and loses its value. Call it before `apply`, in order: one that
  /// does not follow those before, or is of a later revision than the snapshot, is none. Amortised
  /// O(its bytes).
  public mutating func note(_ entry: JournalEntry, isOfSameSchema: Bool) {
    guard entry.row.sequence > log.newest, entry.row.revision <= revision else { return }
    log.note(entry.row, action: isOfSameSchema && comparesDigests ? entry.action : nil)
  }

  /// Apply the next row, and check the state if the row has a digest. O(the change), and for a
  /// digest everything changed since the last.
  public mutating func apply(_ entry: JournalEntry) throws(JournalReplayError) {
    if let range = entry.row.change?.patch {
      let result: Result<Void, JournalReplayError> = entry.bytes.withUnsafeBytes { bytes in
        do throws(JournalReplayError) {
          return .success(
            try apply(
              entry.row, patch: UnsafeRawBufferPointer(rebasing: bytes[range]),
              action: entry.action))
        } catch {
          return .failure(error)
        }
      }
      try result.get()
    } else {
      try apply(entry.row, patch: nil, action: entry.action)
    }
    if let digest = entry.digest, let revision = entry.turn {
      try check(digest, at: revision)
    }
  }
}
