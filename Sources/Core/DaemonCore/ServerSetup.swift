public import Access
import Lockstep
public import Values
public import Wire

/// With what a server begins. Its commands depend on nothing but this, its events, and the code of its
/// feature.
public struct ServerSetup<State: Synchronizable>: Sendable {
  public var kept: RestoredState<State>
  public var limits = Limits()
  /// What the shell knows of the process, for the report "status".
  public var about: [(String, Value)] = []
  /// Whether the shell counts something, too: for the report "metrics".
  public var hasShellMetrics = false
  public var durability = Durability.none
  /// Who may do what. Without one, everyone who connects may do everything.
  public var policy: Policy?
  /// Whether a former run may have had another policy: mirrors of then are not gone on from.
  public var isPolicyNew = false
  /// The daemon's own user, who may always ask that the policy is read again.
  public var owner: UInt64?
  /// The time at which the server begins.
  public var time: Instant

  public init(_ kept: RestoredState<State>, at time: Instant) {
    self.kept = kept
    self.time = time
  }
}
