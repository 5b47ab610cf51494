import Wire

/// The subscriptions of connections that have ended, or are ending, which have not left their scopes yet:
/// some leave in each turn, for a connection may have ten thousand, and a process with many connections may
/// end.
///
/// Until then a scope may have subscribers whose connection has ended, or has no subscription to it any
/// more: they are sent nothing.
struct Departures: Sendable {
  private struct Departed: Sendable {
    let connection: ConnectionID
    let uid: UInt64
    /// The last one leaves first.
    var subscriptions: [Subscription]
  }

  private var departed: [Departed] = []
  /// Those before this index have left.
  private var start = 0

  var isEmpty: Bool { departed.isEmpty }

  mutating func add(_ subscriptions: [Subscription], of connection: ConnectionID, uid: UInt64) {
    if subscriptions.isEmpty { return }
    departed.append(
      Departed(connection: connection, uid: uid, subscriptions: subscriptions))
  }

  /// Take the next one: those of the connection that ended first come first.
  mutating func next() -> (subscription: Subscription, connection: ConnectionID, uid: UInt64)? {
    guard start < departed.count, let next = departed[start].subscriptions.popLast() else {
      return nil
    }
    let (connection, uid) = (departed[start].connection, departed[start].uid)
    if departed[start].subscriptions.isEmpty {
      start += 1
      if 2 * start >= departed.count {
        departed.removeFirst(start)
        start = 0
      }
    }
    return (next, connection, uid)
  }
}
