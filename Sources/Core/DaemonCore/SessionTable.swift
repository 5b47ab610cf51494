import Lockstep
import Records
import Wire

/// The sessions: whose each is, which connection it has, and what the feature is to be told of it.
///
/// Invariants: a session is detached exactly while it has no connection, and then has a deadline. One
/// that ended is told of as ended once, unless its client comes back between. The process of a session
/// is watched through its last connection, until it has ended or another has taken its place.
struct SessionTable: Sendable {
  private var records = Slots<SessionToken, SessionRecord>(vacant: .none)
  /// Those without a connection.
  private var detached = DetachedSessions()
  private let mostDetached: Int
  private let grace: Duration
  /// How many sessions there have been in the epoch.
  private(set) var total: UInt64
  /// Whether the feature wants to hear what becomes of sessions.
  let reportsEvents: Bool
  /// What it has not been told yet.
  private var events: [SessionEvent] = []
  /// The sessions by the connection whose process is watched for them.
  private var watched: [ConnectionID: SessionToken] = [:]
  /// Connections that are gone, and whose processes need not be watched any more.
  private var unwatched: [ConnectionID] = []

  /// No sessions, though there have been some in the epoch.
  init(_ limits: Limits, total: UInt64, reportsEvents: Bool) {
    mostDetached = limits.detachedSessions
    grace = limits.sessionGrace
    self.total = total
    self.reportsEvents = reportsEvents
  }

  // MARK: Looking

  var count: Int { records.count }
  var detachedCount: Int { detached.count }
  var hasEvents: Bool { !events.isEmpty }

  /// In the order of their places.
  var pairs: some Sequence<(key: SessionToken, value: SessionRecord)> { records.pairs }

  func place(of token: SessionToken) -> Int? { records.place(of: token) }

  subscript(token: SessionToken) -> SessionRecord? { records[token] }

  /// The outcomes of a session, and what the journal knows of it, may be changed. What concerns its
  /// connection and its end, the table alone changes.
  subscript(place place: Int) -> SessionRecord {
    _read { yield records[place: place] }
    _modify { yield &records[place: place] }
  }

  // MARK: Beginning, and going on

  /// A session that was kept waits for its client.
  mutating func restore(_ record: SessionRecord, _ token: SessionToken, at now: Instant) {
    var record = record
    record.connection = nil
    record.expires = now + grace
    records[token] = record
    detached.add(token, of: record.uid)
  }

  /// A session begins on a connection. O(1).
  mutating func begin(
    _ token: SessionToken, on connection: ServerSession, outcomes: Outcomes,
    among connections: borrowing Roster
  ) {
    total += 1
    records[token] = SessionRecord(uid: connection.peer.uid, number: total, outcomes: outcomes)
    attach(token, to: connection, among: connections)
  }

  /// A session has another connection now: before the former is told so.
  mutating func claim(_ token: SessionToken, for id: ConnectionID) {
    guard let place = records.place(of: token), records[place: place].connection != nil else {
      return
    }
    records[place: place].connection = id
  }

  /// The client of a session is back.
  mutating func resume(
    _ token: SessionToken, on connection: ServerSession,
    among connections: borrowing Roster
  ) {
    guard let place = records.place(of: token) else { return }
    if records[place: place].connection == nil {
      records[place: place].hasEnded = false
      note(.returned(session: records[place: place].number))
    }
    attach(token, to: connection, among: connections)
  }

  /// A session has this connection from now on, and its process is the one to watch.
  mutating func attach(
    _ token: SessionToken, to connection: ServerSession,
    among connections: borrowing Roster
  ) {
    guard let place = records.place(of: token) else { return }
    detached.remove(token, of: records[place: place].uid)
    records[place: place].connection = connection.id
    records[place: place].expires = nil
    guard reportsEvents else { return }
    if let maker = records[place: place].maker { unwatch(maker, connections) }
    records[place: place].maker = connection.id
    records[place: place].hasExited = connection.hasExited
    if !connection.hasExited { watched[connection.id] = token }
  }

  // MARK: Ending

