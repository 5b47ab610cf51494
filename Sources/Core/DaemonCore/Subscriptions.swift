import Wire

/// A subscription of one connection to a part of the state.
struct Subscription: Sendable {
  let number: UInt64
  let scope: UInt64
  var progress: Progress
  /// Whether the client takes its mirror to be at any revision that it is told of: it follows, or it
  /// was not told yet that it does not.
  fileprivate var isTrusted: Bool
  /// Whether it has a ticket in one of the lists of those that are behind.
  fileprivate var hasTicket = false
  /// The revision that the mirror is sure to have while the subscription lags or joins: that of the
  /// scope's last change by then, because a live mirror need not know of later revisions.
  var base: UInt64 = 0
  /// Its number among the subscribers of the scope.
  var seat: UInt64 = 0
  /// Tells it from an earlier one of the same number.
  fileprivate var serial: UInt64 = 0

  /// `isTrusted` says whether the client has followed it already, in another scope or process.
  init(
    number: UInt64, scope: UInt64, progress: Progress, base: UInt64 = 0, isTrusted: Bool = false
  ) {
    (self.number, self.scope, self.progress, self.base) = (number, scope, progress, base)
    self.isTrusted = isTrusted
  }

  /// Note what the client knows, after the progress has changed.
  fileprivate mutating func noteProgress() {
    switch progress {
    case .live, .lagging, .differing: isTrusted = true
    case .joining, .resuming: isTrusted = false
    case .lost: break
    }
  }

  enum Progress: Sendable, Equatable {
    /// Has been sent everything up to the last turn's end.
    case live
    /// Has been sent everything up to a revision, whose state is held for it.
    case lagging(UInt64)
    /// Waits for the difference, which a job encodes, to a state that is held for it. The client does
    /// not know: until then it must not be told of a newer revision, as by the answer to a request. There
    /// were so many others before it.
    case differing(SnapshotJobID, UInt64, rounds: Int)
    /// Waits for the patches that its mirror lacks after a revision, which a job finds. The mirror is one of
    /// a former connection, or a snapshot that is needed for this reason, and is sent before them. The client
    /// was told that they come. Behind a snapshot the job may encode a difference in their place, to a state
    /// that is held for it: the history does not have the patches, or they are longer than the snapshot.
    case resuming(SnapshotJobID, held: UInt64?, after: UInt64, behind: ServerMessage.Reason?)
    /// Waits for this snapshot, whose state is held for it; with the reason that it needs one.
    case joining(SnapshotJobID, UInt64, ServerMessage.Reason)
    /// Needs a snapshot, for this reason. A client that has followed does not know: as for `differing`.
    case lost(ServerMessage.Reason)

    /// Whether it is `live`: without a call.
    var isLive: Bool {
      @inline(__always) get { if case .live = self { true } else { false } }
    }
  }
}

/// The subscriptions of one connection, found by their numbers and scopes in O(1). Those that are behind
/// are found without looking at the others.
///
/// Invariants: no two have the same number or the same scope; `behind` counts those that are not
/// live, `lagging` and `joining` those that do, `unannounced` those of which the client does not know that
/// they are behind; each that is behind has a ticket in one of two lists, unless its job is running; once
/// there are more than `few`, both dictionaries hold the index of each.
struct Subscriptions: Sendable {
  /// Names a subscription that is behind. One that has ended, or was replaced, is not found by it.
  struct Ticket: Sendable {
    fileprivate let number: UInt64
    fileprivate let serial: UInt64
  }

  private var list: [Subscription] = []
  private var indexOfNumber: [UInt64: Int] = [:]
  private var indexOfScope: [UInt64: Int] = [:]
  /// How many there are of some kinds. Small numbers: there are thousands of connections.
  private struct Counts: Sendable {
    var behind: Int32 = 0
    var lagging: Int32 = 0
    var joining: Int32 = 0
    var unannounced: Int32 = 0
  }

