public import Access
import CBOR
public import Lockstep
public import Records
import Schemas
public import Values
public import Wire

// Theory of operation
//
// The server is a value. The shell hands it what happened (`Event`) and executes what it decides
// (`Command`). The events between two `turnEnded` make a *turn*: actions are reduced as they
// arrive, requests are queued, and nothing is sent. At the end of the turn, each connection with
// something due gets one `send`:
//
//     the shared patch frames of its scopes        when it is live
//     or one patch from its revision to now        when it lagged
//     or a snapshot, and the patches since         when it is new, or too far behind
//     then answers to its requests
//     then acknowledgements, if every subscription is current
//
// so that a client that sees an acknowledgement has seen the change. A connection with unsent bytes
// is *blocked*: nothing is composed for it and nothing is read from it. The state that it was last
// sent is held (a copy, O(1)); when its bytes have been written, it gets the difference, over several
// turns if it has many subscriptions (`Server+CatchingUp`).
//
// Invariant: between turns every live subscription is at `flushed`, the revision at which the last
// turn ended, and `core.revision == flushed`.

/// The daemon's decisions: sessions, scopes, order, acknowledgements, back-pressure.
public struct Server<R: Reducer>: Sendable {
  /// The protocol versions that the server speaks.
  public static var versions: ClosedRange<UInt64> { ProtocolVersion.range }

  let facts: ServerFacts
  let timeline: Timeline
  var clock: ServerClock
  var authority: Authority
  var core: StoreCore<R>
  var connections: Roster
  var users: UserTable
  var sessions: SessionTable
  var publication: Publication<R.State>
  /// Checkpoints of the state among the patches of `publication.history`.
  var past: Past
  var jumping = Jumping<R.State>()
  var pause = Pause<R.Action>()
  var journaling: Journaling
  var largeActions = LargeActions<R.Action>()
  var memory: StateMemory
  var turn: Turn
  var rounds = Rounds()
  var departures = Departures()
  var digests = Digests()
  var ending = Ending.none
  var counters = Counters()
  #if FAULTS
    var faults = Faults()
  #else
    /// None, and no code for them.
    var faults: Faults { @inline(__always) get { Faults() } }
  #endif

  /// The working data of the actions of a turn.
  struct Turn: Sendable {
    /// The patch of the action that is being reduced.
    var patch = CBOREncoder()
    /// How many more actions of effects and middleware may run.
    var waitingBudget: Int
    /// What the large action that is being read was decoded to.
    var known: DecodedAction<R.Action>?
    /// What is known about the patch of the large action, or the jump, that is being done.
    var foreseen: ForeseenPatch?
    /// A right that was missing for the large action that is being read.
    var missingRight: MissingRight?
    /// Large actions that have been done, and their patches.
    var remains = Remains(areKept: false)

    /// Take what the large action was decoded to. Its patch remains known until it has been done.
    mutating func takeKnown() -> DecodedAction<R.Action>? {
      foreseen = known?.foreseen
      missingRight = known?.missingRight
      defer { known = nil }
      return known
    }

    /// Begin the patch of another action. The memory of the last one is kept for it, if that is not
    /// large.
    @inline(__always)
    mutating func clearPatch() {
      if patch.bytes.count > Self.keptPatchBytes { dropPatch() }
      patch.bytes.removeAll(keepingCapacity: true)
    }

    private mutating func dropPatch() {
      var dropped = CBOREncoder()
      swap(&dropped, &patch)
      remains.add(dropped.bytes)
    }

    private static var keptPatchBytes: Int { 64 << 10 }
  }

  /// Whether the process is about to end.
  enum Ending: Sendable {
    case none
    /// Every client gets this goodbye, also one that connects now.
    case stopping(Goodbye)
    /// Everything due is composed, even for clients that do not read, and no request is begun.
    case handingOver
    /// The next process has everything: nothing happens any more.
    case handedOver

    /// Whether a connection may have no later turn.
    var isNear: Bool {
      switch self {
      case .stopping, .handingOver: true
      case .none, .handedOver: false
      }
    }
  }

  struct Counters: Sendable {
    var actions: UInt64 = 0
    var rejected: UInt64 = 0
    var connections: UInt64 = 0
    var snapshots: UInt64 = 0
    var coalesced: UInt64 = 0
    var goodbyes: UInt64 = 0
    /// The bytes of all patches that were made.
    var changedBytes = 0
  }

