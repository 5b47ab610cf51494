public import Records
import Values

extension Recovery {
  /// Apply a row that follows, and check the state where its digest was kept. O(the change), and for
  /// a digest what has changed since the last.
  public mutating func apply(_ entry: JournalEntry) throws(RecoveryError) {
    if let range = entry.row.change?.patch {
      let result: Result<Void, RecoveryError> = entry.bytes.withUnsafeBytes { bytes in
        do throws(RecoveryError) {
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
