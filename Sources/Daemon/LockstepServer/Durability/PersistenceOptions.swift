public import DaemonCore
import Journal

/// Where a daemon keeps its state, and how well.
public struct PersistenceOptions: Sendable {
  /// The directory, which belongs to this daemon alone while it runs. It is made if its parent is
  /// there.
  public var directory: String
  public var durability: Durability
  /// Give up what was kept after this revision, before anything else.
  public var recoverTo: UInt64?

  public init(
    directory: String, durability: Durability = .sync, recoverTo: UInt64? = nil
  ) {
    self.directory = directory
    self.durability = durability
    self.recoverTo = recoverTo
  }

  var mode: JournalFile.Mode { durability == .sync ? .sync : .async }
}
