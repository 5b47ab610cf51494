public import Access
public import DaemonCore
public import EventLoop
public import Glibc
import Journal
public import Lockstep
public import Logging
import Records
import SocketPaths
import Systemd
public import Values
import Wire

/// The shell around a `Server`: turns operating-system happenings into events, and commands into
/// system calls. Lives on its loop's thread.
public final class Daemon<R: Reducer> {
  public let loop: Loop
  var server: Server<R>
  let logger: Logger
  private var listeners: [Listener] = []
  private var claim: SocketClaim?
  /// The error since the last accepted connection, if any.
  var lastAcceptError: LoopError?
  private var ticker: EventLoop.Timer?
  /// Pipes that were sent goodbye, with the time at which they are closed even if it is unread.
  var parting: [ConnectionID: (pipe: Pipe, deadline: Instant)] = [:]
  var processes: [ConnectionID: ProcessWatcher] = [:]
  var nextConnection: UInt64 = 0
  /// Whether the state was restored or handed over, and is not an initial one.
  private(set) var isGoingOn = false
  var stopDeadline: Instant?
  var effects = EffectTasks()
  let journal: JournalWriter?
  /// The kind of start that the feature is told of.
  private let start: Start
  private let marker: MarkerFile?
  /// The shell's metrics, in the text format of OpenMetrics.
  private let metrics: (@Sendable () -> String)?
  private let recording: RecordingFile?
  /// The number of snapshots that were begun to heal the journal.
  var healings: UInt64 = 0
  /// Called when every durable acknowledgement has been sent: the daemon may say goodbye.
  private var flushHandler: (() -> Void)?
  var service: ServiceManager?
  /// Grants memory to work off the loop.
  private(set) lazy var memoryDesk = MemoryDesk { [unowned self] in server.jobMemory }
  /// The state with which the process began, and its revision, until that is known to be kept for the
  /// past or to be too large for it.
  var firstState: (state: R.State, revision: UInt64)?
  /// Looks at the state and its past that clients have asked for.
  var inspections = InspectionQueue()
  /// The time at which the allocator last returned its free memory.
  var lastTrim = Instant(nanoseconds: 0)
  /// Connections of a former process, until they are served.
  var inheritance: InheritedConnections<R.State>?
  /// Reloads the policy file on request; nil if there is none.
  var policyReloader: PolicyReloader?
  /// Whether bytes that sockets do not take are handed over to the next process.
  var isHandingOver = false
  var random = SystemRandomNumberGenerator()
  // Each is used for an instant, by what runs no code of others: no two accesses can overlap, and the
  // check would cost a round trip more than the accesses themselves.
  @exclusivity(unchecked) var pipes: [ConnectionID: Pipe] = [:]
  /// Reused by every call into the server that commands nothing or little. Changed by swaps alone.
  @exclusivity(unchecked) private var spare: [Command] = []
  /// Whether the server has had an event since its last turn ended, or asked for another turn.
  @exclusivity(unchecked) var hasNews = false
  /// Events that came while commands were executed.
  @exclusivity(unchecked) private var events: [Event<R.Action>] = []
  @exclusivity(unchecked) private var isExecuting = false
  /// Connections that have ended by themselves, and are to be forgotten.
  @exclusivity(unchecked) var ended = EndedConnections()
  /// Whether to check after the commands if the daemon is done.
  @exclusivity(unchecked) private var mayBeDone = false
  /// Whether it has stopped, but for what the journal has still to write: no turn ends any more.
  @exclusivity(unchecked) private var isEnding = false

