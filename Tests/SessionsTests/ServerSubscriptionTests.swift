import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

@Suite struct ServerSubscriptionTests {
  private func subscribed(
    _ number: UInt64, scope: UInt64, _ continuation: ServerMessage.Continuation,
    _ reason: ServerMessage.Reason = .none, at revision: UInt64
  ) -> ServerMessage {
    .subscribed(
      .init(subscription: number, scope: scope, continuation, reason, revision: revision))
  }

  private func reason(_ messages: [ServerMessage]) -> ServerMessage.Reason? {
    if case .subscribed(let subscribed)? = messages.first { subscribed.reason } else { nil }
  }

  @Test func `a first snapshot is encoded beside the loop, and announced when it comes`() {
    var bench = Bench.withClients(1, limits: Bench.besideLoop)
    bench.say(1, .subscribe(subscription: 4, ["n"], nil))
    let job = SnapshotJobID(1)
    #expect(
      bench.turn() == [
        .encodeSnapshot(job),
        .send(
          ConnectionID(1), [frame(subscribed(4, scope: 0, .snapshot, .noPosition, at: 0))]),
      ])
    bench.act(1, 1, .put("n", 5))
    // No acknowledgement while a mirror lacks changes.
    #expect(bench.turn() == [])
    bench.encode(job)
    #expect(
      bench.said(to: 1, bench.turn()) == [
        subscribed(4, scope: 0, .snapshot, .noPosition, at: 1),
        .snapshot(.init(scope: 0, revision: 0, index: 0, isLast: true, bytes: [0])),
        .patch(scope: 0, from: 0, [.init(span: 1, patch: [5])]),
        Acknowledgement.reduced(1, 1, at: 1),
      ])
  }

  @Test(arguments: [1, 1000])
  func `what came while a snapshot was encoded follows: one by one, if that is less than it`(
    size: Int
  ) {
    var bench = Bench(
      ["n": 0, "text": .text(String(repeating: "x", count: size))], limits: Bench.besideLoop)
    for number in 1...2 as ClosedRange<UInt64> { _ = bench.join(number) }
    for number in 1...2 as ClosedRange<UInt64> {
      bench.say(number, .subscribe(subscription: 1, .root, nil))
    }
    #expect(bench.turn().contains(.encodeSnapshot(SnapshotJobID(1))))
    for number in 1...9 as ClosedRange<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))))
      _ = bench.turn()
    }
    bench.encode(SnapshotJobID(1))
    let commands = bench.turn()
    for number in 1...2 as ClosedRange<UInt64> {
      let patches = bench.said(to: number, commands).compactMap { message in
        if case .patch(scope: 0, from: 0, let patches) = message { patches } else { nil }
      }
      #expect(patches.map { $0.map(\.span) } == [size == 1 ? [9] : Array(repeating: 1, count: 9)])
    }
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `a path is no longer than it may be`() {
    var limits = Limits()
    limits.pathBytes = 20
    var bench = Bench.withClients(2, limits: limits)
    let key = PathKey.text(String(repeating: "x", count: 10))
    bench.say(1, .subscribe(subscription: 1, Path([key, key]), nil))
    bench.say(2, .subscribe(subscription: 1, Path([key, key, .text("y")]), nil))
    let commands = bench.turn()
    #expect(
      bench.said(to: 1, commands).first == subscribed(1, scope: 0, .snapshot, .noPosition, at: 0))
    #expect(bench.said(to: 2, commands) == [subscribed(1, scope: 0, .refused, .limit, at: 0)])
  }

  @Test func `who is refused for lack of memory may come again`() {
    var bench = Bench.withClients(2, limits: Bench.besideLoop)
    for client in 1...2 as ClosedRange<UInt64> {
      bench.say(client, .subscribe(subscription: 4, ["n"], nil))
    }
    #expect(bench.turn().contains(.encodeSnapshot(SnapshotJobID(1))))
    bench.handle(.snapshotImpossible(SnapshotJobID(1)))
    let commands = bench.turn()
    for client in 1...2 as ClosedRange<UInt64> {
      let said = bench.said(to: client, commands)
      #expect(said == [subscribed(4, scope: 0, .refused, .memory, at: 0)])
    }
    #expect(bench.server.load.heldStates == 0 && bench.server.load.scopes == 0)
    // The client may still send actions, and may subscribe again.
    bench.act(1, 1, .put("n", 5))
    bench.say(1, .subscribe(subscription: 5, ["n"], nil))
    let again = bench.turn()
    #expect(again.contains(.encodeSnapshot(SnapshotJobID(2))))
    bench.encode(SnapshotJobID(2))
    #expect(
      bench.said(to: 1, bench.turn()).last == Acknowledgement.reduced(1, 1, at: 1))
  }

  @Test func `a small scope that was encoded before is encoded at once`() {
    var bench = Bench.withSubscribers(1)
    _ = bench.join(2)
    bench.pass(.seconds(10))
    bench.handle(.tick)
    bench.act(1, 1, .put("n", 5))
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    let said = bench.said(to: 2, bench.turn())
    #expect(said.first == subscribed(1, scope: 0, .snapshot, .noPosition, at: 1))
    #expect(
      said.last
        == .snapshot(
          .init(scope: 0, revision: 1, index: 0, isLast: true, bytes: [0xa1, 0x61, 0x6e, 5])))
  }

  @Test func `a snapshot at hand is sent with what came since`() {
    var bench = Bench.withSubscribers(1)
    _ = bench.join(2)
    bench.act(1, 1, .put("n", 5), .put("n", 6))
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    let said = bench.said(to: 2, bench.turn())
    #expect(said.count == 3)
    #expect(said.first == subscribed(1, scope: 0, .snapshot, .noPosition, at: 2))
    guard case .patch(scope: 0, from: 0, let patches)? = said.last else {
      Issue.record("no patches: \(said)")
      return
    }
    #expect(patches.map(\.span) == [1, 1])
  }

  @Test func `a snapshot at hand is made anew rather than sent with more patches than itself`() {
    var bench = Bench.withSubscribers(1)
    _ = bench.join(2)
    for number in 1...20 as ClosedRange<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))))
    }
    _ = bench.turn()
    bench.say(2, .subscribe(subscription: 1, .root, nil))
    #expect(
      bench.said(to: 2, bench.turn()) == [
        subscribed(1, scope: 0, .snapshot, .noPosition, at: 20),
        .snapshot(
          .init(scope: 0, revision: 20, index: 0, isLast: true, bytes: [0xa1, 0x61, 0x6e, 20])),
      ])
  }

  @Test func `a large snapshot comes in parts`() {
    var limits = Limits()
    limits.snapshotPartBytes = 10
    var bench = Bench.withClients(1, limits: limits)
    bench.act(1, 1, .put("n", .text(String(repeating: "x", count: 100))))
    bench.say(1, .subscribe(subscription: 1, ["n"], nil))
    let parts = bench.said(to: 1, bench.settle()).compactMap { message in
      if case .snapshot(let part) = message { part } else { nil }
    }
    #expect(parts.map(\.index) == Array(0..<11))
    #expect(parts.map(\.isLast) == Array(repeating: false, count: 10) + [true])
    #expect(parts.reduce(0) { $0 + $1.bytes.count } == 102)
  }

  @Test func `one path is seen once, and so many paths`() {
    var limits = Limits()
    limits.subscriptions = 1
    var bench = Bench.withClients(1, limits: limits)
    bench.say(
      1, .subscribe(subscription: 1, .root, nil), .subscribe(subscription: 2, .root, nil),
      .subscribe(subscription: 3, ["n"], nil))
    let said = bench.said(to: 1, bench.turn())
    #expect(said.contains(subscribed(2, scope: 0, .refused, .duplicate, at: 0)))
    #expect(said.contains(subscribed(3, scope: 0, .refused, .limit, at: 0)))
    #expect(said.contains(subscribed(1, scope: 0, .snapshot, .noPosition, at: 0)))
  }

  @Test func `a path too deep is refused, and the connection goes on`() {
    var limits = Limits()
    limits.pathKeys = 2
    var bench = Bench.withClients(1, limits: limits)
    bench.say(1, .subscribe(subscription: 1, ["a", "b", "c"], nil), .ping(7))
    #expect(
      bench.said(to: 1, bench.turn())
        == [subscribed(1, scope: 0, .refused, .limit, at: 0), .pong(7, revision: 0)])
  }

  /// A path of megabytes is not even built.
  @Test(arguments: [0x60, 0x80] as [UInt8])
  func `a path far too long is refused, if it is well-formed`(key: UInt8) {
    var bench = Bench.withClients(2)
    for (client, last) in [(1, 0xf6), (2, 0xff)] as [(UInt64, UInt8)] {
      let keys = [UInt8](repeating: key, count: 1 << 20)
      let item: [UInt8] = [0x84, 2, 9, 0x9a, 0, 0x10, 0, 0] + keys + [last]
      let bytes = withUnsafeBytes(of: UInt32(item.count).littleEndian) { Array($0) } + item
      bench.handle(.received(ConnectionID(client), bytes))
    }
    let commands = bench.turn()
    #expect(bench.said(to: 1, commands) == [subscribed(9, scope: 0, .refused, .limit, at: 0)])
    #expect(bench.goodbye(to: 2, commands)?.code == .malformed)
  }

  @Test func `who unsubscribes gets nothing more`() {
    var bench = Bench.withSubscribers(1)
    bench.say(1, .unsubscribe(subscription: 1))
    bench.act(1, 1, .put("n", 1))
    // Earlier changes of the turn are still sent: the request is answered after them.
    #expect(bench.said(to: 1, bench.turn()).count == 2)
    bench.act(1, 2, .put("n", 2))
    #expect(bench.said(to: 1, bench.turn()) == [Acknowledgement.reduced(2, 2, at: 2)])
    #expect(bench.server.load.scopes == 0)
  }

  @Test func `a scope is told only of what happens in it`() {
    var bench = Bench.withClients(1)
    bench.say(1, .subscribe(subscription: 1, ["a"], nil))
    _ = bench.settle()
    bench.act(1, 1, .put("b", 1), .put("a", 2))
    #expect(
      bench.said(to: 1, bench.turn()).first
        == .patch(scope: 0, from: 0, [.init(span: 2, patch: [2])]))
    bench.act(1, 3, .set([], ["c": 1]))
    #expect(
      bench.said(to: 1, bench.turn()).first
        == .patch(scope: 0, from: 2, [.init(span: 1, patch: [0xf7])]))
  }

  // MARK: Resuming

  private func resume(_ position: Position, limits: Limits = Limits()) -> [ServerMessage] {
    var bench = Bench.withClients(1, limits: limits)
    bench.act(1, 1, .put("a", 1), .put("b", 1), .put("c", 1))
    _ = bench.turn()
    bench.say(1, .subscribe(subscription: 1, ["b"], position))
    return bench.said(to: 1, bench.turn())
  }

  @Test func `a mirror is up to date, or gets what it lacks`() {
    let now = resume(Position(epoch: 9, run: 1, revision: 3))
    #expect(now == [subscribed(1, scope: 0, .current, at: 3)])
    // Nothing in the scope happened since.
    #expect(resume(Position(epoch: 9, run: 1, revision: 2)) == now)
    #expect(
      resume(Position(epoch: 9, run: 1, revision: 0)) == [
        subscribed(1, scope: 0, .patch, at: 3),
        .patch(scope: 0, from: 0, [.init(span: 2, patch: [1])]),
        // The mirror is at 2, the scope at 3: the next patch may be based on that.
        subscribed(1, scope: 0, .current, at: 3),
      ])
  }

  @Test func `a snapshot says why`() {
    var limits = Limits()
    limits.historyBytes = 0
    #expect(reason(resume(Position(epoch: 8, run: 1, revision: 3))) == .epoch)
    #expect(reason(resume(Position(epoch: 9, run: 0, revision: 3))) == .ahead)
    #expect(reason(resume(Position(epoch: 9, run: 1, revision: 4))) == .ahead)
    #expect(reason(resume(Position(epoch: 9, run: 1, revision: 0), limits: limits)) == .history)
  }

  @Test func `a small scope is sent whole when much else has changed since`() {
    for (count, continuation, size) in [
      (10, .current, 1), (1000, .snapshot, 1), (1000, .current, 20_000),
    ] as [(UInt64, ServerMessage.Continuation, Int)] {
      var bench = Bench.withClients(1)
      bench.act(1, 1, .put("b", .text(String(repeating: "x", count: size))))
      for number in 2...count { bench.act(1, number, .put("a", .text("change \(number)"))) }
      _ = bench.turn()
      #expect(bench.server.load.historyBytes > (count == 10 ? 0 : Limits().inlineDifferenceBytes))
      bench.say(1, .subscribe(subscription: 1, ["b"], Position(epoch: 9, run: 1, revision: 1)))
      guard
        case .subscribed(let subscribed)? = bench.said(to: 1, bench.turn()).first(where: {
          if case .subscribed = $0 { true } else { false }
        })
      else {
        Issue.record("no answer")
        continue
      }
      #expect(subscribed.continuation == continuation, "\(count) changes, \(size) bytes")
    }
  }

  // MARK: Back-pressure

  @Test func `who does not read is not read from, and then gets one patch`() {
    var bench = Bench.withSubscribers(2)
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    #expect(
      bench.handle(.blocked(ConnectionID(2), unsent: 5)) == [.pauseReading(ConnectionID(2))])
    for number in UInt64(2)...9 { bench.act(1, number, .put("n", .integer(Int64(number)))) }
    #expect(bench.frames(to: 2, bench.turn()).isEmpty)
    #expect(bench.server.load.heldStates == 1)
    #expect(bench.handle(.drained(ConnectionID(2))) == [.resumeReading(ConnectionID(2))])
    #expect(
      bench.said(to: 2, bench.turn()) == [
        .patch(scope: 0, from: 1, [.init(span: 8, patch: [0xa1, 0x61, 0x6e, 9])])
      ])
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `what changed and changed back is no patch, but the revision is told`() {
    var bench = Bench.withSubscribers(2)
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.act(1, 2, .put("n", 2), .put("n", 1))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    #expect(bench.said(to: 2, bench.turn()) == [subscribed(1, scope: 0, .current, at: 3)])
  }

  @Test func `a patch for who lagged is based on what its mirror knows`() {
    var bench = Bench.withSubscribers(2)
    bench.say(2, .subscribe(subscription: 2, ["a"], nil))
    _ = bench.settle()
    // The mirror of /a gets nothing of this, and stays at revision 0.
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.act(1, 2, .put("a", 1))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    #expect(
      bench.said(to: 2, bench.turn()).last
        == .patch(scope: 1, from: 0, [.init(span: 2, patch: [1])]))
  }

  @Test func `too many old states cost the oldest client a snapshot`() {
    var limits = Limits()
    limits.heldStates = 1
    var bench = Bench.withSubscribers(3, limits: limits)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(3), unsent: 5))
    #expect(bench.server.load.heldStates == 1)
    bench.act(1, 2, .put("n", 2))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(2)))
    bench.handle(.drained(ConnectionID(3)))
    let commands = bench.turn()
    #expect(reason(bench.said(to: 2, commands)) == .lagged)
    #expect(
      bench.said(to: 3, commands) == [
        .patch(scope: 0, from: 1, [.init(span: 1, patch: [0xa1, 0x61, 0x6e, 2])])
      ])
  }

  @Test func `who leaves nothing is held for`() {
    var bench = Bench.withSubscribers(2)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    #expect(bench.server.load.heldStates == 1)
    bench.handle(.closed(ConnectionID(2)))
    _ = bench.turn()
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `who reads nothing until the deadline is cut off, once`() {
    var bench = Bench.withSubscribers(1)
    bench.handle(.blocked(ConnectionID(1), unsent: 5))
    bench.pass(.seconds(121))
    // In the middle of a turn in which the state changed.
    bench.server.act(.put("n", 1))
    let commands = bench.handle(.tick)
    #expect(commands.last == .abort(ConnectionID(1)))
    guard case .goodbye(let goodbye)? = bench.said(to: 1, commands).last else {
      Issue.record("no goodbye")
      return
    }
    #expect(goodbye.limit == LimitBreach("stallDeadlineMs", limit: 120_000, observed: 121_000))
    #expect(bench.handle(.blocked(ConnectionID(1), unsent: 50)) == [])
    #expect(bench.handle(.tick) == [])
    _ = bench.turn()
    #expect(bench.server.load.heldStates == 0)
  }

  @Test func `a change larger than a frame is a snapshot`() {
    var limits = Limits()
    limits.frameBytes = 3000
    limits.snapshotPartBytes = 1000
    var bench = Bench.withSubscribers(2, limits: limits)
    bench.act(1, 1, .put("a", .bytes([UInt8](repeating: 1, count: 2500))))
    _ = bench.turn()
    bench.act(1, 2, .transaction([.copy(from: ["a"], to: ["b"]), .copy(from: ["a"], to: ["c"])]))
    let said = bench.said(to: 2, bench.settle())
    #expect(reason(said) == .tooLarge)
    #expect(said.count > 5)
  }

  @Test func `patches that do not fit one frame together are several`() {
    var limits = Limits()
    limits.frameBytes = 3000
    var bench = Bench.withSubscribers(2, limits: limits)
    for number in UInt64(1)...4 {
      bench.act(
        1, number, .put("n", .bytes([UInt8](repeating: UInt8(number), count: 1800))))
    }
    let frames = bench.frames(to: 2, bench.turn())
    #expect(frames.count == 4)
    #expect(frames.allSatisfy { $0.count <= 3004 })
  }

  // MARK: Small talk

  @Test func `an idle client is told the newest revision now and then`() {
    var bench = Bench.withSubscribers(1)
    bench.handle(.tick)
    #expect(bench.turn() == [])
    bench.pass(.seconds(5))
    bench.handle(.tick)
    #expect(bench.said(to: 1, bench.turn()) == [.bookmark(revision: 0, durable: nil)])
    bench.handle(.tick)
    #expect(bench.turn() == [])
  }

  @Test func `pings, digests and queries are answered in order, behind the patches`() {
    var bench = Bench.withSubscribers(1)
    bench.act(1, 1, .put("n", 1))
    bench.say(1, .ping(3), .digestRequest(subscription: 1), .query(number: 8, "?"))
    let said = bench.said(to: 1, bench.turn())
    #expect(said.count == 5)
    #expect(said[1] == .pong(3, revision: 1))
    #expect(said[2] == .digest(subscription: 1, revision: 1, bench.server.digest()))
    guard case .report(8, let report, _) = said[3], let error = ReportError(report)
    else {
      Issue.record("no report: \(said[3])")
      return
    }
    #expect(error.code == .unknown)
    #expect(error.text.hasPrefix("there is no report \"?\"; there are: "))
    #expect(error.text.contains(" clients, ") && error.text.contains(" limits, "))
    #expect(said[4] == Acknowledgement.reduced(1, 1, at: 1))
  }

  @Test func `a pong does not overtake the news that a subscription begins anew`() {
    var limits = Limits()
    limits.heldStates = 1
    limits.inlineSnapshotBytes = 0
    var bench = Bench.withSubscribers(3, limits: limits)
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.pass(.seconds(3))
    bench.handle(.tick)
    bench.act(1, 1, .put("n", 1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(3), unsent: 5))
    bench.handle(.drained(ConnectionID(2)))
    bench.say(2, .ping(1))
    let said = bench.said(to: 2, bench.turn())
    #expect(said == [subscribed(1, scope: 0, .snapshot, .lagged, at: 1), .pong(1, revision: 1)])
  }

  @Test func `a pong does not overtake the news of a subscription whose snapshot is not begun yet`()
  {
    var limits = Limits()
    limits.heldStates = 1
    limits.inlineSnapshotBytes = 0
    limits.concurrentSnapshots = 1
    var bench = Bench(["a": 0, "b": 0], limits: limits)
    for number in 1...3 as ClosedRange<UInt64> { _ = bench.join(number) }
    for (number, name) in [(1, "a"), (2, "b")] as [(UInt64, String)] {
      bench.say(2, .subscribe(subscription: number, [.text(name)], nil))
    }
    bench.say(3, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    bench.handle(.blocked(ConnectionID(2), unsent: 5))
    bench.pass(.seconds(3))
    bench.handle(.tick)
    bench.act(1, 1, .put("a", 1), .put("b", 1))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(3), unsent: 5))
    bench.handle(.drained(ConnectionID(2)))
    bench.say(2, .ping(1))
    var lost: Set<UInt64> = [1, 2]
    for message in bench.said(to: 2, bench.settle()) {
      switch message {
      case .subscribed(let subscribed): lost.remove(subscribed.subscription)
      case .pong(_, let revision): #expect(revision == 2 && lost.isEmpty)
      default: continue
      }
    }
    #expect(lost.isEmpty)
  }
}
