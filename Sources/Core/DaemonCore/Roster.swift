/// The connections, and which of them need work in a turn.
///
/// Invariants: a connection is marked as touched exactly while it is in the list of touched ones,
/// so it is there once; a removed connection no longer follows the log, and is recorded once, in
/// `closed`.
struct Roster: Sendable {
  private struct Entry: Sendable {
    var session: SessionBox
    var isTouched = false
    /// Whether it is among those whose held bytes are to be read.
    var isReleasing = false
  }

  private static let vacant = SessionBox(.placeholder)
  private var entries = Slots<ConnectionID, Entry>(vacant: Entry(session: vacant))
  /// Connections that may be due a send at the turn's end, in the order of their events.
  private var touched: [ConnectionPlace] = []
  private var nextTouchedIndex = 0
  /// How much more work may be done in this turn for subscriptions that are behind, in units of about a
  /// microsecond.
  var catchUpWork = 0
  /// Connections that are composed once more in the next turn, before all others, and behind these.
  private var delayedFirst: [ConnectionPlace] = []
  private var delayedLast: [ConnectionPlace] = []
  /// Connections that follow the log, in the order in which they began.
  private(set) var followers: [ConnectionID] = []
  /// Connections whose held bytes are read at the next turn's end.
  private var releasing: [ConnectionID] = []
  private(set) var closed: ClosedConnections

  init(closedLimit: Int) { closed = ClosedConnections(limit: closedLimit) }

  var count: Int { entries.count }

  /// Indices of connections are less than this.
  var placeCount: Int { entries.placeCount }

  /// Whether an index is that of a connection.
  func isTaken(_ place: Int) -> Bool { entries.key(at: place) != nil }

  /// In unspecified order.
  var ids: Dictionary<ConnectionID, Int>.Keys { entries.keys }

  /// Ascending. O(n log n).
  var idsInOrder: [ConnectionID] { [ConnectionID](entries.keys).inOrder }

  /// In the order of their indices.
  var sessions: some Sequence<ServerSession> { entries.values.lazy.map { $0.session.session } }

  /// The index of a connection, which does not change until the connection is removed.
  @inline(__always)
  func place(of id: ConnectionID) -> Int? { entries.place(of: id) }

  /// The index of a connection that is remembered with its index; nil if it has ended. Found without
  /// hashing.
  @inline(__always)
  func place(of known: ConnectionPlace) -> Int? {
    entries.holds(known.id, at: known.place) ? known.place : nil
  }

  /// The session at an index that `place(of:)` returned; its connection must not have been removed
  /// since.
  subscript(place place: Int) -> ServerSession {
    @inline(__always) unsafeAddress { entries[place: place].session.address }
    @inline(__always) unsafeMutableAddress { entries[place: place].session.mutableAddress() }
  }

  /// Move a session out, so that it can be changed beside the roster, which has a placeholder until
  /// it is put back.
  mutating func takeOut(_ place: Int) -> SessionBox {
    var box = Self.vacant
    swap(&box, &entries[place: place].session)
    return box
  }

  mutating func putBack(_ box: consuming SessionBox, at place: Int) {
    entries[place: place].session = box
  }

  /// The session of a connection; nil if there is none. Set it only for an existing connection.
  subscript(id: ConnectionID) -> ServerSession? {
    get { place(of: id).map { self[place: $0] } }
    set {
      guard let newValue, let place = place(of: id) else { return }
      self[place: place] = newValue
    }
  }

  mutating func insert(_ session: ServerSession) {
    entries[session.id] = Entry(session: SessionBox(session))
    guard let place = place(of: session.id) else { return }
    self[place: place].place = place
  }

  /// Remove a connection that has ended, if it exists. O(followers).
  mutating func remove(_ id: ConnectionID) -> ServerSession? {
    unfollow(id)
    return entries.removeValue(forKey: id)?.session.session
  }

  /// Record why a connection ended.
  mutating func remember(_ connection: ClosedConnection) { closed.append(connection) }

  // MARK: Lists

