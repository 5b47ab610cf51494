import CBOR
public import Schemas
public import Values
public import Wire

// Theory of operation
//
// The client's half of a session is a value too: the shell passes it the events of the socket and
// executes its commands. It numbers actions, keeps those that are not acknowledged, retries them
// after a reconnect, and keeps one mirror for each subscription.
//
//     idle -> connecting -> greeting -> live -> (cut) waiting -> connecting ...
//                                         \-> ended                         (close, fatal goodbye)
//
// An action has an identifier that never changes (`ActionID`) and, on the wire, a number that
// counts the session's actions. When the daemon has lost the session, actions that had been sent
// are reported `outcomeUnknown`, and the unsent ones are numbered from 1 in the new session.

/// The client's identifier of an action; rises by one with each action.
public struct ActionID: Hashable, Comparable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// The client's end of a connection: mirrors parts of a daemon's state and sends it actions.
public struct ClientSession: Sendable {
  /// An order for the shell: something to do, or a notice for its user.
  public enum Command: Sendable {
    /// Open a connection after this long; `connected` or `disconnected` follows.
    case connect(after: Duration)
    /// Write these bytes after everything that was sent before.
    case send([UInt8])
    /// Close the connection once everything is written; `disconnected` follows.
    case disconnect
    case notify(Notice)
  }

  /// A notice for the user.
  public enum Notice: Sendable {
    case connection(ConnectionState)
    /// A mirror changed. Several changes may share one notice.
    case changed(UInt64)
    /// A mirror with `everyRevision` changed: its value after one patch, or after a snapshot, in
    /// which case `patch` is empty.
    case revised(UInt64, MirroredValue, revision: UInt64, patch: [UInt8])
    /// A mirror with `notesPatches` changed by this patch, or, if that is empty, by a snapshot.
    case patched(UInt64, patch: [UInt8])
    /// A subscription was refused.
    case refused(UInt64, ServerMessage.Reason)
    /// A mirror has received something unknown here. It shows its last value, if that is intact,
    /// and continues, if it can, on the next connection. The other mirrors follow the daemon.
    case unreadable(UInt64, Goodbye)
    /// The outcome of actions: their identifiers, and the acknowledgement as received. Of those that
    /// were rejected, or whose outcome cannot be known, also the payloads, in their order.
    case acknowledged(ClosedRange<ActionID>, Acknowledgement, undone: [[UInt8]] = [])
    case pong(UInt64, revision: UInt64)
    /// The answer to a query, its pages joined.
    case report(UInt64, Value)
    /// The daemon's digest of a subscription's value; nil when the daemon has none to compare now.
    case digest(UInt64, revision: UInt64, Digest?)
    case schema(Schema)
    /// A mirror had diverged from the daemon's value. A snapshot will replace it.
    case diverged(UInt64, String)
  }

  /// The state of the connection.
  public enum ConnectionState: Equatable, Sendable {
    case connecting
    /// The daemon has said welcome: actions can be sent, and mirrors that have arrived follow it.
    case live
    /// Mirrors show the values from when the connection was lost.
    case stale(since: Instant, Goodbye?)
    /// The client closed the connection, or the daemon said a final goodbye, after which the client
    /// does not reconnect.
    case closed(Goodbye)
  }

  enum Phase: Sendable {
    case idle
    case connecting
    case greeting
    case live
    case waiting
    case ended
  }

  struct Pending: Sendable {
    let id: ActionID
    let mark: Mark
    let payload: [UInt8]
    /// Why the action cannot be translated to the daemon's schema. It is sent as an item that is no
    /// action, so that it keeps its number, and the daemon rejects it in its turn.
    var refusal: RejectionMessage?
  }

  public struct Configuration: Sendable {
    public var label = ""
    public var frameBytes = Frame.defaultLimit
    /// The versions of the protocol to speak.
    public var versions = ProtocolVersion.range
    /// The first backoff before a reconnect; doubles up to `longestWait`. Jitter makes each wait a
    /// random part of it, between half and the whole.
    public var firstWait: Duration = .milliseconds(20)
    public var longestWait: Duration = .seconds(5)
    /// Whether to reconnect when the connection is lost.
    public var reconnects = true
    /// How often to compare digests; nil for never.
    public var digestInterval: Duration? = .seconds(60)
    /// Whether actions may show before they are decided: the daemon then announces what it has
    /// decided.
    public var wantsDecisions = false
    /// How to use the daemon's schema. Where values are translated, digests are not compared.
    public var schemaUse = SchemaUse.ignore

