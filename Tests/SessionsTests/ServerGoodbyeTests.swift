import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// A client that says goodbye gets everything that is due before the answer.
@Suite struct ServerGoodbyeTests {
  private let farewell = ClientMessage.goodbye(.done, "bye")
  private let answer = ServerMessage.goodbye(Goodbye(.done, "goodbye"))

  private func put(_ number: UInt64, _ mark: Mark = .applied) -> ClientMessage {
    .action(number: number, mark, payload: payload(.put("n", .integer(Int64(number)))))
  }

  @Test func `a durable action is acknowledged before the goodbye`() throws {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.say(1, put(1, .durable), farewell)
    let commands = bench.turn()
    #expect(bench.said(to: 1, commands).isEmpty)
    // Anything after a goodbye is ignored.
    bench.say(1, put(2), .ping(1))
    #expect(bench.said(to: 1, bench.turn()).isEmpty)
    bench.handle(.journal(.committed(through: 1)))
    let last = bench.turn()
    #expect(
      bench.said(to: 1, last) == [
        .acknowledgement(.init(first: 1, last: 1, revision: 1, mark: .durable, .reduced)), answer,
      ])
    #expect(last.contains(.close(ConnectionID(1))))
    #expect(bench.server.load.sessions == 0 && bench.server.load.detachedSessions == 0)
    #expect(bench.server.state.root == ["n": 1])
  }

  @Test func `a failed disk does not delay the goodbye`() {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.say(1, put(1, .durable), farewell)
    _ = bench.turn()
    bench.handle(.journal(.failed("full")))
    let said = bench.said(to: 1, bench.turn())
    guard case .acknowledgement(let item)? = said.first else {
      Issue.record("not acknowledged: \(said)")
      return
    }
    #expect(item.notDurable == "full" && said.last == answer)
  }

  @Test(arguments: [true, false])
  func `a snapshot and the messages after it come before the goodbye`(isLarge: Bool) {
    var limits = Limits()
    limits.inlineSnapshotBytes = isLarge ? 0 : 1 << 20
    var bench = Bench.withClients(1, limits: limits)
    bench.say(1, .subscribe(subscription: 1, .root, nil), put(1), .ping(5), farewell)
    var said: [ServerMessage] = []
    for _ in 0..<3 {
      let commands = bench.turn()
      said += bench.said(to: 1, commands)
      for case .encodeSnapshot(let id) in commands { bench.encode(id) }
    }
    let kinds = said.map { message -> String in
      switch message {
      case .subscribed: "subscribed"
      case .snapshot: "snapshot"
      case .pong: "pong"
      case .acknowledgement: "acknowledgement"
      case .goodbye: "goodbye"
      default: "\(message)"
      }
    }
    #expect(Set(kinds) == ["subscribed", "snapshot", "pong", "acknowledgement", "goodbye"])
    #expect(kinds.suffix(2) == ["acknowledgement", "goodbye"])
    #expect(bench.server.load.sessions == 0 && bench.server.load.heldStates == 0)
  }

  @Test func `a report of many pages comes before the goodbye`() {
    var limits = Limits()
    limits.reportPageBytes = 100
    limits.requestWorkPerTurn = 1
    var bench = Bench.withClients(1, limits: limits, versions: 1...2)
    for number in 1...30 as ClosedRange<UInt64> { bench.say(1, put(number)) }
    _ = bench.turn()
    bench.say(1, .query(number: 1, "log"), .ping(1), farewell)
    var said: [ServerMessage] = []
    for _ in 0..<200 { said += bench.said(to: 1, bench.turn()) }
    #expect(said.count > 5 && said.last == answer)
    #expect(said.dropLast().last == .pong(1, revision: 30))
  }

  @Test func `a client that disconnects before the answer leaves no session`() {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.say(1, put(1, .durable), farewell)
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(1)))
    #expect(bench.server.load.sessions == 0)
  }

  @Test func `a client that does not read what is due is evicted, and leaves no session`() {
    var bench = Bench.withSubscribers(1)
    bench.say(1, put(1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(1), unsent: 5))
    bench.say(1, farewell)
    #expect(bench.turn().isEmpty)
    bench.pass(.seconds(121))
    let commands = bench.handle(.tick)
    #expect(commands.contains(.abort(ConnectionID(1))))
    _ = bench.turn()
    #expect(bench.server.load.sessions == 0 && bench.server.load.heldStates == 0)
  }

  @Test func `a stopping daemon answers a goodbye at once`() {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.say(1, put(1, .durable), farewell)
    _ = bench.turn()
    bench.handle(.stop(retryAfter: 1000))
    #expect(bench.goodbye(to: 1, bench.turn())?.code == .done)
    #expect(bench.server.load.sessions == 0)
  }

  @Test func `another connection may still resume the session`() {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.say(1, put(1, .durable), farewell)
    _ = bench.turn()
    bench.open(2)
    bench.say(2, .hello(.init(versions: 1...1, label: "", token: Bench.token(1))))
    let commands = bench.turn()
    #expect(bench.goodbye(to: 1, commands)?.code == .replaced)
    guard case .welcome(let welcome)? = bench.said(to: 2, commands).first else {
      Issue.record("no welcome")
      return
    }
    #expect(welcome.isResumed && welcome.lastAction == 1)
    #expect(bench.server.load.sessions == 1)
  }
}
