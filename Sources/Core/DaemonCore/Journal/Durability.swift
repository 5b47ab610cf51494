/// What a daemon keeps of its state beyond its process.
public enum Durability: String, CaseIterable, Sendable {
  /// Nothing.
  case none
  /// Every change, soon: a crash of the process loses those of its last milliseconds, one of the
  /// machine perhaps seconds. Nothing is acknowledged as durable.
  case async
  /// Every change. What is acknowledged as durable survives both.
  case sync
}

/// What became of what the server asked to be kept.
public enum JournalEvent: Equatable, Sendable {
  /// Every batch up to this number is safe.
  case committed(through: UInt64)
  /// Keeping failed. Every batch that is not committed is lost to the file, and so is what follows
  /// until a fresh snapshot is kept.
  case failed(String)
  /// The file can be written again.
  case reopened
  /// The file cannot be written yet.
  case stillFailing(String)
  /// A snapshot of so many bytes is kept.
  case snapshotKept(bytes: Int)
  /// The snapshot that was commanded last cannot be made, and nothing else has happened.
  case snapshotImpossible(String)
}
