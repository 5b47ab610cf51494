import CBOR
import ClientCore
import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// A whole server between a good client and hostile ones. Whatever the hostile clients send, and
/// however slowly any client reads, the good client is served and ends with the server's state.
///
/// Input: steps. Each is a byte whose low bits select the event and whose high bits the client, and
/// for some events a chunk.
func fuzzServer(_ given: Input) {
  var input = given
  var world = World()
  var steps = 0
  while !input.isEmpty, steps < 256 {
    let code = input.byte()
    let who = 1 + UInt64(code >> 4) % 3
    switch code & 15 {
    case 0, 1: world.hear(input.chunk(), from: who)
    case 2, 3, 4: world.hear(framed(input.chunk()), from: who)
    case 5: world.act(input.chunk(), by: who)
    case 6: world.greet(by: who)
    case 7: world.good { _ = $0.send(payload(input.byte()), into: &$1) }
    case 8: world.look(at: path(input.byte()))
    case 9: world.blocking[who] = true
    case 10: world.drain(who)
    case 11: world.blocking[0] = true
    case 12: world.drain(0)
    case 13: world.tick()
    case 14: world.hangUp(who)
    default: if code >> 7 == 0 { world.turn() } else { world.finishSnapshot(Int(code >> 4) & 7) }
    }
    steps += 1
  }
  world.comeToRest()
}

private func framed(_ item: [UInt8]) -> [UInt8] { Frame.encode { $0.raw(item) } }

private func payload(_ choice: UInt8) -> [UInt8] {
  let key = "k\(choice % 5)"
  let action: DocumentAction =
    switch choice % 7 {
    case 0: .set([.text(key)], .integer(Int64(choice)))
    case 1: .remove([.text(key)])
    case 2: .set([.text(key)], ["a": [1, 2]])
    case 3: .append([.text(key)], .text("x"))
    case 4: .increment(["n"], by: 1)
    case 5: .set([.text(key)], .text(String(repeating: "long ", count: Int(choice))))
    default: .set([], ["k0": 1, "k1": ["a": 2], "n": .double(0.5)])
    }
  return encoded { action.encode(into: &$0) }
}

private func path(_ choice: UInt8) -> Path {
  let paths: [Path] = [
    ["k0"], ["k1"], ["k1", "a"], ["n"], ["absent", "from", "here"], ["k2", 0],
  ]
  return paths[Int(choice) % paths.count]
}

/// The document feature, without the large documents that would take the fuzzer's time.
private struct SmallDocument: Reducer {
  let feature = DocumentFeature()
  func reduce(
    into state: inout Document, action: DocumentAction
  ) throws(Rejection) -> Effect<DocumentAction> {
    let before = encoded { state.encode(into: &$0) }.count
    guard before << min(12, Self.copies(action)) <= 1 << 17 else {
      throw Rejection(.refused, "the fuzzer's document is small")
    }
    return try feature.reduce(into: &state, action: action)
  }

  private static func copies(_ action: DocumentAction) -> Int {
    switch action {
    case .copy: 1
    case .transaction(let actions): actions.reduce(0) { $0 + copies($1) }
    case .set, .merge, .remove, .increment, .append, .insert, .move, .test, .replace: 0
    }
  }
}

private struct World {
  /// Small, so that each limit is reached.
  static let limits: Limits = {
    var limits = Limits()
    limits.frameBytes = 4096
    limits.connections = 3
    limits.subscriptions = 4
    limits.pathKeys = 4
    limits.window = 8
    limits.detachedSessions = 2
    limits.sessionGrace = .seconds(5)
    limits.heldStates = 2
    limits.historyBytes = 2048
    limits.stallDeadline = .seconds(40)
    limits.helloDeadline = .seconds(3)
    limits.snapshotPartBytes = 512
    limits.inlineSnapshotBytes = 256
    limits.patchFrameBytes = 600
    limits.requestsPerTurn = 12
    limits.largeActionBytes = 200
    return limits
  }()

  struct Connection {
    var id: ConnectionID
    var isOpen = true
    var isPaused = false
    /// Frames that the peer has not read yet.
    var unsent: [[UInt8]] = []
    var isBlocked = false
    /// The number of actions that the peer has sent.
    var actions: UInt64 = 0
  }

  var server: Server<SmallDocument>
  /// The good client is number 0.
  var peers: [UInt64: Connection] = [:]
  /// Peers whose next frames cannot all be written.
  var blocking: [UInt64: Bool] = [:]
  /// Connections whose sockets have not taken everything, which the server is to hear.
  var newlyBlocked: [ConnectionID] = []
  var client: ClientSession
  /// Bytes that the good client has sent and the server has not read yet.
  var outgoing: [UInt8] = []
  var jobs: [SnapshotJobID] = []
  var decodings: [ConnectionID] = []
  var now = Instant(nanoseconds: 1_000_000_000)
  var ticks = 0
  var nextID: UInt64 = 0
  /// The server's latest log line.
  var line = LogLine(.info, "nothing")

