import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// Requests that one process receives and the next one answers.
@Suite struct ServerRequestHandOverTests {
  /// Send messages, and continue in another process at once. Returns all messages of both.
  private func saidAcross(
    _ bench: inout Bench, _ messages: ClientMessage..., limits: Limits
  ) throws -> [ServerMessage] {
    bench.handle(.received(ConnectionID(1), messages.flatMap { frame($0) }))
    var said: [ServerMessage] = []
    said += bench.said(to: 1, bench.turn())
    said += bench.said(to: 1, try bench.handOver(limits: limits))
    for turn in bench.turns([1]) { said += turn[1] ?? [] }
    return said
  }

  private func slow() -> Limits {
    var limits = Limits()
    limits.reportPageBytes = 500
    limits.requestWorkPerTurn = 1
    return limits
  }

  private func ends(_ said: [ServerMessage]) -> [UInt64] {
    said.compactMap { message in
      if case .report(let number, _, hasMore: false) = message { number } else { nil }
    }
  }

  @Test func `each report comes to an end, whichever process makes it`() throws {
    var bench = Bench(limits: slow())
    bench.join(1, versions: 1...2)
    for number in 1...50 as ClosedRange<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))))
    }
    _ = bench.turn()
    let said = try saidAcross(
      &bench, .query(number: 1, "log"), .query(number: 2, "log"), .query(number: 3, "limits"),
      limits: slow())
    #expect(ends(said) == [1, 2, 3])
  }

  @Test func `what is refused is refused before the next process, or by it`() throws {
    var bench = Bench(limits: slow())
    bench.join(1)
    let long = Path(Array(repeating: PathKey.text("k"), count: 101))
    let said = try saidAcross(
      &bench, .ping(1), .ping(2), .subscribe(subscription: 5, long, nil),
      .query(number: 6, "log", arguments: Array(repeating: "", count: 100)), .ping(3),
      limits: slow())
    #expect(
      said.contains { if case .subscribed(let item) = $0 { item.subscription == 5 } else { false } }
    )
    #expect(ends(said) == [6])
    let pongs = said.compactMap { if case .pong(let value, _) = $0 { value } else { nil } }
    #expect(pongs == [1, 2, 3])
  }

  @Test func `a client that takes leave is answered by the next process, and forgotten`() throws {
    var bench = Bench(limits: slow())
    bench.join(1)
    let said = try saidAcross(
      &bench, .ping(1), .ping(2), .ping(3), .goodbye(.done, "bye"), limits: slow())
    let pongs = said.compactMap { if case .pong(let value, _) = $0 { value } else { nil } }
    #expect(pongs == [1, 2, 3])
    #expect(said.last == .goodbye(Goodbye(.done, "goodbye")))
    #expect(bench.server.load.sessions == 0)
  }

  @Test func `a query of the shell is answered before the goodbye, and by a hand-over`() throws {
    var bench = Bench(limits: slow())
    bench.join(1)
    bench.say(1, .query(number: 4, "policy.reload"), .goodbye(.done, "bye"))
    #expect(bench.turns([1]).allSatisfy { ($0[1] ?? []).isEmpty })
    bench.handle(.answered(ConnectionID(1), query: 4, (["policy": "p"] as Value).encoded))
    let said = bench.turns([1]).flatMap { $0[1] ?? [] }
    #expect(ends(said) == [4] && said.last == .goodbye(Goodbye(.done, "goodbye")))
    bench.join(2)
    bench.say(2, .query(number: 4, "policy.reload"))
    _ = bench.turn()
    // A query that has just come is not begun: it goes to the next process.
    bench.join(3)
    bench.say(3, .query(number: 5, "policy.reload"))
    var commands: [Command] = []
    bench.server.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    let last = bench.said(to: 2, commands)
    #expect(ends(last) == [4] && interrupted(last) == [4])
    #expect(ends(bench.said(to: 3, commands)).isEmpty)
    let handed = try #require(bench.server.handOver.connections.first { $0.id == 3 })
    #expect(clientMessages(handed.unparsed) == [.query(number: 5, "policy.reload")])
  }

  /// The queries whose reports the restart has interrupted.
  private func interrupted(_ said: [ServerMessage]) -> [UInt64] {
    said.compactMap { message in
      if case .report(let number, let value, _) = message, ReportError(value)?.code == .restarting {
        number
      } else {
        nil
      }
    }
  }

  @Test func `requests that wait are answered by the next process`() throws {
    var limits = Limits()
    limits.requestsPerTurn = 4
    limits.reportPageBytes = 50
    limits.requestWorkPerTurn = 1
    var bench = Bench.withSubscribers(2, limits: limits, versions: 1...2)
    for number in 1...50 as ClosedRange<UInt64> {
      bench.act(2, number, .put("n", .integer(Int64(number))))
    }
    _ = bench.turn()
    bench.say(1, .query(number: 7, "log"))
    bench.handle(
      .received(
        ConnectionID(1),
        (1...9).flatMap { frame(ClientMessage.ping($0)) }
          + frame(.action(number: 1, .applied, payload: payload(.put("n", 99))))
          + frame(ClientMessage.ping(10))
          + frame(ClientMessage.ping(11)).prefix(5)))
    var said: [ServerMessage] = []
    func note(_ commands: [Command]) { said += bench.said(to: 1, commands) }
    note(bench.turn())
    note(try bench.handOver(limits: limits))
    for turn in bench.turns([1]) { said += turn[1] ?? [] }
    bench.handle(.received(ConnectionID(1), Array(frame(ClientMessage.ping(11)).dropFirst(5))))
    for turn in bench.turns([1]) { said += turn[1] ?? [] }
    let pongs = said.compactMap { if case .pong(let value, _) = $0 { value } else { nil } }
    #expect(pongs == Array(1...11))
    #expect(bench.server.state.root.child("n") == 99)
    // The report was in the middle of its pages, and ends with an error.
    let reports = said.compactMap { message -> Bool? in
      if case .report(7, _, let hasMore) = message { hasMore } else { nil }
    }
    #expect(reports.first == true && reports.filter { !$0 }.count == 1 && reports.last == false)
    #expect(interrupted(said) == [7])
  }
}