    public init(label: String = "") { self.label = label }
  }

  public let configuration: Configuration
  var phase = Phase.idle
  var frames: FrameDecoder
  var random: SplitMix64
  var now = Instant(nanoseconds: 0)
  var attempt = 0
  var lastGoodbye: Goodbye?
  /// The daemon's bytes could not be decoded: everything else that comes on this connection is
  /// ignored.
  var isLeaving = false

  // The session.
  public internal(set) var welcome: ServerMessage.Welcome?
  public internal(set) var schema: Schema?
  /// The translations of the daemon's values to our schema, or to names, and of our actions to the
  /// daemon's schema; nil when none is needed.
  var stateTranslation: Translation?
  var actionTranslation: Translation?
  var token: SessionToken?
  /// Unacknowledged actions, oldest first, from `firstPending` on.
  var pending: [Pending] = []
  var firstPending = 0
  /// How many of them have been sent in this session (perhaps on an earlier connection).
  var sentInSession = 0
  /// How many of them have been sent on this connection.
  var sentOnConnection = 0
  /// Acknowledgements that came while a mirror heals: delivered once the mirror shows their
  /// changes.
  var heldAcknowledgements: [Acknowledgement] = []
  var nextAction: UInt64 = 1
  /// Subtracted from an action's identifier, it gives the action's number in this session.
  var numberOffset: UInt64 = 0

  /// The subscriptions, in the order in which they were made.
  public internal(set) var mirrors: [ClientSubscription] = []
  var nextSubscription: UInt64 = 1
  var changed: Set<UInt64> = []
  /// The pages received of reports that are incomplete, by the query's number.
  var pages: [UInt64: Value] = [:]
  var optimistic = OptimisticActions()
  var lastHeard = Instant(nanoseconds: 0)
  var lastDigest = Instant(nanoseconds: 0)
  var greetingSince = Instant(nanoseconds: 0)
  #if FAULTS
    package var skipsBaseCheck = false
    package var skipsDecisionCheck = false
    package var keepsRejected = false
  #else
    /// False: a release has no code for this fault.
    var skipsBaseCheck: Bool { false }
    var skipsDecisionCheck: Bool { false }
    var keepsRejected: Bool { false }
  #endif

  /// A session that begins with `start`. The seed is for the jitter of the reconnect backoff.
  public init(_ configuration: Configuration = Configuration(), seed: UInt64) {
    self.configuration = configuration
    frames = FrameDecoder(limit: configuration.frameBytes)
    random = SplitMix64(seed)
  }

  // MARK: Requests of the user

  /// Connect.
  public mutating func start(at now: Instant, into commands: inout [Command]) {
    guard case .idle = phase else { return }
    self.now = now
    phase = .connecting
    commands.append(.notify(.connection(.connecting)))
    commands.append(.connect(after: .zero))
  }

  /// Send an action, now or as soon as the connection and the window allow. With `isOptimistic` it
  /// shows at once (`optimisticView`), unless the daemon is too old for that.
  public mutating func send(
    _ payload: [UInt8], _ mark: Mark = .applied, isOptimistic: Bool = false,
    into commands: inout [Command]
  ) -> ActionID {
    let id = ActionID(nextAction)
    nextAction += 1
    pending.append(Pending(id: id, mark: mark, payload: payload))
    if isOptimistic { showAtOnce(id, payload, &commands) }
    if case .live = phase { sendPending(&commands) }
    return id
  }

  /// Mirror a path, as a value of a type. `everyRevision` asks for a notice for each patch, with the
  /// value; `notesPatches` for one without it, so that the mirror changes in place. Returns the number
  /// of the subscription.
  public mutating func subscribe<T: Synchronizable>(
    to path: Path, as type: T.Type, everyRevision: Bool = false, notesPatches: Bool = false,
    into commands: inout [Command]
  ) -> UInt64 {
    let number = nextSubscription
    nextSubscription += 1
    var mirror = ClientSubscription(
      number: number, path: path, as: type, everyRevision: everyRevision,
      notesPatches: notesPatches)
    mirror.translate(by: stateTranslation)
    mirrors.append(mirror)
    if case .live = phase { commands.append(subscription(of: mirror)) }
    return number
  }

  /// Send a notice for each patch of a mirror from now on.
  public mutating func wantEveryRevision(of number: UInt64) {
    for index in mirrors.indices where mirrors[index].number == number {
      mirrors[index].everyRevision = true
    }
  }

