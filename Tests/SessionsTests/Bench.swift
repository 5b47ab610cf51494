import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// A server with a document, and the messages of its peers.
struct Bench {
  var server: Server<DocumentFeature>
  var now = Instant(nanoseconds: 1_000_000_000)
  /// The number of commands to measure the state; `measure` gives the result of one.
  var measurements = 0
  /// Whether digests are computed as soon as the server commands it, in `turn`.
  var computesDigests = true
  /// The number of commands to compute a digest that are not done.
  var digests = 0
  /// Whether a checkpoint has been commanded, and was not made.
  private(set) var isCheckpointDue = false
  /// The log lines for administrators.
  var logs: [LogLine] = []
  /// The first commands of a process that has taken over (`handOver`).
  var taken: [Command] = []

  static let peer = Peer(pid: 1, uid: 1000, gid: 1000)

  init(
    _ root: Value = ["n": 0], limits: Limits = Limits(), epoch: UInt64 = 9, run: UInt64 = 1,
    revision: UInt64 = 0, durability: Durability = .none, policy: Policy? = nil,
    owner: UInt64? = nil
  ) {
    server = Server(
      Document(root), reducer: DocumentFeature(), seed: HashSeed(7), epoch: epoch, run: run,
      revision: revision, limits: limits, durability: durability, policy: policy, owner: owner,
      at: now)
  }

  /// Limits with which every snapshot is encoded beside the loop, however small.
  static var besideLoop: Limits {
    var limits = Limits()
    limits.inlineSnapshotBytes = 0
    return limits
  }

  /// Connections that have said hello, none of which has subscribed.
  static func withClients(
    _ count: UInt64, limits: Limits = Limits(), versions: ClosedRange<UInt64> = 1...1
  ) -> Bench {
    var bench = Bench(limits: limits)
    for number in 1...count {
      bench.open(number)
      bench.say(number, .hello(.init(versions: versions, label: "bench")))
    }
    _ = bench.turn()
    return bench
  }

  /// Connections that see the whole document.
  static func withSubscribers(
    _ count: UInt64, limits: Limits = Limits(), versions: ClosedRange<UInt64> = 1...1
  ) -> Bench {
    var bench = withClients(count, limits: limits, versions: versions)
    for number in 1...count {
      bench.say(number, .subscribe(subscription: 1, .root, nil))
    }
    _ = bench.settle()
    return bench
  }

  // MARK: Events

  /// The server's commands for an event, without log lines and measurements.
  @discardableResult
  mutating func handle(_ event: Event<DocumentAction>) -> [Command] {
    var commands: [Command] = []
    server.handle(event, at: now, into: &commands)
    measurements += commands.count { $0 == .measureState }
    if case .checkpointMade = event { isCheckpointDue = false }
    if commands.contains(.makeCheckpoint) { isCheckpointDue = true }
    digests += commands.count { $0 == .computeDigest }
    for case .log(let line) in commands { logs.append(line) }
    return commands.filter {
      if case .log = $0 {
        false
      } else {
        $0 != .measureState && $0 != .measureMemory && $0 != .makeCheckpoint
          && $0 != .computeDigest
      }
    }
  }

  mutating func measureMemory(free: Int, of limit: Int) {
    let reading = MemoryReading(free: free, limit: limit, name: "the test")
    // The first reading answers an earlier request, if any; the second one answers the request of
    // the tick.
    handle(.memoryMeasured(reading))
    handle(.tick)
    handle(.memoryMeasured(reading))
  }

  mutating func measure() { handle(.stateMeasured(StateMeasure(of: server.state))) }

  mutating func pass(_ duration: Duration) { now = now + duration }

  static func token(_ number: UInt64) -> SessionToken { SessionToken(high: number, low: 1) }

  mutating func open(_ number: UInt64, uid: UInt64 = 1000) {
    handle(.opened(ConnectionID(number), Peer(pid: 1, uid: uid, gid: 1000), Self.token(number)))
  }

