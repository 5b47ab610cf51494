import CBOR
import ClientCore
import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// A step of a transcript.
enum TranscriptStep: Equatable {
  /// A message of the client, or of the daemon with the mirrors that the client then shows.
  case client([UInt8])
  case daemon([UInt8], [ShownMirror])
  /// An event without a message.
  case happens(String)
  /// The connection is gone. If more follows, the client has reconnected.
  case closed(String)
}

/// The mirror of a subscription in a correct client.
struct ShownMirror: Equatable {
  var subscription: UInt64
  /// Nil if the path has no value, or nothing has arrived.
  var value: Value?
  var position: Position?
  var isCurrent: Bool

  static func all(of session: ClientSession) -> [ShownMirror] {
    session.mirrors.map { mirror in
      ShownMirror(
        subscription: mirror.number, value: mirror.value.value(), position: mirror.position,
        isCurrent: mirror.isLive)
    }
  }

  static func == (first: Self, second: Self) -> Bool {
    first.subscription == second.subscription && first.value.isSame(as: second.value)
      && first.position == second.position && first.isCurrent == second.isCurrent
  }
}

/// A real server and a real client, message by message, and a transcript of their messages.
struct TranscriptPair {
  var bench: Bench
  private(set) var session = Self.client()
  private(set) var steps: [TranscriptStep] = []
  private var connection: UInt64 = 0
  private var toServer: [UInt8] = []
  /// Snapshots that are being encoded.
  private var jobs: [SnapshotJobID] = []
  /// The state with which the next daemon starts after this one closes the connection.
  var successor: RestoredState<Document>?
  /// Whether the client waits only for the daemon's goodbye.
  private var isLeaving = false

  static func client() -> ClientSession {
    var configuration = ClientSession.Configuration(label: "transcript")
    configuration.digestInterval = nil
    return ClientSession(configuration, seed: 1)
  }

  init(_ root: Value = ["n": 0], limits: Limits = Limits()) {
    var limits = limits
    // So that transcripts show a snapshot that is announced, and comes later.
    limits.inlineSnapshotBytes = 0
    bench = Bench(root, limits: limits)
  }

  // MARK: What the client's user does

  mutating func start() {
    update { $0.start(at: $1, into: &$2) }
    exchange()
  }

  @discardableResult
  mutating func subscribe(to path: Path) -> UInt64 {
    var number: UInt64 = 0
    update { session, _, commands in
      number = session.subscribe(to: path, as: Value.self, into: &commands)
    }
    return number
  }

  mutating func unsubscribe(_ number: UInt64) {
    update { session, _, commands in session.unsubscribe(number, into: &commands) }
  }

  mutating func send(_ actions: DocumentAction...) {
    for action in actions {
      update { session, _, commands in _ = session.send(payload(action), into: &commands) }
    }
  }

  mutating func query(_ number: UInt64, _ name: String, _ arguments: String...) {
    update { session, _, commands in
      session.query(number, name, arguments: arguments, into: &commands)
    }
  }

  mutating func requestDigest(of number: UInt64) {
    update { session, _, commands in session.requestDigest(of: number, into: &commands) }
  }

  mutating func ping(_ value: UInt64) {
    update { session, _, commands in session.ping(value, into: &commands) }
  }

  mutating func close() { update { session, _, commands in session.close(into: &commands) } }

  private mutating func update(
    _ body: (inout ClientSession, Instant, inout [ClientSession.Command]) -> Void
  ) {
    var commands: [ClientSession.Command] = []
    body(&session, bench.now, &commands)
    for command in commands {
      switch command {
      case .connect:
        // A new connection has nothing of the old one's bytes.
        toServer = []
        connection += 1
        bench.open(connection)
        update { $0.connected(at: $1, into: &$2) }
      case .send(let bytes):
        toServer += bytes
        steps += TranscriptPair.items(bytes).map(TranscriptStep.client)
      case .disconnect where session.hasEnded: isLeaving = true
      case .disconnect: cut("the client closes")
      case .notify: break
      }
    }
  }

