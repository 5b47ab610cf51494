import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// The patch for a mirror that was behind is made beside the loop if much has changed.
@Suite struct DifferenceJobTests {
  private static var limits: Limits {
    var limits = Limits()
    limits.inlineDifferenceBytes = 0
    // What came meanwhile is not in the history, so that it is a difference, too.
    limits.historyBytes = 0
    return limits
  }

  /// The patch that sets `n`.
  private func n(_ value: UInt8) -> [UInt8] { [0xa1, 0x61, 0x6e, value] }

  private func jobs(_ commands: [Command]) -> [SnapshotJobID] {
    commands.compactMap { if case .encodeSnapshot(let id) = $0 { id } else { nil } }
  }

  /// A writer, and so many mirrors that have not read what was written at revision 1 and later.
  private func lagging(_ count: UInt64, _ limits: Limits = Self.limits) -> Bench {
    var bench = Bench.withSubscribers(count + 1, limits: limits)
    for reader in 2...count + 1 {
      bench.handle(.blocked(ConnectionID(reader), unsent: 5))
    }
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.act(1, 2, .put("n", 2))
    _ = bench.turn()
    return bench
  }

  @Test func `who comes back together waits for one job, and gets one patch`() {
    var bench = lagging(3)
    for reader in 2...4 as ClosedRange<UInt64> { bench.handle(.drained(ConnectionID(reader))) }
    let commands = bench.turn()
    #expect(jobs(commands).count == 1)
    for reader in 2...4 as ClosedRange<UInt64> { #expect(bench.said(to: reader, commands) == []) }
    for job in jobs(commands) { bench.encode(job) }
    let after = bench.turn()
    #expect(jobs(after) == [])
    for reader in 2...4 as ClosedRange<UInt64> {
      #expect(
        bench.said(to: reader, after) == [
          .patch(scope: 0, from: 0, [.init(span: 2, patch: n(2))])
        ])
    }
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what is changed while the patch is made comes behind it`() {
    var bench = lagging(1)
    bench.handle(.drained(ConnectionID(2)))
    let first = jobs(bench.turn())
    bench.act(1, 3, .put("n", 3))
    #expect(bench.said(to: 2, bench.turn()) == [])
    for job in first { bench.encode(job) }
    let commands = bench.turn()
    #expect(
      bench.said(to: 2, commands) == [
        .patch(scope: 0, from: 0, [.init(span: 2, patch: n(2))])
      ])
    for job in jobs(commands) { bench.encode(job) }
    #expect(
      bench.said(to: 2, bench.turn()) == [
        .patch(scope: 0, from: 2, [.init(span: 1, patch: n(3))])
      ])
    bench.act(1, 4, .put("n", 4))
    #expect(
      bench.said(to: 2, bench.turn()) == [
        .patch(scope: 0, from: 3, [.init(span: 1, patch: n(4))])
      ])
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what has changed back is said to be current, at the revision that was compared`() {
    var bench = Bench.withSubscribers(2, limits: Self.limits)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    for (number, value) in [(1, 1), (2, 0)] as [(UInt64, Int64)] {
      bench.act(1, number, .put("n", .integer(value)))
      _ = bench.turn()
    }
    bench.handle(.drained(ConnectionID(2)))
    let waiting = jobs(bench.turn())
    bench.act(1, 3, .put("n", 3))
    _ = bench.turn()
    for job in waiting { bench.encode(job) }
    let commands = bench.turn()
    #expect(
      bench.said(to: 2, commands) == [
        .subscribed(
          .init(subscription: 1, scope: 0, .current, .none, revision: 2))
      ])
    for job in jobs(commands) { bench.encode(job) }
    #expect(
      bench.said(to: 2, bench.turn()) == [
        .patch(scope: 0, from: 2, [.init(span: 1, patch: n(3))])
      ])
  }

  @Test func `without memory for the patch, or without one, the mirror gets a snapshot`() {
    for isRefused in [true, false] {
      var limits = Self.limits
      if !isRefused { limits.frameBytes = 200 }
      var bench = lagging(1, limits)
      if !isRefused {
        bench.act(1, 3, .put("text", .text(String(repeating: "x", count: 150))))
        _ = bench.turn()
      }
      bench.handle(.drained(ConnectionID(2)))
      let waiting = jobs(bench.turn())
      #expect(waiting.count == 1)
      for job in waiting {
        if isRefused { bench.handle(.snapshotImpossible(job)) } else { bench.encode(job) }
      }
      let begun = bench.subscribed(to: 2, bench.settle())
      #expect(begun?.continuation == .snapshot && begun?.reason == .lagged)
      #expect(bench.server.load.heldStates == 0)
    }
  }

  /// An answer tells the client that every mirror which is not announced anew is at its revision.
  @Test func `nothing is answered while the patch is made`() {
    var bench = lagging(1)
    bench.handle(.drained(ConnectionID(2)))
    let waiting = jobs(bench.turn())
    bench.say(2, .ping(7))
    for _ in 1...3 { #expect(bench.said(to: 2, bench.turn()) == []) }
    for job in waiting { bench.encode(job) }
    #expect(
      (bench.said(to: 2, bench.turn()) + bench.said(to: 2, bench.turn())) == [
        .patch(scope: 0, from: 0, [.init(span: 2, patch: n(2))]), .pong(7, revision: 2),
      ])
  }

  @Test func `a mirror of what changes all the time is answered in the end`() {
    var bench = lagging(1)
    bench.handle(.drained(ConnectionID(2)))
    bench.say(2, .ping(7))
    var (value, told): (UInt64, [ServerMessage]) = (2, [])
    while !told.contains(where: { if case .pong = $0 { true } else { false } }), value < 30 {
      let commands = bench.turn()
      let waiting = jobs(commands)
      told += bench.said(to: 2, commands)
      value += 1
      bench.act(1, value, .put("n", .integer(Int64(value))))
      told += bench.said(to: 2, bench.turn())
      for job in waiting { bench.encode(job) }
    }
    #expect(value < 15, "eight rounds, each with a patch")
    #expect(told.contains { if case .pong(7, _) = $0 { true } else { false } })
  }

  @Test func `patches behind it that take long to find are not looked for on the loop`() {
    for isLong in [true, false] {
      var limits = Limits()
      limits.inlineDifferenceBytes = 1
      var bench = lagging(1, limits)
      bench.handle(.drained(ConnectionID(2)))
      let first = jobs(bench.turn())
      #expect(first.count == 1)
      // Eight bytes are not long, and the difference takes more than twelve.
      for value in 3...(isLong ? 5 : 4) as ClosedRange<UInt64> {
        bench.act(1, value, .put("n", .integer(Int64(value))))
        _ = bench.turn()
      }
      for job in first { bench.encode(job) }
      let commands = bench.turn()
      #expect(jobs(commands).count == (isLong ? 1 : 0))
      #expect(bench.said(to: 2, commands).count == (isLong ? 1 : 2))
    }
  }

  @Test func `the end of a job is heard by those that wait for it`() {
    var bench = Bench.withSubscribers(30, limits: Self.limits)
    bench.handle(.blocked(ConnectionID(7), unsent: 5))
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(7)))
    for job in jobs(bench.turn()) { bench.encode(job) }
    #expect(bench.server.load.due == [ConnectionID(7)])
  }

  @Test func `who leaves while the patch is made leaves nothing`() {
    var bench = lagging(1)
    bench.handle(.drained(ConnectionID(2)))
    let waiting = jobs(bench.turn())
    bench.handle(.closed(ConnectionID(2)))
    _ = bench.turn()
    for job in waiting { bench.encode(job) }
    _ = bench.settle()
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `few missed bytes are a patch at once`() {
    var limits = Limits()
    limits.inlineDifferenceBytes = 100
    var bench = lagging(1, limits)
    bench.handle(.drained(ConnectionID(2)))
    let commands = bench.turn()
    #expect(jobs(commands) == [])
    #expect(
      bench.said(to: 2, commands) == [
        .patch(scope: 0, from: 0, [.init(span: 2, patch: n(2))])
      ])
  }

  // MARK: Many subscriptions

  @Test func `as many snapshots of a connection are encoded at a time as the limit says, in order`()
  {
    var limits = Bench.besideLoop
    limits.concurrentSnapshots = 2
    var bench = Bench(
      ["k1": 1, "k2": 2, "k3": 3, "k4": 4, "k5": 5, "k6": 6, "k7": 7], limits: limits)
    _ = bench.join(1)
    for number in 1...7 as ClosedRange<UInt64> {
      bench.say(1, .subscribe(subscription: number, [.text("k\(number)")], nil))
    }
    bench.say(1, .unsubscribe(subscription: 4))
    var told: [UInt64] = []
    var commands = bench.turn()
    while !jobs(commands).isEmpty {
      #expect(jobs(commands).count <= 2)
      for job in jobs(commands) { bench.encode(job) }
      commands = bench.turn()
      for case .snapshot(let part) in bench.said(to: 1, commands) { told.append(part.scope) }
    }
    #expect(told.count == 6 && told == told.sorted())
    bench.act(1, 1, .put("k7", 8))
    #expect(bench.said(to: 1, bench.turn()).last == Acknowledgement.reduced(1, 1, at: 1))
  }

  @Test func `a value that is seen to be small is sent at once`() {
    var bench = Bench(["small": ["a": 1], "large": .text(String(repeating: "x", count: 200_000))])
    _ = bench.join(1)
    for (number, name) in [(1, "small"), (2, "large"), (3, "absent")] as [(UInt64, String)] {
      bench.say(1, .subscribe(subscription: number, [.text(name)], nil))
      #expect(jobs(bench.turn()).isEmpty == (name != "large"), "\(name)")
    }
  }

  @Test func `of many small values at once, a share is encoded on the loop`() {
    let (count, length) = (60, 5000)
    var limits = Limits()
    limits.inlineSnapshotBytes = 20_000
    let part: Value = ["seen": .text(String(repeating: "x", count: length)), "hidden": 1]
    let parts = (0..<count).map { ("k\($0)", part) }
    let policies = [[], ["*/hidden"]].map { hidden in
      Policy([Rule(users: [1], mayConnect: true, read: [.whole], denyRead: patterns(hidden))])
    }
    var bench = Bench(
      .object(TrieMap(uniqueKeysWithValues: parts)), limits: limits, policy: policies[0])
    bench.join(1, uid: 1)
    for number in 0..<count {
      bench.say(1, .subscribe(subscription: UInt64(number), [.text("k\(number)")], nil))
    }
    // Requests have a share, too.
    for _ in 0..<count { _ = bench.turn() }
    #expect(bench.server.load.scopes == count)
    // Each of them sees something else now.
    bench.handle(.policy(policies[1]))
    let began = jobs(bench.turn())
    // 80,000 bytes, and the one that reaches them.
    #expect(began.count == count - 16, "\(began.count)")
  }

  /// Short texts, and a long one: so many bytes are encoded until it is seen that it is large.
  private static func large(after bytes: Int) -> Value {
    var texts = (0..<bytes / 10).map { _ in Value.text("some text") }
    texts.append(.text(String(repeating: "x", count: 50_000)))
    return .array(TreeArray(texts))
  }

  /// A server of a small part and of large ones, and a position before which changes elsewhere are more
  /// than either.
  private func returning() -> (bench: Bench, position: Position) {
    var limits = Limits()
    limits.inlineSnapshotBytes = 20_000
    var parts = (0..<5).map { ("large \($0)", Self.large(after: 18_000)) }
    parts.append(("small", 1))
    var bench = Bench(.object(TrieMap(uniqueKeysWithValues: parts)), limits: limits)
    for number in 1...10 as ClosedRange<UInt64> { bench.join(number) }
    let position = Position(epoch: 9, run: 1, revision: bench.server.revision)
    for letter in "abcdefghijklmnopqrstuvwxyz" {
      bench.handle(.acted(.put("busy", .text(String(repeating: letter, count: 1000)))))
    }
    _ = bench.turn()
    return (bench, position)
  }

  /// How a connection's only subscription goes on.
  private func continuation(
    _ number: UInt64, _ bench: Bench, _ commands: [Command]
  ) -> ServerMessage.Continuation? {
    for case .subscribed(let told) in bench.said(to: number, commands) { return told.continuation }
    return nil
  }

  @Test func `a part that is known to be large is not encoded again for mirrors that come back`() {
    var (bench, position) = returning()
    bench.say(1, .subscribe(subscription: 1, ["large 0"], nil))
    #expect(jobs(bench.turn()).count == 1)
    // Each reads the history, and a turn has work for five.
    for number in 2...4 as ClosedRange<UInt64> {
      bench.say(number, .subscribe(subscription: 1, ["large 0"], position))
    }
    bench.say(10, .subscribe(subscription: 1, ["small"], nil))
    let commands = bench.turn()
    for number in 2...4 as ClosedRange<UInt64> {
      #expect(continuation(number, bench, commands) == .current)
    }
    // There is enough left of the turn's share for what is small.
    #expect(jobs(commands).isEmpty && continuation(10, bench, commands) == .snapshot)
  }

  @Test func `a mirror that comes back when the turn's share is used reads the history`() {
    for isUsed in [true, false] {
      var (bench, position) = returning()
      if isUsed {
        for number in 0..<5 as Range<UInt64> {
          bench.say(
            number + 1, .subscribe(subscription: 1, [.text("large \(number)")], nil))
        }
      }
      bench.say(9, .subscribe(subscription: 1, ["small"], position))
      let commands = bench.turn()
      #expect(continuation(9, bench, commands) == (isUsed ? .current : .snapshot))
    }
  }

  @Test func `what is encoded of a part that is hidden is work of the client, too`() {
    let count = 40
    var limits = Limits()
    limits.inlineSnapshotBytes = 200_000
    let part: Value = ["seen": 1, "hidden": Self.large(after: 0)]
    let parts = (0..<count).map { ("k\($0)", part) }
    let policy = Policy([
      Rule(users: [1], mayConnect: true, read: [.whole], denyRead: patterns(["*/hidden"]))
    ])
    var bench = Bench(
      .object(TrieMap(uniqueKeysWithValues: parts)), limits: limits, policy: policy)
    bench.join(1, uid: 1)
    for number in 0..<count {
      bench.say(1, .subscribe(subscription: UInt64(number), [.text("k\(number)")], nil))
    }
    var scopes = 0
    for _ in 0..<count where scopes < count {
      _ = bench.turn()
      // 50,000 bytes each are some 780 units of work, of 2,000 in a turn.
      #expect(bench.server.load.scopes - scopes <= 4)
      scopes = bench.server.load.scopes
    }
    #expect(scopes == count)
  }

  @Test func `what fits is whole`() {
    var random = SplitMix64(9)
    for _ in 0..<300 {
      let value = randomValue(&random, depth: 4)
      var encoder = CBOREncoder()
      value.encode(into: &encoder)
      for limit in [0, 1, 9, 40, 300, 3000, 20 * encoder.bytes.count + 20] {
        var small = CBOREncoder(upTo: limit)
        value.encode(into: &small)
        #expect(small.isOver || small.bytes == encoder.bytes && small.bytes.count <= limit)
        #expect(!small.isOver || limit <= 20 * encoder.bytes.count)
      }
    }
  }

  private func randomValue(_ random: inout SplitMix64, depth: Int) -> Value {
    switch random.next() % (depth > 0 ? 7 : 4) {
    case 0: return .null
    case 1: return .integer(Int64(bitPattern: random.next()))
    case 2: return .text(String(repeating: "é", count: Int(random.next() % 20)))
    case 3: return .bytes([UInt8](repeating: 1, count: Int(random.next() % 30)))
    case 4:
      return .array(
        .init((0..<random.next() % 6).map { _ in randomValue(&random, depth: depth - 1) }))
    default:
      var entries = TrieMap<String, Value>()
      for number in 0..<random.next() % 6 {
        _ = entries.updateValue(randomValue(&random, depth: depth - 1), forKey: "key \(number)")
      }
      return .object(entries)
    }
  }
}
