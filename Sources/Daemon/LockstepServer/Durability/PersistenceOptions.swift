public import DaemonCore
import Journal

/// The directory in which a daemon persists its state, and how durably.
public struct PersistenceOptions: Sendable {
  /// The directory, which belongs to this daemon alone while it runs. It is made if its parent
  /// exists.
  public var directory: String
  public var durability: Durability
  /// Before anything else, discard everything that was stored after this revision.
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
