import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// A scenario of `Protocols/vectors/sessions.json`: each makes one transcript.
struct TranscriptScenario: Sendable {
  let name: String
  /// The least level of wire.md, "Levels of conformance", at which a client must pass.
  let level: String
  let sentence: String
  let play: @Sendable () throws -> TranscriptPair

  func steps() throws -> [TranscriptStep] { try play().steps }

  static let all = reading + resuming + acting + asking
}

extension TranscriptScenario {
  private static let tree: Value = ["a": 1, "list": [1, 2, 3], "n": 0]

  // MARK: A subscription from its beginning

  static let reading = [
    TranscriptScenario(
      name: "snapshot and patches", level: "reader",
      sentence: "A snapshot that is the target, then every form of patch, several in one message."
    ) {
      var pair = live(tree)
      pair.world("n is set to 5, and to 6 in the same turn", .put("n", 5), .put("n", 6))
      pair.exchange()
      pair.world("a becomes an object, and list changes", .put("a", ["b": [1]]))
      pair.exchange()
      pair.world(
        "an element is inserted in front, and one is set", .insert(["list", 0], 0),
        .set(["list", 2], "two"))
      pair.exchange()
      pair.world("a is removed", .remove(["a"]))
      pair.exchange()
      pair.world("everything is replaced", .set(.root, [true, nil]))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "snapshot and target", level: "reader",
      sentence:
        "The snapshot is older than the target: nothing of it shows until the patches have come."
    ) {
      var pair = TranscriptPair(tree)
      pair.start()
      pair.subscribe(to: .root)
      pair.deliver()
      pair.turn()
      pair.world("n is set to 5 while the snapshot is encoded", .put("n", 5))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "snapshot and target elsewhere", level: "reader",
      sentence: "The newest change is outside of the path: `subscribed` 0 ends what was announced."
    ) {
      var pair = TranscriptPair(tree)
      pair.start()
      pair.subscribe(to: ["n"])
      pair.deliver()
      pair.turn()
      pair.world("n is set, then a, while the snapshot is encoded", .put("n", 5), .put("a", 2))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "snapshot in parts", level: "reader",
      sentence: "A snapshot of several parts, between which an item may be cut."
    ) {
      var limits = Limits()
      limits.snapshotPartBytes = 8
      var pair = TranscriptPair(["text": "as long as three parts or more"], limits: limits)
      pair.start()
      pair.subscribe(to: .root)
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "an absent place", level: "reader",
      sentence: "Nothing stands at the path, then something does, then nothing again."
    ) {
      var pair = TranscriptPair()
      pair.start()
      pair.subscribe(to: ["a", "b"])
      pair.exchange()
      pair.world("a appears, with b in it", .put("a", ["b": ["c": 1]]))
      pair.exchange()
      pair.world("a becomes a number", .put("a", 5))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "a duplicate subscription", level: "mirror",
      sentence: "A second subscription to a path is refused; the first goes on."
    ) {
      var pair = live()
      pair.subscribe(to: .root)
      pair.exchange()
      pair.world("n is set to 5", .put("n", 5))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "two subscriptions", level: "mirror",
      sentence: "Each has its own scope; a pong moves both, an unsubscribed one is heard no more."
    ) {
      var pair = live(tree)
      let second = pair.subscribe(to: ["n"])
      pair.exchange()
      pair.world("a is set, which the second does not see", .put("a", 2))
      pair.exchange()
      pair.ping(7)
      pair.exchange()
      pair.unsubscribe(second)
      pair.world("n is set to 5", .put("n", 5))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "a client that lags", level: "reader",
      sentence: "One patch spans the changes that came while nothing could be written."
    ) {
      var pair = live()
      pair.world("the client does not read for a while, and n changes three times") { bench in
        bench.handle(.blocked(ConnectionID(1), unsent: 1))
        for number in 1...3 as ClosedRange<Int64> {
          bench.server.act(.put("n", .integer(number)))
        }
        _ = bench.turn()
        bench.handle(.drained(ConnectionID(1)))
      }
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "gap and resync", level: "reader",
      sentence: "A patch is missing: the client unsubscribes, and subscribes without a position."
    ) {
      var pair = live()
      pair.world("the message with the patch to revision 1 is never sent: a bug of the daemon") {
        bench in
        bench.server.act(.put("n", 1))
        _ = bench.turn()
        bench.server.act(.put("n", 2))
      }
      pair.exchange()
      pair.world("n is set to 3", .put("n", 3))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "restarted", level: "reader",
      sentence: "Another process takes the connection over: mirrors stand where they stood."
    ) {
      var pair = live()
      try pair.restart()
      pair.world("n is set to 5", .put("n", 5))
      pair.exchange()
      return pair
    },
  ]

