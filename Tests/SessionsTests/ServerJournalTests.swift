import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// A document, each change of which begins an effect.
private struct Working: Reducer {
  func reduce(
    into state: inout Document, action: DocumentAction
  ) throws(Rejection) -> Effect<DocumentAction> {
    _ = try DocumentFeature().reduce(into: &state, action: action)
    return .run(name: "work") { _ in }
  }
}

@Suite struct ServerJournalTests {
  private func bench(_ limits: Limits = Limits(), _ durability: Durability = .sync) -> Bench {
    var bench = Bench(limits: limits, durability: durability)
    bench.join(1)
    return bench
  }

  private func action(_ number: UInt64, _ mark: Mark, _ value: Int64) -> ClientMessage {
    .action(number: number, mark, payload: payload(.put("n", .integer(value))))
  }

  private func batch(_ commands: [Command]) throws -> JournalBatch {
    try #require(
      commands.lazy.compactMap { if case .keep(let batch) = $0 { batch } else { nil } }.first)
  }

  private func acknowledgements(_ bench: Bench, _ commands: [Command]) -> [Acknowledgement] {
    bench.said(to: 1, commands).compactMap {
      if case .acknowledgement(let acknowledgement) = $0 { acknowledgement } else { nil }
    }
  }

  // MARK: Promises

  @Test func `a durable acknowledgement waits for the commit, and what is behind it too`() throws {
    var bench = bench()
    bench.say(1, action(1, .applied, 1), action(2, .durable, 2), action(3, .applied, 3))
    let commands = bench.turn()
    let kept = try batch(commands)
    #expect(kept.rows.map(\.revision) == [1, 2, 3])
    #expect(acknowledgements(bench, commands) == [.init(first: 1, last: 1, revision: 1, .reduced)])
    bench.handle(.journal(.committed(through: kept.number)))
    #expect(
      acknowledgements(bench, bench.turn()) == [
        .init(first: 2, last: 2, revision: 2, mark: .durable, .reduced),
        .init(first: 3, last: 3, revision: 3, .reduced),
      ])
  }

  @Test func `who comes back and asks again hears no sooner that an action is durable`() throws {
    var bench = bench()
    bench.say(1, action(1, .durable, 1))
    let kept = try batch(bench.turn())
    bench.handle(.closed(ConnectionID(1)))
    bench.join(2, token: Bench.token(1))
    bench.say(2, action(1, .durable, 1))
    func heard(_ commands: [Command]) -> [Mark] {
      bench.said(to: 2, commands).compactMap {
        if case .acknowledgement(let acknowledgement) = $0 { acknowledgement.mark } else { nil }
      }
    }
    let before = bench.turn()
    #expect(heard(before).isEmpty)
    bench.handle(.journal(.committed(through: kept.number)))
    let after = bench.turn()
    #expect(heard(after) == [.durable])
    #expect(bench.server.state.root == ["n": 1])
  }

  @Test func `patches do not wait for the commit`() throws {
    var bench = bench()
    bench.say(1, .subscribe(subscription: 1, .root, nil))
    _ = bench.settle()
    bench.say(1, action(1, .durable, 5))
    let said = bench.said(to: 1, bench.turn())
    #expect(said.contains { if case .patch = $0 { true } else { false } })
    #expect(!said.contains { if case .acknowledgement = $0 { true } else { false } })
  }

  @Test(arguments: [Durability.none, .async])
  func `nothing is promised where nothing is synchronised`(durability: Durability) {
    var bench = bench(Limits(), durability)
    bench.say(1, action(1, .durable, 1))
    #expect(
      acknowledgements(bench, bench.turn()) == [.init(first: 1, last: 1, revision: 1, .reduced)])
  }

  @Test func `a turn that changed nothing and answered nobody keeps nothing`() {
    var bench = bench()
    bench.say(1, .ping(1))
    #expect(!bench.turn().contains { if case .keep = $0 { true } else { false } })
  }

  @Test func `what changed nothing is kept for those who ask again`() throws {
    var bench = bench()
    bench.say(1, action(1, .applied, 0))
    let kept = try batch(bench.turn())
    let row = try #require(kept.rows.first)
    #expect(row.change == nil)
    #expect(row.answer?.outcome == .unchanged)
  }

  // MARK: Failure

  @Test func `what could not be kept is said to be applied, and why`() throws {
    var bench = bench()
    bench.say(1, action(1, .durable, 1))
    _ = bench.turn()
    bench.handle(.journal(.failed("no space")))
    #expect(
      acknowledgements(bench, bench.turn()) == [
        .init(first: 1, last: 1, revision: 1, .reduced, notDurable: "no space")
      ])
  }

  @Test func `while nothing can be kept, durable actions are rejected unseen, others are done`() {
    var bench = bench()
    bench.say(1, action(1, .applied, 1))
    _ = bench.turn()
    bench.handle(.journal(.failed("no space")))
    _ = bench.turn()
    bench.say(1, action(2, .durable, 2), action(3, .applied, 3))
    let answers = acknowledgements(bench, bench.turn())
    guard answers.count == 2, case .rejected(let rejection) = answers[0].outcome else {
      Issue.record("\(answers)")
      return
    }
    #expect(rejection.code == Rejection.Code.notDurable.rawValue)
    #expect(rejection.message.contains("no space"))
    #expect(answers[1].outcome == .reduced)
    #expect(bench.server.state.root == ["n": 3])
  }

  /// A server whose journal has failed after one action, and is to be retried.
  private func failing() -> Bench {
    var bench = bench()
    bench.say(1, action(1, .applied, 1))
    _ = bench.turn()
    bench.handle(.journal(.failed("no space")))
    _ = bench.turn()
    bench.pass(.seconds(2))
    #expect(bench.handle(.tick).contains(.reopenJournal))
    return bench
  }

  @Test func `a fresh snapshot heals`() throws {
    var bench = failing()
    #expect(!bench.handle(.tick).contains(.reopenJournal), "once until it is answered")
    bench.handle(.journal(.stillFailing("no space")))
    bench.pass(.seconds(60))
    #expect(bench.handle(.tick).contains(.reopenJournal))
    #expect(bench.handle(.journal(.reopened)) == [.keepSnapshot(heals: true)])
    bench.say(1, action(2, .durable, 2))
    let before = acknowledgements(bench, bench.turn())
    #expect(before.count == 1, "not before the snapshot is kept")
    bench.handle(.journal(.snapshotKept(bytes: 10)))
    bench.say(1, action(3, .durable, 3))
    let kept = try batch(bench.turn())
    bench.handle(.journal(.committed(through: kept.number)))
    #expect(
      acknowledgements(bench, bench.turn()) == [
        .init(first: 3, last: 3, revision: 2, mark: .durable, .reduced)
      ])
  }

  @Test func `what waits for the disk is bounded`() {
    var limits = Limits()
    limits.journalQueueBytes = 200
    var bench = bench(limits)
    bench.say(1, action(1, .applied, 1), action(2, .applied, 2))
    _ = bench.turn()
    bench.say(1, action(3, .applied, 3))
    guard case .rejected(let rejection)? = acknowledgements(bench, bench.turn()).first?.outcome
    else {
      Issue.record("not rejected")
      return
    }
    #expect(rejection.message.contains("journalQueueBytes is 200"))
  }

  // MARK: Starting again

  @Test func `a session that was forgotten after the snapshot does not come back`() throws {
    var first = bench()
    first.join(2)
    first.say(1, action(1, .applied, 1))
    first.say(2, action(1, .applied, 2))
    _ = try batch(first.turn())
    let snapshot = first.server.pendingSnapshot
    first.say(1, .goodbye(.done, ""))
    _ = first.turn()
    first.say(2, action(2, .applied, 3))
    let later = try batch(first.turn())
    #expect(later.forgotten == [Bench.token(1)])

    var second = try first.restarted(from: snapshot, [later])
    let (gone, resumed) = (
      second.join(1, token: Bench.token(1)), second.join(2, token: Bench.token(2))
    )
    #expect(gone?.isResumed == false)
    #expect(resumed?.isResumed == true && resumed?.lastAction == 2)
  }

  @Test func `a run goes on from what was kept: state, sessions, positions`() throws {
    var limits = Limits()
    limits.journalDigestChanges = 1
    var first = bench(limits)
    let start = first.server.pendingSnapshot
    first.say(1, action(1, .applied, 1), action(2, .durable, 2))
    let kept = try batch(first.turn())
    #expect(kept.digest != nil)
    first.say(1, action(3, .applied, 3))
    _ = first.turn()

    var second = try first.restarted(from: start, [kept])
    #expect(second.server.position == Position(epoch: 9, run: 2, revision: 2))
    #expect(second.server.state.root == ["n": 2])
    let joined = second.join(1, token: Bench.token(1))
    let welcome = try #require(joined)
    #expect(welcome.isResumed && welcome.lastAction == 2 && welcome.durable == 2)
    // Actions that were acknowledged and are durable are not applied again; lost ones are applied.
    second.say(1, action(2, .durable, 9), action(3, .applied, 4))
    let answers = acknowledgements(second, second.turn())
    #expect(answers.map(\.last) == [2, 3])
    #expect(answers[0] == .init(first: 2, last: 2, revision: 2, mark: .durable, .reduced))
    #expect(second.server.state.root == ["n": 4])
  }

  @Test(
    arguments: [
      (run: 1, revision: 1, ServerMessage.Continuation.patch, ServerMessage.Reason.none),
      (1, 2, .current, .none), (1, 3, .snapshot, .ahead), (2, 2, .current, .none),
      (3, 1, .snapshot, .ahead), (0, 1, .snapshot, .ahead),
    ] as [(run: UInt64, revision: UInt64, ServerMessage.Continuation, ServerMessage.Reason)])
  func `who comes from a former run gets what it lacks`(
    run: UInt64, revision: UInt64, continuation: ServerMessage.Continuation,
    reason: ServerMessage.Reason
  ) throws {
    var first = bench()
    let start = first.server.pendingSnapshot
    first.say(1, action(1, .applied, 1), action(2, .applied, 2))
    var second = try first.restarted(from: start, [try batch(first.turn())])
    second.join(2)
    second.say(
      2, .subscribe(subscription: 1, .root, Position(epoch: 9, run: run, revision: revision)))
    guard case .subscribed(let subscribed)? = second.said(to: 2, second.turn()).first else {
      Issue.record("no answer")
      return
    }
    #expect(subscribed.continuation == continuation)
    #expect(subscribed.reason == reason)
  }

  @Test func `an action that ends the process twice is not tried again`() throws {
    var first = bench()
    let start = first.server.pendingSnapshot
    first.say(1, action(1, .applied, 1))
    var second = try first.restarted(
      from: start, [try batch(first.turn())],
      poisoned: [SessionAction(session: Bench.token(1), number: 2)])
    second.join(1, token: Bench.token(1))
    second.say(1, action(2, .applied, 7), action(3, .applied, 8))
    let answers = acknowledgements(second, second.turn())
    guard case .rejected(let rejection)? = answers.first?.outcome else {
      Issue.record("\(answers)")
      return
    }
    #expect(rejection.code == Rejection.Code.poisoned.rawValue)
    #expect(second.server.state.root == ["n": 8])
  }

  @Test func `a change that does not follow, or a digest that is wrong, is found`() throws {
    var limits = Limits()
    limits.journalDigestChanges = 1
    var first = bench(limits)
    let start = first.server.pendingSnapshot
    first.say(1, action(1, .applied, 1))
    let one = try batch(first.turn())
    first.say(1, action(2, .applied, 2))
    var two = try batch(first.turn())
    #expect(throws: JournalReplayError.self) { try first.restarted(from: start, [two]) }
    two.digest = Digest(1)
    let error = #expect(throws: JournalReplayError.self) {
      try first.restarted(from: start, [one, two])
    }
    #expect(error?.lastGood == 1)
    #expect(error?.description.contains("revision 2") == true)
  }

  // MARK: Snapshots

  @Test func `a snapshot is kept once the journal is long, or old`() {
    var limits = Limits()
    limits.journalBytes = 1000
    limits.journalAge = .seconds(60)
    var bench = bench(limits)
    bench.say(1, action(1, .applied, 1))
    #expect(!bench.turn().contains(.keepSnapshot(heals: false)))
    bench.pass(.seconds(61))
    bench.say(1, .ping(1))
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
    bench.handle(.journal(.snapshotKept(bytes: 5)))
    for number in 2...10 as ClosedRange<UInt64> {
      bench.say(1, action(number, .applied, Int64(number)))
    }
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
  }

  @Test func `a snapshot for which there is no memory is tried again, and said once`() {
    var limits = Limits()
    limits.journalAge = .seconds(1)
    var bench = bench(limits)
    bench.say(1, action(1, .applied, 1))
    _ = bench.turn()
    bench.pass(.seconds(2))
    bench.say(1, .ping(1))
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
    #expect(says(&bench) == 1)
    bench.pass(.seconds(9))
    bench.say(1, action(2, .durable, 2))
    #expect(!bench.turn().contains(.keepSnapshot(heals: false)))
    bench.pass(.seconds(2))
    bench.say(1, .ping(1))
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
    #expect(says(&bench) == 0)
    bench.pass(.seconds(11))
    bench.say(1, .ping(1))
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
    bench.handle(.journal(.snapshotKept(bytes: 5)))
    bench.pass(.seconds(11))
    bench.say(1, action(3, .applied, 3))
    #expect(bench.turn().contains(.keepSnapshot(heals: false)))
    #expect(says(&bench) == 1)
  }

  @Test func `what heals waits for memory, too`() throws {
    var bench = failing()
    #expect(bench.handle(.journal(.reopened)) == [.keepSnapshot(heals: true)])
    #expect(says(&bench) == 1)
    bench.say(1, action(2, .durable, 2))
    guard case .rejected(let rejection)? = acknowledgements(bench, bench.turn()).first?.outcome
    else {
      Issue.record("a promise that nobody can keep")
      return
    }
    #expect(rejection.message.contains("no memory"))
    bench.pass(.seconds(60))
    #expect(bench.handle(.tick).contains(.reopenJournal))
    #expect(bench.handle(.journal(.reopened)) == [.keepSnapshot(heals: true)])
    bench.handle(.journal(.snapshotKept(bytes: 10)))
    bench.say(1, action(3, .durable, 3))
    let kept = try batch(bench.turn())
    bench.handle(.journal(.committed(through: kept.number)))
    #expect(acknowledgements(bench, bench.turn()).first?.mark == .durable)
  }

  @Test func `effects whose batch is lost for lack of memory begin all the same`() {
    var now = Instant(nanoseconds: 1_000_000_000)
    var server = Server(
      Document(["n": 0]), reducer: Working(), seed: HashSeed(7), epoch: 9, durability: .sync,
      at: now)
    func handle(_ event: Event<DocumentAction>) -> [Command] {
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      return commands
    }
    func effects(_ commands: [Command]) -> Int {
      commands.count { if case .effect = $0 { true } else { false } }
    }
    _ = handle(.opened(ConnectionID(1), Bench.peer, Bench.token(1)))
    _ = handle(
      .received(ConnectionID(1), frame(.hello(.init(versions: 1...1, label: "test")))))
    _ = handle(.turnEnded)
    _ = handle(.journal(.failed("no space")))
    now = now + .seconds(2)
    #expect(handle(.tick).contains(.reopenJournal))
    _ = handle(.journal(.reopened))
    _ = handle(.received(ConnectionID(1), frame(action(1, .applied, 1))))
    #expect(effects(handle(.turnEnded)) == 0, "begun before its batch is kept")
    #expect(effects(handle(.journal(.snapshotImpossible("no memory")))) == 1)
    #expect(effects(handle(.turnEnded)) == 0)
  }

  /// The number of errors logged if there is no memory for a snapshot; no other command may follow.
  private func says(_ bench: inout Bench) -> Int {
    var commands: [Command] = []
    bench.server.handle(.journal(.snapshotImpossible("no memory")), at: bench.now, into: &commands)
    let errors = commands.count {
      if case .log(let line) = $0 { line.level == .error } else { false }
    }
    return errors == commands.count ? errors : -1
  }
}
