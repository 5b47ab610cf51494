import CBOR
import Lockstep
import Values
import Wire

/// The protocol state of one connection.
struct ServerSession: Sendable {
  enum Phase: Sendable, Equatable {
    /// Nothing has been said. Ends with `hello`, or at the deadline.
    case awaitingHello(offered: SessionToken, deadline: Instant)
    /// The session of this token goes on here.
    case live(SessionToken)
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
  /// The place of its record in `Server.sessions`, while the phase is live: a record is only
  /// forgotten when no connection has it.
  var session = 0
  /// The place of its user's account in `Server.accounts`, which is there while a connection is.
  var account = 0
  var frames: FrameDecoder
  var label = ""
  /// Why its actions are in the queue.
  var cause = Cause.owner
  /// The query that is answered with every action from a sequence number on, until it ends.
  var following: (query: UInt64, sequence: UInt64)?
  var subscriptions: [Subscription] = []
  /// What must be answered at the turn's end, in order.
  var requests: [Request] = []
  /// Subscriptions that have ended, for nothing may be seen there any more: said at the turn's end.
  var hidden: [UInt64] = []
  /// Queries that go on no more, for the same reason.
  var ceased: [UInt64] = []
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
  /// Whether the connection is in `Server.touched`.
  var isTouched = false
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

  /// What stands where no connection is, or where one was taken from to be composed.
  static var nobody: ServerSession {
    ServerSession(
      id: ConnectionID(0), peer: Peer(pid: 0, uid: 0, gid: 0),
      offered: SessionToken(high: 0, low: 0), limits: Limits(), at: Instant(nanoseconds: 0))
  }

  var isBlocked: Bool { blockedSince != nil }

  var token: SessionToken? {
    if case .live(let token) = phase { token } else { nil }
  }

  /// Whether every subscription stands where the last turn ended.
  var isCurrent: Bool { subscriptions.allSatisfy { $0.progress == .live } }
}

/// What one connection sees of the state.
struct Subscription: Sendable {
  let number: UInt64
  let scope: UInt64
  var progress: Progress
  /// The revision that the mirror is sure to have while the subscription lags or joins: that of
  /// the scope's last change by then, for a live mirror need not know of later ones.
  var base: UInt64 = 0

  enum Progress: Sendable, Equatable {
    /// Has got everything up to the last turn's end.
    case live
    /// Has got everything up to a revision, whose state is held for it.
    case lagging(UInt64)
    /// Waits for this snapshot, whose state is held for it; and why it needs one.
    case joining(SnapshotJobID, UInt64, ServerMessage.Reason)
    /// Needs a snapshot, for this reason.
    case lost(ServerMessage.Reason)
  }
}

/// A request that is answered at the turn's end, behind the patches.
enum Request: Sendable {
  case subscribe(number: UInt64, Path, Position?)
  case unsubscribe(number: UInt64)
  case ping(UInt64)
  case digest(subscription: UInt64)
  case query(number: UInt64, String, [String])
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
  var connection: ConnectionID?
  /// When the session is forgotten unless the client returns.
  var expires: Instant?
  /// The connection that had it last, whose process is watched until it ends.
  var maker: ConnectionID?
  var hasExited = false
  /// Whether the feature was told that it is over.
  var hasEnded = false

  /// What stands where no record is.
  static var none: SessionRecord {
    SessionRecord(uid: 0, number: 0, outcomes: Outcomes(window: 0))
  }
}
