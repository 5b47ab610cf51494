public import Lockstep
public import Records
public import Values
public import Wire

/// A restored state from which a server resumes, with the facts that belong to it.
public struct RestoredState<State: Synchronizable>: Sendable {
  public var state: State
  /// As many bytes as the state's value form has at most, by what it was read from: those of a snapshot, and of
  /// the patches since, which may have replaced what there was. 0 for a state that begins.
  public var stateBytes = 0
  public var epoch: UInt64
  public var seed: HashSeed
  /// The number of the new run.
  public var run: UInt64
  /// The runs of the epoch, this one included, ascending.
  public var runs: [JournalRun]
  public var revision: UInt64
  /// The revision of the newest journaled change.
  public var base: UInt64
  public var sequence: UInt64
  public var sessions: [JournalSession]
  public var sessionCount: UInt64
  /// Sessions that are not in the journal yet, because they have not sent an action.
  public var unjournaledSessions: Set<SessionToken> = []
  /// The patch history up to `base`, for clients that resume from an older state.
  public var history: History
  /// Checkpoints of former states among the patches of `history`.
  var past = Past()
  /// What former versions of the feature kept and this one does not know.
  public var leftOut: [LeftOut] = []
  /// The latest actions of former processes, the oldest first.
  public var log: [LoggedAction] = []
  /// Actions that have ended the process more often than chance explains: they are rejected.
  public var poisoned: Set<SessionAction> = []
  /// Actions during which the process ended once: they are done, but not foreseen beside the loop.
  public var suspects: Set<SessionAction> = []
  /// Whether a former process handed over everything, including ephemeral fields and connections.
  public var isHandedOver = false
  /// The newest revision that survives a crash; nil if that is `revision`.
  public var durable: UInt64?
  /// About how many bytes of the journal follow its snapshot.
  public var journaledBytes = 0

  public init(
    state: State, epoch: UInt64, seed: HashSeed, run: UInt64, runs: [JournalRun],
    revision: UInt64, base: UInt64, sequence: UInt64, sessions: [JournalSession] = [],
    sessionCount: UInt64 = 0
  ) {
    self.state = state
    self.epoch = epoch
    self.seed = seed
    self.run = run
    self.runs = runs
    self.revision = revision
    self.base = base
    self.sequence = sequence
    self.sessions = sessions
    self.sessionCount = sessionCount
    history = History(base: base)
  }
}

extension PendingSnapshot {
  /// The state of a former process that has just been handed over.
  public init(handing kept: RestoredState<State>, schema: Schema, time: Timestamp) {
    var state = kept.state
    state.adopt(seed: kept.seed)
    EphemeralFields.reset(&state)
    self.init(
      state: state, seed: kept.seed, schema: schema,
      head: JournalSnapshot(
        revision: kept.revision, base: kept.base, sequence: kept.sequence, time: time,
        digest: Digest(0), sessions: kept.sessions, sessionCount: kept.sessionCount),
      leftOut: kept.leftOut)
  }
}