  init() {
    let root: Value = ["k0": 1, "k1": ["a": [1, 2, 3]], "title": "Kitchen"]
    server = Server(
      Document(root), reducer: SmallDocument(), seed: testSeed, epoch: 7, limits: Self.limits,
      at: now)
    client = ClientSession(.init(label: "good"), seed: 1)
    connect(0)
    var commands: [ClientSession.Command] = []
    client.start(at: now, into: &commands)
    client.connected(at: now, into: &commands)
    _ = client.subscribe(to: .root, as: Value.self, everyRevision: true, into: &commands)
    obey(commands)
    turn()
  }

  // MARK: Events

  mutating func connect(_ who: UInt64) {
    nextID += 1
    peers[who] = Connection(id: ConnectionID(nextID))
    let peer = Peer(pid: who, uid: who == 0 ? 1000 : 1001, gid: 1000)
    tell(.opened(ConnectionID(nextID), peer, SessionToken(high: nextID << 32, low: who)))
  }

  mutating func hear(_ bytes: [UInt8], from who: UInt64) {
    if peers[who] == nil { connect(who) }
    guard let peer = peers[who], peer.isOpen, !peer.isPaused else { return }
    tell(.received(peer.id, bytes))
  }

  /// Sends an action with the client's next number, or a later one if the server did not take an
  /// earlier action.
  mutating func act(_ payload: [UInt8], by who: UInt64) {
    peers[who]?.actions += 1
    let number = peers[who]?.actions ?? 1
    hear(
      Frame.encode {
        ClientMessage.action(number: number, .applied, payload: payload).encode(into: &$0)
      }, from: who)
  }

  mutating func greet(by who: UInt64) {
    let hello = ClientMessage.hello(.init(versions: 1...1, label: "hostile \(who)"))
    hear(Frame.encode { hello.encode(into: &$0) }, from: who)
  }

  mutating func hangUp(_ who: UInt64) {
    guard let peer = peers.removeValue(forKey: who) else { return }
    tell(.closed(peer.id))
  }

  mutating func drain(_ who: UInt64) {
    guard let peer = peers[who], peer.isBlocked else { return }
    peers[who]?.isBlocked = false
    peers[who]?.unsent = []
    tell(.drained(peer.id))
    if who == 0 { read(peer.unsent) }
  }

  mutating func tick() {
    now = now + .seconds(1)
    ticks += 1
    // The good client may be slow, but it reads before the daemon's stall deadline.
    if ticks % 30 == 0 { drain(0) }
    tell(.tick)
    turn()
  }

  mutating func turn() {
    if peers[0]?.isPaused == false, !outgoing.isEmpty, let id = peers[0]?.id {
      tell(.received(id, outgoing))
      outgoing = []
    }
    // Now and then late.
    if ticks % 3 > 0 { finishDecoding() }
    tell(.turnEnded)
    for (who, peer) in peers.sorted(by: { $0.key < $1.key }) where !peer.isOpen {
      require(who != 0, "the good client is not sent away: \(line)")
      hangUp(who)
    }
    require(server.connectionCount <= 4, "no connection outlives its peer")
  }

  mutating func finishDecoding() {
    guard !decodings.isEmpty else { return }
    let id = decodings.removeFirst()
    tell(.actionDecoded(id, server.action(for: id)?.decoded()))
  }

  mutating func finishSnapshot(_ choice: Int) {
    guard !jobs.isEmpty else { return }
    let id = jobs.remove(at: choice % jobs.count)
    guard let frames = server.snapshot(for: id)?.encode() else { return }
    tell(.snapshotEncoded(id, frames))
  }

  /// The good client keeps within its limit of subscriptions.
  mutating func look(at path: Path) {
    guard client.mirrors.count < 6 else { return }
    good { _ = $0.subscribe(to: path, as: Value.self, into: &$1) }
  }

  mutating func good(
    _ body: (inout ClientSession, inout [ClientSession.Command]) -> Void
  ) {
    var commands: [ClientSession.Command] = []
    body(&client, &commands)
    obey(commands)
  }

  // MARK: The shells

