import Access
import CBOR
import ClientCore
import DaemonCore
import Documents
import Lockstep
import Records
import Values
import Wire

/// A server whose policy changes, and clients of several users, which lag, are cut off and
/// reconnect.
///
/// Every byte that the server sends is checked: it must contain no text that the client may not see
/// in any past state. And every mirror must equal its user's view of a state.
struct Crowd {
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// The policy's rules for a user.
  struct Terms {
    var grants: [PathPattern]
    var denials: [PathPattern]
    var mayConnect: Bool
  }

  struct Client {
    let uid: UInt64
    var session: ClientSession
    var link: ConnectionID?
    var isToConnect = false
    /// Frames on their way to the server, and bytes on their way to the client.
    var toServer: [[UInt8]] = []
    var toClient: [UInt8] = []
    /// The server has closed the connection.
    var isClosed = false
    var isBlocked = false
    var isPaused = false
    /// Texts that the client itself has sent.
    var own: Set<String> = []
    var refused: Set<UInt64> = []

    var isQuiet: Bool {
      toServer.isEmpty && toClient.isEmpty && !isToConnect && !isBlocked && !isClosed
        && session.unacknowledged == 0
    }

    var restlessness: String {
      "\(toServer.count) frames there, \(toClient.count) bytes back, blocked \(isBlocked), "
        + "paused \(isPaused), \(session.unacknowledged) unanswered"
    }
  }

  private(set) var server: Server<DocumentFeature>
  private var random: RandomViews
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var states: [CBORItem] = []
  private var terms: [UInt64: Terms] = [:]
  /// All rules that were ever in force for a user.
  private var formerTerms: [UInt64: [Terms]] = [:]
  /// Texts that a user may see in the first `states` states.
  private var visible: [UInt64: (texts: Set<String>, states: Int)] = [:]
  private var clients: [Client] = []
  private var jobs: [SnapshotJobID] = []
  /// Whether the server asks for another turn.
  private var isWoken = false
  private var nextConnection: UInt64 = 1
  /// Whether every client reads.
  private var isKind = false
  private(set) var counts: [String: Int] = [:]

  private static let users: [UInt64] = [1, 2, 3]

  init(seed: UInt64, _ faults: Faults = Faults()) {
    random = RandomViews(seed: seed)
    var limits = Limits()
    limits.inlineSnapshotBytes = [0, 300, 128 << 10][random.below(3)]
    limits.heldStates = [1, 64][random.below(2)]
    limits.historyBytes = [0, 2000, 4 << 20][random.below(3)]
    limits.patchFrameBytes = [1, 256 << 10][random.below(2)]
    let value = Self.value(random.value())
    server = Server(
      Document(value), reducer: DocumentFeature(), seed: HashSeed(7), epoch: 9, limits: limits,
      durability: random.chance(50) ? .none : .async, policy: Policy([]), at: now)
    server.plant(faults)
  }

