import CBOR
import DaemonCore
import Lockstep
import Records
import Values
import Wire

/// The shell around the server, in the role of the real `Daemon`.
extension Simulation {
  enum Beginning {
    /// A new epoch.
    case anew
    /// The history resumes from the durable revision.
    case again
  }

  /// Start the daemon's process.
  mutating func start(_ beginning: Beginning) throws(SimulationFailure) {
    starts += 1
    isStopping = false
    changesAt = nil
    var key = ledger.current
    let state: R.State
    let seed: HashSeed
    switch beginning {
    case .again where plan.durability != .none: return try restart()
    case .anew:
      key = .init(epoch: random.next(), run: 1)
      (state, seed, durable) = (feature.initial(), HashSeed(random.next()), 0)
    case .again:
      // Invariant: what is durable was a state of the newest run.
      state = ledger.newest.state(at: durable).unsafelyUnwrapped
      seed = ledger.newest.seed
      key.run += 1
      count("restarts")
    }
    begin(
      RestoredState(
        state: state, epoch: key.epoch, seed: seed, run: key.run,
        runs: [JournalRun(run: key.run, base: durable)], revision: durable, base: durable,
        sequence: 0))
    guard let server = daemon?.server else { return }
    ledger.begin(key, server.state, seed: seed, at: durable)
    if plan.durability != .none {
      let (head, bytes) = server.pendingSnapshot.encode()
      disk.create(
        head, bytes, epoch: key.epoch, seed: seed,
        run: JournalRun(run: key.run, base: 0), order: ledger.order)
    }
    try tell(.started(beginning == .anew ? .first : hasCrashed ? .crashed : .restarted))
  }

  var middleware: [any Middleware<R.State, Tagged<R.Action>>] {
    let gate = WitnessGate<R.State, R.Action>(log: log)
    return [gate] + feature.middleware.map { WitnessMiddleware(base: $0, log: log) }
  }

  /// Hand the daemon its own start, or an event of its own process.
  mutating func tell(_ event: Event<Tagged<R.Action>>) throws(SimulationFailure) {
    let commands = handle(event)
    try enterWork(isDirect: true)
    for command in commands { try perform(command) }
  }

  /// Ask the daemon to stop; its process ends some time later.
  mutating func stop() throws(SimulationFailure) {
    count("stops")
    isStopping = true
    served = nil
    let retryAfter = chance(500) ? nil : UInt64(below(3000))
    try deliver(.stop(retryAfter: retryAfter))
    try deliver(.turnEnded)
    changesAt = now + .milliseconds(Int64.random(in: 0...500, using: &random))
  }

  /// End the process at once. Some revisions may be lost.
  mutating func crash() {
    count("crashes")
    durable = UInt64.random(in: durable...ledger.newest.newest, using: &random)
    disk.crash(after: Int.random(in: 0...disk.queue.count, using: &diskRandom))
    hasCrashed = true
    end()
  }

  private mutating func end() {
    note(1, UInt64(links.count))
    endRecording()
    daemon = nil
    jobs = []
    decodings = []
    blocked = []
    measured = nil
    isDigestComputed = false
    checkpoint = nil
    (administrator.isConnected, administrator.isClosed) = (false, false)
    (administrator.found, administrator.looked) = (nil, [])
    abandonEffects()
    for place in links.indices {
      links[place].abort()
      links[place].closedIsTold = true
      let count = links[place].toClient.count
      if chance(300) { links[place].toClient.removeLast(count - below(count + 1)) }
    }
    changesAt = now + .milliseconds(Int64.random(in: 0...3000, using: &random))
  }

  /// Stop or start the process when its time has come.
  mutating func changeProcess() throws(SimulationFailure) {
    guard let time = changesAt, now > time else { return }
    if daemon == nil {
      try start(chance(200) ? .anew : .again)
    } else {
      durable = ledger.newest.newest
      disk.end(at: durable)
      hasCrashed = false
      end()
    }
  }

  // MARK: Events

  /// A turn: some of what has arrived is read, in any order.
  mutating func turn() throws(SimulationFailure) {
    guard daemon != nil else { return }
    served = daemon?.server.load.due ?? []
    var order = links.map(\.id)
    order.shuffle(using: &random)
    let effectsComeFirst = effects.isBusy && chance(500)
    if effectsComeFirst { try deliverEffects() }
    for id in order where isKind || !chance(300) { try serve(id) }
    if !effectsComeFirst { try deliverEffects() }
    try deliverNews()
    while !jobs.isEmpty, isKind || chance(300) {
      served = nil
      let job = jobs.remove(at: below(jobs.count))
      let (frames, wholeBytes) = job.measured()
      try deliver(.snapshotEncoded(job.id, frames, wholeBytes: wholeBytes))
    }
    while !decodings.isEmpty, isKind || chance(500) {
      served = nil
      let (id, job) = decodings.removeFirst()
      try deliver(.actionDecoded(id, job?.decoded()))
    }
    if let measure = measured {
      measured = nil
      served = nil
      try deliver(.stateMeasured(measure))
    }
    if isDigestComputed {
      isDigestComputed = false
      served = nil
      try deliver(.digestComputed)
    }
    if let (revision, bytes) = checkpoint {
      checkpoint = nil
      served = nil
      try deliver(.checkpointMade(revision, bytes))
    }
    try deliverFound()
    try deliverLooks()
    if !(now < lastTick + .seconds(1)) {
      lastTick = now
      served = nil
      try deliver(.tick)
      try checkPast()
    }
    try administer()
    isWoken = false
    try deliver(.turnEnded)
    served = nil
  }