  /// Note that a connection, if it exists, may be due a send at the turn's end.
  mutating func touch(_ id: ConnectionID) {
    guard let place = place(of: id) else { return }
    touch(id, at: place)
  }

  @inline(__always)
  mutating func touch(_ id: ConnectionID, at place: Int) {
    guard !entries[place: place].isTouched else { return }
    entries[place: place].isTouched = true
    touched.append(ConnectionPlace(id: id, place: place))
  }

  /// Take the next touched connection, including those touched since the first was taken. Nil when
  /// all are taken.
  mutating func nextTouched() -> (id: ConnectionID, place: Int)? {
    while nextTouchedIndex < touched.count {
      let next = touched[nextTouchedIndex]
      nextTouchedIndex += 1
      guard let place = place(of: next) else { continue }
      entries[place: place].isTouched = false
      return (next.id, place)
    }
    touched.clear()
    nextTouchedIndex = 0
    return nil
  }

  /// Have a connection composed in the next turn: before others that are delayed, or behind them.
  mutating func delay(_ connection: ConnectionPlace, isFirst: Bool) {
    if isFirst { delayedFirst.append(connection) } else { delayedLast.append(connection) }
  }

  /// Touch those that were delayed, after all others were taken. So they are taken in the next turn before
  /// those to which something happens until then. Returns whether there are any.
  mutating func touchDelayed() -> Bool {
    if delayedFirst.isEmpty, delayedLast.isEmpty { return false }
    for delayed in delayedFirst + delayedLast {
      if let place = place(of: delayed) { touch(delayed.id, at: place) }
    }
    (delayedFirst, delayedLast) = ([], [])
    return true
  }

  /// The connections that may be due a send, in the order in which they are taken; those that are taken
  /// already are among them until all are.
  var due: [ConnectionID] { touched.map(\.id) }

  /// A planted fault: the order of a dictionary, which differs between processes.
  mutating func scrambleTouched() { touched = Array(Set(touched)) }

  /// Add a connection to the followers of the log.
  mutating func follow(_ id: ConnectionID) {
    if !followers.contains(id) { followers.append(id) }
  }

  mutating func unfollow(_ id: ConnectionID) { followers.removeAll { $0 == id } }

  /// Whether the held bytes of any connection are still to be read.
  var isReleasing: Bool { !releasing.isEmpty }

  /// Have the held bytes of a connection read at the next turn's end.
  mutating func release(_ id: ConnectionID) {
    guard let place = place(of: id), !entries[place: place].isReleasing else { return }
    entries[place: place].isReleasing = true
    releasing.append(id)
  }

  mutating func takeReleasing() -> [ConnectionID] {
    if releasing.isEmpty { return [] }
    let ids = releasing
    releasing = []
    for id in ids {
      if let place = place(of: id) { entries[place: place].isReleasing = false }
    }
    return ids
  }
}

/// A connection with its index among all, which it keeps until it ends.
struct ConnectionPlace: Hashable, Sendable {
  let id: ConnectionID
  let place: Int
}

/// A session in memory of its own, which is moved by its address: it has 600 bytes, and is moved out
/// and back whenever it is sent something. A value like any other: a copy is made when it is changed
/// and another box has it.
struct SessionBox: Sendable {
  private var only: [ServerSession]

  init(_ session: ServerSession) { only = [session] }

  var session: ServerSession {
    @inline(__always) unsafeAddress { only.address(of: 0) }
    @inline(__always) unsafeMutableAddress { only.mutableAddress(of: 0) }
  }

  /// The address of the session: for an accessor, during whose access the box is neither changed nor
  /// freed.
  var address: UnsafePointer<ServerSession> { @inline(__always) get { only.address(of: 0) } }

  @inline(__always)
  mutating func mutableAddress() -> UnsafeMutablePointer<ServerSession> {
    only.mutableAddress(of: 0)
  }
}

extension [ConnectionID] {
  /// Ascending. A generic function that sorts is not specialised in other modules: the standard library's
  /// code for it cannot be. One that calls this is.
  @inline(never)
  package var inOrder: [ConnectionID] { sorted() }
}
