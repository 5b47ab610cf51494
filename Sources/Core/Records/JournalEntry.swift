public import Values

/// A row as it is read back from a journal.
public struct JournalEntry: Equatable, Sendable {
  public var row: JournalRow
  /// The row's action and patch, of which it names ranges. A reader that keeps no copy lets the
  /// next row use the same memory.
  public var bytes: [UInt8]
  /// The revision at the end of the turn, in the last row of a turn.
  public var turn: UInt64?
  /// The digest of the state at that revision, in some of those rows.
  public var digest: Digest?

  public init(row: JournalRow, bytes: [UInt8], turn: UInt64? = nil, digest: Digest? = nil) {
    self.row = row
    self.bytes = bytes
    self.turn = turn
    self.digest = digest
  }

  public var action: ArraySlice<UInt8>? { row.action.map { bytes[$0] } }
  public var patch: ArraySlice<UInt8>? { row.change.map { bytes[$0.patch] } }
}