  /// Keep a session without its connection for its client to return. Returns the session that had to
  /// go because there are too many.
  mutating func detach(
    _ token: SessionToken, from id: ConnectionID, for goodbye: GoodbyeCode? = nil, at now: Instant
  ) -> SessionToken? {
    guard let place = records.place(of: token), records[place: place].connection == id else {
      return nil
    }
    records[place: place].connection = nil
    records[place: place].expires = now + grace
    detached.add(token, of: records[place: place].uid)
    // A client that is replaced is still there; one that says goodbye is forgotten soon, and that is
    // told.
    if goodbye != .replaced && goodbye != .done {
      if records[place: place].hasExited {
        end(place, .exited)
      } else {
        note(.lost(session: records[place: place].number))
      }
    }
    return surplus()
  }

  /// The session that must go because there are too many without a connection.
  mutating func surplus() -> SessionToken? {
    detached.count > mostDetached ? detached.evictionCandidate() : nil
  }

  /// Forget a session without a connection. Returns its record; nil if it has one, or is not known.
  mutating func forget(
    _ token: SessionToken, _ reason: SessionEvent.EndReason?,
    among connections: borrowing Roster
  ) -> SessionRecord? {
    guard let place = records.place(of: token), records[place: place].connection == nil else {
      return nil
    }
    if let reason { end(place, reason) }
    if let maker = records[place: place].maker { unwatch(maker, connections) }
    let record = records.removeValue(forKey: token)
    if let record { detached.remove(token, of: record.uid) }
    return record
  }

  /// Those whose clients have not come back in time, in an order that does not follow from hashing.
  func expired(at now: Instant) -> [SessionToken] {
    records.pairs.filter { $0.value.expires.map { now > $0 } ?? false }.map(\.key)
      .sorted { ($0.high, $0.low) < ($1.high, $1.low) }
  }

  /// The process that made a connection has ended. Its socket may live on in a child.
  mutating func exited(_ id: ConnectionID) {
    guard let token = watched.removeValue(forKey: id), let place = records.place(of: token) else {
      return
    }
    records[place: place].hasExited = true
    if records[place: place].connection == nil { end(place, .exited) }
  }

  /// Say that a session is over, unless that was said.
  private mutating func end(_ place: Int, _ reason: SessionEvent.EndReason) {
    guard !records[place: place].hasEnded else { return }
    records[place: place].hasEnded = true
    note(.ended(session: records[place: place].number, reason: reason))
  }

  // MARK: What others are told

  private mutating func note(_ event: SessionEvent) {
    if reportsEvents { events.append(event) }
  }

  /// What the feature has not been told yet, once.
  mutating func takeEvents() -> [SessionEvent] {
    var taken: [SessionEvent] = []
    swap(&taken, &events)
    return taken
  }

  /// Whether the process of a connection is watched for a session.
  func watches(_ id: ConnectionID) -> Bool { watched[id] != nil }

  /// Connections whose processes need not be watched any more, once.
  mutating func takeUnwatched() -> [ConnectionID] {
    var taken: [ConnectionID] = []
    swap(&taken, &unwatched)
    return taken
  }

  /// No session has the process of a connection any more. While the connection is there, its end says
  /// so.
  private mutating func unwatch(
    _ maker: ConnectionID, _ connections: borrowing Roster
  ) {
    guard watched.removeValue(forKey: maker) != nil, connections.place(of: maker) == nil else {
      return
    }
    unwatched.append(maker)
  }
}

/// What outlives a connection: whose actions were done, and what came of them.
struct SessionRecord: Sendable {
  let uid: UInt64
  /// Counts the sessions of the epoch: what people and features call it.
  let number: UInt64
  var outcomes: Outcomes
  /// Whether the journal knows of the session.
  var isKept = false
  /// Actions up to this number are committed, if they are kept at all.
  var committed: UInt64 = 0
  /// The connection that has the session now.
  fileprivate(set) var connection: ConnectionID?
  /// When the session is forgotten unless the client returns.
  fileprivate(set) var expires: Instant?
  /// The connection that had it last, whose process is watched until it ends.
  fileprivate(set) var maker: ConnectionID?
  fileprivate(set) var hasExited = false
  /// Whether the feature was told that it is over.
  fileprivate(set) var hasEnded = false

  /// Placeholder for an empty slot.
  fileprivate static var none: SessionRecord {
    SessionRecord(uid: 0, number: 0, outcomes: Outcomes(Limits()))
  }
}