  @discardableResult
  mutating func say(_ number: UInt64, _ messages: ClientMessage...) -> [Command] {
    handle(.received(ConnectionID(number), messages.flatMap { frame($0) }))
  }

  mutating func act(_ number: UInt64, _ first: UInt64, _ actions: DocumentAction...) {
    for (index, action) in actions.enumerated() {
      say(number, .action(number: first + UInt64(index), .applied, payload: payload(action)))
    }
  }

  /// End a turn, and decode the large actions that were read in it: another turn each, and one for a digest.
  mutating func turn() -> [Command] {
    var commands = handle(.turnEnded)
    while let index = commands.firstIndex(where: { $0.isDecoding }),
      case .decodeAction(let id) = commands.remove(at: index)
    {
      handle(.actionDecoded(id, server.action(for: id)?.decoded()))
      commands += handle(.turnEnded)
    }
    if computesDigests, digests > 0 { commands += computeDigest() }
    return commands
  }

  /// Compute the digest that the server has commanded, and end a turn.
  mutating func computeDigest() -> [Command] {
    digests = 0
    handle(.digestComputed)
    return handle(.turnEnded)
  }

  /// A second passes, and a checkpoint of the state is made if one is due.
  mutating func keepPast() {
    handle(.tick)
    guard isCheckpointDue else { return }
    var encoder = CBOREncoder()
    server.state.encode(into: &encoder)
    handle(.checkpointMade(server.revision, encoder.bytes))
  }

  /// End turns, and encode the snapshots that they command, until nothing is left.
  mutating func settle() -> [Command] {
    var all: [Command] = []
    var commands = turn()
    while true {
      all += commands
      let jobs = commands.compactMap { command -> SnapshotJobID? in
        if case .encodeSnapshot(let id) = command { id } else { nil }
      }
      if jobs.isEmpty { return all }
      for id in jobs { encode(id) }
      commands = turn()
    }
  }

  mutating func encode(_ id: SnapshotJobID) {
    guard let job = server.snapshot(for: id) else { return }
    let (frames, wholeBytes) = job.measured()
    handle(.snapshotEncoded(id, frames, wholeBytes: wholeBytes))
  }

  /// Open a connection and say hello, and let everything settle. Returns the welcome.
  @discardableResult
  mutating func join(
    _ number: UInt64, uid: UInt64 = 1000, token: SessionToken? = nil,
    versions: ClosedRange<UInt64> = 1...1
  ) -> ServerMessage.Welcome? {
    open(number, uid: uid)
    say(number, .hello(.init(versions: versions, label: "bench", token: token)))
    for message in said(to: number, settle()) {
      if case .welcome(let welcome) = message { return welcome }
    }
    return nil
  }

  /// The messages to clients, turn by turn, until nothing is left to do.
  mutating func turns(_ clients: [UInt64]) -> [[UInt64: [ServerMessage]]] {
    var turns: [[UInt64: [ServerMessage]]] = []
    while true {
      let commands = turn()
      turns.append(
        Dictionary(uniqueKeysWithValues: clients.map { ($0, said(to: $0, commands)) }))
      for case .encodeSnapshot(let id) in commands { encode(id) }
      if !commands.contains(.wake) { return turns }
    }
  }

  /// Continue in another process, with the hand-over of this one. Returns the last commands of this
  /// one.
  mutating func handOver(
    limits: Limits, durability: Durability = .none
  ) throws -> [Command] {
    var commands: [Command] = []
    server.handle(.handingOver(retryAfter: 1), at: now, into: &commands)
    let encoded = server.handOver.encoded(schema: DocumentFeature().schema)
    let image = try HandOver<Document>(encoded, schema: DocumentFeature().schema)
    server = Server(
      restoring: image.next, reducer: DocumentFeature(), limits: limits, durability: durability,
      at: now)
    server.reserveScopes(of: image)
    taken = []
    for connection in image.connections {
      server.handle(.inherited(connection, isTranslated: false), at: now, into: &taken)
    }
    return commands
  }

