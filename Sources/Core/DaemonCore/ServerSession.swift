import Access
import CBOR
import Lockstep
import Values
import Wire

/// One connection, and the daemon's end of its protocol.
///
/// A state machine, whose phase only the methods here change:
///
///     awaitingHello --attach--> live --part--> parting
///           |                    |                |
///           +--------------------+----- leave ----+--> leaving --end--> left
///
/// A phase has what only this phase needs: the deadline for a hello, the session that is attached,
/// the goodbye. What a message changes is stored beside it in parts of its own, because Swift cannot
/// change the payload of an enum in place.
struct ServerSession: Sendable {
  enum Phase: Sendable {
    /// No message has been received. Ends with `hello`, or at the deadline.
    case awaitingHello(offered: SessionToken, deadline: Instant)
    case live(Attachment)
    /// The client has said goodbye. It gets everything that is due, then our goodbye, and the
    /// session is forgotten; further messages are ignored.
    case parting(Attachment)
    /// This goodbye is composed at the turn's end, after what is at hand: what its subscriptions lack is
    /// not. Messages that arrive meanwhile are ignored.
    indirect case leaving(Goodbye, SessionToken?)
    /// This goodbye has been sent, or could not be.
    indirect case left(Goodbye)
    /// Placeholder where there is no connection.
    case vacant
  }

  /// The session that a connection has.
  struct Attachment: Sendable {
    let token: SessionToken
    /// The index of its record in `Server.sessions`, valid while it is attached: a record is only
    /// forgotten when no connection has it.
    let place: Int
  }

  /// The process at the other end, and when it connected.
  struct Origin: Sendable {
    let id: ConnectionID
    let peer: Peer
    /// Numbers connections in the order in which they opened: a later one has a larger ordinal.
    let ordinal: UInt64
    let openedAt: Instant
    /// Whether the process that made the connection has ended.
    var hasExited = false
  }

  /// The client, as far as its hello said.
  struct Client: Sendable {
    var label = ""
    /// The protocol version that both ends use.
    var version: UInt64 = 1
    /// Whether it is told of decided actions before their changes.
    var wantsDecisions = false
    /// The cause of its actions.
    var cause = Cause.owner
  }

  struct Counters: Sendable {
    var actions: UInt64 = 0
    var snapshots: UInt64 = 0
    var patches: UInt64 = 0
    /// Revisions that reached the client only as a part of a patch over several.
    var coalesced: UInt64 = 0
    var bytesSent: UInt64 = 0
  }

  private(set) var origin: Origin
  /// The index of this connection in `Server.connections`.
  var place = 0
  private var boxedRights = Boxed<Rights>()
  /// The index of its user's account in `Server.users`, which lasts while a connection does.
  var account = 0
  private(set) var phase: Phase
  private(set) var client = Client()
  var frames: FrameDecoder
  var flow = Flow()
  var requests = RequestQueue()
  private(set) var boxedQueries = Boxed<Queries>()
  var subscriptions = Subscriptions()
  var acknowledgements = Acknowledgements()
  var outbox: Outbox
  var counters = Counters()

  init(
    id: ConnectionID, peer: Peer, ordinal: UInt64, offered: SessionToken, limits: Limits,
    at now: Instant
  ) {
    self.init(
      Origin(id: id, peer: peer, ordinal: ordinal, openedAt: now),
      .awaitingHello(offered: offered, deadline: now + limits.helloDeadline),
      FrameDecoder(limit: limits.frameBytes))
  }

  private init(_ origin: Origin, _ phase: Phase, _ frames: FrameDecoder) {
    self.origin = origin
    self.phase = phase
    self.frames = frames
    outbox = Outbox(at: origin.openedAt)
  }

  /// Placeholder for an empty slot, and for a connection that is moved out to be composed.
  static var placeholder: ServerSession {
    ServerSession(
      Origin(
        id: ConnectionID(0), peer: Peer(pid: 0, uid: 0, gid: 0), ordinal: 0,
        openedAt: Instant(nanoseconds: 0)),
      .vacant, FrameDecoder(limit: 0))
  }

  /// The rights of the peer; nil if nothing that it sends or gets needs a check.
  var rights: Rights? {
    get { boxedRights.value }
    set { boxedRights.value = newValue }
  }