  // MARK: What happens

  /// Something that the daemon does by itself.
  mutating func world(_ text: String, _ body: (inout Bench) -> Void) {
    steps.append(.happens(text))
    body(&bench)
  }

  /// Actions that do not come from the client.
  mutating func world(_ text: String, _ actions: DocumentAction...) {
    world(text) { bench in for action in actions { bench.server.act(action) } }
  }

  /// Deliver the client's bytes to the server.
  mutating func deliver() {
    let bytes = toServer
    toServer = []
    if !bytes.isEmpty { bench.handle(.received(ConnectionID(connection), bytes)) }
  }

  /// End a turn of the server, and deliver its messages to the client.
  mutating func turn() {
    let commands = bench.turn()
    jobs += commands.compactMap { if case .encodeSnapshot(let id) = $0 { id } else { nil } }
    hear(commands)
  }

  /// Deliver messages in both directions until there are none.
  mutating func exchange() {
    for id in jobs { bench.encode(id) }
    jobs = []
    for _ in 0..<100 {
      deliver()
      if !hear(bench.settle()) && toServer.isEmpty { return }
    }
    preconditionFailure("The two never fall silent.")
  }

  /// Cut the connection; the client reconnects at once. Messages that the server had not read are
  /// lost.
  mutating func cut(_ text: String) {
    steps.append(.closed(text))
    bench.handle(.closed(ConnectionID(connection)))
    if let next = successor { bench.crash(keeping: next) }
    successor = nil
    toServer = []
    update { $0.disconnected(at: $1, into: &$2) }
  }

  /// Lose the server's next messages.
  mutating func loseAnswers(_ text: String) {
    deliver()
    _ = bench.settle()
    steps.append(.happens(text))
  }

  /// Deliver only the first `count` of the server's next messages to the client.
  mutating func hearFirst(_ count: Int) {
    deliver()
    let frames = bench.frames(to: connection, bench.settle())
    for item in TranscriptPair.items(Array(frames.joined())).prefix(count) { hear(item) }
  }

  @discardableResult
  mutating func hear(_ commands: [Command]) -> Bool {
    let id = connection
    let items = TranscriptPair.items(Array(bench.frames(to: id, commands).joined()))
    for item in items { hear(item) }
    if commands.contains(.close(ConnectionID(id))) {
      if isLeaving {
        steps.append(.closed("the daemon closes"))
        bench.handle(.closed(ConnectionID(id)))
      } else {
        cut("the daemon closes")
      }
    }
    return !items.isEmpty
  }

  private mutating func hear(_ item: [UInt8]) {
    let place = steps.count
    steps.append(.daemon(item, []))
    let bytes = Self.framed(item)
    update { session, now, commands in
      bytes.withUnsafeBytes { session.received($0, at: now, into: &commands) }
    }
    // A client that has said goodbye need not handle further messages.
    if !session.hasEnded { steps[place] = .daemon(item, ShownMirror.all(of: session)) }
  }

  // MARK: Bytes

  static func framed(_ item: [UInt8]) -> [UInt8] {
    Frame.encode { (encoder: inout CBOREncoder) in encoder.raw(item) }
  }

  static func type(of item: [UInt8]) -> MessageType? {
    item.withUnsafeBytes { item in
      var decoder = CBORDecoder(item)
      return (try? MessageHead(from: &decoder))?.type
    }
  }

  /// The messages in a stream of whole frames.
  static func items(_ bytes: [UInt8]) -> [[UInt8]] {
    var decoder = FrameDecoder(limit: 1 << 30)
    var items: [[UInt8]] = []
    bytes.withUnsafeBytes { bytes in
      try? decoder.receiveAll(bytes) { item throws(WireError) in items.append(Array(item)) }
    }
    return items
  }
}