  /// A server whose history begins with `state`. The epoch must be new and random. Without a
  /// policy, every client that connects may do everything.
  public init(
    _ state: R.State, reducer: R, seed: HashSeed, epoch: UInt64, run: UInt64 = 1,
    revision: UInt64 = 0, limits: Limits = Limits(), about: [(String, Value)] = [],
    middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues(),
    hasShellMetrics: Bool = false, durability: Durability = .none,
    inFlight: InFlightActionMarker? = nil, policy: Policy? = nil, owner: UInt64? = nil,
    at now: Instant
  ) {
    self.init(
      restoring: RestoredState(
        state: state, epoch: epoch, seed: seed, run: run,
        runs: [JournalRun(run: run, base: revision)],
        revision: revision, base: revision, sequence: 0),
      reducer: reducer, limits: limits, about: about, middleware: middleware,
      dependencies: dependencies, hasShellMetrics: hasShellMetrics, durability: durability,
      inFlight: inFlight, policy: policy, owner: owner, at: now)
  }

  /// A server that resumes from a restored state. Mirrors of former runs are resumed too, unless a
  /// former run may have had another policy.
  public init(
    restoring kept: RestoredState<R.State>, reducer: R, limits: Limits = Limits(),
    about: [(String, Value)] = [], middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues(), hasShellMetrics: Bool = false,
    durability: Durability = .none, inFlight: InFlightActionMarker? = nil, policy: Policy? = nil,
    isPolicyNew: Bool = false, owner: UInt64? = nil, at now: Instant
  ) {
    var setup = ServerSetup(kept, at: now)
    setup.limits = limits
    setup.about = about
    setup.hasShellMetrics = hasShellMetrics
    setup.durability = durability
    setup.policy = policy
    setup.isPolicyNew = isPolicyNew
    setup.owner = owner
    self.init(
      setup, reducer: reducer, middleware: middleware, dependencies: dependencies,
      inFlight: inFlight)
  }

  /// A server with a setup. Each action of a client is noted in `inFlight` before it is reduced.
  public init(
    _ setup: ServerSetup<R.State>, reducer: R,
    middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues(), inFlight: InFlightActionMarker? = nil
  ) {
    let (kept, limits, now) = (setup.kept, setup.limits, setup.time)
    facts = ServerFacts(setup, schema: R.schema)
    timeline = Timeline(epoch: kept.epoch, run: kept.run, runs: kept.runs)
    clock = ServerClock(at: now)
    authority = Authority(setup.policy, isNew: setup.isPolicyNew, owner: setup.owner)
    core = StoreCore(
      kept.state, reducer: reducer, middleware: middleware, seed: kept.seed,
      revision: kept.revision, sequence: kept.sequence, logCapacity: max(1, limits.logEntries),
      textBytes: limits.textBytes, dependencies: dependencies)
    connections = Roster(closedLimit: limits.closedConnections)
    users = UserTable(limits, at: now)
    sessions = SessionTable(
      limits, total: kept.sessionCount, reportsEvents: reducer.composedLifecycle.watchesSessions)
    publication = Publication(kept.history, at: kept.revision, limits)
    past = kept.past
    journaling = Journaling(
      setup.durability, base: kept.base, revision: kept.revision,
      ephemeral: EphemeralPaths(of: R.State.self), leftOut: kept.leftOut, durable: kept.durable,
      journaled: kept.journaledBytes, poisoned: kept.poisoned, suspects: kept.suspects,
      marker: inFlight, at: now)
    memory = StateMemory(limit: limits.stateBytes, read: kept.stateBytes)
    turn = Turn(waitingBudget: limits.waitingPerTurn)
    takeUp(kept)
  }

  public var limits: Limits { @inline(__always) _read { yield facts.limits } }
  var schema: Schema { @inline(__always) _read { yield facts.schema } }
  /// The newest state: a copy is a consistent snapshot, O(1).
  public var state: R.State { core.state }
  public var revision: UInt64 { core.revision }
  /// The hash seed of every collection of the state.
  public var seed: HashSeed { core.seed }
  public var position: Position { timeline.position(at: core.revision) }
  public var connectionCount: Int { connections.count }
  /// Whether the feature reacts to session events.
  public var watchesSessions: Bool { sessions.reportsEvents }

  #if FAULTS
    /// Make deliberate mistakes from now on: for tests that check the tests.
    package mutating func plant(_ faults: Faults) {
      self.faults = faults
      publication.faults = faults
      if faults.mislabelsFormerCheckpoints { past.mislabel() }
    }
  #endif

  /// The digest of the value at a path.
  public func digest(at path: Path = .root) -> Digest {
    Digest(core.state.digest(at: path, seed: core.seed))
  }

