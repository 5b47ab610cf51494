import Simulator

/// What goes wrong around a `SyncTestStore`.
///
///     var misfortunes = Misfortunes.some
///     misfortunes.crashes = 3
public struct Misfortunes: Sendable {
  var plan: SimulationPlan

  /// Nothing goes wrong. Bytes still come in pieces, and some clients read before others.
  public static var none: Misfortunes { Misfortunes(plan: .none) }

  /// The network is bad: small buffers, connections that are refused or cut, clients that do not
  /// read for seconds. Nothing is lost by it.
  public static var some: Misfortunes { Misfortunes(plan: .some) }

  /// Everything: a bad network, strangers that talk nonsense, limits that are small, and a daemon
  /// that is stopped and crashes. A crash loses actions, sometimes the whole history, and every
  /// stop ends the effects.
  public static var all: Misfortunes { Misfortunes(plan: .all) }

  /// How many bytes a socket's buffer takes.
  public var socketBytes: Int {
    get { plan.socketBytes }
    set { plan.socketBytes = newValue }
  }

  /// How likely it is, in thousandths of a step, that a connection breaks.
  public var cuts: Int {
    get { plan.cuts }
    set { plan.cuts = newValue }
  }

  /// How likely it is, in thousandths of a step, that a client reads nothing for seconds.
  public var stalls: Int {
    get { plan.stalls }
    set { plan.stalls = newValue }
  }

  /// How likely it is, in thousandths, that the daemon refuses a connection.
  public var refusals: Int {
    get { plan.refusals }
    set { plan.refusals = newValue }
  }

  /// How likely it is, in thousandths of a step, that the daemon is stopped in order.
  public var stops: Int {
    get { plan.stops }
    set { plan.stops = newValue }
  }

  /// How likely it is, in thousandths of a step, that the daemon crashes.
  public var crashes: Int {
    get { plan.crashes }
    set { plan.crashes = newValue }
  }

  /// How likely it is, in thousandths of a step, that a peer comes that breaks the protocol.
  public var strangers: Int {
    get { plan.strangers }
    set { plan.strangers = newValue }
  }
}
