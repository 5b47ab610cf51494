import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// What connections, sessions and subscriptions by the thousand need is done some in each turn, so that
/// no client waits for all of it.
@Suite struct ServerCrowdTests {
  private func limits(_ change: (inout Limits) -> Void) -> Limits {
    var limits = Limits()
    (limits.connections, limits.connectionsPerUser, limits.connectionsPerSecond) =
      (20_000, 20_000, 20_000)
    change(&limits)
    return limits
  }

  /// A client that sees each of so many rooms by itself, and one that sees nothing.
  private func bench(rooms: Int) -> Bench {
    let names = (0..<rooms).map { "r\($0)" }
    var bench = Bench([
      "rooms": .object(TrieMap(uniqueKeysWithValues: names.map { ($0, 0) }))
    ])
    for number in 1...2 as ClosedRange<UInt64> { bench.join(number) }
    for (index, name) in names.enumerated() {
      bench.say(1, .subscribe(subscription: UInt64(index + 1), ["rooms", .text(name)], nil))
    }
    while bench.turn().contains(.wake) {}
    return bench
  }

  @Test(arguments: ["the connection is lost", "a goodbye"])
  func `subscriptions of a connection that ends leave their scopes some in a turn`(how: String) {
    var bench = bench(rooms: 1000)
    #expect(bench.server.load.scopes == 1000)
    if how == "a goodbye" {
      bench.say(1, .goodbye(.done, ""))
    } else {
      bench.handle(.closed(ConnectionID(1)))
    }
    var counts = [bench.server.load.scopes]
    while bench.turn().contains(.wake) { counts.append(bench.server.load.scopes) }
    counts.append(bench.server.load.scopes)
    #expect(counts.first == 1000 && counts.last == 0)
    for (before, after) in zip(counts, counts.dropFirst()) { #expect(before - after <= 314) }
  }

  @Test(arguments: ["the connection is lost", "each by itself"])
  func `of subscriptions to long paths fewer begin in a turn, and fewer leave`(how: String) {
    var bench = bench(rooms: 0)
    let tail = (0..<98).map { PathKey.integer($0) }
    for number in 1...200 as ClosedRange<UInt64> {
      let path = Path(["r", .integer(Int64(number))] + tail)
      bench.say(1, .subscribe(subscription: number, path, nil))
    }
    var counts = [0]
    while bench.turn().contains(.wake) { counts.append(bench.server.load.scopes) }
    #expect(counts.count > 4 && bench.server.load.scopes == 200)
    for (before, after) in zip(counts, counts.dropFirst()) { #expect(after - before <= 40) }
    if how == "each by itself" {
      for number in 1...200 as ClosedRange<UInt64> {
        bench.say(1, .unsubscribe(subscription: number))
      }
    } else {
      bench.handle(.closed(ConnectionID(1)))
    }
    counts = [200]
    while bench.turn().contains(.wake) { counts.append(bench.server.load.scopes) }
    #expect(counts.count > 4 && bench.server.load.scopes == 0)
    for (before, after) in zip(counts, counts.dropFirst()) { #expect(before - after <= 50) }
  }

  @Test func `subscriptions to long paths that many connections end share a turn's work`() {
    let (clients, keys) = (300 as UInt64, (0..<99).map { PathKey.integer($0) })
    var bench = Bench(limits: limits { _ in })
    for number in 1...clients {
      bench.join(number)
      let path = Path([.integer(Int64(number))] + keys)
      bench.say(number, .subscribe(subscription: 1, path, nil))
    }
    while bench.turn().contains(.wake) {}
    #expect(bench.server.load.scopes == 300)
    for number in 1...clients { bench.say(number, .unsubscribe(subscription: 1)) }
    var counts = [300]
    while bench.turn().contains(.wake) { counts.append(bench.server.load.scopes) }
    #expect(counts.count > 4 && bench.server.load.scopes == 0)
    for (before, after) in zip(counts, counts.dropFirst()) { #expect(before - after <= 50) }
  }

  @Test func `a turn follows as long as subscriptions have still to leave, and they get nothing`() {
    var bench = bench(rooms: 1000)
    bench.handle(.closed(ConnectionID(1)))
    bench.act(2, 1, .set(["rooms"], 0))
    var turns = 0
    var commands = bench.turn()
    #expect(bench.frames(to: 1, commands).isEmpty)
    while commands.contains(.wake), turns < 100 {
      commands = bench.turn()
      #expect(bench.frames(to: 1, commands).isEmpty)
      turns += 1
    }
    #expect(turns == 3)
    #expect(bench.server.load.scopes == 0)
  }

  @Test func `no more subscriptions begin in a turn than those of ended connections leave`() {
    var bench = bench(rooms: 2000)
    var most = 0
    for number in 3...8 as ClosedRange<UInt64> {
      // The user has as many as before, and again, as fast as it can.
      bench.handle(.closed(ConnectionID(number == 3 ? 1 : number - 1)))
      bench.join(number)
      for room in 0..<2000 {
        bench.say(
          number,
          .subscribe(subscription: UInt64(room + 1), ["rooms", .text("s\(number) \(room)")], nil)
        )
        if room % 500 == 499 { _ = bench.turn() }
      }
      for _ in 0..<40 where bench.turn().contains(.wake) {
        most = max(most, bench.server.load.scopes)
      }
    }
    #expect(most <= 2000, "\(most)")
  }

  /// Reading of each has stopped behind a request.
  @Test func `what was held back of many connections is read some in a turn, for each user`() {
    var bench = Bench(
      limits: limits {
        $0.requestsPerTurn = 1
        $0.turnBytesPerUser = 2000
      })
    let count = 40 as UInt64
    for number in 1...count { bench.join(number, uid: number < count ? 7 : 8) }
    for number in 1...count {
      let actions = (1...20).map { number in
        ClientMessage.action(
          number: number, .applied, payload: payload(.increment(["n"], by: 1)))
      }
      bench.handle(
        .received(ConnectionID(number), ([.ping(1)] + actions).flatMap { frame($0) }))
    }
    #expect(bench.server.revision == 0)
    var (revisions, turns, last) = ([0 as UInt64], 0, 0)
    var commands: [Command] = []
    repeat {
      commands = bench.turn()
      turns += 1
      revisions.append(bench.server.revision)
      for case .acknowledgement in bench.said(to: count, commands) where last == 0 { last = turns }
    } while commands.contains(.wake)
    #expect(revisions.last == 20 * count)
    for (before, after) in zip(revisions, revisions.dropFirst()) { #expect(after - before <= 200) }
    #expect(last > 0 && last <= 3, "that of another user does not wait for the others: \(last)")
  }

  @Test func `states that were held for a connection that has ended are released`() {
    var bench = bench(rooms: 300)
    bench.handle(.blocked(ConnectionID(1), unsent: 5))
    bench.act(2, 1, .set(["rooms"], 0))
    _ = bench.turn()
    #expect(bench.server.load.heldStates == 1)
    bench.handle(.closed(ConnectionID(1)))
    while bench.turn().contains(.wake) {}
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `deadlines of connections are looked at some in a turn, and of each once a second`() {
    var bench = Bench(limits: limits { $0.connectionsPerSecond = 20_000 })
    for number in 1...2000 as ClosedRange<UInt64> { bench.open(number) }
    _ = bench.turn()
    bench.pass(.seconds(11))
    bench.handle(.tick)
    var closed: [Int] = []
    var commands: [Command]
    repeat {
      commands = bench.turn()
      closed.append(commands.count { if case .close = $0 { true } else { false } })
    } while commands.contains(.wake)
    #expect(closed.reduce(0, +) == 2000)
    #expect((closed.max() ?? 0) <= 16, "\(closed)")
  }

  @Test func `sessions whose grace is over are forgotten some in a turn`() {
    var bench = Bench(limits: limits { $0.sessionGrace = .seconds(5) })
    for number in 1...2000 as ClosedRange<UInt64> { bench.join(number) }
    _ = bench.turn()
    for number in 1...1999 as ClosedRange<UInt64> { bench.handle(.closed(ConnectionID(number))) }
    while bench.turn().contains(.wake) {}
    #expect(bench.server.load.detachedSessions == 1999)
    bench.pass(.seconds(6))
    var left = [bench.server.load.detachedSessions]
    bench.handle(.tick)
    left.append(bench.server.load.detachedSessions)
    while bench.turn().contains(.wake) { left.append(bench.server.load.detachedSessions) }
    left.append(bench.server.load.detachedSessions)
    #expect(left.last == 0)
    for (before, after) in zip(left, left.dropFirst()) { #expect(before - after <= 256) }
  }
}
