import Lockstep
import Wire

// Theory of operation
//
// To decode a million entries takes most of a second, in which the loop would serve nobody. So an
// action of at least `Limits.largeActionBytes` is not decoded when its frame has come: the
// connection's bytes are held, from this frame on, and the shell decodes a copy of them beside the loop
// (`ActionJob`). When it has, the connection reads on, and the first frame finds its action decoded.
// What it will do is worked out there, too (`Reducer.foresee`), with what the server asks about a patch:
// if others have not changed what it touches when it is performed, all of that holds. If they have, it is
// worked out again. From the fourth time on what it touches is reserved: actions of others that may change
// it wait, half a second at most or three times as long as that takes, and all else goes on. (Kung and Robinson, 1981, lock for a transaction
// that starves, too.) But only what its client may write is: others that may write where it may only read do
// not wait for it, and if it is only there that they were faster in the end, it is rejected, where any other
// would be performed on the loop. A short action that may take long (`Reducer.takesLong`), since it has many
// parts, or moves or replaces a large value, is treated in the same way.
//
// A connection that is not ready for its action, because it does not read what it is sent, or is
// leaving, waits outside of the queue, and enters it again when it reads on: so no decoded actions
// pile up.
//
// So the actions of a session keep their order, those of others go on meanwhile, and whatever ends a
// connection ends its waiting action as if it had not been read: a process that takes the daemon over
// reads the same bytes and begins again.

/// The large actions of clients that are decoded beside the loop.
///
/// Invariants: at most one is being decoded, or decoded and not yet read, so that they take one thread
/// and the memory of one; users take turns, and so do the connections of each. A connection is here
/// from the time at which it holds a large action until that has been read, or until the connection is
/// not ready to read it any more; and while its short action is postponed. A reservation ends when its owner
/// leaves, or before, and postponed actions are read as soon as there is none.
struct LargeActions<Action: Sendable>: Sendable {
  private enum Stage: Sendable {
    case waiting
    /// With what it was decoded to, if it is being worked out again.
    case decoding(again: DecodedAction<Action>?)
    /// Nil: to be decoded by who reads it.
    case decoded(DecodedAction<Action>?)
    /// A short action, which waits until the action that has reserved what it may change is done.
    case postponed
  }

  /// The connection for whose action others wait, and what was foreseen that it does. An object: whether
  /// there is one is asked at each action of a client.
  private final class Reservation: Sendable {
    let owner: ConnectionID
    let foresight: Foresight
    /// Others wait no longer than until then.
    let end: Instant

    init(_ owner: ConnectionID, _ foresight: Foresight, until end: Instant) {
      self.owner = owner
      self.foresight = foresight
      self.end = end
    }
  }

  private var stages: [ConnectionID: Stage] = [:]
  /// The connections that wait, by user, in the order in which they came.
  private var queues: [UInt64: [ConnectionID]] = [:]
  /// The users of these, in the order of their turns.
  private var users: [UInt64] = []
  /// The connection whose action is being decoded, whether or not it still exists.
  private var running: ConnectionID?
  /// Since when, and how many milliseconds the last one took.
  private var runningSince = Instant(nanoseconds: 0)
  private var lastMilliseconds: UInt64 = 0
  /// The connection whose action is to be worked out again, before any other.
  private var repeating: ConnectionID?
  private var reservation: Reservation?
  /// The connections whose actions are postponed, in the order in which they came, and some that have
  /// ended.
  private var postponed: [ConnectionID] = []

  /// The connection whose action has reserved for too long, and must not again.
  private var overdue: ConnectionID?

  /// How long others wait for an action at most, if it took so many milliseconds to work it out the last
  /// time: it may wait for memory or a processor itself. Where that is slow, so is to perform it on the loop,
  /// for which all would wait.
  private static func longestReservation(of milliseconds: UInt64) -> Duration {
    .milliseconds(min(max(500, 3 * min(milliseconds, 10_000)), 5000))
  }
  /// How often an action is worked out at most.
  static var mostTries: Int { 6 }
  /// How often of these others may change what it touches.
  private static var freeTries: Int { 3 }

  /// Whether what an action touches is reserved, once others have changed it, if it has been worked out so
  /// often.
  static func isReserved(after tries: Int) -> Bool { tries >= freeTries }

  /// Whether a connection holds an action that is not to be read yet.
  func isPending(_ id: ConnectionID) -> Bool {
    switch stages[id] {
    case .waiting, .decoding, .postponed: true
    case .decoded, nil: false
    }
  }

  /// Whether a connection holds a large action, decoded or not.
  @inline(__always)
  func isKnown(_ id: ConnectionID) -> Bool { !stages.isEmpty && stages[id] != nil }

  /// Whether a connection may wait to have its action decoded, or is to read a postponed one.
  @inline(__always)
  var areQueued: Bool {
    !users.isEmpty || repeating != nil || !postponed.isEmpty
  }

  /// End the reservation if it has lasted too long, or its owner is not ready any more.
  mutating func endReservation(at now: Instant, unless isReady: (ConnectionID) -> Bool) {
    guard let reservation else { return }
    let isTooLong = now > reservation.end
    if isTooLong { overdue = reservation.owner }
    if isTooLong || !isReady(reservation.owner) { self.reservation = nil }
  }