  /// Whether what it sends or gets needs a check: without a copy of the rights.
  var isRestricted: Bool { @inline(__always) get { !boxedRights.isEmpty } }

  var queries: Queries {
    get { boxedQueries.value ?? Queries() }
    _modify {
      yield &boxedQueries[orNew: Queries()]
      if boxedQueries[orNew: Queries()].isVacant { boxedQueries = Boxed() }
    }
  }

  var id: ConnectionID { origin.id }
  var peer: Peer { origin.peer }

  var attachment: Attachment? {
    switch phase {
    case .live(let attachment), .parting(let attachment): attachment
    case .awaitingHello, .leaving, .left, .vacant: nil
    }
  }

  var token: SessionToken? { attachment?.token }

  /// The goodbye with which it ends, when that is known.
  var goodbye: Goodbye? {
    switch phase {
    case .awaitingHello, .live, .vacant: nil
    case .parting: Self.answerToGoodbye
    case .leaving(let goodbye, _), .left(let goodbye): goodbye
    }
  }

  static let answerToGoodbye = Goodbye(.done, "goodbye")

  var hasLeft: Bool { if case .left = phase { true } else { false } }

  // MARK: Phases

  /// Attach a session, of this number, after the client's hello.
  mutating func attach(
    _ attachment: Attachment, number: UInt64, label: String, version: UInt64, wantsDecisions: Bool,
    acknowledged: UInt64
  ) {
    let cause = Cause(
      .client(
        ClientOrigin(
          connection: id.rawValue, pid: peer.pid, uid: peer.uid, gid: peer.gid, label: label,
          session: number)))
    phase = .live(attachment)
    client = Client(
      label: label, version: version,
      wantsDecisions: wantsDecisions && version >= ProtocolVersion.withDecisions, cause: cause)
    acknowledgements = Acknowledgements(through: acknowledged)
  }

  /// The client says goodbye. Returns false if it has no session any more.
  mutating func part() -> Bool {
    guard case .live(let attachment) = phase else { return false }
    phase = .parting(attachment)
    queries.following = nil
    return true
  }

  /// Say goodbye at the turn's end. Returns the session that was attached, and the goodbye to detach
  /// it for; nil if a goodbye was said already.
  mutating func leave(_ goodbye: Goodbye) -> (session: SessionToken?, goodbye: GoodbyeCode)? {
    let last: Goodbye
    switch phase {
    case .leaving, .left, .vacant: return nil
    // The client has said goodbye already, and needs nothing of this one.
    case .parting where goodbye.code != .replaced: last = Self.answerToGoodbye
    case .awaitingHello, .live, .parting: last = goodbye
    }
    let session = token
    phase = .leaving(last, session)
    return (session, last.code)
  }

  /// Nothing is sent after this goodbye.
  mutating func end(_ goodbye: Goodbye) { phase = .left(goodbye) }

  /// The process that made the connection has ended.
  mutating func processExited() { origin.hasExited = true }

  // MARK: Reading

  var isBlocked: Bool { flow.blockedSince != nil }

  /// Whether bytes are read from it: not while it is blocked, while its user has used up its share
  /// of a turn, or while its requests must be answered first.
  var mayRead: Bool { !isBlocked && !flow.isWaiting && !frames.isHeld }

  /// Release memory that is kept to be used again. Called now and then: an idle connection needs none.
  mutating func trim() {
    requests.trim()
    subscriptions.trim()
  }

  // MARK: Sending

  /// Send a message at the turn's end.
  mutating func send(_ message: ServerMessage) {
    outbox.append(Frame.encode { message.encode(into: &$0) })
  }

  /// Whether answers of the shell, or refusals, are to be sent.
  var owesNews: Bool {
    @inline(__always) get {
      // In steps, and of the parts: else a copy of all is made.
      if subscriptions.owesNews { return true }
      return boxedQueries.oweNews
    }
  }

  /// Whether every subscription is at the revision at which the last turn ended.
  var isCurrent: Bool { subscriptions.areLive }

  /// Send the outcomes of actions up to a number that are not acknowledged yet.
  mutating func acknowledge(_ outcomes: borrowing Outcomes, through last: UInt64) {
    if let frames = acknowledgements.take(outcomes, through: last, version: client.version) {
      outbox.append(frames)
    }
  }

