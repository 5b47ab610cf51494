import Access
import CBOR
import Lockstep
import Values
import Wire

/// The protocol state of one connection.
struct ServerSession: Sendable {
  enum Phase: Sendable, Equatable {
    /// Nothing has been said. Ends with `hello`, or at the deadline.
    case awaitingHello(offered: SessionToken, deadline: Instant)
    /// The session of this token goes on here. Can become `parting` and `leaving`.
    case live(SessionToken)
    /// The client has said goodbye. It gets all that is due, then ours, and the session is
    /// forgotten; what else it says is ignored.
    case parting(SessionToken)
    /// This goodbye is composed at the turn's end, behind what the session still has to get; what
    /// comes meanwhile is ignored.
    case leaving(Goodbye, SessionToken?)
    /// Goodbye has been said.
    case left
  }

  let id: ConnectionID
  let peer: Peer
  /// What it may do; nil where nothing that it sends or is sent has to be looked at.
  var rights: Rights?
  var phase: Phase
  /// The place of its record in `Server.sessions`, while it has a token: a record is only forgotten
  /// when no connection has it.
  var session = 0
  /// The index of its user's account in `Server.users`, which lasts while a connection does.
  var account = 0
  var frames: FrameDecoder
  var label = ""
  /// Why its actions are in the queue.
  var cause = Cause.owner
  /// The version of the protocol that both speak.
  var version: UInt64 = 1
  /// The query that is answered with every new action.
  var following: Following?
  var subscriptions = Subscriptions()
  var requests = RequestQueue()
  /// Subscriptions that have ended, for nothing may be seen there any more: said at the turn's end.
  var hidden: [UInt64] = []
  /// Whether what it sees was taken away before it got all of it: an acknowledgement would say that
  /// its mirrors stand where they do not.
  var isBlind = false
  /// Queries that go on no more, for the same reason.
  var revokedQueries: [UInt64] = []
  /// Queries that the shell has not answered yet.
  var asked: Set<UInt64> = []
  /// Answers of the shell to queries, that are said at the turn's end.
  var answers: [(query: UInt64, answer: Value)] = []
  /// Actions up to this number are acknowledged on this connection.
  var acknowledged: UInt64 = 0
  /// Actions that were sent again, decided before: acknowledged anew at the turn's end.
  var repeated: ClosedRange<UInt64>?

  /// Since when bytes have been waiting to be written; nil when none do.
  var blockedSince: Instant?
  var unsentBytes = 0
  /// Whether it is not read from until its user has a share of a turn again.
  var isWaiting = false
  /// How it ended, once that is known.
  var goodbye: Goodbye?
  let openedAt: Instant
  /// Whether the process that made the connection has ended.
  var hasExited = false
  /// Frames to be sent at the turn's end.
  var output: [[UInt8]] = []
  var lastSent: Instant
  /// Connections are counted as they come: a later one has a larger ordinal.
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
    self.id = id
    self.peer = peer
    phase = .awaitingHello(offered: offered, deadline: now + limits.helloDeadline)
    frames = FrameDecoder(limit: limits.frameBytes)
    lastSent = now
    openedAt = now
  }

  /// Takes an empty slot, and the place of a connection that is being composed.
  static var placeholder: ServerSession {
    ServerSession(
      id: ConnectionID(0), peer: Peer(pid: 0, uid: 0, gid: 0),
      offered: SessionToken(high: 0, low: 0), limits: Limits(), at: Instant(nanoseconds: 0))
  }

  var isBlocked: Bool { blockedSince != nil }

  /// Whether bytes are read from it: not while it does not read itself, while its user has used up
  /// its share of a turn, or while what it has asked is to be answered first.
  var mayRead: Bool { !isBlocked && !isWaiting && !frames.isHeld }

  var token: SessionToken? {
    switch phase {
    case .live(let token), .parting(let token): token
    case .awaitingHello, .leaving, .left: nil
    }
  }

  /// Whether every subscription stands where the last turn ended.
  var isCurrent: Bool { subscriptions.areLive }
}
