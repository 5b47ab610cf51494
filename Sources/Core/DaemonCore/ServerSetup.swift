public import Access
import Lockstep
public import Values
public import Wire

/// The initial values of a server. Its commands depend on nothing but these, its events, and the
/// code of its feature.
public struct ServerSetup<State: Synchronizable>: Sendable {
  public var kept: RestoredState<State>
  public var limits = Limits()
  /// The shell's facts about the process, for the report "status".
  public var about: [(String, Value)] = []
  /// Whether the shell has metrics of its own, for the report "metrics".
  public var hasShellMetrics = false
  public var durability = Durability.none
  /// The policy. Without one, every client that connects may do everything.
  public var policy: Policy?
  /// Whether a former run may have had another policy: then mirrors of that run are not resumed.
  public var isPolicyNew = false
  /// The daemon's own user, which may always ask for a reload of the policy.
  public var owner: UInt64?
  /// The time at which the server starts.
  public var time: Instant

  public init(_ kept: RestoredState<State>, at time: Instant) {
    self.kept = kept
    self.time = time
  }
}