  /// Announce the decided actions that were not announced yet.
  mutating func announce(_ outcomes: borrowing Outcomes) {
    if let message = acknowledgements.announce(outcomes) { send(message) }
  }

  /// Begin a subscription to a scope.
  mutating func begin(_ subscription: Subscription, _ scope: inout Scope) {
    var subscription = subscription
    subscription.seat = scope.subscribers.append(
      ConnectionPlace(id: id, place: place), slot: subscriptions.count)
    subscriptions.append(subscription)
  }

  /// Send the newest revision to a client that was sent nothing for some time.
  mutating func bookmark(
    _ revision: UInt64, durable: UInt64?, every interval: Duration, at now: Instant
  ) {
    guard outbox.isEmpty, isBookmarkDue(every: interval, at: now) else { return }
    send(.bookmark(revision: revision, durable: durable))
  }

  func isBookmarkDue(every interval: Duration, at now: Instant) -> Bool {
    isCurrent && attachment != nil && !(now < outbox.lastSent + interval)
  }

  /// Take the frames to send now, and count them; nil if there are none.
  mutating func takeFrames(at now: Instant) -> Frames? {
    let count = outbox.byteCount
    guard let frames = outbox.take(at: now) else { return nil }
    counters.bytesSent += UInt64(count)
    return frames
  }
}

/// Why a connection is not read from, apart from its own requests.
struct Flow: Sendable {
  /// The time since when bytes have been unsent; nil if none are.
  var blockedSince: Instant?
  var unsentBytes = 0
  /// Whether reading is paused until its user has a share of a turn again.
  var isWaiting = false
  /// Whether it is being brought up to date over several turns. It is sent the rest although bytes are
  /// unsent: else what it has already would be behind again each time, and it might never be answered.
  var isDelayed = false

  /// Whether nothing is composed for it until its bytes have been sent.
  var isHeldBack: Bool { blockedSince != nil && !isDelayed }
}

/// The frames that a connection is sent at the turn's end.
struct Outbox: Sendable {
  /// In their order. Behind the first few, short ones are joined.
  private(set) var frames = Frames.none
  /// The bytes of all frames.
  private(set) var byteCount = 0
  private(set) var lastSent: Instant
  /// Whether the last of `frames` is short ones, which others may be added to.
  private var isJoining = false

  /// So many frames stay as they are: most connections are sent one or two.
  private static let few = 8
  /// The most bytes of a frame that is joined: to copy them takes less than to count a reference, and
  /// the kernel less than a buffer.
  private static let short = 256
  /// Frames that are joined have at most so many bytes together: what a pipe writes in one request.
  private static let mostTogether = 32 << 10

  init(at now: Instant) { lastSent = now }

  var isEmpty: Bool { frames.isEmpty }

  @inline(__always)
  mutating func append(_ frame: [UInt8]) {
    byteCount += frame.count
    if frames.count >= Self.few { return appendToMany(frame) }
    frames.append(frame)
  }

  /// Append frames that other connections are sent, too. The list itself is shared if it is the
  /// first.
  mutating func append(contentsOf shared: Frames) {
    append(contentsOf: shared, count: shared.byteCount)
  }

  /// The same for frames of so many bytes in all.
  @inline(__always)
  mutating func append(contentsOf shared: Frames, count: Int) {
    if frames.isEmpty {
      frames = shared
      byteCount += count
    } else {
      for frame in shared { append(frame) }
    }
  }

  @inline(never)
  private mutating func appendToMany(_ frame: [UInt8]) {
    if frame.count > Self.short {
      frames.append(frame)
      isJoining = false
    } else if isJoining, frames[frames.count - 1].count + frame.count <= Self.mostTogether {
      frames.append(toLast: frame)
    } else {
      frames.append(frame)
      isJoining = true
    }
  }

  /// Take all frames to send them now; nil if there are none.
  mutating func take(at now: Instant) -> Frames? {
    if frames.isEmpty { return nil }
    lastSent = now
    var taken = Frames.none
    swap(&taken, &frames)
    (byteCount, isJoining) = (0, false)
    return taken
  }
}
