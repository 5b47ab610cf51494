import DaemonCore

/// A queue of connections that have ended by themselves. Each is in it once, however often it is found to
/// have ended.
struct EndedConnections {
  private var waiting: [ConnectionID] = []
  private var start = 0
  private var known: Set<ConnectionID> = []

  var isEmpty: Bool { known.isEmpty }

  /// Returns whether it was not known yet.
  mutating func append(_ id: ConnectionID) -> Bool {
    guard known.insert(id).inserted else { return false }
    waiting.append(id)
    return true
  }

  /// Take the one that came first.
  mutating func next() -> ConnectionID? {
    guard start < waiting.count else { return nil }
    let id = waiting[start]
    known.remove(id)
    start += 1
    if 2 * start >= waiting.count {
      waiting.removeFirst(start)
      start = 0
    }
    return id
  }
}
