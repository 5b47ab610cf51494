import ClientCore
import DaemonCore
public import Lockstep
public import Values
import Wire

// Theory of operation
//
// A simulation is one thread, one random generator, and no clock: a real `Server` and real
// `ClientSession`s, joined by a simulated network, in simulated time. Each step picks one thing
// that could happen next (a turn of the daemon with some of the bytes that have arrived, a client
// reading some of its input, a user's action, a cut, a crash) and lets it happen. Everything that
// the daemon, the clients and the network do follows from the seed, so a failure repeats.
//
// At the end the world becomes kind: there are no more faults, and every client reads. Then
// everything must come to rest, with every mirror equal to the state.

/// A run of a daemon, its clients and the network between them, determined by a seed.
///
///     let report = try Simulation(seed: 42, of: .document).run(steps: 1000)
public struct Simulation<R: Reducer, Mirrored: Synchronizable>: Sendable {
  public let seed: UInt64
  public let plan: SimulationPlan
  let feature: SimulatedFeature<R, Mirrored>

  var random: SplitMix64
  var now = Instant(nanoseconds: 1_000_000_000)
  var step = 0
  var trace: UInt64 = 0
  var counts: [String: Int] = [:]
  /// Whether injected faults are over.
  var isKind = false
  /// Whether sockets take everything, in a round without faults. They do in each second one: a client that
  /// catches up over several turns cannot always take the rest at once.
  var socketsAreLarge = false
  /// Whether a test drives the clients, each of which sees everything.
  var isDriven = false
  /// Whether the clients that a test drives can show actions before they are answered.
  var areOptimistic = false

  // The daemon's process.
  var daemon: SimulatedDaemon<R>?
  let log = WitnessLog<R.State>()
  /// The recording of the daemon's process, if the plan asks for one, and those of former
  /// processes.
  var recording: [UInt8]?
  var recordings: [[UInt8]] = []
  var ledger = Ledger<R.State>()
  var jobs: [SnapshotJob<R.State>] = []
  /// The large actions that are being decoded; nil where the server is to do it itself.
  var decodings: [(id: ConnectionID, job: ActionJob<Witness<R>>?)] = []
  /// The result of measuring the state, which the daemon has not got yet.
  var measured: StateMeasure?
  var isDigestComputed = false
  /// The checkpoint of the state that the daemon has not got yet.
  var checkpoint: (revision: UInt64, bytes: [UInt8])?
  var lastTick = Instant(nanoseconds: 0)
  /// The time at which the process ends or starts.
  var changesAt: Instant?
  var isStopping = false
  var hasCrashed = false
  /// The newest revision that would survive a crash if there is no journal: as the seed allows.
  var durable: UInt64 = 0
  var disk = SimulatedDisk()
  /// Decides what the disk does, and which clients want which actions to be durable.
  var diskRandom: SplitMix64
  var starts = 0
  /// The number of times that the past was looked at.
  var looks: UInt64 = 0
  var administrator = Administrator()
  /// Whether an action changed the state although the daemon was paused.
  var hasChangedWhilePaused = false
  /// Connections that were read from in this turn, in order; nil if something else may decide the
  /// order of sending.
  var served: [ConnectionID]? = []
  /// Connections whose sockets did not take everything, still to be reported to the daemon.
  var blocked: [ConnectionID] = []
  /// Connections that are sent more in this turn although they do not read.
  var catchingUp: [ConnectionID] = []
  let clock = SimulatedClock()
  let dependencies: DependencyValues
  /// Those of the reducer in clients that a test drives, which draw nothing from the daemon's.
  var clientDependencies: DependencyValues?
  var effects: SimulatedEffects<Tagged<R.Action>>
  /// Whether the daemon has more work than one turn should do.
  var isWoken = false
  /// The number of actions of effects and middleware that have waited, and have run in this turn.
  var waited = 0
  /// Whether effects may wait for something that only the test provides.
  var effectsMayWait = false

  // The clients and the network.
  var clients: [SimulatedClient] = []
  var strangers: [Stranger] = []
  var nextIdentity: UInt64 = 1
  /// What was shown last, by client and mirror: a `PredictedState` of the whole or of a part.
  var predictions: [Tag: any Sendable] = [:]
  var nextConnection: UInt64 = 1
  /// Sorted by identifier.
  var links: [Link] = []

  /// The world of a seed. `adjust` may change what the seed has drawn.
  public init(
    seed: UInt64, of feature: SimulatedFeature<R, Mirrored>,
    _ adjust: (inout SimulationPlan) -> Void = { _ in }
  ) {
    self.seed = seed
    self.feature = feature
    random = SplitMix64(seed)
    var plan = SimulationPlan(using: &random)
    // From a separate generator, so that the seed's other decisions do not change.
    var other = SplitMix64(~seed)
    plan.drawEffectLimits(using: &other)
    diskRandom = SplitMix64(Hashing.mix(seed))
    plan.drawDisk(using: &diskRandom)
    adjust(&plan)
    self.plan = plan
    effects = SimulatedEffects(run: 1, on: SeededExecutor(), clock: clock)
    clock.move(to: .init(offset: .nanoseconds(Int64(clamping: now.nanoseconds))))
    dependencies = DependencyValues(simulating: clock, seed: other.next(), feature.dependencies)
  }

