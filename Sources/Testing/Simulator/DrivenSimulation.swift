import ClientCore
import DaemonCore
public import Lockstep
import Values
public import Wire

/// A simulation whose clients act as a test says, each of which mirrors the whole state.
public struct DrivenSimulation<R: Reducer>: Sendable {
  private var simulation: Simulation<R, R.State>

  /// A daemon that has just started, and clients that are about to connect to it. Only
  /// `optimistic` ones can send actions that show before they are answered.
  public init(
    _ feature: SimulatedFeature<R, R.State>, seed: UInt64, clients: Int, plan: SimulationPlan,
    optimistic: Bool, effectsMayWait: Bool
  ) throws(SimulationFailure) {
    simulation = Simulation(seed: seed, of: feature) { drawn in
      drawn = plan
      drawn.clients = clients
      // Clients have fixed numbers: none is added or removed.
      (drawn.clones, drawn.closes, drawn.trials) = (0, 0, 0)
    }
    simulation.isDriven = true
    simulation.areOptimistic = optimistic
    simulation.effectsMayWait = effectsMayWait
    try simulation.begin()
  }

  // MARK: Acting

  /// Whether the clients can send actions that show before they are answered.
  public var isOptimistic: Bool { simulation.areOptimistic }

  /// Send an action from a client, now or as soon as it is connected. Returns its number.
  public mutating func send(
    _ action: R.Action, from client: Int, optimistically: Bool
  ) throws(SimulationFailure) -> UInt64 {
    guard
      let number = try simulation.send(action, from: client, optimistically: optimistically)
    else {
      throw simulation.failure("\(action.name) does not fit a frame")
    }
    return number
  }

  /// Let one event happen.
  public mutating func advance() throws(SimulationFailure) { try simulation.advance() }

  /// Let time pass, and every timer fire that is due.
  public mutating func advance(by duration: Duration) throws(SimulationFailure) {
    try simulation.advance(by: duration)
  }

  /// Let everything come to rest for a moment.
  public mutating func pause() throws(SimulationFailure) { try simulation.pause() }

  // MARK: Looking

  /// The daemon's state; while the daemon is down, the state with which it will restart.
  public var state: R.State {
    simulation.daemon?.server.state
      // Invariant: the durable revision had a state in the newest run.
      ?? simulation.ledger.newest.state(at: simulation.durable).unsafelyUnwrapped
  }

  /// The value of a client's mirror, its revision, and whether it receives every change.
  public func mirror(_ client: Int) -> (state: R.State?, revision: Revision?, isLive: Bool) {
    let session = simulation.clients[client].session
    let mirror = session.mirrors.first
    if let mirror, let view = session.optimisticView(of: mirror.number) {
      return (
        view.confirmed.value(as: R.State.self), view.position?.revision,
        session.isLive && mirror.isLive
      )
    }
    return (
      mirror?.value.value(as: R.State.self), mirror?.position?.revision,
      session.isLive && mirror?.isLive == true
    )
  }

  /// What a client's mirror shows, and the actions in it that are not in its value; nil if there are none.
  public func prediction(_ client: Int) -> (state: R.State?, actions: [UInt64])? {
    let client = simulation.clients[client]
    guard let mirror = client.session.mirrors.first,
      let view = client.session.optimisticView(of: mirror.number),
      let welcome = client.session.welcome
    else { return nil }
    let place = Tag(client: client.identity, number: mirror.number)
    var shown = simulation.predictions[place] as? PredictedState<R.State>
    if shown?.version != view.version {
      // In a copy, for what is counted is what happens.
      var simulation = simulation
      shown = simulation.predict(view, welcome, place)
    }
    return (shown?.state, view.actions.map(\.id.rawValue))
  }

  /// The outcome of a client's action as the client knows it; nil before the acknowledgement.
  public func outcome(of number: UInt64, from client: Int) -> Acknowledgement.Outcome? {
    let outcomes = simulation.clients[client].outcomes
    let place = Int(number) - 1
    return place < outcomes.count ? outcomes[place] : nil
  }

  /// The running effects, in the order of their start.
  public var runningEffects: [RunningEffect] { simulation.daemon?.server.runningEffects ?? [] }

  /// The simulation's time.
  public var now: Timestamp { simulation.clock.timestamp }

  /// A hash of every event.
  public var trace: UInt64 { simulation.trace }

  /// The number of events of each kind, by name.
  public var counts: [String: Int] { simulation.counts }
}
