import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

@Suite struct ServerActionTests {
  @Test func `an acknowledgement follows the patch of its action`() {
    var bench = Bench.withSubscribers(1)
    bench.act(1, 1, .put("n", 5))
    let said = bench.said(to: 1, bench.turn())
    #expect(
      said == [
        .patch(scope: 0, from: 0, [.init(span: 1, patch: [0xa1, 0x61, 0x6e, 5])]),
        Acknowledgement.reduced(1, 1, at: 1),
      ])
  }

  /// The bench and the simulator tell the server of turns by events, and a shell that records nothing does
  /// not.
  @Test func `a turn ends the same way without an event`() {
    var bench = Bench.withSubscribers(2)
    bench.act(1, 1, .put("n", 5), .put("m", 6))
    var (told, ended) = (bench.server, bench.server)
    func endTurn(at time: Instant) -> [Command] {
      var (first, second): ([Command], [Command]) = ([], [])
      told.handle(.turnEnded, at: time, into: &first)
      ended.endTurn(at: time, into: &second)
      #expect(first == second && told.position == ended.position)
      return second
    }
    #expect(!endTurn(at: bench.now).isEmpty)
    _ = endTurn(at: bench.now + .seconds(3600))
    var commands: [Command] = []
    told.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    ended.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    #expect(endTurn(at: bench.now).isEmpty)
  }

  @Test func `equal outcomes are one range, with the newest revision`() {
    var bench = Bench.withClients(1)
    bench.act(1, 1, .put("n", 1), .put("n", 2), .put("n", 2), .remove(["x"]), .put("n", 3))
    let outcomes = bench.said(to: 1, bench.turn()).compactMap { message in
      if case .acknowledgement(let acknowledgement) = message { acknowledgement } else { nil }
    }
    #expect(
      outcomes.map { [$0.first, $0.last, $0.revision] } == [
        [1, 2, 2], [3, 3, 2], [4, 4, 2], [5, 5, 3],
      ])
    #expect(outcomes.map(\.outcome)[1] == .unchanged)
  }

  @Test func `a rejected action leaves the state as it was`() {
    var bench = Bench.withSubscribers(1)
    let before = bench.server.digest()
    bench.act(1, 1, .transaction([.put("n", 7), .remove(["absent"])]))
    guard case .acknowledgement(let answer)? = bench.said(to: 1, bench.turn()).first,
      case .rejected(let rejection) = answer.outcome
    else {
      Issue.record("not rejected")
      return
    }
    #expect(rejection.code == Rejection.Code.badPath.rawValue)
    #expect(bench.server.digest() == before)
    #expect(bench.server.revision == 0)
  }

  @Test(arguments: [
    ([0x81, 0x18, 99], Rejection.Code.unknownAction), ([0x60], .malformed),
    ([0x83, 0, 0x80, 0xf7], .malformed),
  ])
  func `what is no action is rejected, and the connection goes on`(
    payload: [UInt8], code: Rejection.Code
  ) {
    var bench = Bench.withClients(1)
    bench.say(1, .action(number: 1, .applied, payload: payload))
    bench.act(1, 2, .put("n", 1))
    let said = bench.said(to: 1, bench.turn())
    guard case .acknowledgement(let answer)? = said.first,
      case .rejected(let rejection) = answer.outcome
    else {
      Issue.record("not rejected: \(said)")
      return
    }
    #expect(rejection.code == code.rawValue)
    #expect(said.last == Acknowledgement.reduced(2, 2, at: 1))
  }

  @Test func `more unacknowledged actions than the window admits end the connection`() {
    var limits = Limits()
    limits.window = 2
    var bench = Bench.withClients(1, limits: limits)
    bench.act(1, 1, .put("n", 1), .put("n", 2), .put("n", 3))
    let goodbye = bench.goodbye(to: 1, bench.turn())
    #expect(goodbye?.limit == LimitBreach("window", limit: 2, observed: 3))
    #expect(bench.server.revision == 2)
  }

  @Test func `a turn with many revisions is one frame`() {
    var bench = Bench.withSubscribers(2)
    for number in UInt64(1)...50 { bench.act(1, number, .put("n", .integer(Int64(number)))) }
    let said = bench.said(to: 2, bench.turn())
    #expect(said.count == 1)
    guard case .patch(scope: 0, from: 0, let patches)? = said.first else {
      Issue.record("no patch: \(said)")
      return
    }
    #expect(patches.count == 50)
    #expect(patches.allSatisfy { $0.span == 1 })
  }

  @Test func `a hundred subscribers get one array`() {
    var bench = Bench.withSubscribers(100)
    bench.act(1, 1, .put("n", 5))
    let commands = bench.turn()
    let places = (UInt64(1)...100).map { number in
      bench.frames(to: number, commands)[0].withUnsafeBytes { $0.baseAddress }
    }
    #expect(Set(places).count == 1)
  }

  @Test func `clients are served in the order in which they came`() {
    var bench = Bench.withClients(50)
    let order = (UInt64(1)...50).map { ($0 * 7) % 53 }.filter { $0 <= 50 }
    for number in order { bench.say(number, .ping(number)) }
    let sent = bench.turn().compactMap { command -> UInt64? in
      if case .send(let id, _) = command { id.rawValue } else { nil }
    }
    #expect(sent == order)
  }

  // MARK: Sessions

  @Test func `a client that returns learns what became of what it sends again`() throws {
    var bench = Bench.withClients(1)
    bench.act(1, 1, .increment(["n"], by: 1), .increment(["n"], by: 1))
    bench.handle(.closed(ConnectionID(1)))
    _ = bench.turn()
    let joined = bench.join(2, token: Bench.token(1))
    let welcome = try #require(joined)
    #expect(welcome.isResumed)
    #expect(welcome.lastAction == 2)
    bench.act(2, 2, .increment(["n"], by: 1), .increment(["n"], by: 1))
    let said = bench.said(to: 2, bench.turn())
    // Both are of one range of equal outcomes, whose newest revision the client has by now.
    #expect(said == [Acknowledgement.reduced(2, 2, at: 3), Acknowledgement.reduced(3, 3, at: 3)])
    #expect(bench.server.revision == 3)
  }

  /// Of a window of outcomes that differ, all would be a megabyte for two short messages.
  @Test func `only what is sent again is acknowledged again`() {
    var bench = Bench.withClients(1)
    for number in stride(from: 1, to: 100, by: 2) as StrideTo<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))), .remove(["absent"]))
      _ = bench.turn()
    }
    func acknowledged(_ numbers: [UInt64]) -> [ClosedRange<UInt64>] {
      for number in numbers {
        bench.say(1, .action(number: number, .applied, payload: payload(.put("n", 0))))
      }
      return bench.said(to: 1, bench.turn()).compactMap { message in
        if case .acknowledgement(let it) = message { it.first...it.last } else { nil }
      }
    }
    #expect(acknowledged([1, 100]) == [1...1, 100...100])
    #expect(acknowledged([5, 6, 7, 7, 3, 4, 98]) == [5, 6, 7, 3, 4, 98].map { $0...$0 })
    #expect(acknowledged([1, 2, 3]) == [1...1, 2...2, 3...3])
    #expect(bench.said(to: 1, bench.turn()) == [])
  }

  @Test func `outcomes beyond the window are unknown`() {
    var limits = Limits()
    limits.window = 1
    var bench = Bench.withClients(1, limits: limits)
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.act(1, 2, .remove(["x"]))
    bench.handle(.closed(ConnectionID(1)))
    _ = bench.join(2, token: Bench.token(1))
    bench.act(2, 1, .put("n", 1))
    #expect(
      bench.said(to: 2, bench.turn()) == [
        .acknowledgement(Acknowledgement(first: 1, last: 1, revision: 0, .outcomeUnknown))
      ])
  }

  @Test func `a session is forgotten after its grace`() throws {
    var bench = Bench.withClients(1)
    bench.handle(.closed(ConnectionID(1)))
    bench.pass(.seconds(301))
    bench.handle(.tick)
    let joined = bench.join(2, token: Bench.token(1))
    let welcome = try #require(joined)
    #expect(!welcome.isResumed)
    #expect(welcome.token == Bench.token(2))
  }

  @Test func `who says goodbye leaves no session behind`() {
    var bench = Bench.withClients(1)
    bench.act(1, 1, .put("n", 1))
    bench.say(1, .goodbye(.done, ""))
    #expect(bench.goodbye(to: 1, bench.turn())?.code == .done)
    #expect(bench.server.load.sessions == 0)
    #expect(bench.server.load.detachedSessions == 0)
  }

  @Test func `more sessions than are kept push out the one that waits longest`() {
    var limits = Limits()
    limits.detachedSessions = 1
    var bench = Bench.withClients(2, limits: limits)
    bench.handle(.closed(ConnectionID(2)))
    bench.pass(.seconds(1))
    bench.handle(.closed(ConnectionID(1)))
    let later = bench.join(3, token: Bench.token(1))
    let earlier = bench.join(4, token: Bench.token(2))
    #expect(later?.isResumed == true)
    #expect(earlier?.isResumed == false)
  }

  @Test func `who leaves many sessions behind pushes out their own, and not those of others`() {
    var limits = Limits()
    limits.detachedSessions = 4
    var bench = Bench(limits: limits)
    bench.join(1, uid: 7)
    bench.handle(.closed(ConnectionID(1)))
    for number in 2...9 as ClosedRange<UInt64> {
      bench.join(number, uid: 8)
      bench.pass(.milliseconds(1))
      bench.handle(.closed(ConnectionID(number)))
      #expect(bench.server.load.detachedSessions == min(Int(number), 4))
    }
    #expect(bench.join(10, uid: 7, token: Bench.token(1))?.isResumed == true)
    #expect(bench.join(11, uid: 8, token: Bench.token(9))?.isResumed == true)
    #expect(bench.join(12, uid: 8, token: Bench.token(6))?.isResumed == false)
  }

  @Test func `who takes over a session is not pushed out in the middle of it`() {
    for limit in 0...1 {
      var limits = Limits()
      limits.detachedSessions = limit
      var bench = Bench(limits: limits, durability: .sync)
      bench.join(1, uid: 7)
      bench.act(1, 1, .put("n", 1))
      bench.join(2, uid: 9)
      bench.handle(.closed(ConnectionID(2)))
      _ = bench.turn()
      bench.open(3, uid: 7)
      bench.say(3, .hello(.init(versions: 1...1, label: "bench", token: Bench.token(1))))
      bench.act(3, 2, .put("n", 2))
      let commands = bench.settle()
      guard case .welcome(let welcome)? = bench.said(to: 3, commands).first else {
        Issue.record("no welcome")
        return
      }
      #expect(welcome.isResumed)
      // The session is neither forgotten, nor recorded in the journal once more.
      let batches = commands.compactMap { if case .keep(let batch) = $0 { batch } else { nil } }
      #expect(batches.flatMap(\.forgotten) == [] && batches.flatMap(\.sessions) == [])
      #expect(batches.flatMap(\.rows).count == 1)
      #expect(bench.server.load.detachedSessions == limit)
    }
  }

  @Test func `sessions that come and go leave nothing behind`() {
    var limits = Limits()
    limits.detachedSessions = 2
    var bench = Bench(limits: limits)
    for number in 1...500 as ClosedRange<UInt64> {
      let token = number > 1 ? Bench.token(1) : nil
      #expect(bench.join(number, token: token)?.isResumed == (number > 1))
      bench.handle(.closed(ConnectionID(number)))
      #expect(bench.server.load.detachedSessions == 1)
    }
    for number in 501...502 as ClosedRange<UInt64> {
      bench.join(number)
      bench.handle(.closed(ConnectionID(number)))
    }
    #expect(bench.join(503, token: Bench.token(1))?.isResumed == false)
    #expect(bench.join(504, token: Bench.token(501))?.isResumed == true)
  }

  @Test func `unfinished frames of a user's connections are bounded together`() {
    var limits = Limits()
    limits.partialBytesPerUser = 100
    var bench = Bench(limits: limits)
    for number in 1...3 as ClosedRange<UInt64> { bench.join(number) }
    bench.join(4, uid: 7)
    let head: [UInt8] = [0, 1, 0, 0]
    for number in [1, 2, 4] as [UInt64] {
      bench.handle(.received(ConnectionID(number), head + Array(repeating: 0, count: 40)))
    }
    #expect(bench.turn() == [])
    bench.handle(.received(ConnectionID(3), head + Array(repeating: 0, count: 40)))
    let breach = LimitBreach("partialBytesPerUser", limit: 100, observed: 132)
    #expect(bench.goodbye(to: 3, bench.turn())?.limit == breach)
    // Finished frames and closed connections leave room.
    bench.handle(.closed(ConnectionID(3)))
    bench.handle(.closed(ConnectionID(2)))
    bench.handle(.received(ConnectionID(1), Array(repeating: 0, count: 20)))
    #expect(bench.turn() == [])
  }

  @Test func `another user cannot have the session`() {
    var bench = Bench.withClients(1)
    bench.open(2, uid: 0)
    bench.say(2, .hello(.init(versions: 1...1, label: "", token: Bench.token(1))))
    let commands = bench.turn()
    #expect(bench.goodbye(to: 2, commands)?.code == .denied)
    #expect(bench.frames(to: 1, commands).isEmpty)
  }

  @Test func `a connection that was given up does not replace the one after it`() {
    var bench = Bench.withClients(1)
    bench.handle(.closed(ConnectionID(1)))
    bench.open(2)
    bench.open(3)
    let hello = ClientMessage.hello(.init(versions: 1...1, label: "", token: Bench.token(1)))
    bench.say(3, hello)
    bench.say(2, hello)
    let commands = bench.turn()
    #expect(bench.goodbye(to: 2, commands)?.code == .replaced)
    #expect(bench.said(to: 3, commands).count == 1)
    #expect(bench.goodbye(to: 3, commands) == nil)
  }

  @Test func `a second connection of a session replaces the first`() {
    var bench = Bench.withClients(1)
    bench.open(2)
    bench.say(2, .hello(.init(versions: 1...1, label: "", token: Bench.token(1))))
    let commands = bench.turn()
    #expect(bench.goodbye(to: 1, commands)?.code == .replaced)
    #expect(bench.said(to: 2, commands).count == 1)
    // The first connection's messages are ignored, and its end does not detach the session.
    bench.act(1, 1, .put("n", 1))
    bench.handle(.closed(ConnectionID(1)))
    #expect(bench.server.revision == 0)
    #expect(bench.server.load.detachedSessions == 0)
  }

  @Test func `a clock that jumps changes what time it is, and nothing else`() {
    var bench = Bench.withSubscribers(1)
    let times: [Int64] = [1_700_000_000_000_000_000, 0, .max, .min, 1_800_000_000_000_000_000]
    for (index, time) in times.enumerated() {
      bench.handle(.clockSet(Timestamp(nanoseconds: time)))
      bench.act(1, UInt64(index) + 1, .put("n", .integer(Int64(index) + 1)))
      bench.pass(.seconds(1))
      #expect(bench.handle(.tick) == [])
      #expect(bench.said(to: 1, bench.turn()).count == 2)
    }
    #expect(bench.server.state.root == ["n": 5] && bench.server.revision == 5)
  }
}
