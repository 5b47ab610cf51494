import DaemonCore

extension SimulationPlan {
  /// No faults. Bytes still arrive in pieces, and some clients read before others.
  public static var none: SimulationPlan {
    var plan = SimulationPlan()
    plan.digestInterval = .seconds(5)
    return plan
  }

  /// A bad network: small buffers, connections that are refused or cut, clients that do not read
  /// for seconds. It loses nothing.
  public static var some: SimulationPlan {
    var plan = SimulationPlan.none
    plan.socketBytes = 300
    plan.cuts = 10
    plan.stalls = 20
    plan.refusals = 100
    return plan
  }

  /// Every fault: a bad network, strangers that break the protocol, small limits, and a daemon that
  /// is stopped and crashes. A crash loses actions, sometimes the whole history, and every stop
  /// ends the effects.
  public static var all: SimulationPlan {
    var plan = SimulationPlan.some
    plan.socketBytes = 100
    plan.cuts = 20
    plan.stops = 3
    plan.crashes = 3
    plan.strangers = 10
    plan.limits.window = 8
    plan.limits.heldStates = 2
    plan.limits.historyBytes = 2000
    plan.limits.snapshotPartBytes = 100
    plan.limits.inlineSnapshotBytes = 100
    plan.limits.stallDeadline = .seconds(5)
    plan.limits.waitingPerTurn = 40
    plan.limits.largeActionBytes = 60
    return plan
  }
}