  /// Whether there is an action for which others may have to wait.
  @inline(__always)
  var isAnyReserved: Bool { reservation != nil }

  /// What was foreseen that it does.
  var reserved: Foresight? { reservation?.foresight }

  /// Postpone the short action that a connection has read.
  mutating func postpone(_ id: ConnectionID) {
    guard stages[id] == nil else { return }
    stages[id] = .postponed
    postponed.append(id)
  }

  /// Remove and return the connections whose actions wait for nothing any more.
  mutating func takePostponed() -> [ConnectionID] {
    guard reservation == nil, !postponed.isEmpty else { return [] }
    defer { postponed = [] }
    return postponed.filter { id in
      guard case .postponed = stages[id] else { return false }
      stages[id] = nil
      return true
    }
  }

  /// Note that a connection of a user holds a large action, if that is not known.
  mutating func enter(_ id: ConnectionID, of uid: UInt64) {
    guard stages[id] == nil else { return }
    stages[id] = .waiting
    if queues[uid] == nil { users.append(uid) }
    queues[uid, default: []].append(id)
  }

  /// Take the connection whose action is to be decoded now out of the queue, to `begin` it or to
  /// `remove` it; nil if one is being decoded, or none waits. O(1), but for connections that have ended.
  mutating func next() -> ConnectionID? {
    guard running == nil else { return nil }
    if let id = repeating {
      repeating = nil
      if isPending(id) { return id }
    }
    while let uid = users.first {
      users.removeFirst()
      guard let id = queues[uid]?.removeFirst() else { continue }
      if queues[uid]?.isEmpty == true { queues[uid] = nil } else { users.append(uid) }
      if case .waiting = stages[id] { return id }
    }
    return nil
  }

  /// Note that what has been worked out about the action of a connection does not hold any more. It has
  /// been taken, and is the next: so no more than one is kept.
  mutating func enter(
    _ id: ConnectionID, again action: DecodedAction<Action>, at now: Instant
  ) {
    stages[id] = .decoding(again: action)
    repeating = id
    if Self.isReserved(after: action.tries), overdue != id { reserve(action, by: id, at: now) }
  }

  /// Reserve what an action touches, or something else than before.
  private mutating func reserve(
    _ action: DecodedAction<Action>, by id: ConnectionID, at now: Instant
  ) {
    guard let foreseen = action.foreseen else { return }
    let foresight = foreseen.reservedPart ?? foreseen.foresight
    let end = reservation?.owner == id ? reservation?.end : nil
    reservation = Reservation(
      id, foresight, until: end ?? now + Self.longestReservation(of: lastMilliseconds))
  }

  /// What an action was decoded to that is being worked out again; nil if it is being decoded for the
  /// first time.
  func known(_ id: ConnectionID) -> DecodedAction<Action>? {
    guard case .decoding(let action) = stages[id] else { return nil }
    return action
  }

  /// The action of a connection is decoded from now on.
  mutating func begin(_ id: ConnectionID, at now: Instant) {
    if case .waiting = stages[id] { stages[id] = .decoding(again: nil) }
    (running, runningSince) = (id, now)
  }

  /// Store a decoded action, if its connection is ready and still waits for it; if that is nil, what it
  /// was decoded to before, if it was. Returns whether the connection waits, and what is not used.
  mutating func finish(
    _ id: ConnectionID, _ action: DecodedAction<Action>?, isReady: Bool, at now: Instant
  ) -> (isAwaited: Bool, unused: [DecodedAction<Action>]) {
    if running == id { (running, lastMilliseconds) = (nil, now.milliseconds(since: runningSince)) }
    guard case .decoding(let known) = stages[id] else {
      return (false, [action].compactMap(\.self))
    }
    guard isReady else {
      leave(id)
      return (false, [known, action].compactMap(\.self))
    }
    if let action {
      stages[id] = .decoded(action)
      if let reservation, reservation.owner == id { reserve(action, by: id, at: now) }
      return (true, [known].compactMap(\.self))
    }
    var last = known
    last?.tries = Self.mostTries
    stages[id] = .decoded(last)
    return (true, [])
  }

  /// Remove and return the decoded action of a connection, to perform it (`endReservation`) or to enter it
  /// again; nil if there is none yet.
  mutating func take(_ id: ConnectionID) -> DecodedAction<Action>?? {
    guard case .decoded(let action) = stages[id] else { return nil }
    stages[id] = nil
    return .some(action)
  }

  /// Forget a connection that has ended, or is not ready to read its action. Returns what that was
  /// decoded to, if it was.
  mutating func remove(_ id: ConnectionID) -> DecodedAction<Action>? {
    guard !stages.isEmpty else { return nil }
    switch leave(id) {
    case .decoded(let action), .decoding(let action): return action
    case .waiting, .postponed, nil: return nil
    }
  }

  @discardableResult
  private mutating func leave(_ id: ConnectionID) -> Stage? {
    endReservation(of: id)
    return stages.removeValue(forKey: id)
  }

  /// End the reservation of a connection, if it has one: its action is being performed.
  mutating func endReservation(of id: ConnectionID) {
    if reservation?.owner == id { reservation = nil }
    if overdue == id { overdue = nil }
  }
}
