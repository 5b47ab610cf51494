import Access
import DaemonCore
public import Lockstep
import Synchronization
public import Values

/// Rejects actions that their client may not send. The client's identity is the kernel's, not the
/// client's own claim.
///
///     AuthorizationMiddleware { action, client, state in
///       client.uid == state.owner || !action.is(\.reset)
///     }
public struct AuthorizationMiddleware<State: Synchronizable, Action: SynchronizableAction>:
  Middleware
{
  private let mayClient: @Sendable (Action, ClientOrigin, State) -> Bool

  /// A hook that decides whether a client may send an action in a state. Actions of other origins
  /// pass.
  public init(
    mayClient: @escaping @Sendable (_ action: Action, _ client: ClientOrigin, State) -> Bool
  ) {
    self.mayClient = mayClient
  }

  public var name: String { "authorization" }

  public func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    guard case .client(let client) = context.cause.origin, !mayClient(action, client, state)
    else {
      return .proceed
    }
    throw Rejection(.denied, "the user \(client.uid) may not send \(action.name)")
  }
}

/// Rejects a user's actions beyond a number per second, over all clients of the user.
///
/// A token bucket: a user who was quiet may send one second's worth at once.
public struct RateLimitMiddleware<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  private final class Buckets: Sendable {
    let byUser = Mutex<[UInt64: TokenBucket]>([:])
  }

  private let perSecond: Int
  private let buckets = Buckets()

  public init(perSecond: Int) { self.perSecond = perSecond }

  public var name: String { "rate limit" }

  public func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    guard case .client(let client) = context.cause.origin else { return .proceed }
    if take(client.uid, at: context.time) { return .proceed }
    throw Rejection(
      .limit, "the user \(client.uid) sends more than \(perSecond) actions a second")
  }

  private func take(_ uid: UInt64, at now: Timestamp) -> Bool {
    buckets.byUser.withLock { buckets in
      buckets[uid, default: TokenBucket(perSecond: perSecond, at: now.nanoseconds)]
        .take(at: now.nanoseconds)
    }
  }
}

/// Serves parts of a feature: rejects all other actions.
struct FeatureFilter<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  let parts: [ActionPattern]

  var name: String { "feature filter" }

  func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    let name = action.name
    if parts.contains(where: { $0.covers(name) }) { return .proceed }
    let served = parts.map(\.description).joined(separator: ", ")
    throw Rejection(
      .unknownAction, "\(name) is not served: this daemon serves only \(served)")
  }
}
