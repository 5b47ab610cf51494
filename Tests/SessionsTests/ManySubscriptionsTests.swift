import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// A connection with many subscriptions that comes back is brought up to date over several turns, so that
/// the others do not wait for it.
@Suite struct ManySubscriptionsTests {
  private static let rooms = 100

  /// Ten subscriptions a turn.
  private static var limits: Limits {
    var limits = Limits()
    limits.requestWorkPerTurn = 40
    return limits
  }

  private static func room(_ number: Int) -> String { "r\(number)" }

  private static func rooms(_ value: Int64) -> Value {
    .object(TrieMap(uniqueKeysWithValues: (0..<rooms).map { (room($0), .integer(value)) }))
  }

  /// A writer, a client that sees each room by itself, and one that sees nothing.
  private func bench(_ limits: Limits = Self.limits) -> Bench {
    var bench = Bench(["rooms": Self.rooms(0)], limits: limits)
    for number in 1...3 as ClosedRange<UInt64> { bench.join(number) }
    for number in 0..<Self.rooms {
      bench.say(
        2, .subscribe(subscription: UInt64(number + 1), ["rooms", .text(Self.room(number))], nil))
    }
    _ = bench.turns([])
    return bench
  }

  /// The second client does not read while every room changes.
  private func lagging(_ limits: Limits = Self.limits) -> Bench {
    var bench = bench(limits)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.act(1, 1, .set(["rooms"], Self.rooms(1)))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    return bench
  }

  private func patches(_ messages: [ServerMessage]?) -> Int {
    (messages ?? []).count { if case .patch = $0 { true } else { false } }
  }

  private func snapshots(_ messages: [ServerMessage]?) -> Int {
    (messages ?? []).count { if case .snapshot = $0 { true } else { false } }
  }

