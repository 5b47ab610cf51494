public import Lockstep
public import Values
public import Wire

// What the server wants to be kept, and what it is given back after a restart. The server decides
// what and when; how bytes reach a disk is the shell's. So the simulator can lose them.

/// What one turn leaves to be kept: every action that changed the state, with its patch, and what
/// became of the actions of sessions. All of it is kept, or nothing.
public struct JournalBatch: Equatable, Sendable {
  /// Counts the batches of a run from 1, without gaps.
  public var number: UInt64
  /// In the order in which the actions were done.
  public var rows: [JournalRow] = []
  /// The patches and actions, of which the rows name ranges.
  public var bytes: [UInt8] = []
  /// Sessions that are named in the rows of this batch for the first time.
  public var sessions: [JournalSession] = []
  /// Sessions that the daemon has forgotten.
  public var forgotten: [SessionToken] = []
  /// The revision at the end of the turn.
  public var revision: UInt64
  /// The digest of the state at `revision`, without its ephemeral fields: now and then.
  public var digest: Digest?

  @inlinable

  public init(number: UInt64, revision: UInt64) {
    self.number = number
    self.revision = revision
  }

  public var isEmpty: Bool { rows.isEmpty && forgotten.isEmpty }
}

/// An action that was done.
public struct JournalRow: Equatable, Sendable {
  /// Counts the actions of the epoch; those that are not kept leave gaps.
  public var sequence: UInt64
  public var time: Timestamp
  /// Who sent it, and the client that began it all.
  public var origin: Origin
  public var client: ClientOrigin?
  public var name: String
  /// The encoded action; nil when it is larger than `Limits.logActionBytes`.
  public var action: Range<Int>?
  /// The revision of the state behind it.
  public var revision: UInt64
  /// What it changed, if anything that is kept.
  public var change: Change?
  /// What became of it, if a session's client sent it.
  public var answer: Answer?

  public struct Change: Equatable, Sendable {
    /// The revision of the change that was kept before this one: a chain without a gap.
    public var base: UInt64
    public var patch: Range<Int>

    @inlinable

    public init(base: UInt64, patch: Range<Int>) {
      self.base = base
      self.patch = patch
    }
  }

  public struct Answer: Equatable, Sendable {
    public var session: SessionToken
    public var number: UInt64
    public var outcome: Acknowledgement.Outcome

    @inlinable

    public init(session: SessionToken, number: UInt64, outcome: Acknowledgement.Outcome) {
      self.session = session
      self.number = number
      self.outcome = outcome
    }
  }

  @inlinable

  public init(
    sequence: UInt64, time: Timestamp, origin: Origin, client: ClientOrigin?, name: String,
    action: Range<Int>?, revision: UInt64, change: Change?, answer: Answer?
  ) {
    self.sequence = sequence
    self.time = time
    self.origin = origin
    self.client = client
    self.name = name
    self.action = action
    self.revision = revision
    self.change = change
    self.answer = answer
  }
}

/// A session, as it outlives the process.
public struct JournalSession: Equatable, Sendable {
  public var token: SessionToken
  public var uid: UInt64
  /// What people and features call it: counts the sessions of the epoch.
  public var number: UInt64
  /// What became of its latest actions: runs in order, without gaps.
  public var outcomes: [Acknowledgement] = []

  @inlinable

  public init(
    token: SessionToken, uid: UInt64, number: UInt64, outcomes: [Acknowledgement] = []
  ) {
    self.token = token
    self.uid = uid
    self.number = number
    self.outcomes = outcomes
  }
}

/// Everything but the state's bytes that a kept snapshot holds.
public struct JournalSnapshot: Equatable, Sendable {
  /// The revision of the state, and of its newest change that is kept.
  public var revision: UInt64
  public var base: UInt64
  /// The last action that it covers.
  public var sequence: UInt64
  public var time: Timestamp
  /// The digest of the state without its ephemeral fields.
  public var digest: Digest
  public var sessions: [JournalSession]
  /// How many sessions there have been in the epoch.
  public var sessionCount: UInt64

  @inlinable

  public init(
    revision: UInt64, base: UInt64, sequence: UInt64, time: Timestamp, digest: Digest,
    sessions: [JournalSession], sessionCount: UInt64
  ) {
    self.revision = revision
    self.base = base
    self.sequence = sequence
    self.time = time
    self.digest = digest
    self.sessions = sessions
    self.sessionCount = sessionCount
  }
}

/// A run of the daemon: where in the epoch it began.
public struct JournalRun: Equatable, Sendable {
  public var run: UInt64
  /// What was durable of the runs before: the position of a mirror that is not ahead of it holds.
  public var base: UInt64

  @inlinable

  public init(run: UInt64, base: UInt64) {
    self.run = run
    self.base = base
  }
}