  /// A daemon for a feature, with a new epoch. Nothing is served until `serve`. Without a policy,
  /// only the process's own user and root may connect.
  public convenience init<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    dependencies: DependencyValues = .live, limits: Limits = Limits(),
    about: [(String, Value)] = [], metrics: (@Sendable () -> String)? = nil,
    policy: Policy? = nil, logger: Logger, on loop: Loop,
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R
  ) where R: Reducer<FeatureState, FeatureAction> {
    var random = SystemRandomNumberGenerator()
    let server = Server(
      initialState, reducer: reducer(), seed: HashSeed(random.next()), epoch: random.next(),
      limits: limits, about: about, middleware: middleware, dependencies: dependencies,
      hasShellMetrics: metrics != nil, policy: policy ?? Self.standardPolicy, at: Self.now())
    self.init(
      server, .first, metrics: metrics, recording: nil, journal: nil, marker: nil, logger: logger,
      on: loop)
    begin()
  }

  /// A daemon that persists its state, if `keeping` says where, and resumes from the state that a
  /// former run has journaled or handed over through the service manager; `initialState` begins a
  /// new epoch if there is none, and is not evaluated otherwise. `progress` is called now and then
  /// while it reads. All its events are written to `recording`, if there is one.
  ///
  /// Throws an error that says what to do if the directory cannot be used or its contents
  /// contradict each other. O(the state and the changes since its snapshot).
  public convenience init<FeatureState, FeatureAction>(
    initialState: @autoclosure () throws -> FeatureState,
    middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    dependencies: DependencyValues = .live, limits: Limits = Limits(),
    about: [(String, Value)] = [], metrics: (@Sendable () -> String)? = nil,
    policy: Policy? = nil, persistence: PersistenceOptions?, service: ServiceManager? = nil,
    recording: RecordingFile? = nil, progress: @escaping () -> Void = {}, logger: Logger,
    on loop: Loop, @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R
  ) throws where R: Reducer<FeatureState, FeatureAction> {
    let beginning = try Startup<R.State>(
      { try initialState() }, persistence: persistence, service: service, schema: R.schema,
      limits: limits, logger: logger, progress: progress)
    let marker = beginning.journal?.marker
    let isPolicyNew = policy != nil || (marker?.hasHadPolicy ?? (beginning.inheritance != nil))
    if policy != nil { marker?.notePolicy() }
    var setup = ServerSetup(beginning.kept, at: Self.now())
    // Where there is plenty of memory, it does not matter that the state may have fewer bytes, nor that
    // what was freed since it was read still counts as taken.
    if !Memory.canAllocate(8 * setup.kept.stateBytes) {
      Memory.trim()
      if setup.kept.state is any Measurable {
        setup.kept.stateBytes = StateMeasure(of: setup.kept.state).encoded
      }
    }
    setup.limits = limits
    setup.about = about
    setup.hasShellMetrics = metrics != nil
    setup.durability = persistence?.durability ?? .none
    setup.policy = policy ?? Self.standardPolicy
    setup.isPolicyNew = isPolicyNew
    setup.owner = UInt64(geteuid())
    let server = Server<R>(
      setup, reducer: reducer(), middleware: middleware, dependencies: dependencies,
      inFlight: marker?.inFlight)
    let news = JournalEventRelay(loop)
    let access = try beginning.openJournal(server.pendingSnapshot)
    let writer = try access.map {
      try JournalWriter($0, logged: setup.limits.logEntries) { news.tell($0) }
    }
    // When nothing can prevent the start any more: the recording of the former process is kept until
    // then.
    try recording?.begin(setup, schema: R.schema)
    self.init(
      server, beginning.start, metrics: metrics, recording: recording, journal: writer,
      marker: marker, logger: logger, on: loop)
    begin()
    self.service = service
    inheritance = beginning.inheritance
    isGoingOn = !beginning.isNew
    if case .later(_, let obstacle)? = access { tell(.journal(.failed("\(obstacle)"))) }
    let daemon = Unchecked(self)
    news.receiver = { daemon.value?.hear($0) }
  }

  /// Designated, so it does nothing else, as that of `Replay`.
  private init(
    _ server: Server<R>, _ start: Start, metrics: (@Sendable () -> String)?,
    recording: RecordingFile?, journal: JournalWriter?, marker: MarkerFile?, logger: Logger,
    on loop: Loop
  ) {
    self.recording = recording
    self.metrics = metrics
    self.loop = loop
    self.logger = logger
    self.server = server
    self.start = start
    self.journal = journal
    self.marker = marker
  }

  /// Every initialiser but the designated one calls it, as soon as there is a daemon.
  private func begin() {
    if start == .first, server.isSmall {
      firstState = (server.state, server.revision)
    }
    server.keepRemains()
    tell(.clockSet(.now))
  }

  private static var standardPolicy: Policy { .standard(owner: UInt64(geteuid())) }

  static func now() -> Instant { Instant(nanoseconds: Loop.monotonicNanoseconds()) }

  // MARK: Serving

  /// Listen on a path until `stop`. The socket's file gets these permissions. From now on the loop holds
  /// the daemon, until it has stopped or the loop has.
  public func serve(at path: String, mode: mode_t) throws {
    try SocketPath.check(path)
    claim = try SocketClaim(path)
    let listener = try Listener.bind(
      path: path, mode: mode, backlog: 1024, on: loop,
      onConnection: { [unowned self] pipe in accept(pipe) })
    try serve([listener], at: path)
  }

  /// Accept on listening sockets that the service manager has made, until `stop`. Their files
  /// belong to the manager.
  public func serve(on descriptors: [Int32]) throws {
    let listeners = try descriptors.map { descriptor in
      try Listener.adopt(
        descriptor: descriptor, on: loop,
        onConnection: { [unowned self] pipe in accept(pipe) })
    }
    try serve(listeners, at: "the service manager's")
  }

  private func serve(_ listeners: [Listener], at path: String) throws {
    for listener in listeners {
      listener.onAcceptError = { [unowned self] error in
        // Accepting is retried: log each error once.
        if lastAcceptError == error { return }
        lastAcceptError = error
        logger.error("cannot accept a connection", metadata: ["reason": "\(error)"])
      }
    }
    self.listeners = listeners
    let ticker = EventLoop.Timer(on: loop) { [unowned self] in tick() }
    ticker.start(after: .seconds(1), repeating: .seconds(1))
    self.ticker = ticker
    // Strong, so that the loop holds the daemon until it has stopped. A reference that is `unowned` would
    // be counted in each turn, and the slow way, for there are weak references too.
    loop.onTurnEnd = {
      if self.loop.isTurningAgain { self.hasNews = true }
      self.endTurn()
    }
    // The connections of the former process come first: a feature's first action is news to them.
    takeOver()
    tell(.memoryMeasured(Memory.reading))
    tell(.started(start))
    logger.notice(
      "serving",
      metadata: [
        "socket": "\(path)", "pid": .number(getpid()), "position": "\(server.position)",
        "digest": "\(server.digest())",
      ])
    endTurn()
    service?.ready(status: status, on: loop)
  }

  private var status: String {
    let trouble = policyReloader?.trouble.map { "; the policy file is refused: \($0)" } ?? ""
    return "revision \(server.revision), \(server.connectionCount) clients\(trouble)"
  }

  /// Say goodbye to every client and let the loop end when they have gone, or soon after.
  ///
  /// Promised durability is flushed before clients are told, and so is the end of the history. A
  /// second call stops at once.
  public func stop(retryAfter: UInt64? = 1000) {
    guard stopDeadline == nil else { return loop.stop() }
    logger.notice("stopping", metadata: ["clients": .number(server.connectionCount)])
    service?.stopping("stopping")
    closeListeners()
    forgetAllEnded()
    endTurn()
    stopDeadline = Self.now() + server.limits.goodbyeDeadline
    whenFlushed { [unowned self] in
      tell(.stop(retryAfter: retryAfter))
      endTurn()
      endIfDone()
    }
  }

  /// Replace the policy, also for clients that are connected.
  public func rule(by policy: Policy) {
    tell(.policy(policy))
    endTurn()
  }

  func closeListeners() {
    for listener in listeners { listener.close(unlink: true) }
    listeners = []
  }

  /// Whether it has been told to stop.
  public var isStopping: Bool { stopDeadline != nil }

  /// Call `body` when no turn is being written to the disk, or at the deadline.
  func whenFlushed(_ body: @escaping () -> Void) {
    guard server.isKeepingTurns else { return body() }
    flushHandler = body
  }

  private func hear(_ news: JournalEvent) {
    tell(.journal(news))
    guard flushHandler != nil else { return }
    endTurn()
    if !server.isKeepingTurns { callFlushHandler() }
  }

  private func callFlushHandler() {
    guard let body = flushHandler else { return }
    flushHandler = nil
    body()
  }

  func endIfDone() {
    // The end of the process must not begin in the middle of a turn's commands.
    if isExecuting { return mayBeDone = true }
    guard let deadline = stopDeadline, flushHandler == nil || Self.now() > deadline else { return }
    callFlushHandler()
    guard pipes.isEmpty && parting.isEmpty || Self.now() > deadline, !isEnding else { return }
    isEnding = true
    effects.cancelAll()
    ticker?.close()
    service?.close()
    guard let journal else { return end(.noted) }
    let daemon = Unchecked(self)
    journal.add(
      .end(revision: server.revision) { [loop] runEnd in
        loop.execute { daemon.value?.end(runEnd) }
      })
  }

  private func end(_ runEnd: JournalWriter.RunEnd) {
    switch runEnd {
    case .noted: break
    case .unnoted:
      logger.warning(
        "every change is kept, but not that this run ended: the next one begins as after a crash")
    case .changesLost: logger.error("the last changes could not be kept")
    }
    logger.notice("stopped", metadata: ["position": "\(server.position)"])
    recording?.end(revision: server.revision, digest: server.digest())
    journal?.close()
    claim = nil
    loop.stop()
    loop.onTurnEnd = nil
  }

  // MARK: Events

  /// Hand the server an event, and execute its commands. Events that these cause are handled after
  /// the last of those commands, before anything else, so that the server is never re-entered.
  func tell(_ event: Event<R.Action>) {
    hasNews = true
    if isExecuting { return events.append(event) }
    var commands: [Command] = []
    handle(event, into: &commands)
    execute(commands)
    runEvents()
  }

  /// Handle the events that came while commands were executed, and those that follow from them.
  private func runEvents() {
    if !events.isEmpty {
      var next = 0
      while next < events.count {
        let event = events[next]
        next += 1
        var commands: [Command] = []
        handle(event, into: &commands)
        execute(commands)
      }
      events.removeAll(keepingCapacity: next < 1024)
    }
    seeIfDone()
  }

  private func seeIfDone() {
    guard mayBeDone else { return }
    mayBeDone = false
    endIfDone()
  }

  /// The only entry to the recording; and to the server, but for bytes and the ends of turns while nothing is
  /// recorded.
  @inline(__always)
  private func handle(_ event: Event<R.Action>, into commands: inout [Command]) {
    let now = Self.now()
    recording?.note(event, at: now)
    server.handle(event, at: now, into: &commands)
    recording?.note(commands[...], revision: server.revision)
  }

  /// Collect commands in reused memory, and execute them.
  @inline(__always)
  private func executeCommands(_ collect: (inout [Command]) -> Void) {
    // Moved out, so that nothing is copied when a command leads back here.
    var commands: [Command] = []
    swap(&commands, &spare)
    collect(&commands)
    execute(commands)
    commands.removeAll(keepingCapacity: true)
    swap(&commands, &spare)
    runEvents()
  }

  private func execute(_ commands: [Command]) {
    isExecuting = true
    for command in commands { execute(command) }
    isExecuting = false
  }

  func receive(_ id: ConnectionID, _ bytes: UnsafeRawBufferPointer) {
    hasNews = true
    executeCommands { commands in
      if recording == nil {
        server.receive(id, bytes, at: Self.now(), into: &commands)
      } else {
        handle(.received(id, Array(bytes)), into: &commands)
      }
    }
  }

  private func tick() {
    // Wall clocks are adjusted from time to time.
    tell(.clockSet(.now))
    tell(.tick)
    if stopDeadline == nil { service?.show(status) }
    let now = Self.now()
    for id in [ConnectionID](parting.keys).inOrder {
      if let deadline = parting[id]?.deadline, now > deadline { forget(id) }
    }
    endIfDone()
  }

  func endTurn() {
    guard hasNews, !isEnding else { return }
    hasNews = false
    executeCommands { commands in
      if recording == nil {
        server.endTurn(at: Self.now(), into: &commands)
      } else {
        handle(.turnEnded, into: &commands)
      }
    }
    if !effects.unheard.isEmpty, !server.holdsEffects { effects.letGoOn() }
    marker?.clearInFlight()
    loop.readLength = server.readBytes
    releaseRemains()
    // A command may have caused an event at once, and without another event the turn would not end
    // for a second.
    if hasNews { wake() }
    // After the turn, whose changes are kept now: with the last connection, the daemon may end.
    if !ended.isEmpty { forgetEnded() }
  }

  // MARK: Commands

  func execute(_ command: Command) {
    switch command {
    case .send(let id, let frames): send(frames, to: id)
    case .close(let id): part(id)
    case .abort(let id): forget(id)
    case .pauseReading(let id): pipes[id]?.stopReading()
    case .resumeReading(let id): pipes[id]?.resumeReading()
    case .effect(let order): execute(order)
    case .wake: wake()
    case .unwatch(let id): processes.removeValue(forKey: id)?.close()
    case .encodeSnapshot(let job): encode(job)
    case .decodeAction(let id): decodeAction(id)
    case .measureState: measureState()
    case .makeCheckpoint: makeCheckpoint()
    case .computeDigest: computeDigest()
    case .measureMemory: measureMemory()
    case .keep(let batch): journal?.add(.batch(batch))
    case .keepSnapshot(let heals): keepSnapshot(heals: heals)
    case .reopenJournal: journal?.add(.reopen)
    case .answer(let id, let query, .reloadPolicy): reloadPolicy(for: id, query)
    case .answer(let id, let query, .metrics(let text)):
      answer(id, query, .text(text + (metrics?() ?? "") + OpenMetrics.end))
    case .answer(let id, let query, let asked):
      guard let uid = asked.uid else { return }
      inspections.add(.init(connection: id, query: query, asked: asked, uid: uid))
      beginInspection()
    case .log(let line): logger.log(line)
    }
  }

  /// Reload the policy because a client asks, and send it the result.
  private func reloadPolicy(for id: ConnectionID, _ query: UInt64) {
    guard let policyReloader else {
      let error = ReportError(.absent, "there is no policy file: give one with --policy")
      return answer(id, query, error.report)
    }
    policyReloader.reload { [unowned self] in answer(id, query, $0) }
  }

  func answer(_ id: ConnectionID, _ query: UInt64, _ report: Value) {
    tell(.answered(id, query: query, report.encoded))
  }
}