  public mutating func unsubscribe(_ number: UInt64, into commands: inout [Command]) {
    mirrors.removeAll { $0.number == number }
    tellHeld(&commands)
    rebaseOptimistic()
    tellChanges(&commands)
    if case .live = phase {
      commands.append(.send(Self.frame(.unsubscribe(subscription: number))))
    }
  }

  public mutating func ping(_ value: UInt64, into commands: inout [Command]) {
    if case .live = phase { commands.append(.send(Self.frame(.ping(value)))) }
  }

  public mutating func query(
    _ number: UInt64, _ name: String, arguments: [String] = [], into commands: inout [Command]
  ) {
    if case .live = phase {
      commands.append(
        .send(Self.frame(.query(number: number, name, arguments: arguments))))
    }
  }

  public mutating func requestDigest(of number: UInt64, into commands: inout [Command]) {
    if case .live = phase {
      commands.append(.send(Self.frame(.digestRequest(subscription: number))))
    }
  }

  /// Say goodbye and end. Unacknowledged actions that were sent are `outcomeUnknown`.
  public mutating func close(into commands: inout [Command]) {
    if case .ended = phase { return }
    if case .live = phase {
      commands.append(.send(Self.frame(.goodbye(.done, "goodbye"))))
    }
    tellHeld(&commands, evenUnseen: true)
    end(Goodbye(.done, "closed by the client"), &commands)
    commands.append(.disconnect)
  }

  // MARK: Reading

  /// The value of a subscription: nil when its path has no value, or before its first snapshot.
  public func value<T: Synchronizable>(of number: UInt64, as type: T.Type) -> T? {
    mirror(number)?.value.value(as: type)
  }

  /// The position of a subscription; nil before its first snapshot.
  public func position(of number: UInt64) -> Position? { mirror(number)?.position }

  public func mirror(_ number: UInt64) -> ClientSubscription? {
    mirrors.first { $0.number == number }
  }

  public var isLive: Bool { if case .live = phase { true } else { false } }
  public var hasEnded: Bool { if case .ended = phase { true } else { false } }
  public var unacknowledged: Int { pending.count - firstPending }

  /// The identifier of the oldest action that is not acknowledged; of the next one, if there is none.
  var firstUnacknowledged: UInt64 {
    firstPending < pending.count ? pending[firstPending].id.rawValue : nextAction
  }

  // MARK: Events of the socket

  public mutating func connected(at now: Instant, into commands: inout [Command]) {
    guard case .connecting = phase else { return }
    self.now = now
    phase = .greeting
    greetingSince = now
    lastHeard = now
    frames = FrameDecoder(limit: configuration.frameBytes)
    isLeaving = false
    pages = [:]
    sentOnConnection = 0
    commands.append(
      .send(
        Self.frame(
          .hello(
            .init(
              versions: configuration.versions, label: configuration.label,
              fingerprint: (schema ?? configuration.schemaUse.expected)?.fingerprint,
              token: token,
              position: mirrors.compactMap(\.position).min {
                $0.revision < $1.revision
              },
              wantsDecisions: configuration.wantsDecisions)))))
  }

  /// The connection is lost, or could not be made.
  public mutating func disconnected(at now: Instant, into commands: inout [Command]) {
    self.now = now
    switch phase {
    case .ended, .waiting, .idle: return
    case .connecting, .greeting, .live: break
    }
    tellHeld(&commands, evenUnseen: true)
    rebaseOptimistic()
    tellChanges(&commands)
    for index in mirrors.indices { mirrors[index].disconnect() }
    let goodbye = lastGoodbye
    lastGoodbye = nil
    if let goodbye, goodbye.isFinal { return end(goodbye, &commands) }
    guard configuration.reconnects else {
      return end(goodbye ?? Goodbye(.done, "the connection was lost"), &commands)
    }
    phase = .waiting
    commands.append(.notify(.connection(.stale(since: lastHeard, goodbye))))
    let wait = nextWait(goodbye?.retryAfter)
    phase = .connecting
    commands.append(.connect(after: wait))
  }

  /// Exponential backoff with "equal jitter": half of it fixed, half of it random.
  private mutating func nextWait(_ retryAfter: UInt64?) -> Duration {
    let factor = 1 << min(attempt, 16)
    attempt += 1
    let whole = min(configuration.firstWait * factor, configuration.longestWait)
    let half = whole / 2
    let jitter = half * Double(random.next() >> 11) * 0x1p-53
    let least = retryAfter.map { Duration.milliseconds(Int64(clamping: min($0, 60_000))) }
    return max(half, least ?? .zero) + jitter
  }