  private var counts = Counts()
  /// Those that lag, or whose job has ended; before `activeStart` they have been taken.
  private var active: [Ticket] = []
  /// Those that need a snapshot, in the order in which they came; before `lostStart` they have been
  /// taken.
  private var lost: [Ticket] = []
  private var activeStart: Int32 = 0
  private var lostStart: Int32 = 0
  private var lastSerial: UInt64 = 0
  /// The numbers of subscriptions that have ended because nothing there is visible any more: refused
  /// at the turn's end.
  private var revoked: [UInt64] = []
  /// Whether all were revoked before everything due was sent: an acknowledgement would then promise
  /// changes that the mirrors do not have.
  private(set) var areAllRevoked = false

  /// The number of subscriptions that are not live.
  var behind: Int { Int(counts.behind) }
  /// The number of those that lag.
  var lagging: Int { Int(counts.lagging) }
  /// The number of those that wait for a snapshot, or for patches that they have missed.
  var joining: Int { Int(counts.joining) }
  /// The number of those that differ, or have followed and are lost.
  var unannounced: Int { Int(counts.unannounced) }

  /// Whether the client may be told of the newest revision: it takes each mirror that follows to be at it.
  var mayBeTold: Bool { counts.lagging == 0 && counts.unannounced == 0 }

  /// Up to this many, a linear search is faster than a dictionary; most connections have one.
  private static let few = 8

  var count: Int { list.count }
  var indices: Range<Int> { list.indices }
  var all: [Subscription] { list }

  /// Whether all subscriptions are at the revision at which the last turn ended.
  var areLive: Bool { counts.behind == 0 }

  /// The subscription at an index, which is valid until one is removed. A change must leave number
  /// and scope as they are.
  subscript(index: Int) -> Subscription {
    @inline(__always) unsafeAddress { list.address(of: index) }
    _modify {
      count(list[index], -1)
      yield &list[index]
      list[index].noteProgress()
      count(list[index], 1)
      giveTicket(index)
    }
  }

  // MARK: Those that are behind

  private mutating func count(_ subscription: Subscription, _ difference: Int32) {
    switch subscription.progress {
    case .live: break
    case .lagging:
      counts.behind += difference
      counts.lagging += difference
    case .joining, .resuming:
      counts.behind += difference
      counts.joining += difference
    case .differing, .lost:
      counts.behind += difference
      if subscription.isTrusted { counts.unannounced += difference }
    }
  }

  /// List a subscription that is behind, unless it is listed, or a job is running for it.
  private mutating func giveTicket(_ index: Int) {
    if list[index].hasTicket { return }
    let ticket = Ticket(number: list[index].number, serial: list[index].serial)
    switch list[index].progress {
    case .live, .joining, .differing, .resuming: return
    case .lagging: active.append(ticket)
    case .lost: lost.append(ticket)
    }
    list[index].hasTicket = true
  }

  /// A job has ended: list a subscription if it waits for it. It is not listed before, so that the
  /// end of one of many jobs takes O(1). Returns whether it does.
  mutating func jobEnded(_ id: SnapshotJobID, for index: Int) -> Bool {
    switch list[index].progress {
    case .joining(id, _, _), .differing(id, _, _), .resuming(id, _, _, _): break
    case .live, .lagging, .lost, .joining, .differing, .resuming: return false
    }
    if !list[index].hasTicket {
      list[index].hasTicket = true
      active.append(Ticket(number: list[index].number, serial: list[index].serial))
    }
    return true
  }

  /// The number of those that lag or whose job has ended, or that have ended since.
  var activeCount: Int { active.count - Int(activeStart) }

  /// The index of the next that lags or whose job has ended, which is no longer listed; nil if there is
  /// none. Return it with `putBack`. Amortised O(1).
  mutating func nextActive() -> Int? {
    while let ticket = Self.next(&active, &activeStart) {
      if let index = index(of: ticket) { return index }
    }
    return nil
  }

