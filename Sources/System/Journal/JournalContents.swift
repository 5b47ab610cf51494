public import Lockstep
public import Records
public import Values

/// What every value in a journal belongs to.
public struct JournalIdentity: Hashable, Sendable {
  public var epoch: UInt64
  public var seed: HashSeed

  public init(epoch: UInt64, seed: HashSeed) {
    self.epoch = epoch
    self.seed = seed
  }
}

/// What a journal holds, but for the state's bytes and the rows.
public struct JournalContents: Equatable, Sendable {
  public var identity: JournalIdentity
  /// The lives of the daemon, rising; the newest thousand.
  public var runs: [Run]
  public var head: Head
  /// The newest snapshot that is whole. Rows behind its `sequence` go on from it.
  public var snapshot: JournalSnapshot?
  /// The bytes of the snapshot's state.
  public var snapshotBytes: Int
  /// How many sessions there have been in the epoch.
  public var sessionCount: UInt64

  public struct Run: Equatable, Sendable {
    public var run: JournalRun
    public var time: Timestamp
    /// The revision with which it began.
    public var began: UInt64
    /// The revision with which it ended; nil when it goes on, or crashed.
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

  /// How far the journal has come.
  public struct Head: Hashable, Sendable {
    /// The newest run; 0 before the first.
    public var run: UInt64
    public var revision: UInt64
    /// The last action that is kept, or that the snapshot covers.
    public var sequence: UInt64
    /// The revision of the newest change that is kept; nil before the first, if there is no
    /// snapshot.
    public var base: UInt64?

    public init(run: UInt64, revision: UInt64, sequence: UInt64, base: UInt64?) {
      self.run = run
      self.revision = revision
      self.sequence = sequence
      self.base = base
    }
  }
}
