public import Lockstep
public import Values
public import Wire

// The records that the server asks to persist, and that it gets back after a restart. The server
// decides what to persist and when; the shell writes the bytes to disk. So the simulator can lose
// them.

/// The records of one turn to be persisted: every action that changed the state, with its patch,
/// and the outcomes of the actions of sessions. A batch is atomic: all of it is persisted, or
/// nothing.
public struct JournalBatch: Equatable, Sendable {
  /// Counts the batches of a run from 1, without gaps.
  public var number: UInt64
  /// In the order in which the actions were reduced.
  public var rows: [JournalRow] = []
  /// The bytes of patches and actions; the rows name ranges of them.
  public var bytes: [UInt8] = []
  /// Sessions that are named in the rows of this batch for the first time.
  public var sessions: [JournalSession] = []
  /// Sessions that the daemon has forgotten.
  public var forgotten: [SessionToken] = []
  /// The revision at the end of the turn.
  public var revision: UInt64
  /// The digest of the state at `revision`, without its ephemeral fields; present only now and
  /// then.
  public var digest: Digest?

  @inlinable

  public init(number: UInt64, revision: UInt64) {
    self.number = number
    self.revision = revision
  }

  public var isEmpty: Bool { rows.isEmpty && forgotten.isEmpty }

  /// Call `body` with the address of each row (rows are large to copy), the batch's bytes, and whether it
  /// is the last row. Ends early if `body` returns false, and returns that. The addresses hold until `body`
  /// returns.
  @discardableResult
  public func forEachRow<E: Error>(
    _ body: (
      _ row: UnsafePointer<JournalRow>, _ bytes: UnsafeRawBufferPointer, _ isLast: Bool
    ) throws(E) -> Bool
  ) throws(E) -> Bool {
    try bytes.withUnsafeBufferPointer { bytes throws(E) in
      try rows.withUnsafeBufferPointer { rows throws(E) in
        guard let first = rows.baseAddress else { return true }
        for index in rows.indices {
          let isLast = index == rows.count - 1
          guard try body(first + index, UnsafeRawBufferPointer(bytes), isLast) else { return false }
        }
        return true
      }
    }
  }
}

/// The record of an action that was taken.
///
/// What it has of its cause is the sender, and the client that started the cascade: the rest is neither
/// persisted nor compared.
public struct JournalRow: Equatable, Sendable {
  /// Counts the actions of the epoch; those that are not persisted leave gaps.
  public var sequence: UInt64
  public var time: Timestamp
  /// Shared by the actions of a connection, so that a row is small.
  public var cause: Cause
  public var name: String
  /// The encoded action; nil when it is larger than `Limits.logActionBytes`.
  public var action: Range<Int>?
  /// The revision of the state after it.
  public var revision: UInt64
  /// Its change to the persisted part of the state, if any.
  public var change: Change?
  /// Its outcome, if a session's client sent it.
  public var answer: Answer?

  public struct Change: Equatable, Sendable {
    /// The revision of the previous persisted change: the changes form a chain without gaps.
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
    sequence: UInt64, time: Timestamp, cause: Cause, name: String, action: Range<Int>?,
    revision: UInt64, change: Change?, answer: Answer?
  ) {
    self.sequence = sequence
    self.time = time
    self.cause = cause
    self.name = name
    self.action = action
    self.revision = revision
    self.change = change
    self.answer = answer
  }

  public static func == (first: JournalRow, second: JournalRow) -> Bool {
    first.sequence == second.sequence && first.time == second.time && first.name == second.name
      && first.action == second.action && first.revision == second.revision
      && first.change == second.change && first.answer == second.answer
      && (first.cause.isTriviallyIdentical(to: second.cause)
        || first.cause.origin == second.cause.origin && first.cause.client == second.cause.client)
  }
}

/// A session, as it is persisted.
public struct JournalSession: Equatable, Sendable {
  public var token: SessionToken
  public var uid: UInt64
  /// Its number for people and features: counts the sessions of the epoch.
  public var number: UInt64
  /// The outcomes of its latest actions: runs in order, without gaps.
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

/// The metadata of a persisted snapshot: everything but the state's bytes.
public struct JournalSnapshot: Equatable, Sendable {
  /// The revision of the state, and that of its newest persisted change.
  public var revision: UInt64
  public var base: UInt64
  /// The sequence number of the last action that it covers.
  public var sequence: UInt64
  public var time: Timestamp
  /// The digest of the state without its ephemeral fields.
  public var digest: Digest
  public var sessions: [JournalSession]
  /// How many sessions there have been in the epoch.
  public var sessionCount: UInt64

  /// The sessions by their numbers.
  public var sessionsInOrder: [JournalSession] { sessions.sorted { $0.number < $1.number } }

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
  /// The last durable revision of the runs before: a mirror's position holds if it is not ahead of
  /// it.
  public var base: UInt64

  @inlinable

  public init(run: UInt64, base: UInt64) {
    self.run = run
    self.base = base
  }
}