  @Test func `others are served between its patches, and it is told of nothing newer before`() {
    var bench = lagging()
    bench.act(2, 1, .put("n", 1))
    bench.say(2, .ping(7))
    bench.say(3, .ping(8))
    let turns = bench.turns([2, 3])
    #expect(turns.map { patches($0[2]) }.filter { $0 > 0 } == Array(repeating: 10, count: 10))
    #expect(turns[0][3] == [.pong(8, revision: 2)])
    let told = turns.flatMap { $0[2] ?? [] }
    #expect(told.count == Self.rooms + 2)
    #expect(patches(Array(told.prefix(Self.rooms))) == Self.rooms)
    #expect(told.dropFirst(Self.rooms).contains(.pong(7, revision: 2)))
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what changes meanwhile comes behind what it has not been sent`() {
    var bench = lagging()
    _ = bench.turn()
    bench.act(1, 2, .set(["rooms"], Self.rooms(2)))
    let told = bench.turns([2]).flatMap { $0[2] ?? [] }
    // Ten were sent revision 1 already; the others get both as one.
    #expect(patches(told) == Self.rooms)
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `snapshots that are made at once share the work, too`() {
    var bench = bench()
    bench.act(1, 1, .set(["rooms"], Self.rooms(1)))
    // The state that it has is gone, because this was reported late.
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    bench.say(2, .ping(7))
    bench.say(3, .ping(8))
    let turns = bench.turns([2, 3])
    #expect(turns[0][3] == [.pong(8, revision: 1)])
    #expect(turns.allSatisfy { snapshots($0[2]) <= 10 })
    #expect(turns.reduce(0) { $0 + snapshots($1[2]) } == Self.rooms)
    #expect(turns.last?[2]?.last == .pong(7, revision: 1))
  }

  /// The third client has one subscription, and comes back behind the second.
  private func laggingTogether() -> Bench {
    var bench = bench()
    bench.say(3, .subscribe(subscription: 1, ["rooms", "r7"], nil))
    _ = bench.turns([])
    for number in 2...3 as ClosedRange<UInt64> {
      bench.handle(.blocked(ConnectionID(number), unsent: 5))
    }
    bench.act(1, 1, .set(["rooms"], Self.rooms(1)))
    _ = bench.turn()
    for number in 2...3 as ClosedRange<UInt64> { bench.handle(.drained(ConnectionID(number))) }
    return bench
  }

  @Test func `connections that come back together take turns`() {
    var bench = laggingTogether()
    let turns = bench.turns([2, 3])
    // The first turn's work goes to the one with many, and then it is the other's turn.
    #expect(turns.map { patches($0[3]) }.prefix(3) == [0, 1, 0])
    #expect(turns.map { patches($0[2]) }.prefix(3) == [10, 9, 10])
  }

  @Test func `one that is blocked without end delays no other`() {
    var bench = laggingTogether()
    #expect(patches(bench.said(to: 3, bench.turn())) == 0)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    // It is ready again before the next turn ends, and first among those to which something happens.
    bench.handle(.drained(ConnectionID(2)))
    #expect(patches(bench.said(to: 3, bench.turn())) == 1)
  }

  @Test func `one that only waits for its snapshot is answered, though others used up the work`() {
    var limits = Self.limits
    limits.inlineSnapshotBytes = 100
    var bench = lagging(limits)
    bench.say(3, .subscribe(subscription: 1, ["rooms"], nil))
    #expect(bench.turn().contains { if case .encodeSnapshot = $0 { true } else { false } })
    bench.say(3, .ping(8))
    #expect(bench.said(to: 3, bench.turn()) == [.pong(8, revision: 1)])
  }

  @Test func `one that is blocked again and again is answered`() {
    var bench = lagging()
    bench.act(2, 1, .put("n", 1))
    bench.say(2, .ping(7))
    var told: [ServerMessage] = []
    // It has everything after ten turns.
    for value in 2...6 as ClosedRange<Int64> {
      bench.act(1, UInt64(value), .set(["rooms"], Self.rooms(value)))
      told += bench.said(to: 2, bench.turn())
      bench.handle(.blocked(ConnectionID(2), unsent: 5))
      told += bench.said(to: 2, bench.turn())
      bench.handle(.drained(ConnectionID(2)))
    }
    #expect(told.contains { if case .acknowledgement = $0 { true } else { false } })
    #expect(told.contains { if case .pong(7, _) = $0 { true } else { false } })
  }

  @Test func `one that is blocked meanwhile is sent the rest in as many turns, and then nothing`() {
    var bench = lagging()
    bench.act(2, 1, .put("n", 1))
    bench.say(2, .ping(7))
    #expect(patches(bench.said(to: 2, bench.turn())) == 10)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    let turns = bench.turns([2])
    #expect(turns.map { patches($0[2]) }.filter { $0 > 0 } == Array(repeating: 10, count: 9))
    #expect(turns.flatMap { $0[2] ?? [] }.contains(.pong(7, revision: 2)))
    bench.act(1, 2, .set(["rooms"], Self.rooms(2)))
    #expect(bench.turns([2]).allSatisfy { $0[2]?.isEmpty ?? true })
    bench.handle(.drained(ConnectionID(2)))
    #expect(bench.turns([2]).reduce(0) { $0 + patches($1[2]) } == Self.rooms)
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what is sent to one that does not read counts as unsent`() {
    var limits = Self.limits
    limits.unsentBytesPerUser = 100
    var bench = lagging(limits)
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    #expect(bench.goodbye(to: 2, bench.turn()) == nil)
    bench.handle(.blocked(ConnectionID(2), unsent: 101))
    let last = bench.turn()
    #expect(bench.goodbye(to: 2, last)?.code == .limit && last.contains(.close(ConnectionID(2))))
  }

  @Test func `snapshots wait until one that is blocked meanwhile has read`() {
    var bench = bench()
    bench.act(1, 1, .set(["rooms"], Self.rooms(1)))
    // The state that it has is gone, because this was reported late.
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    var sent: [Int] = []
    while sent.reduce(0, +) < Self.rooms, sent.count < 20 {
      sent.append(snapshots(bench.said(to: 2, bench.turn())))
      bench.handle(.blocked(ConnectionID(2), unsent: 5))
      // Some behind what it has missed of the others, and then none.
      sent[sent.count - 1] += bench.turns([2]).reduce(0) { $0 + snapshots($1[2]) }
      bench.handle(.drained(ConnectionID(2)))
    }
    #expect(sent.first == 20 && sent.allSatisfy { 1...20 ~= $0 }, "\(sent)")
    #expect(sent.reduce(0, +) == Self.rooms)
    bench.say(2, .ping(7))
    #expect(bench.turns([2]).flatMap { $0[2] ?? [] }.last == .pong(7, revision: 1))
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `the patch of a small part is made at once, whatever else has changed`() {
    var limits = Limits()
    limits.inlineDifferenceBytes = 64
    var bench = lagging(limits)
    let commands = bench.turn()
    #expect(patches(bench.said(to: 2, commands)) == Self.rooms)
    #expect(!commands.contains { if case .encodeSnapshot = $0 { true } else { false } })
    // One that was large, or is.
    let text = Value.text(String(repeating: "x", count: 65))
    for (number, value) in [(2, text), (4, 1)] as [(UInt64, Value)] {
      bench.handle(.blocked(ConnectionID(2), unsent: 5))
      let other = Value.text(String(repeating: "\(number)", count: 65))
      bench.act(1, number, .set(["rooms", "r7"], value), .set(["other"], other))
      _ = bench.turn()
      bench.handle(.drained(ConnectionID(2)))
      let jobs = bench.turn().filter { if case .encodeSnapshot = $0 { true } else { false } }
      #expect(jobs.count == 1)
      for case .encodeSnapshot(let id) in jobs { bench.encode(id) }
      #expect(patches(bench.said(to: 2, bench.turn())) == 1)
    }
  }

  @Test func `of those that have not changed meanwhile nothing is said`() {
    var bench = bench()
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.act(1, 1, .set(["rooms", "r7"], 1))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    bench.say(2, .ping(7))
    let turns = bench.turns([2])
    let told = turns.flatMap { $0[2] ?? [] }
    #expect(patches(told) == 1 && told.last == .pong(7, revision: 1) && told.count == 2)
    #expect(turns.count <= 4, "a turn has work for 40 of these: \(turns.count)")
    // They go on from where they are.
    bench.act(1, 2, .set(["rooms"], Self.rooms(2)))
    #expect(patches(bench.said(to: 2, bench.turn())) == Self.rooms)
    #expect(bench.server.load.heldStates == 0)
  }

  /// All but one wait for a snapshot that is encoded, and then one more is asked for.
  @Test func `a request does not begin what others wait for`() {
    var limits = Self.limits
    (limits.concurrentSnapshots, limits.inlineSnapshotBytes) = (1, 20)
    var bench = Bench(
      ["rooms": Self.rooms(0), "large": .text(String(repeating: "x", count: 500))], limits: limits)
    bench.join(1)
    bench.say(1, .subscribe(subscription: 200, ["large"], nil))
    var jobs: [SnapshotJobID] = []
    for case .encodeSnapshot(let id) in bench.turn() { jobs.append(id) }
    for number in 0..<Self.rooms {
      bench.say(
        1, .subscribe(subscription: UInt64(number + 1), ["rooms", .text(Self.room(number))], nil))
    }
    #expect(jobs.count == 1 && bench.turns([1]).allSatisfy { snapshots($0[1]) == 0 })
    for job in jobs { bench.encode(job) }
    bench.say(1, .subscribe(subscription: 201, ["absent"], nil))
    let turns = bench.turns([1])
    #expect(turns.allSatisfy { snapshots($0[1]) <= 11 }, "\(turns.map { snapshots($0[1]) })")
    #expect(turns.reduce(0) { $0 + snapshots($1[1]) } == Self.rooms + 2)
  }

  @Test func `one subscription's end moves another, which goes on`() {
    var bench = bench()
    for number in [1, 50, 100] as [UInt64] { bench.say(2, .unsubscribe(subscription: number)) }
    _ = bench.turns([])
    for value in 1...2 as ClosedRange<Int64> {
      bench.act(1, UInt64(value), .set(["rooms"], Self.rooms(value)))
      #expect(patches(bench.said(to: 2, bench.turn())) == Self.rooms - 3)
    }
  }

  @Test func `many short frames are sent as few, and are the same`() {
    var bench = bench()
    bench.act(1, 1, .set(["rooms"], Self.rooms(1)))
    let commands = bench.turn()
    for case .send(ConnectionID(2), let frames) in commands { #expect(frames.count == 9) }
    #expect(patches(bench.said(to: 2, commands)) == Self.rooms)
  }

  @Test func `a goodbye comes after everything`() {
    var bench = lagging()
    bench.say(2, .goodbye(.done, ""))
    let told = bench.turns([2]).flatMap { $0[2] ?? [] }
    #expect(patches(Array(told.prefix(Self.rooms))) == Self.rooms)
    #expect(told.count == Self.rooms + 1)
    bench = lagging()
    bench.handle(.stop(retryAfter: nil))
    let last = bench.said(to: 2, bench.turn())
    #expect(patches(Array(last.prefix(Self.rooms))) == Self.rooms)
    #expect(last.count == Self.rooms + 1)
  }

  @Test func `one that is made to leave is sent no more of it, and nobody waits`() {
    var bench = lagging()
    bench.act(2, 1, .put("n", 1))
    #expect(patches(bench.said(to: 2, bench.turn())) == 10)
    bench.handle(.received(ConnectionID(2), [1, 0, 0, 0, 0xff]))
    let last = bench.turn()
    let told = bench.said(to: 2, last)
    #expect(told.count == 1 && bench.goodbye(to: 2, last)?.code == .malformed)
    #expect(last.contains(.close(ConnectionID(2))))
    _ = bench.turns([])
    #expect(bench.server.load.heldStates == 0 && bench.server.load.behind == 0)
    // What it was not told is known, and its mirrors go on where they are.
    bench.open(4)
    bench.say(4, .hello(.init(versions: 1...3, label: "", token: Bench.token(2))))
    guard case .welcome(let welcome)? = bench.said(to: 4, bench.turn()).first else {
      Issue.record("no welcome")
      return
    }
    #expect(welcome.isResumed && welcome.lastAction == 1)
    for (number, revision) in [(1, 1), (100, 0)] as [(UInt64, UInt64)] {
      let position = Position(
        epoch: welcome.position.epoch, run: welcome.position.run, revision: revision)
      let room = PathKey.text(Self.room(Int(number) - 1))
      bench.say(4, .subscribe(subscription: number, ["rooms", room], position))
      let told = bench.said(to: 4, bench.turn())
      #expect(patches(told) == (revision == 0 ? 1 : 0) && snapshots(told) == 0)
    }
  }

  @Test func `a process that hands over has sent everything`() throws {
    var bench = lagging()
    let commands = try bench.handOver(limits: Self.limits)
    #expect(patches(bench.said(to: 2, commands)) == Self.rooms)
  }

  @Test func `the end of one of many jobs looks at no other`() throws {
    var limits = Limits()
    limits.inlineDifferenceBytes = 0
    // One subscription is looked at in a turn.
    limits.requestWorkPerTurn = 1
    var bench = lagging(limits)
    var jobs: [SnapshotJobID] = []
    while jobs.count < Self.rooms {
      let begun = bench.turn().compactMap { command -> SnapshotJobID? in
        if case .encodeSnapshot(let id) = command { id } else { nil }
      }
      try #require(begun.count == 1)
      jobs += begun
    }
    for job in jobs.reversed() {
      bench.encode(job)
      #expect(patches(bench.said(to: 2, bench.turn())) == 1)
    }
    #expect(bench.server.load.heldStates == 0)
  }
}
