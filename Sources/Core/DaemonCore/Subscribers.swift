/// A connection that sees a scope.
struct Subscriber: Sendable {
  /// Its number among the subscribers of the scope, by which it is found. None has it again.
  let seat: UInt64
  /// Once it has left, no connection has this place.
  fileprivate(set) var connection: ConnectionPlace
  /// The index at which its subscription was the last time among those of the connection: it changes
  /// only when another ends.
  var slot: Int
}

/// The subscribers of a scope, in the order in which they subscribed.
///
/// There may be ten thousand, and all may leave. Seats ascend, so one that leaves is found by a binary
/// search. It remains as a gap; when half are gaps, the others close up.
struct Subscribers: Sendable {
  private var list: [Subscriber] = []
  private var gaps = 0
  private var nextSeat: UInt64 = 0

  var isEmpty: Bool { list.count == gaps }

  /// Those that see the scope, and gaps, which are no connection's.
  var all: [Subscriber] { list }

  /// Add a connection, and the index of its subscription. Returns its number. Amortised O(1).
  mutating func append(_ connection: ConnectionPlace, slot: Int) -> UInt64 {
    defer { nextSeat += 1 }
    list.append(Subscriber(seat: nextSeat, connection: connection, slot: slot))
    return nextSeat
  }

  /// Note the index of a subscription, of the subscriber at an index of `all`.
  mutating func note(slot: Int, at index: Int) { list[index].slot = slot }

  /// Remove the subscriber of a number. Amortised O(log subscribers).
  mutating func remove(_ seat: UInt64) {
    var (low, high) = (0, list.count)
    while low < high {
      let middle = (low + high) / 2
      if list[middle].seat < seat { low = middle + 1 } else { high = middle }
    }
    guard low < list.count, list[low].seat == seat, !list[low].isGap else { return }
    list[low].leave()
    gaps += 1
    if 2 * gaps >= list.count { closeUp() }
  }

  private mutating func closeUp() {
    list.removeAll { $0.isGap }
    gaps = 0
  }
}

extension Subscriber {
  fileprivate var isGap: Bool { connection.place == .max }

  fileprivate mutating func leave() {
    connection = ConnectionPlace(id: connection.id, place: .max)
  }
}
