import CBOR
public import Values

/// A message from the daemon. Snapshots and patches are framed by `StreamFrames`, once for all
/// clients.
public enum ServerMessage: Equatable, Sendable {
  case welcome(Welcome)
  /// How a subscription continues from here.
  case subscribed(Subscribed)
  /// A part of a scope's value form. With the last part the scope is at `revision`.
  case snapshot(Snapshot)
  /// Consecutive changes of a scope. The first is based on revision `from`; each brings the scope
  /// `span` revisions further.
  case patch(scope: UInt64, from: UInt64, [SpanPatch])
  case acknowledgement(Acknowledgement)
  case pong(UInt64, revision: UInt64)
  /// Every subscription is at this revision now.
  case bookmark(revision: UInt64, durable: UInt64?)
  /// The digest of a subscription's value; nil when there is none to compare now (version 2).
  case digest(subscription: UInt64, revision: UInt64, Digest?)
  case schema(Schema)
  /// The answer to a query, or a page of it: with `hasMore` another follows.
  case report(number: UInt64, Value, hasMore: Bool = false)
  case goodbye(Goodbye)
  /// The daemon's process ends. Another may take over the connection as it is, and then sends
  /// `restarted`; if the connection ends instead, this was its goodbye.
  case restarting(retryAfter: UInt64)
  /// Another process of the daemon has taken over the connection: from here on, the client's state
  /// belongs to this run.
  case restarted(Position)
  /// The session's actions up to this number are decided: their changes are in the state from
  /// `revision` on. Comes before the patches that lead there, to clients that asked for it in
  /// `hello` (version 3).
  case decided(through: UInt64, revision: UInt64)

  public struct Welcome: Equatable, Sendable {
    public var version: UInt64
    public var position: Position
    public var seed: HashSeed
    public var token: SessionToken
    /// Whether the session that the client named continues. If not, the outcomes of its
    /// unacknowledged actions cannot be known.
    public var isResumed: Bool
    /// The number of the session's last action whose outcome the daemon has decided.
    public var lastAction: UInt64
    /// The maximum number of unacknowledged actions of the session.
    public var window: UInt64
    /// The limits that a client must know, by name.
    public var limits: [Limit]
    /// Absent when the client named its fingerprint.
    public var schema: Schema?
    /// The client, as the daemon sees it.
    public var peer: Peer
    /// The newest revision that survives a crash; nil when none does.
    public var durable: UInt64?
    /// The daemon's number for the session, by which other clients see what the client owns
    /// (`ClientOrigin.session`). Nil from daemons that do not send it.
    public var session: UInt64?

    public struct Limit: Hashable, Sendable {
      public var name: String
      public var value: UInt64
      public init(_ name: String, _ value: UInt64) {
        self.name = name
        self.value = value
      }
    }

    public init(
      version: UInt64, position: Position, seed: HashSeed, token: SessionToken, isResumed: Bool,
      lastAction: UInt64, window: UInt64, limits: [Limit], schema: Schema?, peer: Peer,
      durable: UInt64?, session: UInt64? = nil
    ) {
      self.version = version
      self.position = position
      self.seed = seed
      self.token = token
      self.isResumed = isResumed
      self.lastAction = lastAction
      self.window = window
      self.limits = limits
      self.schema = schema
      self.peer = peer
      self.durable = durable
      self.session = session
    }
  }

  public struct Subscribed: Hashable, Sendable {
    public var subscription: UInt64
    /// The daemon's number for the path, the same for all clients that may see the same part of it.
    public var scope: UInt64
    public var continuation: Continuation
    /// Why there is a snapshot, or why the subscription was refused.
    public var reason: Reason
    /// The revision of the subscription once the announced snapshot or patches have arrived.
    public var revision: UInt64

    public init(
      subscription: UInt64, scope: UInt64, _ continuation: Continuation, _ reason: Reason,
      revision: UInt64
    ) {
      self.subscription = subscription
      self.scope = scope
      self.continuation = continuation
      self.reason = reason
      self.revision = revision
    }
  }