  /// Handle an event, and append the commands to execute. This is the only entry point, but for two that are
  /// like an event each: from equal initial servers, equal events give equal commands.
  public mutating func handle(
    _ event: Event<R.Action>, at now: Instant, into commands: inout [Command]
  ) {
    if case .handedOver = ending { return }
    advanceClock(to: now)
    switch event {
    case .opened(let id, let peer, let token): open(id, peer, token, &commands)
    case .received(let id, let bytes):
      bytes.withUnsafeBytes { receive(id, $0, at: now, into: &commands) }
    case .closed(let id): closed(id, &commands)
    case .blocked(let id, let unsent): blocked(id, unsent, &commands)
    case .drained(let id): drained(id, &commands)
    case .snapshotEncoded(let job, let frames, let wholeBytes):
      snapshotEncoded(job, frames, wholeBytes)
    case .snapshotImpossible(let job): snapshotImpossible(job, &commands)
    case .actionDecoded(let id, let action): actionDecoded(id, action)
    case .stateMeasured(let measure):
      memory.take(measure)
      if past.newest == nil { keepPast(&commands) }
    case .memoryMeasured(let reading): memory.take(reading)
    // As in `endTurn(at:into:)`.
    case .turnEnded: endTurn(&commands)
    case .journal(let news): hear(news, &commands)
    case .started(let start): begin(start, &commands)
    case .exited(let id): exited(id)
    case .policy(let policy): rule(by: policy, &commands)
    case .answered(let id, let query, let answer): answered(id, query, .report(answer), &commands)
    case .changeFound(let id, let query, let change):
      answered(id, query, .change(change), &commands)
    case .tick: tick(&commands)
    case .checkpointMade(let revision, let bytes): checkpointMade(bytes, at: revision)
    case .digestComputed: digestComputed()
    case .stop(let retryAfter): stop(retryAfter, &commands)
    case .acted(let action): _ = reduce(action, from: .owner)
    case .effectSent(let id, let action): hear(.sent(id, action), &commands)
    case .effectCancelled(let name): hear(.cancelled(name), &commands)
    case .effectEnded(let id, let error): hear(.ended(id, error: error), &commands)
    case .clockSet(let time): setWallClock(time)
    case .handingOver(let retryAfter):
      prepareHandOver(retryAfter: retryAfter, at: now, into: &commands)
    case .scopesReserved(let scopes): for scope in scopes { publication.scopes.reserve(scope) }
    case .inherited(let connection, let isTranslated):
      takeOver(connection, isTranslated: isTranslated, &commands)
    }
  }

  /// End a turn: like `Event.turnEnded`, without a copy of an event.
  public mutating func endTurn(at now: Instant, into commands: inout [Command]) {
    if case .handedOver = ending { return }
    advanceClock(to: now)
    endTurn(&commands)
  }

  /// Keep from now on what is dropped, for an owner that calls `takeRemains` after each turn. It is
  /// no part of what the server decides, and so no `Command`.
  public mutating func keepRemains() {
    core.keepRemains()
    publication.keepRemains()
    turn.remains = Remains()
  }

  /// Take what has been dropped since the last call and what takes long to release.
  public mutating func takeRemains() -> Remains {
    turn.remains.add(core.takeRemains())
    turn.remains.add(publication.takeRemains())
    return turn.remains.take()
  }

  @inline(__always)
  mutating func noteChange(_ revision: UInt64) {
    memory.note(turn.patch.bytes)
    publication.note(turn.patch.bytes, revision: revision)
  }

  /// Run an action, then the actions that it led to at once. Returns the outcome for the client at
  /// `place`, if one sent it.
  @inline(__always)
  mutating func reduce(
    _ action: consuming R.Action, from cause: Cause, isLogged: Bool = true,
    for answer: SessionAction? = nil, at place: Int? = nil
  ) -> Reduction {
    turn.clearPatch()
    var reduction = core.send(action, from: cause, isLogged: isLogged, patch: &turn.patch)
    if case .rejected(let rejection) = reduction, let place {
      reduction = .rejected(redacted(rejection, at: place))
    }
    note(reduction, answer)
    if core.hasWaiting { runWaiting() }
    return reduction
  }

  @inline(__always)
  mutating func note(_ reduction: Reduction, _ answer: SessionAction? = nil) {
    counters.actions += 1
    if journaling.records { record(reduction, answer) }
    switch reduction {
    case .changed(let revision):
      counters.changedBytes &+= turn.patch.bytes.count
      if turn.foreseen == nil { noteChange(revision) } else { noteForeseen(revision) }
    case .unchanged, .swallowed, .accepted: break
    case .rejected: counters.rejected += 1
    }
  }
}
