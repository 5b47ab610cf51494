import Access
import CBOR
import Lockstep
import Values
import Wire

/// The protocol state of one connection.
struct ServerSession: Sendable {
  enum Phase: Sendable, Equatable {
    /// No message has been received. Ends with `hello`, or at the deadline.
    case awaitingHello(offered: SessionToken, deadline: Instant)
    /// The session of this token is attached. Can become `parting` and `leaving`.
    case live(SessionToken)
    /// The client has said goodbye. It gets everything that is due, then our goodbye, and the
    /// session is forgotten; further messages are ignored.
    case parting(SessionToken)
    /// This goodbye is composed at the turn's end, after everything that is due to the session;
    /// messages that arrive meanwhile are ignored.
    indirect case leaving(Goodbye, SessionToken?)
    /// Our goodbye has been sent.
    case left
  }

  let id: ConnectionID
  let peer: Peer
  /// The rights of the peer; nil if nothing that it sends or gets needs a check.
  var rights: Rights?
  var phase: Phase
  /// The index of its record in `Server.sessions`, while it has a token: a record is only forgotten
  /// when no connection has it.
  var session = 0
  /// The index of its user's account in `Server.users`, which lasts while a connection does.
  var account = 0
  var frames: FrameDecoder
  var label = ""
  /// The cause of its actions.
  var cause = Cause.owner
  /// The protocol version that both ends use.
  var version: UInt64 = 1
  /// The query that is answered with every new action.
  var following: Following?
  var subscriptions = Subscriptions()
  var requests = RequestQueue()
  /// Subscriptions that have ended because nothing there is visible any more: refused at the turn's
  /// end.
  var hidden: [UInt64] = []
  /// Whether its subscriptions were revoked before everything due was sent: an acknowledgement
  /// would then promise changes that its mirrors do not have.
  var isBlind = false
  /// Queries that were ended for the same reason.
  var revokedQueries: [UInt64] = []
  /// Queries that the shell has not answered yet.
  var asked: Set<UInt64> = []
  /// Answers of the shell to queries, sent at the turn's end.
  var answers: [(query: UInt64, answer: Value)] = []
  /// Actions up to this number are acknowledged on this connection.
  var acknowledged: UInt64 = 0
  /// Resent actions that have an outcome already: acknowledged again at the turn's end.
  var repeated: ClosedRange<UInt64>?

  /// The time since when bytes have been unsent; nil if none are.
  var blockedSince: Instant?
  var unsentBytes = 0
  /// Whether reading is paused until its user has a share of a turn again.
  var isWaiting = false
  /// The goodbye with which it ends, when that is known.
  var goodbye: Goodbye? {
    get { if case .goodbye(let goodbye)? = farewell { goodbye } else { nil } }
    set { farewell = newValue.map { .goodbye($0) } }
  }
  /// In a box of its own: sessions are moved at each turn, and few have ended.
  private var farewell: Farewell?

  private indirect enum Farewell: Sendable {
    case goodbye(Goodbye)
  }
  let openedAt: Instant
  /// Whether the process that made the connection has ended.
  var hasExited = false
  /// Frames to be sent at the turn's end.
  var output: [[UInt8]] = []
  var lastSent: Instant
  /// Numbers connections in the order in which they opened: a later one has a larger ordinal.
  var ordinal: UInt64 = 0

  var counters = Counters()

  struct Counters: Sendable {
    var actions: UInt64 = 0
    var snapshots: UInt64 = 0
    var patches: UInt64 = 0
    /// Revisions that reached the client only as a part of a patch over several.
    var coalesced: UInt64 = 0
    var bytesSent: UInt64 = 0
  }

  init(id: ConnectionID, peer: Peer, offered: SessionToken, limits: Limits, at now: Instant) {
    self.init(
      id, peer, .awaitingHello(offered: offered, deadline: now + limits.helloDeadline),
      FrameDecoder(limit: limits.frameBytes), at: now)
  }

  private init(
    _ id: ConnectionID, _ peer: Peer, _ phase: Phase, _ frames: FrameDecoder, at now: Instant
  ) {
    self.id = id
    self.peer = peer
    self.phase = phase
    self.frames = frames
    lastSent = now
    openedAt = now
  }

  /// Placeholder for an empty slot, and for a connection that is moved out to be composed.
  static var placeholder: ServerSession {
    ServerSession(
      ConnectionID(0), Peer(pid: 0, uid: 0, gid: 0), .left, FrameDecoder(limit: 0),
      at: Instant(nanoseconds: 0))
  }

  var isBlocked: Bool { blockedSince != nil }

  /// Whether bytes are read from it: not while it is blocked, while its user has used up its share
  /// of a turn, or while its requests must be answered first.
  var mayRead: Bool { !isBlocked && !isWaiting && !frames.isHeld }

  var token: SessionToken? {
    switch phase {
    case .live(let token), .parting(let token): token
    case .awaitingHello, .leaving, .left: nil
    }
  }

  /// Whether every subscription is at the revision at which the last turn ended.
  var isCurrent: Bool { subscriptions.areLive }
}