  mutating func tell(_ event: Event<DocumentAction>) {
    var commands: [Command] = []
    server.handle(event, at: now, into: &commands)
    for command in commands { obey(command) }
    // As a shell does: behind the commands, and before anything else happens.
    let ids = newlyBlocked
    newlyBlocked = []
    for id in ids {
      guard let who = who(id), let unsent = peers[who]?.unsent else { continue }
      tell(.blocked(id, unsent: unsent.reduce(0) { $0 + $1.count }))
    }
  }

  private mutating func obey(_ command: Command) {
    switch command {
    case .send(let id, let frames):
      guard let who = who(id) else { return }
      send(Array(frames), to: who, id)
    case .close(let id), .abort(let id):
      if let who = who(id) { peers[who]?.isOpen = false }
    case .pauseReading(let id): if let who = who(id) { peers[who]?.isPaused = true }
    case .resumeReading(let id): if let who = who(id) { peers[who]?.isPaused = false }
    case .encodeSnapshot(let id): jobs.append(id)
    case .decodeAction(let id): decodings.append(id)
    case .measureState: tell(.stateMeasured(StateMeasure(of: server.state)))
    case .computeDigest: tell(.digestComputed)
    case .measureMemory: tell(.memoryMeasured(nil))
    // The document feature has no effects.
    case .effect, .wake, .unwatch: break
    // There is no journal.
    case .keep, .keepSnapshot, .reopenJournal: break
    case .answer(let id, let query, let asked):
      let finding: Finding
      switch server.inspection(of: asked, for: id) {
      case .success(let inspection)?: finding = inspection.finding()
      case .failure(let error)?: finding = Finding(error)
      case nil: finding = .report(encoded(Value.null))
      }
      tell(finding.event(for: id, query: query))
    case .makeCheckpoint: tell(.checkpointMade(server.revision, encoded(server.state)))
    case .log(let line):
      self.line = line
      for field in line.fields { require(!field.value.contains("\n"), "a log line is one line") }
    }
  }

  private func encoded(_ value: some Synchronizable) -> [UInt8] {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return encoder.bytes
  }

  private func who(_ id: ConnectionID) -> UInt64? { peers.first { $0.value.id == id }?.key }

  private mutating func send(_ frames: [[UInt8]], to who: UInt64, _ id: ConnectionID) {
    for frame in frames where frame.count >= 4 {
      require(frame.count <= 1 << 20, "what is sent at once is bounded")
    }
    if blocking[who] == true || peers[who]?.isBlocked == true {
      blocking[who] = false
      peers[who]?.isBlocked = true
      peers[who]?.unsent += frames
      if !newlyBlocked.contains(id) { newlyBlocked.append(id) }
    } else if who == 0 {
      read(frames)
    }
  }

  private mutating func read(_ frames: [[UInt8]]) {
    var commands: [ClientSession.Command] = []
    for frame in frames {
      frame.withUnsafeBytes { client.received($0, at: now, into: &commands) }
    }
    obey(commands)
  }

  private mutating func obey(_ commands: [ClientSession.Command]) {
    for command in commands {
      switch command {
      case .connect: continue
      case .send(let bytes): outgoing += bytes
      case .disconnect: fatalError("Broken: the good client understands its daemon")
      case .notify(.diverged(_, let why)): fatalError("Broken: the good mirror is right: \(why)")
      case .notify: continue
      }
    }
  }

  // MARK: The end

  mutating func comeToRest() {
    blocking = [:]
    for who in peers.keys.sorted() where who > 0 { hangUp(who) }
    drain(0)
    turn()
    for mirror in client.mirrors {
      good { $0.requestDigest(of: mirror.number, into: &$1) }
    }
    // The window admits few actions at a time, so this may take many turns; it is done after two
    // quiet ones.
    var quiet = 0
    for _ in 0..<80 where quiet < 2 {
      drain(0)
      while !jobs.isEmpty { finishSnapshot(0) }
      finishDecoding()
      turn()
      quiet =
        outgoing.isEmpty && jobs.isEmpty && decodings.isEmpty && client.unacknowledged == 0
        ? quiet + 1 : 0
    }
    require(client.isLive, "the good client is connected in the end")
    require(client.unacknowledged == 0, "every good action is answered")
    for mirror in client.mirrors {
      guard mirror.position != nil else {
        // Refused: a second subscription of one path, or one beyond the limit.
        require(mirror.path != .root, "the good client has its mirror of the whole")
        continue
      }
      require(mirror.isLive, "the good client's mirror of \(mirror.path) is live in the end")
      require(
        mirror.value.value(as: Value.self).isSame(as: server.state.root.scoped(to: mirror.path)),
        "the good client's mirror of \(mirror.path) is what the server has")
    }
    requireSound(server.state.root, "the state")
    require(server.connectionCount == 1, "only the good connection is left")
  }
}
