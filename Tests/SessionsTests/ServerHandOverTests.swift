import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Counts; also once at every start, and once after an effect that waits.
private struct Tally: Reducer {
  enum Action: SynchronizableAction, SynchronizableScalar, Equatable {
    case add, addLater

    var name: String { self == .add ? "add" : "addLater" }
    func encode(into encoder: inout CBOREncoder) { encoder.encode(self == .add ? 0 : 1) }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      self = try decoder.unsigned() == 0 ? .add : .addLater
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .unsigned }
  }

  func reduce(into state: inout Int, action: Action) -> Effect<Action> {
    if action == .addLater { return .concatenate(.run(name: "wait") { _ in }, .send(.add)) }
    state += 1
    return .none
  }

  var lifecycle: Lifecycle<Int, Action> { .onStart { _ in .add } }
}

/// The hand-over from one process to the next; its policies are tested in `ServerAuthorityTests`.
@Suite struct ServerHandOverTests {
  /// A server that counts, with one client that sees the count.
  private struct Desk {
    var server: Server<Tally>
    let now = Instant(nanoseconds: 1_000_000_000)

    init() {
      server = Server(0, reducer: Tally(), seed: HashSeed(7), epoch: 9, at: now)
      let token = SessionToken(high: 1, low: 1)
      _ = handle(.opened(ConnectionID(1), Peer(pid: 1, uid: 0, gid: 0), token))
      say(.hello(.init(versions: 1...1, label: "desk")))
      say(.subscribe(subscription: 1, .root, nil))
      for case .encodeSnapshot(let id) in handle(.turnEnded) {
        guard let job = server.snapshot(for: id) else { continue }
        let (frames, wholeBytes) = job.measured()
        _ = handle(.snapshotEncoded(id, frames, wholeBytes: wholeBytes))
      }
      _ = handle(.turnEnded)
    }

    mutating func handle(_ event: Event<Tally.Action>) -> [Command] {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      return commands
    }

    mutating func say(_ message: ClientMessage) {
      _ = handle(.received(ConnectionID(1), frame(message)))
    }

    /// The messages of a turn to the client, and whether another turn must follow.
    mutating func turn() -> (said: [ServerMessage], isWoken: Bool) {
      let commands = handle(.turnEnded)
      let frames = commands.flatMap { command -> [[UInt8]] in
        if case .send(_, let frames) = command { Array(frames) } else { [] }
      }
      return (serverMessages(Array(frames.joined())), commands.contains(.wake))
    }

    /// Continue in another process.
    mutating func handOver() throws {
      var commands: [Command] = []
      server.handle(.handingOver(retryAfter: 1), at: now, into: &commands)
      let bytes = server.handOver.encoded(schema: Tally.schema)
      let image = try HandOver<Int>(bytes, schema: Tally.schema)
      server = Server(restoring: image.next, reducer: Tally(), at: now)
      server.reserveScopes(of: image)
      for connection in image.connections {
        server.handle(.inherited(connection, isTranslated: false), at: now, into: &commands)
      }
    }
  }

  private func spans(_ messages: [ServerMessage]) -> [[UInt64]] {
    messages.compactMap { message in
      if case .patch(_, let from, let patches) = message {
        [from] + patches.map(\.span)
      } else {
        nil
      }
    }
  }

  @Test func `who is taken over hears of the feature's first action`() throws {
    var desk = Desk()
    try desk.handOver()
    _ = desk.handle(.started(.restarted))
    #expect(spans(desk.turn().said) == [[0, 1]])
    #expect(desk.server.state == 1)
  }

  @Test func `what cancelling an effect leads to is a turn of its own, and everybody hears of it`()
  {
    var desk = Desk()
    var payload = CBOREncoder()
    Tally.Action.addLater.encode(into: &payload)
    desk.say(.action(number: 1, .applied, payload: payload.bytes))
    #expect(spans(desk.turn().said) == [])
    desk.say(.query(number: 2, "effects.cancel", arguments: ["wait"]))
    let answer = desk.turn()
    #expect(answer.said == [.report(number: 2, ["cancelled": 1])])
    #expect(desk.server.revision == 0 && answer.isWoken)
    #expect(spans(desk.turn().said) == [[0, 1]])
    #expect(desk.server.revision == 1)
  }

  @Test func `the log is handed over, with what led to what`() throws {
    var desk = Desk()
    var payload = CBOREncoder()
    Tally.Action.addLater.encode(into: &payload)
    desk.say(.action(number: 1, .applied, payload: payload.bytes))
    _ = desk.turn()
    desk.say(.query(number: 2, "effects.cancel", arguments: ["wait"]))
    _ = desk.turn()
    _ = desk.turn()
    desk.say(.query(number: 3, "log", arguments: []))
    let before = desk.turn().said
    guard case .report(_, let log, hasMore: _)? = before.first,
      case .array(let records)? = log.child("records")
    else {
      Issue.record("\(before)")
      return
    }
    #expect(records.map { $0.child("parent") } == [nil, 1])
    #expect(records.map { $0.child("action") } == ["addLater", "add"])
    try desk.handOver()
    _ = desk.turn()
    desk.say(.query(number: 3, "log", arguments: []))
    #expect(desk.turn().said == before)
  }

  @Test func `a session that first acts in the next process is introduced to its journal`() throws {
    var bench = Bench(durability: .sync)
    for number in 1...2 as ClosedRange<UInt64> { bench.join(number) }
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    var commands: [Command] = []
    bench.server.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    let bytes = bench.server.handOver.encoded(schema: DocumentFeature.schema)
    let image = try HandOver<Document>(bytes, schema: DocumentFeature.schema)
    var kept = image.next
    kept.unjournaledSessions = [Bench.token(2)]
    bench.server = Server(
      restoring: kept, reducer: DocumentFeature(), durability: .sync, at: bench.now)
    bench.server.reserveScopes(of: image)
    for connection in image.connections {
      bench.server.handle(
        .inherited(connection, isTranslated: false), at: bench.now, into: &commands)
    }
    _ = bench.turn()
    bench.act(2, 1, .put("n", 2))
    bench.act(1, 2, .put("n", 3))
    let batches = bench.turn().compactMap { if case .keep(let batch) = $0 { batch } else { nil } }
    #expect(batches.flatMap(\.sessions).map(\.token) == [Bench.token(2)])
    #expect(batches.flatMap(\.rows).count == 2)
  }
}
