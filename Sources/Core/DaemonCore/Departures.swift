/// The subscriptions of connections that have ended, or are ending, which have not left their scopes yet:
/// some leave in each turn, for a connection may have ten thousand, and a process with many connections may
/// end.
///
/// Until then a scope may have subscribers whose connection has ended, or has no subscription to it any
/// more: they are sent nothing.
struct Departures: Sendable {
  private struct Departed: Sendable {
    let uid: UInt64
    /// The last one leaves first.
    var subscriptions: [Subscription]
  }

  private var departed: [Departed] = []
  /// Those before this index have left.
  private var start = 0

  var isEmpty: Bool { departed.isEmpty }

  /// Add the subscriptions of a user's connection.
  mutating func add(_ subscriptions: [Subscription], uid: UInt64) {
    if subscriptions.isEmpty { return }
    departed.append(Departed(uid: uid, subscriptions: subscriptions))
  }

  /// Take the next one: those of the connection that ended first come first.
  mutating func next() -> (subscription: Subscription, uid: UInt64)? {
    guard start < departed.count, let next = departed[start].subscriptions.popLast() else {
      return nil
    }
    let uid = departed[start].uid
    if departed[start].subscriptions.isEmpty {
      start += 1
      if 2 * start >= departed.count {
        departed.removeFirst(start)
        start = 0
      }
    }
    return (next, uid)
  }
}