  /// Release the memory that is kept for the next tickets, if none is listed.
  mutating func trim() {
    if active.isEmpty, active.capacity > 0 { active = [] }
    if lost.isEmpty, lost.capacity > 0 { lost = [] }
  }

  /// Take the next ticket of a list. The memory of a few is kept until `trim`.
  private static func next(_ list: inout [Ticket], _ start: inout Int32) -> Ticket? {
    guard Int(start) < list.count else { return nil }
    let ticket = list[Int(start)]
    start += 1
    if Int(start) == list.count {
      list.removeAll(keepingCapacity: list.count <= few)
      start = 0
    }
    return ticket
  }

  /// The index of the subscription that a ticket names; nil if it has ended.
  private func index(of ticket: Ticket) -> Int? {
    index(ofNumber: ticket.number).flatMap { list[$0].serial == ticket.serial ? $0 : nil }
  }

  /// List a subscription that was taken again, if it is still behind.
  mutating func putBack(_ index: Int) {
    list[index].hasTicket = false
    giveTicket(index)
  }

  /// The index of the next subscription that needs a snapshot, which is no longer listed; nil if there
  /// is none. Amortised O(1).
  mutating func nextLost() -> Int? {
    while let ticket = Self.next(&lost, &lostStart) {
      guard let index = index(of: ticket) else { continue }
      list[index].hasTicket = false
      if case .lost = list[index].progress { return index }
      giveTicket(index)
    }
    return nil
  }

  /// Have those that are live lag behind a revision, or need a snapshot if the state is not known that they
  /// have. Returns their number. O(all).
  mutating func lag(behind revision: UInt64, isKnown: Bool, in scopes: ScopeTable) -> Int {
    var count = 0
    for index in list.indices where list[index].progress.isLive {
      var subscription = list[index]
      subscription.progress = isKnown ? .lagging(revision) : .lost(.history)
      let scope = scopes.index(of: subscription.scope)
      subscription.base = scope.map { scopes[index: $0].lastChange } ?? revision
      self[index] = subscription
      count += 1
    }
    return count
  }

  // MARK: Finding

  func index(ofNumber number: UInt64) -> Int? {
    list.count > Self.few ? indexOfNumber[number] : list.firstIndex { $0.number == number }
  }

  func index(ofScope scope: UInt64) -> Int? {
    list.count > Self.few ? indexOfScope[scope] : list.firstIndex { $0.scope == scope }
  }

  /// The same for one that was at this index the last time. O(1) without hashing, if it still is.
  @inline(__always)
  func index(ofScope scope: UInt64, lastAt slot: Int) -> Int? {
    if slot < list.count, list.address(of: slot).pointee.scope == scope { return slot }
    return index(ofScope: scope)
  }

  /// Add a subscription whose number and scope no other has.
  mutating func append(_ subscription: Subscription) {
    list.append(subscription)
    begin(list.count - 1)
    if list.count > Self.few + 1 {
      enter(list.count - 1)
    } else if list.count > Self.few {
      for index in list.indices { enter(index) }
    }
  }

  /// Remove a subscription. The last one takes its index.
  mutating func remove(at index: Int) -> Subscription {
    let removed = list[index]
    count(removed, -1)
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
    count(list[index], -1)
    list[index] = subscription
    begin(index)
    if list.count > Self.few { enter(index) }
  }

  /// Remove all, and return them.
  mutating func removeAll() -> [Subscription] {
    defer {
      (list, indexOfNumber, indexOfScope) = ([], [:], [:])
      counts = Counts()
      (active, activeStart, lost, lostStart) = ([], 0, [], 0)
    }
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

  private mutating func begin(_ index: Int) {
    lastSerial += 1
    (list[index].serial, list[index].hasTicket) = (lastSerial, false)
    list[index].noteProgress()
    count(list[index], 1)
    giveTicket(index)
  }

  private mutating func enter(_ index: Int) {
    indexOfNumber[list[index].number] = index
    indexOfScope[list[index].scope] = index
  }
}
