import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// Limits on one user's part of shared resources.
@Suite struct ServerLimitsTests {
  private func goodbye(_ bench: inout Bench, opening number: UInt64, uid: UInt64) -> Goodbye? {
    bench.open(number, uid: uid)
    return bench.goodbye(to: number, bench.turn())
  }

  @Test func `a user may have so many connections, and others are not touched by it`() throws {
    var bench = Bench(limits: Limits { $0.connectionsPerUser = 2 })
    #expect(goodbye(&bench, opening: 1, uid: 7) == nil)
    #expect(goodbye(&bench, opening: 2, uid: 7) == nil)
    let refused = try #require(goodbye(&bench, opening: 3, uid: 7))
    #expect(refused.limit == LimitBreach("connectionsPerUser", limit: 2, observed: 3))
    #expect(refused.retryAfter != nil)
    #expect(goodbye(&bench, opening: 4, uid: 8) == nil)
    bench.handle(.closed(ConnectionID(3)))
    bench.handle(.closed(ConnectionID(1)))
    #expect(goodbye(&bench, opening: 5, uid: 7) == nil)
  }

  @Test func `a user may connect so often in a second`() throws {
    var bench = Bench(limits: Limits { $0.connectionsPerSecond = 3 })
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(goodbye(&bench, opening: number, uid: 7) == nil)
    }
    let refused = try #require(goodbye(&bench, opening: 4, uid: 7))
    #expect(goodbye(&bench, opening: 5, uid: 8) == nil)
    #expect(refused.limit?.name == "connectionsPerSecond")
    bench.pass(.seconds(1))
    #expect(goodbye(&bench, opening: 14, uid: 7) == nil)
  }

  @Test func `a user that ends all connections has still used up what it had`() throws {
    var bench = Bench(
      ["a": .text(String(repeating: "x", count: 10_000))],
      limits: Limits {
        $0.connectionsPerSecond = 3
        $0.turnBytesPerUser = 1000
      })
    bench.join(100, uid: 8)
    for number in 1...3 as ClosedRange<UInt64> {
      #expect(goodbye(&bench, opening: number, uid: 7) == nil)
      bench.handle(.closed(ConnectionID(number)))
    }
    let refused = try #require(goodbye(&bench, opening: 4, uid: 7))
    #expect(refused.limit?.name == "connectionsPerSecond")
    bench.handle(.closed(ConnectionID(4)))
    bench.pass(.milliseconds(999))
    bench.handle(.tick)
    bench.join(5, uid: 7)
    bench.act(5, 1, .copy(from: ["a"], to: ["b"]))
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(5)))
    // Its debt is not worked off by turns in which it is away, and another user is alone.
    for _ in 0..<100 { #expect(!bench.turn().contains(.wake)) }
    bench.open(6, uid: 7)
    let hello = ClientMessage.hello(.init(versions: 1...1, label: ""))
    #expect(bench.say(6, hello).contains(.pauseReading(ConnectionID(6))))
    bench.handle(.closed(ConnectionID(6)))
    bench.pass(.seconds(1))
    bench.handle(.tick)
    bench.open(7, uid: 7)
    #expect(!bench.say(7, hello).contains(.pauseReading(ConnectionID(7))))
  }

  @Test func `a user may send so many actions in a second, and is told of the others`() {
    var bench = Bench(limits: Limits { $0.actionsPerSecond = 2 })
    bench.join(1)
    bench.act(1, 1, .put("n", 1), .put("n", 2), .put("n", 3))
    let outcomes = bench.said(to: 1, bench.turn()).compactMap {
      if case .acknowledgement(let answer) = $0 { answer.outcome } else { nil }
    }
    guard outcomes.count == 2, case .rejected(let rejection) = outcomes[1] else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(outcomes[0] == .reduced)
    #expect(rejection.message.contains("more than 2 actions a second"))
    #expect(bench.server.state.root == ["n": 2])
  }

  @Test func `subscriptions of a user are counted over its connections`() {
    var bench = Bench(limits: Limits { $0.subscriptionsPerUser = 1 })
    bench.join(1)
    bench.join(2)
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    guard case .subscribed(let refused)? = bench.said(to: 2, bench.settle()).first else {
      Issue.record("no answer")
      return
    }
    #expect(refused.continuation == .refused && refused.reason == .limit)
    bench.say(1, .unsubscribe(subscription: 1))
    _ = bench.turn()
    bench.say(2, .subscribe(subscription: 2, .root, nil))
    guard case .subscribed(let granted)? = bench.said(to: 2, bench.settle()).first else {
      Issue.record("no answer")
      return
    }
    #expect(granted.continuation == .snapshot)
  }

  @Test func `why a connection ended can be asked afterwards`() throws {
    var bench = Bench(limits: Limits { $0.connectionsPerUser = 1 })
    bench.join(1)
    bench.open(2)
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(2)))
    bench.join(3, uid: 8)
    bench.handle(.closed(ConnectionID(3)))
    bench.say(1, .query(number: 1, "clients.closed"))
    guard case .report(_, .array(let closed), _)? = bench.said(to: 1, bench.turn()).first else {
      Issue.record("no report")
      return
    }
    let entries = closed.compactMap { value -> TrieMap<String, Value>? in
      if case .object(let entries) = value { entries } else { nil }
    }
    #expect(entries.map { $0["cause"] } == ["limit", "lost"])
    #expect(entries.first?["limit"] == "connectionsPerUser")
    #expect(entries.first?["observed"] == 2)
  }

  // MARK: Old states

  @Test func `a user's slow clients do not take what those of another stand at`() {
    var limits = Limits()
    limits.heldStates = 3
    limits.heldStatesPerUser = 2
    var bench = Bench(limits: limits)
    for number in 1...5 as ClosedRange<UInt64> {
      bench.join(number, uid: number == 1 ? 1 : 2)
      bench.say(number, .subscribe(subscription: 1, .root, nil))
    }
    bench.join(9, uid: 3)
    _ = bench.settle()
    // Each is at a revision of its own.
    for number in 1...5 as ClosedRange<UInt64> {
      bench.handle(.blocked(ConnectionID(number), unsent: 5))
      bench.act(9, number, .put("n", .integer(Int64(number))))
      _ = bench.turn()
      #expect(bench.server.load.heldStates <= 3)
    }
    #expect(bench.server.load.heldStates == 3)
    for number in 1...5 as ClosedRange<UInt64> { bench.handle(.drained(ConnectionID(number))) }
    let commands = bench.turn()
    let isSnapshot = (1...5).map { number in
      bench.said(to: UInt64(number), commands).contains {
        if case .snapshot = $0 { true } else { false }
      }
    }
    #expect(isSnapshot == [false, true, true, false, false])
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `two clients of a user at one state hold it once each`() {
    var limits = Limits()
    limits.heldStatesPerUser = 1
    var bench = Bench.withSubscribers(2, limits: limits)
    bench.handle(.blocked(ConnectionID(1), unsent: 5))
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.server.act(.put("n", 1))
    _ = bench.turn()
    bench.handle(.closed(ConnectionID(1)))
    #expect(bench.server.load.heldStates == 1)
    bench.handle(.drained(ConnectionID(2)))
    #expect(bench.said(to: 2, bench.turn()).count == 1 && bench.server.load.heldStates == 0)
  }

  // MARK: The size of the state

  private func answers(_ bench: borrowing Bench, _ commands: [Command]) -> [String] {
    bench.said(to: 1, commands).compactMap { message in
      guard case .acknowledgement(let answer) = message else { return nil }
      if case .rejected(let why) = answer.outcome { return "\(why.code) \(why.message)" }
      return "\(answer.outcome)"
    }
  }

  @Test func `a state that is too large only takes what makes it smaller`() {
    var limits = Limits()
    limits.stateBytes = 10_000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.handle(.tick)
    #expect(bench.measurements == 1)
    bench.measure()
    func text(_ number: UInt64) -> Value { .text(String(repeating: "\(number % 10)", count: 900)) }
    // Overwritten often: patches add up, and the state stays small.
    for number in 1...50 as ClosedRange<UInt64> {
      bench.act(1, number, .put("a", text(number)))
      #expect(answers(bench, bench.turn()) == ["reduced"])
      if bench.measurements > 1 { bench.measure() }
    }
    #expect(bench.measurements < 20)
    var number: UInt64 = 50
    var last: [String] = []
    while last.isEmpty || last == ["reduced"], number < 100 {
      number += 1
      bench.act(1, number, .put("k\(number)", text(number)))
      last = answers(bench, bench.turn())
      bench.measure()
    }
    let size = StateMeasure(of: bench.server.state).memory
    #expect(size > 10_000 && size < 12_000)
    #expect(
      last == [
        "7 the state takes up to \(size) bytes of memory, and stateBytes is 10000: until it takes "
          + "less, only actions of at most 128 bytes are done, such as removals"
      ])
    let before = bench.measurements
    bench.act(1, number + 1, .remove(["k51"]), .remove(["k52"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    // Measured again within a second.
    bench.handle(.tick)
    #expect(bench.measurements == before + 1)
    bench.measure()
    bench.act(1, number + 3, .put("again", text(number)))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }

  @Test func `a first action that makes it too large is measured at once`() {
    var limits = Limits()
    limits.stateBytes = 1000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.act(1, 1, .put("a", .text(String(repeating: "x", count: 9000))))
    _ = bench.turn()
    #expect(bench.measurements == 1)
    bench.measure()
    bench.act(1, 2, .remove(["a"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }

  @Test func `small actions do not make a state grow without a limit`() {
    var limits = Limits()
    limits.stateBytes = 10_000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.handle(.tick)
    bench.measure()
    var last: [String] = []
    for number in 1...1000 as ClosedRange<UInt64> {
      bench.act(1, number, .put("key of some length \(number)", .integer(Int64(number))))
      last = answers(bench, bench.turn())
      if number.isMultiple(of: 10) {
        bench.handle(.tick)
        bench.measure()
      }
    }
    #expect(last.first?.contains("stateBytes is 10000: no action of clients is done") == true)
    #expect(StateMeasure(of: bench.server.state).memory < 12_000)
    // The daemon's own actions are not limited.
    let revision = bench.server.revision
    bench.server.act(.set([], [:]))
    #expect(bench.server.revision == revision + 1)
  }

  @Test func `one action that is much too large for the state can be undone`() {
    var limits = Limits()
    limits.stateBytes = 1000
    var bench = Bench([:], limits: limits)
    bench.join(1)
    bench.act(1, 1, .put("a", .text(String(repeating: "x", count: 5000))))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    bench.handle(.tick)
    bench.measure()
    bench.act(1, 2, .put("b", .text(String(repeating: "x", count: 500))))
    #expect(answers(bench, bench.turn()).first?.hasPrefix("7 ") == true)
    bench.act(1, 3, .remove(["a"]))
    #expect(answers(bench, bench.turn()) == ["reduced"])
    bench.handle(.tick)
    bench.measure()
    bench.act(1, 4, .put("b", .text(String(repeating: "x", count: 500))))
    #expect(answers(bench, bench.turn()) == ["reduced"])
  }
}