  // MARK: Queries

  /// Ask for a report, and have the shell answer.
  mutating func ask(_ client: UInt64, _ name: String, _ arguments: String...) -> Value {
    say(client, .query(number: 79, name, arguments: arguments))
    return answer(client, 79)
  }

  /// The answer to a query, which the shell makes if the server commands it.
  mutating func answer(_ client: UInt64, _ query: UInt64) -> Value {
    // A query may have to wait for some turns, until the work of earlier ones is paid.
    for _ in 0..<30 {
      let commands = turn()
      for case .answer(let id, query, let asked) in commands {
        let finding =
          switch server.inspection(of: asked, for: id) {
          case .success(let job)?: job.finding()
          case .failure(let error)?: Finding(error)
          case nil: Finding.report([])
          }
        handle(finding.event(for: id, query: query))
      }
      for case .report(query, let value, _) in said(to: client, commands) { return value }
    }
    return .null
  }

  // MARK: Facts

  /// The messages to a connection in the commands.
  func said(to number: UInt64, _ commands: [Command]) -> [ServerMessage] {
    serverMessages(Array(frames(to: number, commands).joined()))
  }

  /// How a subscription begins or goes on, if a connection is told that first.
  func subscribed(to number: UInt64, _ commands: [Command]) -> ServerMessage.Subscribed? {
    if case .subscribed(let subscribed)? = said(to: number, commands).first {
      subscribed
    } else {
      nil
    }
  }

  func frames(to number: UInt64, _ commands: [Command]) -> [[UInt8]] {
    commands.flatMap { command -> [[UInt8]] in
      if case .send(ConnectionID(number), let frames) = command { return Array(frames) }
      return []
    }
  }

  /// The goodbye in the commands, if they close the connection after it.
  func goodbye(to number: UInt64, _ commands: [Command]) -> Goodbye? {
    guard commands.contains(.close(ConnectionID(number))),
      case .goodbye(let goodbye)? = said(to: number, commands).last
    else { return nil }
    return goodbye
  }
}

func frame(_ message: ClientMessage) -> [UInt8] { Frame.encode { message.encode(into: &$0) } }
func frame(_ message: ServerMessage) -> [UInt8] { Frame.encode { message.encode(into: &$0) } }

func payload(_ action: DocumentAction) -> [UInt8] {
  var encoder = CBOREncoder()
  action.encode(into: &encoder)
  return encoder.bytes
}

/// The messages in bytes that a server sent.
func serverMessages(_ bytes: [UInt8]) -> [ServerMessage] {
  var decoder = FrameDecoder(limit: 1 << 30)
  var messages: [ServerMessage] = []
  bytes.withUnsafeBytes { bytes in
    try? decoder.receiveAll(bytes) { item throws(WireError) in
      messages.append(try ServerMessage(item, seed: HashSeed(7)))
    }
  }
  return messages
}

/// The messages in bytes that a client sent.
func clientMessages(_ bytes: [UInt8]) -> [ClientMessage] {
  var decoder = FrameDecoder(limit: 1 << 30)
  var messages: [ClientMessage] = []
  bytes.withUnsafeBytes { bytes in
    try? decoder.receiveAll(bytes) { item throws(WireError) in
      messages.append(try ClientMessage(item))
    }
  }
  return messages
}

extension Acknowledgement {
  static func reduced(_ first: UInt64, _ last: UInt64, at revision: UInt64) -> ServerMessage {
    .acknowledgement(Acknowledgement(first: first, last: last, revision: revision, .reduced))
  }
}

extension DocumentAction {
  static func put(_ name: String, _ value: Value) -> DocumentAction {
    .set(Path([.text(name)]), value)
  }
}

extension Command {
  fileprivate var isDecoding: Bool { if case .decodeAction = self { true } else { false } }
}

extension Limits {
  /// The usual limits, but for what `change` changes.
  init(_ change: (inout Limits) -> Void) {
    self.init()
    change(&self)
  }
}
