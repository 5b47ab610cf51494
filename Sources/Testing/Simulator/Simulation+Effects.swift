import DaemonCore
import Lockstep
import Values

/// Runs the daemon's effects, and checks their invariants.
extension Simulation {
  /// The most jobs that effects may run without time passing: beyond it, one of them never pauses.
  private static var mostJobs: Int { 100_000 }

  // MARK: Running

  mutating func perform(_ order: EffectOrder) throws(SimulationFailure) {
    switch order {
    case .start(let id):
      guard let operation = daemon?.server.operation(of: id),
        let effect = daemon?.server.runningEffects.first(where: { $0.id == id })
      else { return }
      count("effects")
      note(2, id.rawValue)
      try checkKept(effect)
      effects.start(operation, effect)
    case .cancel(let id):
      count("effects cancelled")
      note(3, id.rawValue)
      effects.cancel(id)
    case .cancelTasks(let name): effects.cancelTasks(name)
    }
  }

  /// Let effects run some jobs, off the daemon.
  mutating func work() throws(SimulationFailure) {
    guard effects.isBusy else { return }
    for _ in 0..<below(8) { runJob() }
    try checkEffects()
  }

  /// Let effects run all jobs that they can before time passes, or the daemon gets an event.
  mutating func workAll() throws(SimulationFailure) {
    guard effects.isBusy else { return }
    var jobs = 0
    while effects.executor.count > 0 {
      runJob()
      jobs += 1
      guard jobs < Self.mostJobs else {
        throw failure("an effect goes on and on without a pause; there run \(runningEffects)")
      }
    }
    try checkEffects()
  }

  /// Let time pass, and let every party do what is due.
  mutating func advance(by duration: Duration) throws(SimulationFailure) {
    effects.executor.enter()
    let target = clock.now.advanced(by: duration)
    // A client without heartbeats for long assumes that the daemon is dead.
    let stride = max(.seconds(1), duration / 1000)
    try goOn()
    while clock.now < target {
      let next = min(clock.now.advanced(by: stride), target, clock.nextDeadline ?? target)
      pass((next.offset - clock.now.offset).nanoseconds)
      try goOn()
    }
  }

  /// Let the effects run all their jobs, the daemon a turn, and the clients a step.
  private mutating func goOn() throws(SimulationFailure) {
    step += 1
    try changeProcess()
    try connectClients()
    var rounds = 0
    repeat {
      try workAll()
      try turn()
      rounds += 1
      guard rounds < 10_000 else {
        throw failure("an effect sends without ever pausing; there run \(runningEffects)")
      }
    } while effects.isAwake || isWoken
    for slot in clients.indices {
      try read(slot)
      try tick(slot)
    }
    sweep()
  }

  private mutating func runJob() {
    let count = effects.executor.count
    guard count > 0 else { return }
    let place = below(count)
    note(4, UInt64(place))
    effects.executor.run(at: place)
  }

  /// Deliver all or some of the effects' events to the daemon.
  mutating func deliverEffects() throws(SimulationFailure) {
    guard effects.isBusy else { return }
    if isKind { try workAll() }
    // As many as an event loop would take from its inbox at a time.
    for _ in 0..<256 {
      guard effects.deliveryCount > 0, isKind || !chance(200) else { return }
      try deliverEffect()
      if isKind { try workAll() }
    }
  }

  private mutating func deliverEffect() throws(SimulationFailure) {
    let (delivery, isCancelled) = effects.takeDelivery(at: below(effects.deliveryCount))
    note(5, delivery.id.rawValue)
    switch delivery.content {
    case .action(let action, let continuation):
      try tell(effect: .effectSent(delivery.id, action))
      if isCancelled, !log.entries.isEmpty {
        throw failure("an action of a cancelled effect was done: \(action.name)")
      }
      try enterWork(isDirect: true)
      continuation.resume()
    case .read(let read, let continuation):
      if let daemon { read(daemon.server.state) }
      continuation.resume()
    case .cancel(let name, let continuation):
      count("cancellations by effects")
      try tell(effect: .effectCancelled(name))
      try enterWork()
      continuation.resume()
    case .end(let error):
      if error != nil { count("effects failed") }
      try tell(effect: .effectEnded(delivery.id, unhandled: error))
      try enterWork()
    }
  }

  /// Hand the daemon an effect's event. The daemon commands nothing before the turn's end.
  private mutating func tell(
    effect event: Event<Tagged<R.Action>>
  ) throws(SimulationFailure) {
    if let command = handle(event).first {
      throw failure("an effect led to \(command) in mid-turn")
    }
  }

  /// The daemon's process ends, and its effects with it.
  mutating func abandonEffects() {
    if effects.isBusy { count("effects lost") }
    effects.abandon()
    effects = SimulatedEffects(run: starts + 1, on: effects.executor, clock: clock)
    isWoken = false
    waited = 0
  }

  /// End effects that would never end.
  mutating func hush() throws(SimulationFailure) {
    guard let action = feature.hush, daemon != nil else { return }
    count("hushes")
    try tell(.acted(Tagged(.inside, action)))
  }

  // MARK: Checking

  /// Check that no effect violates its rules.
  func checkEffects() throws(SimulationFailure) {
    if let misdeed = effects.misdeed(mayWait: effectsMayWait) { throw failure(misdeed) }
  }

  /// Check the effect commands at the end of a turn.
  mutating func checkEffects(_ commands: [Command]) throws(SimulationFailure) {
    guard waited <= plan.limits.waitingPerTurn else {
      throw failure(
        "\(waited) actions that waited were done in a turn, \(plan.limits.waitingPerTurn) may be")
    }
    if waited == plan.limits.waitingPerTurn { count("full turns") }
    waited = 0
    try checkStarts(commands)
    guard let daemon, daemon.server.effectCount > 0 else { return }
    for effect in daemon.server.runningEffects where effect.isOwned {
      guard let client = effect.client, let place = place(of: ConnectionID(client.connection)),
        !links[place].closedIsTold
      else { throw failure("the effect \"\(effect.name)\" outlives the client that owns it") }
    }
  }

  /// Check that an effect starts after the change that it was returned with, in whose turn it is
  /// ordered.
  private func checkStarts(_ commands: [Command]) throws(SimulationFailure) {
    var started: EffectID?
    for command in commands {
      if case .effect(.start(let id)) = command { started = id }
      guard case .send(let connection, _) = command, let started else { continue }
      let name = daemon?.server.runningEffects.first { $0.id == started }?.name ?? "\(started)"
      throw failure(
        "the effect \"\(name)\" was started before connection \(connection.rawValue) was sent to")
    }
  }

  /// The names of the running effects, for people.
  var runningEffects: String {
    (daemon?.server.runningEffects ?? []).map { "\"\($0.name)\" (\($0.place))" }.joined(
      separator: ", ")
  }
}

extension DependencyValues {
  /// The dependencies of a simulation's features: nothing that the seed does not decide.
  init(
    simulating clock: SimulatedClock, seed: UInt64, _ change: (inout DependencyValues) -> Void
  ) {
    self.init()
    isTesting = true
    self.clock = clock
    date = DateGenerator { clock.timestamp }
    uuid = .counting
    random = .seeded(seed)
    change(&self)
  }
}

extension Duration {
  /// Rounded towards zero.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
