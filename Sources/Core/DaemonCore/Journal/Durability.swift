/// The changes that survive the end of a daemon's process.
public enum Durability: String, CaseIterable, Sendable {
  /// Nothing.
  case none
  /// Every change, soon: a crash of the process loses those of its last milliseconds, one of the
  /// machine perhaps those of seconds. Nothing is acknowledged as durable.
  case async
  /// Every change. A change that was acknowledged as durable survives both crashes.
  case sync
}

/// The result of a command to the journal.
public enum JournalEvent: Equatable, Sendable {
  /// Every batch up to this number is committed.
  case committed(through: UInt64)
  /// Writing failed. Every batch that is not committed is lost to the file, and so are later ones
  /// until a fresh snapshot is written.
  case failed(String)
  /// The file can be written again.
  case reopened
  /// The file cannot be written yet.
  case stillFailing(String)
  /// A snapshot of this many bytes is written.
  case snapshotKept(bytes: Int)
  /// The last commanded snapshot cannot be made; the journal has no other fault.
  case snapshotImpossible(String)
}
