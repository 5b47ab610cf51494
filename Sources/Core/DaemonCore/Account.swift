import Wire

/// The resources of all connections of one user, as `UserTable` counts them: nothing else changes it.
struct Account: Sendable {
  var connections = 0
  /// When its last connection ended, if it has none.
  var leftAt: Instant
  var subscriptions = 0
  /// Bytes that were sent to the user and are not written yet.
  var unsentBytes = 0
  /// Bytes of incomplete frames.
  var partialBytes = 0
  /// Bytes that were read from the user in this turn, and those of the patches that its actions
  /// made; plus the debt of earlier turns that exceeded the share by far.
  var turnBytes = 0
  /// Whether it has such a debt, and so waits.
  var owes = false
  /// The time until which the user counts as heavy, because it used up a small share.
  var heavyUntil: Instant
  /// What was read in a turn of what had been held back, and the number of that turn.
  var released: (turn: UInt64, bytes: Int) = (0, 0)
  /// How many connections that wait resume in a turn.
  var resumes = 1
  /// The connections that do not wait for a share.
  var reading: Set<ConnectionID> = []
  /// The queue of connections that are not read from until their turn.
  var waiting: [ConnectionID] = []
  /// Those that resumed when the turn began, and have not been read from.
  var fresh: [ConnectionID] = []
  /// What has been read in this turn.
  var heard = Heard()
  /// The queue of connections that wait for their turn to be answered.
  var asking: [ConnectionID] = []
  /// The grant for each of these in this turn, in units of work.
  var grant = 0
  /// The work that may still be done for the user in this turn.
  var workLeft = 0
  var accepts: TokenBucket
  var actions: TokenBucket
  /// Rate limit of logged denials.
  var denials: TokenBucket

  init(_ limits: Limits, at now: Instant) {
    accepts = TokenBucket(perSecond: limits.connectionsPerSecond, at: now)
    actions = TokenBucket(perSecond: limits.actionsPerSecond, at: now)
    denials = TokenBucket(perSecond: 1, at: now)
    (heavyUntil, leftAt) = (now, now)
  }

  /// Note that so many bytes have been read from a connection in a turn, and whether its share had been used
  /// up before.
  mutating func noteRead(_ id: ConnectionID, _ bytes: Int, in turn: UInt64, isLate: Bool) {
    leaveFresh(id)
    heard.note(id, bytes, in: turn, isLate: isLate, goesOn: owes)
  }

  /// Note that what had been held back of a connection is read in a turn.
  mutating func noteReleased(_ id: ConnectionID, in turn: UInt64) {
    heard.note(id, 0, in: turn, isLate: false, goesOn: owes)
  }

  /// Note that a connection has been read from, or has ended.
  mutating func leaveFresh(_ id: ConnectionID) {
    if let index = fresh.firstIndex(of: id) { fresh.remove(at: index) }
  }

  /// Queue the connections that have been read from in this turn, or all that are read from, and return them:
  /// the one that used up the share last, and those that have resumed in vain before all others. Else one
  /// could wait for ever, if it always resumed together with another that is read from before it. Each share
  /// that is used up halves the number of those that resume, so at last it is the only one; and one that did
  /// not wait, and is read from before it, waits behind it from then on.
  mutating func wait(after last: ConnectionID?, isAll: Bool) -> [ConnectionID] {
    let first = fresh
    fresh = []
    for id in first { reading.remove(id) }
    let isLastReading = last.map { reading.remove($0) != nil } ?? false
    var others: [ConnectionID]
    let heard = heard.takeConnections()
    if isAll {
      others = reading.sorted()
      reading = []
    } else {
      others = heard.filter { reading.remove($0) != nil }
    }
    if isLastReading, let last { others.append(last) }
    waiting = first + waiting + others
    return first + others
  }

  /// Note that no connection is left: what the user has used up remains for a while.
  mutating func leave(at now: Instant) {
    leftAt = now
    (waiting, asking) = ([], [])
    _ = heard.takeConnections()
  }

  /// Take those that resume from the queue, so many at most. They may have ended.
  mutating func resume(_ most: Int) -> [ConnectionID] {
    let resumed = Array(waiting.prefix(most))
    waiting.removeFirst(resumed.count)
    return resumed
  }
}

/// What has been read from a user in one turn, or in several while it is in debt.
struct Heard: Sendable {
  private var turn: UInt64 = 0
  /// The connections, in order, that have not been taken.
  private var connections: [ConnectionID] = []
  /// How often something was read after the share had been used up, and how many bytes.
  private(set) var late = (reads: 0, bytes: 0)

  /// `goesOn` says whether what was late in former turns counts still.
  mutating func note(
    _ id: ConnectionID, _ bytes: Int, in turn: UInt64, isLate: Bool, goesOn: Bool
  ) {
    if self.turn != turn {
      self.turn = turn
      connections.removeAll(keepingCapacity: true)
      if !goesOn { late = (0, 0) }
    }
    if connections.last != id { connections.append(id) }
    if isLate { late = (late.reads + 1, late.bytes + bytes) }
  }

  mutating func takeConnections() -> [ConnectionID] {
    defer { connections.removeAll(keepingCapacity: true) }
    return connections
  }
}
