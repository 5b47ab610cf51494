import ClientCore
import DaemonCore
public import Lockstep
import Values
public import Wire

/// A simulation whose clients do what a test says, each of which sees the whole state.
public struct DrivenSimulation<R: Reducer>: Sendable {
  private var simulation: Simulation<R, R.State>

  /// A daemon that has just started, and clients that are about to connect to it.
  public init(
    _ feature: SimulatedFeature<R, R.State>, seed: UInt64, clients: Int, plan: SimulationPlan,
    effectsMayWait: Bool
  ) throws(SimulationFailure) {
    simulation = Simulation(seed: seed, of: feature) { drawn in
      drawn = plan
      drawn.clients = clients
      // Clients have numbers: none comes or goes.
      (drawn.clones, drawn.closes, drawn.trials) = (0, 0, 0)
    }
    simulation.isDriven = true
    simulation.effectsMayWait = effectsMayWait
    try simulation.begin()
  }

  // MARK: Acting

  /// Send an action from a client, now or as soon as it is connected. Returns its number.
  public mutating func send(
    _ action: R.Action, from client: Int
  ) throws(SimulationFailure) -> UInt64 {
    guard let number = try simulation.send(action, from: client) else {
      throw simulation.failure("\(action.name) does not fit a frame")
    }
    return number
  }

  /// Let one thing happen.
  public mutating func advance() throws(SimulationFailure) { try simulation.advance() }

  /// Let time pass, and everyone do what it is time for.
  public mutating func advance(by duration: Duration) throws(SimulationFailure) {
    try simulation.advance(by: duration)
  }

  /// Let everything come to rest for a moment.
  public mutating func pause() throws(SimulationFailure) { try simulation.pause() }

  // MARK: Looking

  /// The daemon's state; while the daemon is down, the one with which it will come back.
  public var state: R.State {
    simulation.daemon?.state
      // Invariant: what is durable was a state of the newest run.
      ?? simulation.ledger.newest.state(at: simulation.durable).unsafelyUnwrapped
  }

  /// What a client sees, at which revision, and whether it gets every change.
  public func mirror(_ client: Int) -> (state: R.State?, revision: Revision?, isLive: Bool) {
    let session = simulation.clients[client].session
    let mirror = session.mirrors.first
    return (
      mirror?.value.value(as: R.State.self), mirror?.position?.revision,
      session.isLive && mirror?.isLive == true
    )
  }

  /// What a client was told of its action with this number; nil while it has not been told.
  public func outcome(of number: UInt64, from client: Int) -> Acknowledgement.Outcome? {
    let outcomes = simulation.clients[client].outcomes
    let place = Int(number) - 1
    return place < outcomes.count ? outcomes[place] : nil
  }

  /// The effects that run, in the order of their start.
  public var runningEffects: [RunningEffect] { simulation.daemon?.runningEffects ?? [] }

  /// The simulation's time.
  public var now: Timestamp { simulation.clock.timestamp }

  /// A hash of everything that happened.
  public var trace: UInt64 { simulation.trace }

  /// How often what has happened, by name.
  public var counts: [String: Int] { simulation.counts }
}
