import Lockstep
import Records
import Wire

/// The sessions: the user and the connection of each, and the events that the feature is to get.
///
/// Invariants: a session is detached exactly while it has no connection, and then has a deadline.
/// The end of a session is reported once, unless its client returns in between. The process of a
/// session is watched through its last connection, until the process has ended or another has
/// replaced it.
struct SessionTable: Sendable {
  private var records = Slots<SessionToken, SessionRecord>(vacant: .none)
  /// The sessions without a connection.
  private var detached = DetachedSessions()
  private let mostDetached: Int
  private let grace: Duration
  /// The number of sessions so far in the epoch.
  private(set) var total: UInt64
  /// Whether the feature reacts to session events.
  let reportsEvents: Bool
  /// Events that the feature has not got yet.
  private var events: [SessionEvent] = []
  /// The sessions by the connection through which their process is watched.
  private var watched: [ConnectionID: SessionToken] = [:]
  /// Connections that are gone and whose processes need not be watched any more.
  private var unwatched: [ConnectionID] = []

  /// An empty table, with the number of sessions so far in the epoch.
  init(_ limits: Limits, total: UInt64, reportsEvents: Bool) {
    mostDetached = limits.detachedSessions
    grace = limits.sessionGrace
    self.total = total
    self.reportsEvents = reportsEvents
  }

  // MARK: Looking

  var count: Int { records.count }
  /// Indices of sessions are less than this.
  var placeCount: Int { records.placeCount }
  var detachedCount: Int { detached.count }
  var hasEvents: Bool { !events.isEmpty }

  /// In the order of their indices.
  var pairs: some Sequence<(key: SessionToken, value: SessionRecord)> { records.pairs }

  func place(of token: SessionToken) -> Int? { records.place(of: token) }

  subscript(token: SessionToken) -> SessionRecord? { records[token] }

  /// Callers may change a session's outcomes and its journal status. Only the table changes its
  /// connection and its end.
  subscript(place place: Int) -> SessionRecord {
    @inline(__always) unsafeAddress { records.address(of: place) }
    @inline(__always) unsafeMutableAddress { records.mutableAddress(of: place) }
  }

  // MARK: Beginning, and going on

  /// Add a restored session, which waits for its client.
  mutating func restore(_ record: SessionRecord, _ token: SessionToken, at now: Instant) {
    var record = record
    record.connection = nil
    record.expires = now + grace
    records[token] = record
    detached.add(token, of: record.uid)
  }

  /// Begin a session on a connection. O(1).
  mutating func begin(
    _ token: SessionToken, on connection: ServerSession, outcomes: Outcomes,
    among connections: borrowing Roster
  ) {
    total += 1
    records[token] = SessionRecord(uid: connection.peer.uid, number: total, outcomes: outcomes)
    attach(token, to: connection, among: connections)
  }

  /// Give a session another connection, before the former one is told so.
  mutating func claim(_ token: SessionToken, for id: ConnectionID) {
    guard let place = records.place(of: token), records[place: place].connection != nil else {
      return
    }
    records[place: place].connection = id
  }

  /// Resume a session on a connection.
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

  /// Attach a session to a connection, and watch that connection's process.
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
    records[place: place].hasExited = connection.origin.hasExited
    if !connection.origin.hasExited { watched[connection.id] = token }
  }

  // MARK: Ending

  /// Detach a session from its connection, so that its client can resume it. Returns a session to
  /// evict if there are too many.
  mutating func detach(
    _ token: SessionToken, from id: ConnectionID, for goodbye: GoodbyeCode? = nil, at now: Instant
  ) -> SessionToken? {
    guard let place = records.place(of: token), records[place: place].connection == id else {
      return nil
    }
    records[place: place].connection = nil
    records[place: place].expires = now + grace
    detached.add(token, of: records[place: place].uid)
    // A replaced client is still there. A client that says goodbye is forgotten soon, and that is
    // reported.
    if goodbye != .replaced && goodbye != .done {
      if records[place: place].hasExited {
        end(place, .exited)
      } else {
        note(.lost(session: records[place: place].number))
      }
    }
    // One that says goodbye is about to be forgotten, and no other is evicted for it.
    return goodbye == .done ? nil : surplus()
  }

  /// The session to evict because there are too many without a connection.
  mutating func surplus() -> SessionToken? {
    detached.count > mostDetached ? detached.evictionCandidate() : nil
  }

  /// Forget a session without a connection. Returns its record; nil if it has a connection, or is
  /// not known.
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

  /// The session at an index, less than `placeCount`, if there is one and its grace period is over.
  func expired(_ place: Int, at now: Instant) -> SessionToken? {
    guard let token = records.key(at: place), let expires = records[place: place].expires,
      now > expires
    else { return nil }
    return token
  }

  /// The process that made a connection has ended. Its socket may live on in a child.
  mutating func exited(_ id: ConnectionID) {
    guard let token = watched.removeValue(forKey: id), let place = records.place(of: token) else {
      return
    }
    records[place: place].hasExited = true
    if records[place: place].connection == nil { end(place, .exited) }
  }

  /// Report the end of a session, unless it was reported.
  private mutating func end(_ place: Int, _ reason: SessionEvent.EndReason) {
    guard !records[place: place].hasEnded else { return }
    records[place: place].hasEnded = true
    note(.ended(session: records[place: place].number, reason: reason))
  }

  // MARK: Events and watching

  private mutating func note(_ event: SessionEvent) {
    if reportsEvents { events.append(event) }
  }

  /// Take the events that the feature has not got yet.
  mutating func takeEvents() -> [SessionEvent] {
    var taken: [SessionEvent] = []
    swap(&taken, &events)
    return taken
  }

  /// Whether the process of a connection is watched for a session.
  func watches(_ id: ConnectionID) -> Bool { watched[id] != nil }

  /// Take the connections whose processes need not be watched any more.
  mutating func takeUnwatched() -> [ConnectionID] {
    var taken: [ConnectionID] = []
    swap(&taken, &unwatched)
    return taken
  }

  /// Stop watching the process of a connection for a session. If the connection still exists, its
  /// end commands `unwatch`.
  private mutating func unwatch(
    _ maker: ConnectionID, _ connections: borrowing Roster
  ) {
    guard watched.removeValue(forKey: maker) != nil, connections.place(of: maker) == nil else {
      return
    }
    unwatched.append(maker)
  }
}

/// The record of a session, which outlives connections: its user and the outcomes of its actions.
struct SessionRecord: Sendable {
  let uid: UInt64
  /// Numbers the sessions of the epoch: the name that people and features use.
  let number: UInt64
  var outcomes: Outcomes
  /// Whether the journal knows of the session.
  var isKept = false
  /// Actions up to this number are committed, if there is a journal.
  var committed: UInt64 = 0
  /// The connection of the session now.
  fileprivate(set) var connection: ConnectionID?
  /// The time at which the session is forgotten unless the client returns.
  fileprivate(set) var expires: Instant?
  /// The last connection of the session, whose process is watched until it ends.
  fileprivate(set) var maker: ConnectionID?
  fileprivate(set) var hasExited = false
  /// Whether the end was reported to the feature.
  fileprivate(set) var hasEnded = false

  /// Placeholder for an empty slot.
  fileprivate static var none: SessionRecord {
    SessionRecord(uid: 0, number: 0, outcomes: Outcomes(Limits()))
  }
}