  private mutating func serve(_ id: ConnectionID) throws(SimulationFailure) {
    guard let place = place(of: id) else { return }
    if links[place].closedIsTold { return }
    if !links[place].daemonIsOpen { return try finish(place) }
    if links[place].isBlocked && links[place].unsent.isEmpty && !links[place].isCut {
      links[place].isBlocked = false
      served?.append(id)
      try deliver(.drained(id))
    }
    if !links[place].toDaemon.isEmpty, !links[place].isPaused {
      let bytes = Link.take(
        portion(links[place].toDaemon.count), from: &links[place].toDaemon)
      served?.append(id)
      note(bytes)
      try deliver(.received(id, bytes))
    } else if !links[place].clientIsOpen || links[place].isCut && (isKind || chance(250)) {
      // The end of the stream is read, or a write fails.
      links[place].abort()
      try finish(place)
    }
  }

  private mutating func finish(_ place: Int) throws(SimulationFailure) {
    links[place].closedIsTold = true
    served = nil
    try deliver(.closed(links[place].id))
  }

  /// Hand the server an event, and execute its commands.
  mutating func deliver(_ event: Event<Tagged<R.Action>>) throws(SimulationFailure) {
    let isTurnEnd = if case .turnEnded = event { true } else { false }
    catchingUp = isTurnEnd ? daemon?.server.load.catchingUp ?? [] : []
    let commands = handle(event)
    try enterWork()
    if isTurnEnd { try checkEffects(commands) }
    for command in commands { try perform(command) }
    // Bytes that a socket does not take are reported after the commands, as a real shell does.
    while !blocked.isEmpty {
      let id = blocked.removeFirst()
      guard let place = place(of: id) else { continue }
      try deliver(.blocked(id, unsent: links[place].unsent.count))
      guard links[place].isPaused else {
        throw failure("connection \(id.rawValue) does not read, and is read from")
      }
    }
    if isTurnEnd {
      try checkOrder(commands)
      try checkLimits()
    }
  }

  // MARK: Commands

  mutating func perform(_ command: Command) throws(SimulationFailure) {
    switch command {
    case .send(Administrator.id, _): break
    case .send(let id, let frames): try transmit(id, frames)
    case .close(Administrator.id), .abort(Administrator.id): administrator.isClosed = true
    case .close(let id):
      guard let place = place(of: id) else { return }
      links[place].isClosing = true
      links[place].pump()
      if !links[place].clientIsOpen { links[place].abort() }
    case .abort(let id):
      if let place = place(of: id) { links[place].abort() }
    case .pauseReading(let id):
      if let place = place(of: id) { links[place].isPaused = true }
    case .resumeReading(let id):
      if let place = place(of: id) { links[place].isPaused = false }
    case .encodeSnapshot(let id):
      count("jobs")
      if let job = daemon?.server.snapshot(for: id) { jobs.append(job) }
    case .decodeAction(let id):
      count("large actions")
      decodings.append((id, chance(100) ? nil : daemon?.server.action(for: id)))
    case .makeCheckpoint:
      count("checkpoints")
      checkpoint = daemon.map { daemon in
        var encoder = CBOREncoder()
        daemon.server.state.encode(into: &encoder)
        return (daemon.server.revision, encoder.bytes)
      }
    case .computeDigest:
      count("digests")
      isDigestComputed = true
    case .measureState: measured = (daemon?.server.state).map { StateMeasure(of: $0) }
    case .effect(let order): try perform(order)
    case .keep(let batch): disk.add(.batch(batch, order: ledger.order))
    case .keepSnapshot(let heals):
      count("kept snapshots")
      guard let (head, bytes) = daemon?.server.pendingSnapshot.encode() else { return }
      disk.add(.snapshot(head, bytes, heals: heals, order: ledger.order))
    case .reopenJournal: disk.add(.reopen)
    case .wake: isWoken = true
    case .answer(Administrator.id, let query, let asked): find(asked, for: query)
    // Other queries that only a process can answer are not made here.
    case .unwatch, .answer, .measureMemory: break
    case .log(let line):
      if line.level >= .warning { count("log: \(line.message.prefix { $0 != ":" })") }
    }
  }

  private mutating func transmit(
    _ id: ConnectionID, _ frames: Frames
  ) throws(SimulationFailure) {
    guard let place = place(of: id), links[place].daemonIsOpen, !links[place].isClosing else {
      throw failure("sent to connection \(id.rawValue), which is closed")
    }
    try checkFrames(frames, to: links[place])
    note(id.rawValue)
    for frame in frames {
      note(frame)
      links[place].write(frame)
    }
    guard !links[place].unsent.isEmpty else { return }
    count("blocks")
    links[place].isBlocked = true
    blocked.append(id)
  }
}