  /// Run this many steps, then let everything come to rest.
  public mutating func run(steps: Int) throws(SimulationFailure) -> SimulationReport {
    try begin()
    for _ in 0..<steps { try advance() }
    try rest()
    try replay()
    count("revisions", Int(clamping: ledger.newest.newest))
    return SimulationReport(seed: seed, steps: step, trace: trace, counts: counts)
  }

  mutating func begin() throws(SimulationFailure) {
    effects.executor.enter()
    if areOptimistic {
      clientDependencies = DependencyValues(
        simulating: clock, seed: Hashing.mix(~seed), feature.dependencies)
    }
    try start(.anew)
    for _ in 0..<plan.clients { addClient() }
  }

  // MARK: Helpers

  mutating func chance(_ thousandths: Int) -> Bool {
    thousandths > 0 && Int.random(in: 0..<1000, using: &random) < thousandths
  }

  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

  /// How many of `count` bytes arrive now: often all, often few.
  mutating func portion(_ count: Int) -> Int {
    if isKind { return count }
    return switch below(4) {
    case 0: min(count, 1 + below(8))
    case 1: 1 + below(count)
    default: count
    }
  }

  mutating func note(_ first: UInt64, _ second: UInt64 = 0) {
    trace = Hashing.mix(trace &+ Hashing.mix(first &+ Hashing.mix(second)))
  }

  mutating func note(_ bytes: [UInt8]) {
    note(bytes.withUnsafeBytes { Hashing.sip($0, seed: .unseeded) }, UInt64(bytes.count))
  }

  mutating func count(_ name: String, _ number: Int = 1) {
    counts[name, default: 0] += number
  }

  private var advice: String? {
    isDriven ? "It happens again with seed: \(seed) and the same calls in the same order." : nil
  }

  func failure(_ message: String) -> SimulationFailure {
    SimulationFailure(seed: seed, step: step, message: message, advice: advice)
  }

  func place(of id: ConnectionID) -> Int? {
    var low = 0
    var high = links.count
    while low < high {
      let middle = (low + high) / 2
      if links[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < links.count && links[low].id == id ? low : nil
  }

  // MARK: Steps

  /// Let one thing happen.
  mutating func advance() throws(SimulationFailure) {
    step += 1
    effects.executor.enter()
    pass(
      Int64.random(
        in: 0...plan.longestPause.components.attoseconds / 1_000_000_000,
        using: &random))
    if chance(3) { pass(Int64.random(in: 0...5_000_000_000, using: &random)) }
    try changeProcess()
    try connectClients()
    try misfortune()
    try work()
    switch below(10) {
    case 0...3: try turn()
    case 4...6:
      if !clients.isEmpty { try read(below(clients.count)) }
    case 7, 8:
      if !clients.isEmpty { try act(below(clients.count)) }
    default:
      if !clients.isEmpty { try tick(below(clients.count)) }
      strangersRead()
    }
    sweep()
  }

  mutating func pass(_ nanoseconds: Int64) {
    now = Instant(nanoseconds: now.nanoseconds + UInt64(nanoseconds))
    clock.move(to: .init(offset: .nanoseconds(Int64(clamping: now.nanoseconds))))
  }

  private mutating func misfortune() throws(SimulationFailure) {
    if chance(plan.cuts), !links.isEmpty { cut(below(links.count)) }
    if chance(plan.stalls), !links.isEmpty {
      count("stalls")
      links[below(links.count)].stalledUntil =
        now + .milliseconds(Int64.random(in: 1...4000, using: &random))
    }
    if chance(plan.stops), changesAt == nil, daemon != nil { try stop() }
    if chance(plan.crashes), daemon != nil { crash() }
    if chance(plan.clones), !clients.isEmpty { try clone(below(clients.count)) }
    if chance(plan.strangers), strangers.count < 3 { try addStranger() }
    if chance(plan.closes), !clients.isEmpty { try close(below(clients.count)) }
    if chance(plan.trials), clients.count > 1 { try trial(below(clients.count)) }
    while clients.count(where: { !$0.isGhost }) < plan.clients { addClient() }
  }

  /// Break a connection: bytes that neither end has read yet are lost, from any byte on.
  private mutating func cut(_ place: Int) {
    count("cuts")
    links[place].isCut = true
    links[place].unsent = []
    links[place].pump()
    let (out, back) = (links[place].toDaemon.count, links[place].toClient.count)
    links[place].toDaemon.removeLast(out - below(out + 1))
    links[place].toClient.removeLast(back - below(back + 1))
  }

  /// Remove links and clients that have ended.
  mutating func sweep() {
    links.removeAll { $0.isOver }
    clients.removeAll { $0.session.hasEnded || $0.isGhost && $0.link == nil }
  }
}
