import Wire

/// What one connection sees of the state.
struct Subscription: Sendable {
  let number: UInt64
  let scope: UInt64
  var progress: Progress
  /// The revision that the mirror is sure to have while the subscription lags or joins: that of
  /// the scope's last change by then, for a live mirror need not know of later ones.
  var base: UInt64 = 0

  enum Progress: Sendable, Equatable {
    /// Has got everything up to the last turn's end.
    case live
    /// Has got everything up to a revision, whose state is held for it.
    case lagging(UInt64)
    /// Waits for this snapshot, whose state is held for it; and why it needs one.
    case joining(SnapshotJobID, UInt64, ServerMessage.Reason)
    /// Needs a snapshot, for this reason.
    case lost(ServerMessage.Reason)
  }
}

/// The subscriptions of one connection, found by their numbers and scopes in O(1).
///
/// Invariants: no two have the same number or the same scope; `behind` counts those that are not
/// live; once there are more than `few`, both dictionaries hold the index of each.
struct Subscriptions: Sendable {
  private var list: [Subscription] = []
  private var indexOfNumber: [UInt64: Int] = [:]
  private var indexOfScope: [UInt64: Int] = [:]
  /// How many of them are not live.
  private(set) var behind = 0

  /// So many are faster looked through than looked up, and most connections have one.
  private static let few = 8

  var count: Int { list.count }
  var indices: Range<Int> { list.indices }
  var all: [Subscription] { list }

  /// Whether every one of them stands where the last turn ended.
  var areLive: Bool { behind == 0 }

  /// The subscription at an index, which holds until one is removed. A change must leave number and
  /// scope as they are.
  subscript(index: Int) -> Subscription {
    _read { yield list[index] }
    _modify {
      let wasLive = list[index].progress == .live
      yield &list[index]
      let isLive = list[index].progress == .live
      if wasLive != isLive { behind += isLive ? -1 : 1 }
    }
  }

  func index(ofNumber number: UInt64) -> Int? {
    list.count > Self.few ? indexOfNumber[number] : list.firstIndex { $0.number == number }
  }

  func index(ofScope scope: UInt64) -> Int? {
    list.count > Self.few ? indexOfScope[scope] : list.firstIndex { $0.scope == scope }
  }

  /// Add a subscription whose number and scope no other has.
  mutating func append(_ subscription: Subscription) {
    list.append(subscription)
    if subscription.progress != .live { behind += 1 }
    if list.count > Self.few + 1 {
      enter(list.count - 1)
    } else if list.count > Self.few {
      for index in list.indices { enter(index) }
    }
  }

  /// Remove a subscription. The last one takes its index.
  mutating func remove(at index: Int) -> Subscription {
    let removed = list[index]
    if removed.progress != .live { behind -= 1 }
    let last = list.removeLast()
    if index < list.count { list[index] = last }
    if list.count > Self.few {
      indexOfNumber[removed.number] = nil
      indexOfScope[removed.scope] = nil
      if index < list.count { enter(index) }
    } else if !indexOfNumber.isEmpty {
      indexOfNumber = [:]
      indexOfScope = [:]
    }
    return removed
  }

  /// Put a subscription of the same number, perhaps to another scope, in the place of one.
  mutating func replace(at index: Int, by subscription: Subscription) {
    assert(list[index].number == subscription.number)
    if list.count > Self.few { indexOfScope[list[index].scope] = nil }
    self[index] = subscription
    if list.count > Self.few { enter(index) }
  }

  /// Remove all, and return them.
  mutating func removeAll() -> [Subscription] {
    var empty = Subscriptions()
    swap(&self, &empty)
    return empty.list
  }

  private mutating func enter(_ index: Int) {
    indexOfNumber[list[index].number] = index
    indexOfScope[list[index].scope] = index
  }
}
