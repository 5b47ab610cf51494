import Wire

/// A subscription of one connection to a part of the state.
struct Subscription: Sendable {
  let number: UInt64
  let scope: UInt64
  var progress: Progress
  /// The revision that the mirror is sure to have while the subscription lags or joins: that of the
  /// scope's last change by then, because a live mirror need not know of later revisions.
  var base: UInt64 = 0

  enum Progress: Sendable, Equatable {
    /// Has been sent everything up to the last turn's end.
    case live
    /// Has been sent everything up to a revision, whose state is held for it.
    case lagging(UInt64)
    /// Waits for this snapshot, whose state is held for it; with the reason that it needs one.
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
  /// The number of subscriptions that are not live.
  private(set) var behind = 0
  /// The numbers of subscriptions that have ended because nothing there is visible any more: refused
  /// at the turn's end.
  private var revoked: [UInt64] = []
  /// Whether all were revoked before everything due was sent: an acknowledgement would then promise
  /// changes that the mirrors do not have.
  private(set) var areAllRevoked = false

  /// Up to this many, a linear search is faster than a dictionary; most connections have one.
  private static let few = 8

  var count: Int { list.count }
  var indices: Range<Int> { list.indices }
  var all: [Subscription] { list }

  /// Whether all subscriptions are at the revision at which the last turn ended.
  var areLive: Bool { behind == 0 }

  /// The subscription at an index, which is valid until one is removed. A change must leave number
  /// and scope as they are.
  subscript(index: Int) -> Subscription {
    @inline(__always) unsafeAddress { list.address(of: index) }
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

  /// Replace a subscription by one of the same number, perhaps to another scope.
  mutating func replace(at index: Int, by subscription: Subscription) {
    assert(list[index].number == subscription.number)
    if list.count > Self.few { indexOfScope[list[index].scope] = nil }
    self[index] = subscription
    if list.count > Self.few { enter(index) }
  }

  /// Remove all, and return them.
  mutating func removeAll() -> [Subscription] {
    defer { (list, indexOfNumber, indexOfScope, behind) = ([], [:], [:], 0) }
    return list
  }

  /// Remove all, because nothing is visible any more, and return them.
  mutating func revokeAll() -> [Subscription] {
    areAllRevoked = true
    return removeAll()
  }

  /// Refuse a subscription that is not in the list at the turn's end.
  mutating func revoke(_ number: UInt64) { revoked.append(number) }

  /// Whether a refusal is to be sent.
  var owesNews: Bool { !revoked.isEmpty }

  mutating func takeRevoked() -> [UInt64] {
    if revoked.isEmpty { return [] }
    defer { revoked = [] }
    return revoked
  }

  private mutating func enter(_ index: Int) {
    indexOfNumber[list[index].number] = index
    indexOfScope[list[index].scope] = index
  }
}