  // MARK: Coming back

  static let resuming = [
    TranscriptScenario(
      name: "resume, continuation 0", level: "mirror",
      sentence: "What changed is outside of the path: the mirror is current at the newest revision."
    ) {
      var pair = TranscriptPair(tree)
      pair.start()
      pair.subscribe(to: ["n"])
      pair.exchange()
      pair.world("a is set while the connection is cut", .put("a", 2))
      pair.cut("the connection is lost")
      pair.exchange()
      pair.world("n is set to 5", .put("n", 5))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 1", level: "mirror",
      sentence: "The patches that the mirror lacks follow, and at once lead to the target."
    ) {
      var pair = live()
      pair.world("n is set to 5 and 6 while the connection is cut", .put("n", 5), .put("n", 6))
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 1, target elsewhere", level: "mirror",
      sentence: "The patches end before the target, and `subscribed` 0 says that this is all."
    ) {
      var pair = TranscriptPair(tree)
      pair.start()
      pair.subscribe(to: ["n"])
      pair.exchange()
      pair.world("n is set, then a, while the connection is cut", .put("n", 5), .put("a", 2))
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 1, cut before the patch", level: "mirror",
      sentence: "From the announcement on, the old revision is one of the new run."
    ) {
      var pair = live()
      pair.world("the daemon crashes, having lost nothing, and n is set to 5") { bench in
        bench.crash(keeping: bench.kept())
        bench.server.act(.put("n", 5))
      }
      pair.cut("the connection is lost")
      pair.hearFirst(1)
      pair.hearFirst(1)
      pair.cut("the connection is lost before the patch")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 2, history", level: "mirror",
      sentence: "The changes since are no longer kept: a snapshot comes, reason `history`."
    ) {
      var limits = Limits()
      limits.historyBytes = 64
      var pair = live(limits: limits)
      pair.world("n changes forty times while the connection is cut") { bench in
        for number in 1...40 as ClosedRange<Int64> {
          bench.server.act(.put("n", .integer(number)))
        }
      }
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 2, epoch", level: "mirror",
      sentence: "The daemon lost everything: another epoch, another session, reason `epoch`."
    ) {
      var pair = live(tree)
      pair.world("the daemon ends, and another begins from nothing") { bench in
        bench.server = Bench(["n": 7], limits: Bench.besideLoop, epoch: 10).server
      }
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "resume, continuation 2, ahead", level: "mirror",
      sentence: "The mirror saw a revision that the crash took back: reason `ahead`."
    ) {
      var pair = live()
      let kept = pair.bench.kept()
      pair.world("n is set to 5, which is not kept", .put("n", 5))
      pair.exchange()
      pair.world("the daemon crashes, and n is set to 9 at the revision that was lost") { bench in
        bench.crash(keeping: kept)
        bench.server.act(.put("n", 9))
      }
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "restarted, then cut", level: "mirror",
      sentence: "After `restarted` the position is one of the new run, and is gone on from."
    ) {
      var pair = live()
      try pair.restart()
      pair.world("n is set to 5", .put("n", 5))
      pair.exchange()
      pair.cut("the connection is lost")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "stopping", level: "mirror",
      sentence: "A goodbye that is not final: the client comes back, not before `retryAfter`."
    ) {
      var pair = live()
      pair.successor = pair.bench.kept()
      pair.world("the daemon stops, to be back in 10 ms") { $0.handle(.stop(retryAfter: 10)) }
      pair.exchange()
      return pair
    },
  ]

  // MARK: Acting

