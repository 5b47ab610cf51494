import Simulator

/// The faults that a `SyncTestStore` injects.
///
///     var misfortunes = Misfortunes.some
///     misfortunes.crashes = 3
public struct Misfortunes: Sendable {
  var plan: SimulationPlan

  /// No faults. Bytes still arrive in pieces, and some clients read before others.
  public static var none: Misfortunes { Misfortunes(plan: .none) }

  /// A bad network: small buffers, connections that are refused or cut, clients that do not read
  /// for seconds. It loses nothing.
  public static var some: Misfortunes { Misfortunes(plan: .some) }

  /// Every fault: a bad network, strangers that break the protocol, small limits, and a daemon that
  /// is stopped and crashes. A crash loses actions, sometimes the whole history, and every stop
  /// ends the effects.
  public static var all: Misfortunes { Misfortunes(plan: .all) }

  /// The capacity of a socket's buffer, in bytes.
  public var socketBytes: Int {
    get { plan.socketBytes }
    set { plan.socketBytes = newValue }
  }

  /// The probability of a broken connection, in thousandths for each step.
  public var cuts: Int {
    get { plan.cuts }
    set { plan.cuts = newValue }
  }

  /// The probability that a client stops reading for seconds, in thousandths for each step.
  public var stalls: Int {
    get { plan.stalls }
    set { plan.stalls = newValue }
  }

  /// The probability that the daemon refuses a connection, in thousandths.
  public var refusals: Int {
    get { plan.refusals }
    set { plan.refusals = newValue }
  }

  /// The probability of an orderly stop of the daemon, in thousandths for each step.
  public var stops: Int {
    get { plan.stops }
    set { plan.stops = newValue }
  }

  /// The probability of a crash of the daemon, in thousandths for each step.
  public var crashes: Int {
    get { plan.crashes }
    set { plan.crashes = newValue }
  }

  /// The probability that a peer connects and breaks the protocol, in thousandths for each step.
  public var strangers: Int {
    get { plan.strangers }
    set { plan.strangers = newValue }
  }
}