  static func value(_ item: CBORItem) -> Value {
    let bytes = item.bytes
    return
      (try? CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: HashSeed(7))
      }) ?? .null
  }

  /// Run this many steps, then let everything come to rest.
  mutating func run(steps: Int) throws(Fault) {
    note()
    try reload(isFirst: true)
    for uid in Self.users + [1] { addClient(uid) }
    for step in 0..<steps {
      try advance()
      if step % 50 == 49 { try rest() }
    }
    try rest()
  }

  // MARK: What happens

  private mutating func advance() throws(Fault) {
    for index in clients.indices { try connect(index) }
    let slot = random.below(clients.count)
    switch random.below(22) {
    case 0...4: try change()
    case 5...8: try endTurn()
    case 9...12: try read(slot)
    case 13, 14: try serve(slot)
    case 15: try drain(slot)
    case 16: try ask(slot)
    case 17: try act(slot)
    case 18: try encode()
    case 19: if random.chance(30) { try cut(slot) }
    case 20: if random.chance(25) { try reload() }
    default: try subscribe(slot)
    }
    try endSessions()
  }

  /// The daemon's own changes.
  private mutating func change() throws(Fault) {
    for _ in 0...random.below(3) {
      let path = place()
      let action: DocumentAction =
        random.chance(25) && !path.keys.isEmpty
        ? .remove(path) : .set(path, Self.value(random.value(level: path.keys.count)))
      server.act(action)
      note()
    }
  }

  private mutating func place() -> Path {
    let depth = random.chance(8) ? 0 : 1 + random.below(3)
    return Path((0..<depth).map { .text(random.keyText($0, random.below(6))) })
  }

  /// Record the state, if it has changed.
  private mutating func note() {
    guard server.revision + 1 > UInt64(states.count) else { return }
    var encoder = CBOREncoder()
    server.state.encode(into: &encoder)
    // A state that cannot be decoded could not be sent either.
    states.append((try? CBORItem(encoder.bytes)) ?? .undefined)
  }

  private mutating func reload(isFirst: Bool = false) throws(Fault) {
    if !isFirst { count("reloads") }
    var rules: [Rule] = []
    for uid in Self.users {
      if !isFirst && random.chance(40) {
        if let old = terms[uid] { rules.append(rule(uid, old)) }
        continue
      }
      let (grants, denials) = random.patterns()
      let isWhole = random.chance(15)
      let new = Terms(
        grants: isWhole ? [.whole] : grants, denials: isWhole ? [] : denials,
        mayConnect: isFirst || random.chance(80))
      terms[uid] = new
      formerTerms[uid, default: []].append(new)
      visible[uid] = nil
      rules.append(rule(uid, new))
    }
    try deliver(.policy(Policy(rules)))
  }

  private func rule(_ uid: UInt64, _ terms: Terms) -> Rule {
    Rule(
      users: [uid], mayConnect: terms.mayConnect, read: terms.grants, denyRead: terms.denials,
      act: [.all])
  }

  // MARK: Clients

  private mutating func addClient(_ uid: UInt64) {
    var configuration = ClientSession.Configuration(label: "crowd")
    configuration.digestInterval = nil
    var client = Client(uid: uid, session: ClientSession(configuration, seed: random.random.next()))
    var commands: [ClientSession.Command] = []
    client.session.start(at: now, into: &commands)
    client.isToConnect = true
    for _ in 0...random.below(3) {
      _ = client.session.subscribe(
        to: random.path(), as: Value.self, everyRevision: true, into: &commands)
    }
    clients.append(client)
  }

  private mutating func connect(_ index: Int) throws(Fault) {
    guard clients[index].isToConnect else { return }
    clients[index].isToConnect = false
    let id = ConnectionID(nextConnection)
    nextConnection += 1
    clients[index].link = id
    let peer = Peer(pid: id.rawValue, uid: clients[index].uid, gid: 100, groups: [5])
    try deliver(.opened(id, peer, SessionToken(high: id.rawValue, low: 1)))
    try update(index) { $0.connected(at: $1, into: &$2) }
  }

  private mutating func update(
    _ index: Int,
    _ body: (
      inout ClientSession, Instant, inout [ClientSession.Command]
    ) -> Void
  ) throws(Fault) {
    var commands: [ClientSession.Command] = []
    body(&clients[index].session, now, &commands)
    var isLost = false
    for command in commands {
      switch command {
      case .connect: clients[index].isToConnect = true
      case .send(let bytes): clients[index].toServer += Self.frames(bytes)
      case .disconnect: isLost = true
      case .notify(.refused(let number, let reason)):
        count("refused: \(reason)")
        clients[index].refused.insert(number)
      case .notify(.diverged(let number, let why)):
        throw Fault(description: "mirror \(number) of user \(clients[index].uid) diverged: \(why)")
      case .notify(.digest): count("digests")
      case .notify(.revised(let number, let value, let revision, _)):
        try check(index, number, value.value(), revision)
      case .notify(.connection(.closed(let goodbye))):
        guard goodbye.code == .denied || goodbye.code == .done else {
          throw Fault(description: "user \(clients[index].uid) was told \(goodbye)")
        }
        count("goodbye: \(goodbye.code)")
      case .notify: break
      }
    }
    if isLost { try cut(index) }
  }

  private static func frames(_ bytes: [UInt8]) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var rest = bytes[...]
    while rest.count >= 4 {
      let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      frames.append(Array(rest.prefix(4 + length)))
      rest = rest.dropFirst(4 + length)
    }
    return frames
  }

  /// A client reads some of its input.
  private mutating func read(_ index: Int, all: Bool = false) throws(Fault) {
    let waiting = clients[index].toClient.count
    guard waiting > 0 else {
      if clients[index].isClosed { try cut(index) }
      return
    }
    let bytes = Array(clients[index].toClient.prefix(all ? waiting : 1 + random.below(waiting)))
    clients[index].toClient.removeFirst(bytes.count)
    try update(index) { session, now, commands in
      bytes.withUnsafeBytes { session.received($0, at: now, into: &commands) }
    }
    for mirror in clients[index].session.mirrors {
      if let position = mirror.position {
        try check(index, mirror.number, mirror.value.value(), position.revision)
      }
    }
  }

  /// The server reads a frame.
  private mutating func serve(_ index: Int) throws(Fault) {
    guard let id = clients[index].link, !clients[index].isPaused, !clients[index].isClosed,
      !clients[index].toServer.isEmpty
    else { return }
    try deliver(.received(id, clients[index].toServer.removeFirst()))
    note()
  }

  private mutating func drain(_ index: Int) throws(Fault) {
    guard let id = clients[index].link, clients[index].isBlocked, !clients[index].isClosed
    else { return }
    clients[index].isBlocked = false
    try deliver(.drained(id))
  }

  private mutating func cut(_ index: Int) throws(Fault) {
    guard let id = clients[index].link else { return }
    count("cuts")
    clients[index].link = nil
    clients[index].toServer = []
    clients[index].toClient = []
    clients[index].isBlocked = false
    clients[index].isPaused = false
    clients[index].isClosed = false
    clients[index].refused = []
    try deliver(.closed(id))
    try update(index) { $0.disconnected(at: $1, into: &$2) }
  }

  /// Replace a client whose session has ended by another one of the same user.
  private mutating func endSessions() throws(Fault) {
    for index in clients.indices.reversed() where clients[index].session.hasEnded {
      let uid = clients[index].uid
      try cut(index)
      clients.remove(at: index)
      addClient(uid)
    }
  }

  private mutating func subscribe(_ index: Int) throws(Fault) {
    let path = random.path()
    let oldest = clients[index].session.mirrors.first?.number
    let isFull = clients[index].session.mirrors.count > 3
    try update(index) { session, _, commands in
      if isFull, let oldest { session.unsubscribe(oldest, into: &commands) }
      _ = session.subscribe(to: path, as: Value.self, everyRevision: true, into: &commands)
    }
  }

  private mutating func ask(_ index: Int) throws(Fault) {
    let name = ["status", "clients", "log", "log.follow", "limits", "effects"][random.below(6)]
    let last = clients[index].session.mirrors.last?.number
    try update(index) { session, _, commands in
      session.query(7, name, into: &commands)
      if let last { session.requestDigest(of: last, into: &commands) }
    }
  }

  private mutating func act(_ index: Int) throws(Fault) {
    let (path, other) = (place(), place())
    let item = random.value(level: path.keys.count)
    let action: DocumentAction
    switch random.below(7) {
    case 0: action = .test(path, Self.value(item))
    case 1: action = .copy(from: path, to: other)
    case 2: action = .move(from: path, to: other)
    case 3: action = .increment(path, by: 1)
    case 4: action = .transaction([.append(path, 1), .test(other, 1)])
    default: action = .set(path, Self.value(item))
    }
    clients[index].own.formUnion(item.texts)
    clients[index].own.formUnion((path.keys + other.keys).map(\.description))
    try update(index) { session, _, commands in
      _ = session.send(payload(action), into: &commands)
    }
  }

  // MARK: The server

  private mutating func deliver(_ event: Event<DocumentAction>) throws(Fault) {
    now = now + .milliseconds(1)
    var commands: [Command] = []
    server.handle(event, at: now, into: &commands)
    for command in commands {
      switch command {
      case .send(let id, let frames): try send(Array(frames.joined()), to: id)
      case .close(let id), .abort(let id):
        update(id) { $0.isClosed = true }
        try deliver(.closed(id))
      case .pauseReading(let id): update(id) { $0.isPaused = true }
      case .resumeReading(let id): update(id) { $0.isPaused = false }
      case .encodeSnapshot(let job): jobs.append(job)
      case .decodeAction(let id):
        try deliver(.actionDecoded(id, server.action(for: id)?.decoded()))
      case .computeDigest: try deliver(.digestComputed)
      case .keep(let batch): try deliver(.journal(.committed(through: batch.number)))
      case .wake: isWoken = true
      default: break
      }
    }
  }

  private mutating func update(_ id: ConnectionID, _ body: (inout Client) -> Void) {
    if let index = clients.firstIndex(where: { $0.link == id }) { body(&clients[index]) }
  }

  private mutating func send(_ bytes: [UInt8], to id: ConnectionID) throws(Fault) {
    guard let index = clients.firstIndex(where: { $0.link == id }) else { return }
    let secrets = Self.texts(in: bytes).subtracting(allowed(clients[index]))
    guard secrets.isEmpty else {
      throw Fault(description: "user \(clients[index].uid) is told of \(secrets.sorted())")
    }
    clients[index].toClient += bytes
    guard !clients[index].isBlocked, !clients[index].isClosed, !isKind, random.chance(25) else {
      return
    }
    count("blocks")
    clients[index].isBlocked = true
    try deliver(.blocked(id, unsent: 1))
  }

  private mutating func endTurn() throws(Fault) {
    isWoken = false
    try deliver(.turnEnded)
  }

  private mutating func encode() throws(Fault) {
    guard !jobs.isEmpty else { return }
    let id = jobs.remove(at: random.below(jobs.count))
    guard let job = server.snapshot(for: id) else { return }
    count("jobs")
    let (frames, wholeBytes) = job.measured()
    try deliver(.snapshotEncoded(id, frames, wholeBytes: wholeBytes))
  }

  // MARK: What must be true

  /// All texts that look like the test's own.
  private static func texts(in bytes: [UInt8]) -> Set<String> {
    var texts: Set<String> = []
    var start: Int?
    for (index, byte) in bytes.enumerated() {
      if byte == UInt8(ascii: "<") { start = index }
      guard byte == UInt8(ascii: ">"), let from = start else { continue }
      let text = String(decoding: bytes[from...index], as: UTF8.self)
      if text.hasPrefix("<key ") || text.hasPrefix("<scalar ") { texts.insert(text) }
      start = nil
    }
    return texts
  }

  /// The texts that a client may be sent: those that its user's present view shows of any state.
  private mutating func allowed(_ client: Client) -> Set<String> {
    var (texts, count) = visible[client.uid] ?? ([], 0)
    while count < states.count {
      texts.formUnion(shown(client.uid, states[count], at: .root)?.texts ?? [])
      count += 1
    }
    visible[client.uid] = (texts, count)
    return texts.union(client.own)
  }

  private func shown(_ uid: UInt64, _ state: CBORItem, at path: Path) -> CBORItem? {
    guard let terms = terms[uid], terms.mayConnect else { return nil }
    return Self.shown(terms, state, at: path)
  }

  private static func shown(_ terms: Terms, _ state: CBORItem, at path: Path) -> CBORItem? {
    SessionsTests.shown(
      state.part(at: path), at: path, granting: terms.grants, denying: terms.denials)
  }

  private static func item(_ value: Value?) -> CBORItem? {
    guard let value else { return nil }
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return try? CBORItem(encoder.bytes).sorted
  }

  /// Check that a mirror equals a present or former view of its user, of the state at its revision.
  private mutating func check(
    _ index: Int, _ number: UInt64, _ value: Value?, _ revision: UInt64
  ) throws(Fault) {
    guard let mirror = clients[index].session.mirror(number) else { return }
    let (uid, ours) = (clients[index].uid, Self.item(value))
    guard revision < UInt64(states.count) else {
      throw Fault(description: "a mirror stands at \(revision), where the state never was")
    }
    let state = states[Int(revision)]
    let isTrue = (formerTerms[uid] ?? []).contains {
      Self.shown($0, state, at: mirror.path)?.sorted == ours
    }
    guard isTrue else {
      throw Fault(
        description: "the mirror of \(mirror.path) of user \(uid) at \(revision) is wrong")
    }
    count("checks")
  }

  /// Let everything come to rest: each mirror must then equal its user's view of the newest state.
  private mutating func rest() throws(Fault) {
    isKind = true
    defer { isKind = false }
    var quietRounds = 0
    for _ in 0..<400 {
      for index in clients.indices {
        try connect(index)
        while !clients[index].toServer.isEmpty, !clients[index].isPaused, !clients[index].isClosed {
          try serve(index)
        }
      }
      while !jobs.isEmpty { try encode() }
      try endTurn()
      for index in clients.indices {
        try read(index, all: true)
        try drain(index)
      }
      try endSessions()
      let isQuiet =
        jobs.isEmpty && !isWoken
        && clients.allSatisfy { $0.isQuiet || terms[$0.uid]?.mayConnect == false }
      quietRounds = isQuiet ? quietRounds + 1 : 0
      if quietRounds == 3 { return try checkRest() }
    }
    throw Fault(
      description: "nothing comes to rest: \(server.load), \(clients.map(\.restlessness))")
  }

  private mutating func checkRest() throws(Fault) {
    guard let newest = states.last else { return }
    for client in clients where terms[client.uid]?.mayConnect == true {
      for mirror in client.session.mirrors {
        if client.refused.contains(mirror.number) {
          guard mirror.value.isAbsent else {
            throw Fault(description: "a refused mirror of user \(client.uid) shows something")
          }
          continue
        }
        let expected = shown(client.uid, newest, at: mirror.path)?.sorted
        guard mirror.isLive, Self.item(mirror.value.value()) == expected else {
          throw Fault(
            description: "at rest, the mirror of \(mirror.path) of user \(client.uid) is wrong")
        }
        count("rests")
        if expected != nil, expected != newest.part(at: mirror.path)?.sorted { count("parts") }
      }
    }
  }

  private mutating func count(_ name: String) { counts[name, default: 0] += 1 }
}
