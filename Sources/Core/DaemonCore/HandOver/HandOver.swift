import Records
public import Values
public import Wire

// The hand-over from one process of a daemon to the next, which no client notices: the state, the
// sessions, and for each connection everything that is not in its socket. The bytes are
//
//     "LSHO", format (4 bytes), length (8), checksum (8), one CBOR item
//
// all numbers little-endian. A process that reads another format, length or checksum closes the
// sockets, and the clients reconnect by themselves.

/// Everything that the next process of a daemon resumes from.
public struct HandOver<State: Synchronizable>: Sendable {
  public var kept: RestoredState<State>
  /// Whether the state had another schema in the former process.
  public var isTranslated = false
  /// The names of fields or cases that the former process had and this one does not; their values are
  /// dropped.
  public var dropped: [String] = []
  /// The names of the fields that the former process had and this one does not, and whose values are
  /// kept (`RestoredState.leftOut`).
  public var leftOutNames: [String] = []
  /// Whether something that a former process had left out was put back.
  public var hasPutBack = false
  public var connections: [HandedConnection]
  /// The number of connections of the epoch so far: later ones have larger ordinals.
  public var connectionCount: UInt64

  /// The restored state of the next run.
  public var next: RestoredState<State> {
    var next = kept
    next.run += 1
    next.runs.append(JournalRun(run: next.run, base: next.revision))
    next.isHandedOver = true
    return next
  }

  public init(
    kept: RestoredState<State>, connections: [HandedConnection], connectionCount: UInt64
  ) {
    self.kept = kept
    self.connections = connections
    self.connectionCount = connectionCount
  }
}

/// The protocol state of a connection that the next process needs.
public struct HandedConnection: Equatable, Sendable {
  public var id: UInt64
  public var peer: Peer
  public var ordinal: UInt64
  /// The session; nil before its hello.
  public var token: SessionToken?
  /// The token for its welcome, if it has not said hello.
  public var offered: SessionToken
  public var label: String
  public var acknowledged: UInt64
  /// The protocol version that both ends use.
  public var version: UInt64
  /// Whether it is told of decided actions before their changes.
  public var wantsDecisions: Bool
  /// The number of its query that follows the log.
  public var follows: UInt64?
  public var subscriptions: [Subscribed]
  /// Bytes of the client that were not handled: requests that wait for an answer, frames after
  /// them, and the beginning of a frame.
  public var unparsed: [UInt8]
  /// Bytes for the client that its socket did not take.
  public var unsent: [UInt8] = []

  public struct Subscribed: Equatable, Sendable {
    public var number: UInt64
    public var scope: UInt64
    public var path: Path
    /// The view of it (`ViewFilter.signature`); nil for all of it.
    public var view: [UInt8]?
    /// The revision of the scope's newest change.
    public var lastChange: UInt64
    /// Whether the mirror has reached the revision of the hand-over; if not it needs a snapshot.
    public var isCurrent: Bool

    public init(
      number: UInt64, scope: UInt64, path: Path, view: [UInt8]?, lastChange: UInt64,
      isCurrent: Bool
    ) {
      self.number = number
      self.scope = scope
      self.path = path
      self.view = view
      self.lastChange = lastChange
      self.isCurrent = isCurrent
    }
  }

  public init(
    id: UInt64, peer: Peer, ordinal: UInt64, token: SessionToken?, offered: SessionToken,
    label: String, acknowledged: UInt64, follows: UInt64?, subscriptions: [Subscribed],
    version: UInt64, wantsDecisions: Bool = false, unparsed: [UInt8]
  ) {
    self.version = version
    self.wantsDecisions = wantsDecisions
    self.id = id
    self.peer = peer
    self.ordinal = ordinal
    self.token = token
    self.offered = offered
    self.label = label
    self.acknowledged = acknowledged
    self.follows = follows
    self.subscriptions = subscriptions
    self.unparsed = unparsed
  }
}

/// The reason that a hand-over cannot be used. Its sockets are then closed.
public struct HandOverFailure: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}
