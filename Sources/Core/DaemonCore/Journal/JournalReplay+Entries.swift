public import Records
import Values

extension JournalReplay {
  /// Apply a row that follows, and check the state where its digest was kept. O(the change), and
  /// for a digest what has changed since the last.
  public mutating func apply(_ entry: JournalEntry) throws(JournalReplayError) {
    if let range = entry.row.change?.patch {
      let result: Result<Void, JournalReplayError> = entry.bytes.withUnsafeBytes { bytes in
        do throws(JournalReplayError) {
          return .success(
            try apply(entry.row, patch: UnsafeRawBufferPointer(rebasing: bytes[range])))
        } catch {
          return .failure(error)
        }
      }
      try result.get()
    } else {
      try apply(entry.row, patch: nil)
    }
    if let digest = entry.digest, let revision = entry.turn {
      try check(digest, at: revision)
    }
  }
}