  static let acting = [
    TranscriptScenario(
      name: "actions and their outcomes", level: "writer",
      sentence: "Reduced, unchanged and rejected; patches stand before their acknowledgements."
    ) {
      var pair = live()
      pair.send(.put("n", 1))
      pair.exchange()
      pair.send(.put("n", 2), .put("n", 3))
      pair.exchange()
      pair.send(.put("n", 3), .increment(["lamp", "level"], by: 1))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "an acknowledgement waits for a snapshot", level: "writer",
      sentence: "While a subscription is not current, nothing is acknowledged."
    ) {
      var pair = TranscriptPair(tree)
      pair.start()
      pair.subscribe(to: .root)
      pair.send(.put("n", 5))
      pair.deliver()
      pair.turn()
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "an acknowledgement that was lost", level: "exactly once",
      sentence: "The client sends again under the old number, and the action is not done again."
    ) {
      var pair = live()
      pair.send(.increment(["n"], by: 1), .increment(["n"], by: 1))
      pair.loseAnswers("the answers are lost")
      pair.cut("the connection is lost")
      pair.exchange()
      pair.send(.increment(["n"], by: 1))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "an action that was lost", level: "exactly once",
      sentence: "It never came to the daemon: the client sends it again, and it is done once."
    ) {
      var pair = live()
      pair.send(.increment(["n"], by: 1))
      pair.cut("the connection is lost, and the action with it")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "renumbering after a crash", level: "exactly once",
      sentence:
        "Two acknowledged actions are gone: they are not sent again, and what waits takes their numbers."
    ) {
      var pair = live()
      pair.send(.put("n", 1))
      pair.exchange()
      let kept = pair.bench.kept()
      pair.send(.put("n", 2), .put("n", 3))
      pair.exchange()
      pair.send(.put("n", 4))
      pair.world("the daemon crashes, and has kept the first action only") {
        $0.crash(keeping: kept)
      }
      pair.cut("the connection is lost, and the last action with it")
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "a session that has expired", level: "exactly once",
      sentence:
        "`isResumed` is false: what had been sent is not sent again, the rest counts from 1."
    ) {
      var pair = live()
      pair.send(.put("n", 1))
      pair.exchange()
      pair.send(.put("n", 2))
      pair.loseAnswers("the answer is lost, and the session expires")
      pair.world("an hour passes") { bench in
        bench.handle(.closed(ConnectionID(1)))
        bench.pass(.seconds(3600))
        bench.handle(.tick)
      }
      pair.cut("the connection is lost")
      pair.send(.put("n", 3))
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "goodbye behind everything due", level: "writer",
      sentence: "The daemon answers a goodbye behind the acknowledgements and reports that are due."
    ) {
      var pair = live()
      pair.send(.put("n", 1), .put("n", 2))
      pair.query(1, "nothing of the kind")
      pair.close()
      pair.exchange()
      return pair
    },
  ]

  // MARK: Asking

  static let asking = [
    TranscriptScenario(
      name: "digests", level: "digest",
      sentence: "One that agrees, and `null` where there is nothing to compare."
    ) {
      var pair = live(tree)
      pair.requestDigest(of: 1)
      pair.exchange()
      pair.requestDigest(of: 9)
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "a digest that differs", level: "digest",
      sentence: "The mirror is not what the daemon has: the client resyncs."
    ) {
      var pair = live()
      pair.world("the daemon's memory changes behind its own back") { bench in
        bench.server = Bench(["n": 7], limits: Bench.besideLoop).server
      }
      pair.cut("the connection is lost")
      pair.exchange()
      pair.requestDigest(of: 1)
      pair.exchange()
      return pair
    },
    TranscriptScenario(
      name: "a report in pages", level: "writer",
      sentence: "The pages of `log`, which join to one array, with another answer between queries."
    ) {
      var limits = Limits()
      limits.reportPageBytes = 300
      var pair = TranscriptPair(["n": 0], limits: limits)
      pair.start()
      pair.subscribe(to: .root)
      pair.exchange()
      for number in 1...6 as ClosedRange<Int64> { pair.send(.put("n", .integer(number))) }
      pair.exchange()
      pair.query(1, "log")
      pair.ping(3)
      pair.exchange()
      return pair
    },
  ]

  /// A client that sees the whole document.
  private static func live(
    _ root: Value = ["n": 0], limits: Limits = Limits()
  ) -> TranscriptPair {
    var pair = TranscriptPair(root, limits: limits)
    pair.start()
    pair.subscribe(to: .root)
    pair.exchange()
    return pair
  }
}

// MARK: Daemons that end

extension Bench {
  /// The present state as a journal would restore it.
  func kept() -> RestoredState<Document> {
    var kept = server.handOver.next
    kept.isHandedOver = false
    return kept
  }

  /// Replace the server by one restored from this state.
  mutating func crash(keeping kept: RestoredState<Document>) {
    server = Server(restoring: kept, reducer: DocumentFeature(), at: now)
  }
}

extension TranscriptPair {
  /// Have another process take over the connection.
  mutating func restart() throws {
    world("the daemon restarts, and hands its sockets over") { _ in }
    var commands: [Command] = []
    bench.server.handle(.handingOver(retryAfter: 1000), at: bench.now, into: &commands)
    hear(commands)
    let bytes = bench.server.handOver.encoded(schema: DocumentFeature.schema)
    let image = try HandOver<Document>(bytes, schema: DocumentFeature.schema)
    bench.server = Server(restoring: image.next, reducer: DocumentFeature(), at: bench.now)
    bench.server.reserveScopes(of: image)
    commands = []
    for connection in image.connections {
      bench.server.handle(
        .inherited(connection, isTranslated: false), at: bench.now, into: &commands)
    }
    hear(commands)
    exchange()
  }
}