  private mutating func end(_ goodbye: Goodbye, _ commands: inout [Command]) {
    phase = .ended
    dropAllOptimistic()
    tellChanges(&commands)
    forgetSent(&commands)
    if firstPending < pending.count {
      // Never sent, so certainly not performed, and they never will be.
      let first = pending[firstPending].id
      let last = pending[pending.count - 1].id
      let undone = pending[firstPending...].map(\.payload)
      pending.removeAll()
      firstPending = 0
      commands.append(
        .notify(
          .acknowledged(
            first...last,
            Acknowledgement(
              first: 0, last: 0, revision: 0,
              .rejected(
                RejectionMessage(code: 0, message: "not sent: \(goodbye.message)", path: nil))),
            undone: undone)))
    }
    commands.append(.notify(.connection(.closed(goodbye))))
  }

  /// Called about once a second: checks the timeouts of the handshake and of the heartbeat, and
  /// requests digests.
  public mutating func tick(at now: Instant, into commands: inout [Command]) {
    self.now = now
    guard case .live = phase else {
      if case .greeting = phase, now > greetingSince + .seconds(10) {
        commands.append(.disconnect)
      }
      return
    }
    let quiet = Duration.milliseconds(
      Int64(
        clamping: min(
          welcome?.limits.first { $0.name == "bookmarkIntervalMs" }?.value ?? 5000,
          3_600_000)))
    if now > lastHeard + quiet * 4 {
      commands.append(.disconnect)
    } else if now > lastHeard + quiet * 2 {
      commands.append(.send(Self.frame(.ping(0))))
    }
    if let interval = configuration.digestInterval, now > lastDigest + interval {
      lastDigest = now
      for mirror in mirrors where mirror.isLive && mirror.translation == nil {
        commands.append(.send(Self.frame(.digestRequest(subscription: mirror.number))))
      }
    }
  }

  // MARK: Sending

  static func frame(_ message: ClientMessage) -> [UInt8] {
    Frame.encode { message.encode(into: &$0) }
  }

  func subscription(of mirror: ClientSubscription) -> Command {
    .send(
      Self.frame(
        .subscribe(subscription: mirror.number, mirror.sourcePath, mirror.position)))
  }

  /// Send the actions that the window still admits, as one write.
  mutating func sendPending(_ commands: inout [Command]) {
    let window = min(Int(clamping: welcome?.window ?? 1), unacknowledged)
    let end = firstPending + window
    var index = firstPending + sentOnConnection
    guard index < end else { return }
    var encoder = CBOREncoder()
    while index < end {
      let payload = translatedPayload(at: index)
      let action = pending[index]
      Frame.append(to: &encoder) {
        ClientMessage.action(
          number: action.id.rawValue - numberOffset, action.mark, payload: payload
        ).encode(into: &$0)
      }
      index += 1
    }
    sentOnConnection = end - firstPending
    sentInSession = max(sentInSession, sentOnConnection)
    commands.append(.send(encoder.bytes))
  }

  /// Report the actions that were sent in a lost session as `outcomeUnknown`.
  mutating func forgetSent(_ commands: inout [Command]) {
    guard sentInSession > 0 else { return }
    let first = pending[firstPending].id
    let last = pending[firstPending + sentInSession - 1].id
    dropOptimistic(first...last)
    commands.append(
      .notify(
        .acknowledged(
          first...last,
          Acknowledgement(first: 0, last: 0, revision: 0, .outcomeUnknown),
          undone: pending[firstPending..<(firstPending + sentInSession)].map(\.payload))))
    dropPending(sentInSession)
    sentInSession = 0
    sentOnConnection = 0
  }

  mutating func dropPending(_ count: Int) {
    firstPending += count
    if firstPending > 1024 && firstPending > pending.count / 2 {
      pending.removeSubrange(..<firstPending)
      firstPending = 0
    }
  }
}

extension Goodbye {
  /// Whether reconnecting would only lead to the same goodbye.
  var isFinal: Bool {
    switch code {
    case .done, .malformed, .version, .outOfOrder, .unknownMessage, .replaced, .denied, .schema,
      .frameTooLarge:
      true
    case .stopping, .restarting, .stalled: false
    // Among the others `limit`: the same actions or subscriptions would exceed it again, unless the
    // daemon says when to retry.
    default: retryAfter == nil
    }
  }
}
