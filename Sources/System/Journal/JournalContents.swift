public import Lockstep
public import Records
public import Values

/// The epoch and the hash seed that every value in a journal belongs to.
public struct JournalIdentity: Hashable, Sendable {
  public var epoch: UInt64
  public var seed: HashSeed

  public init(epoch: UInt64, seed: HashSeed) {
    self.epoch = epoch
    self.seed = seed
  }
}

/// The contents of a journal, without the state's bytes and the rows.
public struct JournalContents: Equatable, Sendable {
  public var identity: JournalIdentity
  /// The daemon's runs, in ascending order; the newest thousand.
  public var runs: [Run]
  public var head: Head
  /// The newest complete snapshot. Rows after its `sequence` continue from it.
  public var snapshot: JournalSnapshot?
  /// The size of the snapshot's state in bytes.
  public var snapshotBytes: Int
  /// The number of sessions so far in the epoch.
  public var sessionCount: UInt64

  public struct Run: Equatable, Sendable {
    public var run: JournalRun
    public var time: Timestamp
    /// The revision with which it began.
    public var began: UInt64
    /// The revision with which it ended; nil while it runs, or if it crashed.
    public var ended: UInt64?
    /// The encoded schema of the feature.
    public var schema: [UInt8]

    public init(
      run: JournalRun, time: Timestamp, began: UInt64, ended: UInt64?, schema: [UInt8]
    ) {
      self.run = run
      self.time = time
      self.began = began
      self.ended = ended
      self.schema = schema
    }
  }

  /// The newest positions in the journal.
  public struct Head: Hashable, Sendable {
    /// The newest run; 0 before the first.
    public var run: UInt64
    public var revision: UInt64
    /// The sequence number of the last action that is stored, or that the snapshot covers.
    public var sequence: UInt64
    /// The revision of the newest stored change; nil before the first, if there is no snapshot.
    public var base: UInt64?

    public init(run: UInt64, revision: UInt64, sequence: UInt64, base: UInt64?) {
      self.run = run
      self.revision = revision
      self.sequence = sequence
      self.base = base
    }
  }
}