  public enum Continuation: UInt64, Sendable {
    /// The mirror is up to date.
    case current = 0
    /// The patches that the mirror lacks follow.
    case patch = 1
    /// A snapshot follows.
    case snapshot = 2
    /// There is no such subscription.
    case refused = 3
  }

  public enum Reason: UInt64, Sendable {
    case none = 0
    /// The client named no position.
    case noPosition = 1
    /// The position is of another epoch.
    case epoch = 2
    /// The position is of another run, or ahead of this one.
    case ahead = 3
    /// The changes since the position are no longer kept, or cost more than a snapshot.
    case history = 4
    /// The client read too slowly for too long.
    case lagged = 5
    /// One change was larger than a frame may be.
    case tooLarge = 6
    /// The connection has a subscription with this number or to this path already.
    case duplicate = 7
    /// The connection or its user has the maximum number of subscriptions, or the path is too long.
    case limit = 8
    /// No part of the path may be seen. May come unasked, when the permission has changed.
    case denied = 9
    /// The client may now see another part than before, or its view changed in a way that no patch
    /// can express.
    case view = 10
    /// The daemon has no memory for the snapshot.
    case memory = 11
  }

  public struct Snapshot: Hashable, Sendable {
    public var scope: UInt64
    public var revision: UInt64
    /// The index of the part, from 0.
    public var index: UInt64
    public var isLast: Bool
    public var bytes: [UInt8]

    public init(scope: UInt64, revision: UInt64, index: UInt64, isLast: Bool, bytes: [UInt8]) {
      self.scope = scope
      self.revision = revision
      self.index = index
      self.isLast = isLast
      self.bytes = bytes
    }
  }

  /// A patch and the number of revisions that it spans, from the scope's previous change on.
  public struct SpanPatch: Hashable, Sendable {
    public var span: UInt64
    public var patch: [UInt8]

    public init(span: UInt64, patch: [UInt8]) {
      self.span = span
      self.patch = patch
    }
  }
}

/// The outcome of consecutive actions of a session.
public struct Acknowledgement: Hashable, Sendable {
  /// The numbers of the first and the last action.
  public var first: UInt64
  public var last: UInt64
  /// A client at this revision or later has seen the effects of the actions.
  public var revision: UInt64
  /// How safe the outcome is. `.applied` for an action that asked for `.durable` means that this
  /// daemon does not promise durability, or, with `notDurable`, that it failed to persist.
  public var mark: Mark
  public var outcome: Outcome
  /// Why actions that asked for `.durable` are only applied, if persisting them failed.
  public var notDurable: String?
  /// The sequence number of the first action in the daemon's log; the others follow it without a
  /// gap. Nil for actions that were rejected before they were logged, and for older ones.
  public var sequence: UInt64?

  public init(
    first: UInt64, last: UInt64, revision: UInt64, mark: Mark = .applied, _ outcome: Outcome,
    notDurable: String? = nil, sequence: UInt64? = nil
  ) {
    self.first = first
    self.last = last
    self.revision = revision
    self.mark = mark
    self.outcome = outcome
    self.notDurable = notDurable
    self.sequence = sequence
  }

  public enum Outcome: Hashable, Sendable {
    /// The state changed.
    case reduced
    /// The action was done and changed nothing.
    case unchanged
    /// A middleware consumed the action.
    case swallowed
    /// The action began work that is still going on.
    case accepted
    /// The action was not performed. Indirect, because outcomes are stored by the dozen, and most
    /// are others.
    indirect case rejected(RejectionMessage)
    /// The daemon can no longer know whether the action was performed.
    case outcomeUnknown
  }
}

/// Why an action was not performed, in the form that is sent.
public struct RejectionMessage: Hashable, Sendable, CustomStringConvertible {
  public var code: UInt64
  public var message: String
  public var path: Path?

  public init(code: UInt64, message: String, path: Path?) {
    self.code = code
    self.message = message
    self.path = path
  }

  public var description: String {
    path?.named(behind: message) ?? message
  }
}
