import ClientCore
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// A server and a client, joined without a network.
struct Pair {
  var bench: Bench
  var session: ClientSession
  var notices: [ClientSession.Notice] = []
  private var connection: UInt64 = 0
  private var toServer: [UInt8] = []

  init(
    _ root: Value = ["n": 0], limits: Limits = Limits(),
    _ configuration: ClientSession.Configuration = .init(label: "pair")
  ) {
    bench = Bench(root, limits: limits)
    session = ClientSession(configuration, seed: 1)
    update { $0.start(at: $1, into: &$2) }
  }

  /// Exchanges bytes until both ends are silent.
  mutating func run() {
    while true {
      let said = answer()
      if said.isEmpty && toServer.isEmpty { return }
      receive(said)
    }
  }

  /// What the daemon sends in a turn, before it reads what the client has sent.
  mutating func turn() -> [UInt8] {
    bench.frames(to: connection, bench.settle()).flatMap { $0 }
  }

  /// What the daemon sends after it has read what the client has sent.
  mutating func answer() -> [UInt8] {
    let bytes = toServer
    toServer = []
    if !bytes.isEmpty { bench.handle(.received(ConnectionID(connection), bytes)) }
    return turn()
  }

  /// The client receives bytes.
  mutating func receive(_ said: [UInt8]) {
    update { session, now, commands in
      said.withUnsafeBytes { session.received($0, at: now, into: &commands) }
    }
  }

  mutating func update(
    _ body: (
      inout ClientSession, Instant, inout [ClientSession.Command]
    ) -> Void
  ) {
    var commands: [ClientSession.Command] = []
    body(&session, bench.now, &commands)
    for command in commands {
      switch command {
      case .connect:
        connection += 1
        bench.open(connection)
        update { $0.connected(at: $1, into: &$2) }
      case .send(let bytes): toServer += bytes
      case .disconnect: lose()
      case .notify(let notice): notices.append(notice)
      }
    }
  }

  /// Closes the connection; the client reconnects at once.
  mutating func lose() {
    bench.handle(.closed(ConnectionID(connection)))
    toServer = []
    update { $0.disconnected(at: $1, into: &$2) }
  }

  mutating func subscribe(to path: Path) -> UInt64 {
    var number: UInt64 = 0
    update { session, _, commands in
      number = session.subscribe(to: path, as: Value.self, into: &commands)
    }
    return number
  }

  mutating func send(_ action: DocumentAction, isOptimistic: Bool = false) {
    update { session, _, commands in
      _ = session.send(payload(action), isOptimistic: isOptimistic, into: &commands)
    }
  }
}

@Suite struct PairTests {
  @Test func `a client sees the state and the results of its actions`() {
    var pair = Pair(["n": 1])
    let root = pair.subscribe(to: .root)
    let member = pair.subscribe(to: ["n"])
    pair.run()
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 1])
    #expect(pair.session.value(of: member, as: Value.self) == 1)
    pair.send(.put("n", 2))
    pair.send(.put("m", [1, 2]))
    pair.run()
    #expect(pair.session.value(of: root, as: Value.self) == ["n": 2, "m": [1, 2]])
    #expect(pair.session.value(of: member, as: Value.self) == 2)
    #expect(pair.session.position(of: member)?.revision == 2)
    #expect(pair.session.unacknowledged == 0)
  }

  @Test func `a client sees a value appear at an absent path and disappear again`() {
    var pair = Pair()
    let number = pair.subscribe(to: ["a", "b"])
    pair.run()
    #expect(pair.session.mirror(number)?.isLive == true)
    #expect(pair.session.value(of: number, as: Value.self) == nil)
    pair.send(.put("a", ["b": 1]))
    pair.run()
    #expect(pair.session.value(of: number, as: Value.self) == 1)
    pair.send(.put("a", 5))
    pair.run()
    #expect(pair.session.value(of: number, as: Value.self) == nil)
  }

  @Test func `an interrupted client performs every action once`() {
    var pair = Pair()
    let number = pair.subscribe(to: .root)
    pair.run()
    for round in 0..<5 {
      pair.send(.increment(["n"], by: 1))
      // The action is lost with the connection. On even rounds a copy of the pair shows that it
      // would have been performed.
      if round.isMultiple(of: 2) {
        let server = pair.bench.server.revision
        var other = pair
        other.run()
        #expect(other.bench.server.revision == server + 1)
      }
      pair.lose()
      pair.run()
    }
    #expect(pair.session.value(of: number, as: Value.self) == ["n": 5])
    #expect(pair.session.unacknowledged == 0)
  }

  @Test func `a wrong mirror is detected by its digest and resubscribed`() {
    var pair = Pair()
    let number = pair.subscribe(to: .root)
    pair.run()
    // This server is at revision 0 too, so it takes the mirror for current and sends nothing.
    let wrong = Pair(["n": 7])
    pair.bench.server = wrong.bench.server
    pair.lose()
    pair.run()
    #expect(pair.session.value(of: number, as: Value.self) == ["n": 0])
    pair.update { session, _, commands in session.requestDigest(of: number, into: &commands) }
    pair.run()
    #expect(pair.session.value(of: number, as: Value.self) == ["n": 7])
    let isTold = pair.notices.contains { if case .diverged = $0 { true } else { false } }
    #expect(isTold)
  }

  @Test func `a report has the state of the daemon`() {
    var pair = Pair()
    // A query before the connection is not sent.
    pair.update { session, _, commands in session.query(5, "limits", into: &commands) }
    pair.run()
    pair.update { session, _, commands in session.query(6, "status", into: &commands) }
    pair.run()
    var reports: [UInt64: Value] = [:]
    for case .report(let number, let value) in pair.notices { reports[number] = value }
    #expect(reports[5] == nil)
    #expect(reports[6]?.value(at: ["revision"]) == 0)
    #expect(reports[6]?.value(at: ["clients"]) == 1)
  }
}
