import Access
import CBOR
import ClientCore
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

@Suite struct ServerAuthorityTests {
  /// User 1 sees all but secrets, 2 and the group 7 only what is public, 3 may not connect, and 4
  /// may see and change a place that would be below the secret if that were a container.
  static let policy = Policy([
    Rule(
      users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
      write: [.whole]),
    Rule(
      users: [1], mayConnect: true, read: [.whole], denyRead: patterns(["secret"]), act: [.all],
      denyAct: [.name("remove")], write: [.whole]),
    Rule(users: [2], groups: [7], mayConnect: true, read: patterns(["public"])),
    Rule(
      users: [4], mayConnect: true, read: patterns(["public", "secret/mine"]), act: [.all],
      write: [.whole]),
  ])

  private func bench(_ durability: Durability = .none) -> Bench {
    Bench(
      ["public": ["n": 1], "secret": "hush", "list": []], durability: durability,
      policy: Self.policy)
  }

  /// Users that have said hello, by connection: number and user are the same.
  private func bench(_ users: UInt64..., durability: Durability = .none) -> Bench {
    var bench = bench(durability)
    for uid in users { bench.join(uid, uid: uid) }
    return bench
  }

  private func outcomes(_ messages: [ServerMessage]) -> [Acknowledgement.Outcome] {
    messages.compactMap { message in
      if case .acknowledgement(let answer) = message { answer.outcome } else { nil }
    }
  }

  private func subscribed(_ messages: [ServerMessage]) -> [ServerMessage.Subscribed] {
    messages.compactMap { if case .subscribed(let message) = $0 { message } else { nil } }
  }

  private func report(_ messages: [ServerMessage]) -> Value? {
    for case .report(_, let value, _) in messages { return value }
    return nil
  }

  private func isRefusal(_ value: Value?) -> Bool {
    guard let error = value.flatMap(ReportError.init) else { return false }
    return error.code == .denied && error.text.contains("administer")
  }

  // MARK: Connecting

  @Test func `who may not connect is told so, and nothing else`() {
    for uid in [3, 1000] as [UInt64] {
      var bench = bench()
      bench.open(1, uid: uid)
      let commands = bench.turn()
      let goodbye = bench.goodbye(to: 1, commands)
      #expect(goodbye?.code == .denied)
      #expect(goodbye?.message == "the daemon's policy does not let user \(uid) connect")
      #expect(bench.said(to: 1, commands).count == 1)
      bench.say(1, .hello(.init(versions: 1...1, label: "")), .subscribe(subscription: 1, [], nil))
      #expect(bench.turn().isEmpty)
    }
  }

  @Test func `a group lets its members connect, whichever of their groups it is`() {
    var bench = bench()
    let token = Bench.token(1)
    bench.handle(.opened(ConnectionID(1), Peer(pid: 1, uid: 9, gid: 9, groups: [3, 7]), token))
    bench.say(1, .hello(.init(versions: 1...1, label: "")), .subscribe(subscription: 1, [], nil))
    #expect(subscribed(bench.said(to: 1, bench.settle())).last?.continuation == .snapshot)
  }

  @Test func `without a policy everyone may do everything`() {
    var bench = Bench(["a": 1])
    bench.join(1, uid: 77)
    bench.say(1, .query(number: 1, "clients", arguments: []))
    #expect(!isRefusal(report(bench.said(to: 1, bench.turn()))))
  }

  // MARK: Seeing

  @Test func `a path of which nothing may be seen is refused`() {
    var bench = bench(1, 2)
    bench.say(1, .subscribe(subscription: 1, ["secret"], nil))
    bench.say(2, .subscribe(subscription: 1, ["list"], nil))
    bench.say(2, .subscribe(subscription: 2, ["not", "there"], nil))
    let commands = bench.settle()
    #expect(
      bench.said(to: 1, commands) == [
        .subscribed(.init(subscription: 1, scope: 0, .refused, .denied, revision: 0))
      ])
    #expect(subscribed(bench.said(to: 2, commands)).map(\.reason) == [.denied, .denied])
    #expect(bench.server.load.scopes == 0)
  }

  @Test func `each sees what it may, in snapshots and in patches`() throws {
    var bench = bench(0, 1, 2)
    for uid in [0, 1, 2] as [UInt64] { bench.say(uid, .subscribe(subscription: 1, [], nil)) }
    let first = bench.settle()
    func text(_ uid: UInt64, _ commands: [Command]) -> String {
      String(decoding: bench.frames(to: uid, commands).joined(), as: UTF8.self)
    }
    #expect(text(0, first).contains("hush") && text(1, first).contains("list"))
    #expect(!text(1, first).contains("hush") && !text(1, first).contains("secret"))
    #expect(text(2, first).contains("public") && !text(2, first).contains("list"))
    bench.act(0, 1, .set(["secret"], "more"), .set(["public", "n"], 2))
    let second = bench.turn()
    #expect(text(0, second).contains("more") && !text(1, second).contains("secret"))
    // One scope was touched twice, the others once: from the revision that they know.
    for uid in [1, 2] as [UInt64] {
      guard case .patch(_, from: 0, let patches)? = bench.said(to: uid, second).first else {
        Issue.record("user \(uid) got no patch")
        continue
      }
      #expect(patches.map(\.span) == [2])
    }
    // A change that only the administrator may see touches no other scope.
    bench.act(0, 3, .set(["secret"], 1))
    let third = bench.turn()
    #expect(bench.frames(to: 1, third).isEmpty && bench.frames(to: 2, third).isEmpty)
  }

  @Test func `who may see the same shares the scope and its bytes`() {
    var bench = bench(0, 1, 2)
    bench.open(4, uid: 2)
    bench.say(4, .hello(.init(versions: 1...1, label: "")))
    bench.handle(
      .opened(ConnectionID(5), Peer(pid: 1, uid: 8, gid: 7), Bench.token(5)))
    bench.say(5, .hello(.init(versions: 1...1, label: "")))
    for number in [0, 1, 2, 4, 5] as [UInt64] {
      bench.say(number, .subscribe(subscription: 1, ["public"], nil))
      bench.say(number, .subscribe(subscription: 2, [], nil))
    }
    let commands = bench.settle()
    func scopes(_ number: UInt64) -> Set<UInt64> {
      Set(subscribed(bench.said(to: number, commands)).map(\.scope))
    }
    #expect(scopes(2) == scopes(4) && scopes(2) == scopes(5))
    // All users see everything public; of the whole document, there are three views.
    #expect(scopes(0).intersection(scopes(2)).count == 1)
    #expect(bench.server.load.scopes == 4)
    bench.act(0, 1, .set(["public", "n"], 2))
    let change = bench.turn()
    #expect(bench.frames(to: 2, change) == bench.frames(to: 4, change))
    #expect(!bench.frames(to: 5, change).isEmpty)
  }

  @Test func `a change that no patch can say brings a snapshot, live or not`() {
    let policy = Policy([
      Rule(users: [0], mayConnect: true, read: [.whole], act: [.all]),
      Rule(users: [1], mayConnect: true, read: [.whole], denyRead: patterns(["users/*/password"])),
    ])
    var bench = Bench(
      ["users": ["bob": ["password": "hush", "name": "Bob"], "eve": ["name": "Eve"]]],
      policy: policy)
    for uid in [0, 1] as [UInt64] {
      bench.join(uid, uid: uid)
      bench.say(uid, .subscribe(subscription: 1, [], nil))
    }
    _ = bench.settle()
    // Perhaps bob was an array, and not seen.
    bench.act(0, 1, .remove(["users", "bob"]))
    let live = bench.said(to: 1, bench.settle())
    #expect(subscribed(live).map(\.reason) == [.view])
    #expect(subscribed(live).map(\.continuation) == [.snapshot])
    bench.handle(.blocked(ConnectionID(1), unsent: 1))
    bench.act(0, 2, .remove(["users", "eve"]))
    _ = bench.turn()
    bench.handle(.drained(ConnectionID(1)))
    #expect(subscribed(bench.said(to: 1, bench.settle())).map(\.reason) == [.view])
  }

  @Test func `a digest is of what is seen, and none where that takes long`() throws {
    var bench = bench(1)
    bench.say(1, .subscribe(subscription: 1, [], nil))
    _ = bench.settle()
    bench.say(1, .digestRequest(subscription: 1))
    let seen = Value.object(["public": ["n": 1], "list": []]).digest(seed: HashSeed(7))
    #expect(
      bench.said(to: 1, bench.turn()) == [.digest(subscription: 1, revision: 0, Digest(seen))])
    var limits = Limits()
    limits.inlineSnapshotBytes = 10
    bench = Bench(["public": "a long text", "secret": 1], limits: limits, policy: Self.policy)
    bench.join(1, uid: 1)
    bench.say(1, .subscribe(subscription: 1, [], nil))
    _ = bench.settle()
    bench.say(1, .digestRequest(subscription: 1))
    #expect(bench.turn().isEmpty)
  }

  // MARK: Acting

  @Test(arguments: [Durability.none, .async])
  func `an action that is denied is not done, and says why`(_ durability: Durability) {
    var bench = bench(1, 2, durability: durability)
    let before = bench.server.digest()
    bench.act(
      1, 1, .remove(["public"]), .transaction([.set(["a"], 1), .remove(["public"])]),
      .test(["secret"], "hush"), .copy(from: ["secret"], to: ["a"]),
      .move(from: ["secret"], to: ["a"]), .transaction([.test(["secret"], "hush")]), .test([], 1))
    bench.act(2, 1, .set(["public", "n"], 5))
    let commands = bench.turn()
    #expect(bench.server.digest() == before && bench.server.revision == 0)
    let answers = outcomes(bench.said(to: 1, commands)) + outcomes(bench.said(to: 2, commands))
    let messages = answers.map { outcome -> String? in
      guard case .rejected(let rejection) = outcome, rejection.code == 9 else { return nil }
      return rejection.message
    }
    #expect(
      messages == [
        "you may not send remove", "you may not send remove",
        "test needs the right to read /secret", "copy needs the right to read /secret",
        "move needs the right to read /secret", "transaction needs the right to read /secret",
        "test needs the right to read the whole", "you may not send set",
      ])
    #expect(bench.server.revision == 0)
    bench.act(1, 8, .set(["public", "n"], 5), .test(["public", "n"], 5))
    #expect(outcomes(bench.said(to: 1, bench.turn())) == [.reduced, .unchanged])
  }

  @Test(arguments: [Durability.none, .async])
  func `a rejection does not quote what may not be seen, nor does it when it is told again`(
    _ durability: Durability
  ) {
    var bench = bench(0, 4, durability: durability)
    bench.act(4, 1, .set(["secret", "mine"], 1), .increment(["public"], by: 1))
    bench.act(0, 1, .set(["secret", "mine"], 1))
    let commands = bench.turn()
    func messages(_ outcomes: [Acknowledgement.Outcome]) -> [String] {
      outcomes.compactMap { if case .rejected(let why) = $0 { why.message } else { nil } }
    }
    let told = messages(outcomes(bench.said(to: 4, commands)))
    #expect(told.first == "the path names nothing that the action could work on")
    #expect(told.count == 2 && told.last != told.first)
    #expect(messages(outcomes(bench.said(to: 0, commands))) != [told[0]])
    bench.handle(.closed(ConnectionID(4)))
    bench.join(5, uid: 4, token: Bench.token(4))
    bench.act(5, 1, .set(["secret", "mine"], 1), .increment(["public"], by: 1))
    #expect(messages(outcomes(bench.said(to: 5, bench.turn()))) == told)
    // The next run gets no more than the client was told.
    let kept = bench.server.handOver.kept.sessions.flatMap(\.outcomes)
    #expect(
      kept.contains {
        $0.outcome
          == .rejected(.init(code: Rejection.Code.badPath.rawValue, message: told[0], path: nil))
      })
  }

  @Test func `what is written down of a rejection is what was told`() {
    var bench = bench(4, durability: .async)
    bench.act(4, 1, .set(["secret", "mine"], 1))
    var rows: [JournalRow] = []
    for case .keep(let batch) in bench.turn() { rows += batch.rows }
    let answers = rows.compactMap(\.answer?.outcome)
    #expect(
      answers == [
        .rejected(
          .init(
            code: Rejection.Code.badPath.rawValue,
            message: "the path names nothing that the action could work on", path: nil))
      ])
  }

  // MARK: Asking

  @Test func `only who may administer may ask about others`() {
    var bench = bench(0, 1)
    let names = [
      "changes", "clients", "clients.closed", "effects", "effects.cancel", "log", "log.follow",
      "metrics", "nonsense", "past", "why",
    ]
    for name in names {
      bench.say(0, .query(number: 1, name, arguments: ["1"]))
      bench.say(1, .query(number: 1, name, arguments: ["1"]))
      let commands = bench.turn()
      #expect(isRefusal(report(bench.said(to: 1, commands))), "\(name)")
      #expect(!isRefusal(report(bench.said(to: 0, commands))), "\(name)")
    }
    // Nothing follows the refusal either.
    bench.act(0, 1, .set(["secret"], 2))
    #expect(bench.frames(to: 1, bench.turn()).isEmpty)
    for name in ["status", "limits", "parts"] {
      bench.say(1, .query(number: 1, name, arguments: []))
      #expect(!isRefusal(report(bench.said(to: 1, bench.turn()))), "\(name)")
    }
  }

  @Test func `the digest of the whole is for those who see the whole`() {
    var bench = bench(0, 1)
    for uid in [0, 1] as [UInt64] { bench.say(uid, .query(number: 1, "status", arguments: [])) }
    let commands = bench.turn()
    #expect(report(bench.said(to: 0, commands))?.value(at: ["digest"]) != nil)
    #expect(report(bench.said(to: 1, commands))?.value(at: ["digest"]) == nil)
    #expect(report(bench.said(to: 1, commands))?.value(at: ["revision"]) == 0)
  }

  @Test func `who administers, and does not see the whole, is told nothing of the rest`() {
    let policy = Policy([
      Rule(users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all]),
      Rule(
        users: [1], mayConnect: true, mayAdminister: true, read: [.whole],
        denyRead: patterns(["secret"])),
    ])
    var bench = Bench(["secret": ["hush": 1], "list": []], policy: policy)
    for uid in [0, 1] as [UInt64] {
      bench.join(uid, uid: uid)
      bench.say(uid, .query(number: 9, "log.follow", arguments: []))
    }
    bench.say(0, .subscribe(subscription: 1, ["secret", "hush"], nil))
    bench.say(0, .subscribe(subscription: 2, ["list"], nil))
    _ = bench.settle()
    bench.act(0, 1, .set(["secret", "hush"], "hush"), .remove(["secret", "hush", "hush"]))
    var said: [UInt64: [UInt8]] = [0: [], 1: []]
    func note(_ commands: [Command]) {
      for uid in [0, 1] as [UInt64] { said[uid]? += bench.frames(to: uid, commands).joined() }
    }
    note(bench.settle())
    for name in ["log", "why", "clients", "effects", "status"] {
      for uid in [0, 1] as [UInt64] {
        bench.say(uid, .query(number: 1, name, arguments: ["1"]))
      }
      note(bench.settle())
    }
    #expect(String(decoding: said[0] ?? [], as: UTF8.self).contains("hush"))
    let text = String(decoding: said[1] ?? [], as: UTF8.self)
    #expect(!text.contains("hush") && text.contains("list") && text.contains("remove"))
  }

  // MARK: Which rule

  private static let written = Policy(
    [
      Rule(users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all]),
      Rule(users: [1], mayConnect: true, read: [.whole], act: [.all]),
      Rule(isForEveryone: true, denyRead: patterns(["secret"]), denyAct: [.name("move")]),
    ], from: .file("policy.yaml", lines: [3, 9, 14]))

  @Test func `who administers is told which rule denies, and others which right they lack`() {
    var bench = Bench(["secret": "hush"], policy: Self.written)
    for uid in [0, 1] as [UInt64] { bench.join(uid, uid: uid) }
    for uid in [0, 1] as [UInt64] {
      bench.act(uid, 1, .set([], 1), .test(["secret"], 1), .move(from: ["a"], to: ["b"]))
    }
    let commands = bench.turn()
    func messages(_ uid: UInt64) -> [String] {
      outcomes(bench.said(to: uid, commands)).compactMap { outcome in
        if case .rejected(let rejection) = outcome { rejection.message } else { nil }
      }
    }
    let rights = [
      "set needs the right to read the whole", "test needs the right to read /secret",
      "you may not send move",
    ]
    let rule = "of the rule at policy.yaml:14"
    #expect(messages(1) == rights)
    #expect(
      messages(0) == [
        "\(rights[0]): deny-read /secret \(rule)",
        "\(rights[1]): deny-read /secret \(rule)", "\(rights[2]): deny-act move \(rule)",
      ])
  }

  @Test func `a denial is logged with its rule, once a second for each user`() {
    var bench = Bench(["secret": "hush"], policy: Self.written)
    bench.join(1, uid: 1)
    bench.join(2, uid: 1)
    func denials() -> [LogLine] { bench.logs.filter { $0.message.hasSuffix("denied") } }
    for number in 1...5 as ClosedRange<UInt64> { bench.act(1, number, .test(["secret"], 1)) }
    bench.act(2, 1, .test(["secret"], 1))
    #expect(denials().map(\.message) == ["action denied"])
    #expect(
      denials().first?.fields.suffix(2) == [
        .init("right", "read /secret"),
        .init("because", "deny-read /secret of the rule at policy.yaml:14"),
      ])
    bench.pass(.milliseconds(1100))
    bench.say(2, .subscribe(subscription: 1, ["secret", "a\nb"], nil))
    _ = bench.settle()
    #expect(denials().map(\.message) == ["action denied", "subscription denied"])
    #expect(denials().allSatisfy { $0.fields.allSatisfy { !$0.value.contains("\n") } })
    bench.pass(.milliseconds(1100))
    bench.open(3, uid: 9)
    bench.open(4, uid: 9)
    #expect(denials().map(\.message).last == "client denied" && denials().count == 3)
  }

  @Test func `who may not connect is told who decides`() {
    for (policy, words) in [
      (
        Self.written, "its administrator can let the user, or a group of theirs, in the policy file"
      ),
      (.standard(owner: 7), "it has no policy file (--policy), so only user 7 and root may"),
    ] as [(Policy, String)] {
      var bench = Bench(policy: policy)
      bench.open(1, uid: 9)
      let goodbye = bench.goodbye(to: 1, bench.turn())
      #expect(
        goodbye?.message == "the daemon's policy does not let user 9 connect: \(words)")
    }
  }

  // MARK: Reading the policy again

  @Test func `who administers, and the daemon's own user, may have the policy read again`() {
    var bench = Bench(["secret": "hush"], policy: Self.written, owner: 5)
    for uid in [0, 1, 5] as [UInt64] { bench.join(uid, uid: uid) }
    for uid in [0, 1, 5] as [UInt64] {
      bench.say(uid, .query(number: 4, "policy.reload", arguments: []))
    }
    let commands = bench.turn()
    let asked = commands.compactMap { command -> UInt64? in
      if case .answer(let id, query: 4, .reloadPolicy) = command { id.rawValue } else { nil }
    }
    #expect(asked == [0, 5])
    #expect(isRefusal(report(bench.said(to: 1, commands))))
    // The answer comes in a later turn, and not to one that has gone.
    bench.handle(.closed(ConnectionID(0)))
    for id in [0, 5] as [UInt64] {
      bench.handle(.answered(ConnectionID(id), query: 4, (["policy": "p"] as Value).encoded))
    }
    let answers = bench.turn()
    #expect(bench.said(to: 5, answers) == [.report(number: 4, ["policy": "p"])])
    #expect(bench.frames(to: 0, answers).isEmpty)
  }

  @Test func `the daemon's own user may do nothing else, unless a rule says so`() {
    var bench = Bench(["public": 1], policy: Self.written, owner: 5)
    bench.join(5, uid: 5)
    bench.say(5, .query(number: 1, "clients", arguments: []))
    bench.say(5, .subscribe(subscription: 1, ["public"], nil))
    bench.act(5, 1, .set(["public"], 2))
    let said = bench.said(to: 5, bench.settle())
    #expect(isRefusal(report(said)))
    #expect(subscribed(said).map(\.reason) == [.denied])
    #expect(bench.server.revision == 0)
  }

  @Test func `a client that does not read gets its answer when it does`() {
    var bench = Bench(policy: Self.written)
    bench.join(0, uid: 0)
    bench.say(0, .query(number: 1, "policy.reload", arguments: []))
    _ = bench.turn()
    bench.handle(.blocked(ConnectionID(0), unsent: 1))
    bench.handle(.answered(ConnectionID(0), query: 1, (["rules": 2] as Value).encoded))
    #expect(bench.frames(to: 0, bench.turn()).isEmpty)
    bench.handle(.drained(ConnectionID(0)))
    #expect(bench.said(to: 0, bench.turn()) == [.report(number: 1, ["rules": 2])])
  }

  // MARK: Another policy

  @Test func `another policy holds at once for those who are connected`() {
    var bench = bench(0, 1, 2)
    for uid in [0, 1, 2] as [UInt64] { bench.say(uid, .subscribe(subscription: 1, [], nil)) }
    bench.say(1, .subscribe(subscription: 2, ["list"], nil))
    bench.say(0, .query(number: 9, "log.follow", arguments: []))
    _ = bench.settle()
    bench.act(0, 1, .set(["secret"], "gone"), .set(["list"], "shown"))
    bench.handle(
      .policy(
        Policy([
          Rule(users: [0], mayConnect: true, read: [.whole], act: [.all]),
          Rule(users: [1], mayConnect: true, read: patterns(["secret"])),
        ])))
    let commands = bench.settle()
    // The administrator sees what he saw, and is told that he administers no more.
    let admin = bench.said(to: 0, commands)
    #expect(subscribed(admin).isEmpty)
    #expect(isRefusal(report(admin)))
    #expect(outcomes(admin) == [.reduced])
    // One sees another part now, and one path not at all any more.
    let one = bench.said(to: 1, commands)
    let bytes = String(decoding: bench.frames(to: 1, commands).joined(), as: UTF8.self)
    #expect(bytes.contains("gone") && !bytes.contains("shown") && !bytes.contains("public"))
    #expect(
      one.first == .subscribed(.init(subscription: 2, scope: 0, .refused, .denied, revision: 2)))
    #expect(subscribed(one).last?.reason == .view && subscribed(one).last?.subscription == 1)
    // One may not connect any more.
    #expect(bench.goodbye(to: 2, commands)?.code == .denied)
    #expect(bench.said(to: 2, commands).count == 1)
    // No connection follows the log any more.
    bench.handle(.closed(ConnectionID(2)))
    bench.act(0, 3, .set(["list"], 1))
    #expect(report(bench.said(to: 0, bench.turn())) == nil)
    #expect(bench.server.load.scopes == 2)
  }

  @Test func `a subscription that has ended counts no more`() {
    var limits = Limits()
    limits.subscriptionsPerUser = 1
    var bench = Bench(["list": 1], limits: limits, policy: Self.policy)
    bench.join(1, uid: 1)
    for number in 1...3 as ClosedRange<UInt64> {
      bench.say(1, .subscribe(subscription: number, ["list"], nil))
      #expect(subscribed(bench.said(to: 1, bench.settle())).last?.continuation == .snapshot)
      bench.handle(.policy(Policy([Rule(users: [1], mayConnect: true)])))
      #expect(subscribed(bench.said(to: 1, bench.settle())).map(\.reason) == [.denied])
      bench.handle(.policy(Self.policy))
      _ = bench.settle()
    }
  }

  @Test func `the same policy again changes nothing`() {
    var bench = bench(1)
    bench.say(1, .subscribe(subscription: 1, [], nil))
    _ = bench.settle()
    let same = Rule(users: [1], read: patterns(["public"]), denyRead: patterns(["secret/x"]))
    let padded = Policy(Self.policy.rules + [same])
    for policy in [Self.policy, padded] {
      bench.handle(.policy(policy))
      #expect(bench.turn().isEmpty)
    }
  }

  @Test func `a mirror from before another policy gets a snapshot`() {
    var bench = bench(1)
    func resume(_ number: UInt64, from revision: UInt64) -> ServerMessage.Reason? {
      let position = Position(epoch: 9, run: 1, revision: revision)
      bench.open(number, uid: 1)
      bench.say(
        number, .hello(.init(versions: 1...1, label: "")),
        .subscribe(subscription: 1, [], position))
      return subscribed(bench.said(to: number, bench.settle())).last?.reason
    }
    bench.act(1, 1, .set(["a"], 1))
    _ = bench.turn()
    #expect(resume(2, from: 1) == ServerMessage.Reason.none)
    bench.handle(.policy(Policy([Rule(users: [1], mayConnect: true, read: [.whole], act: [.all])])))
    _ = bench.settle()
    #expect(resume(3, from: 1) == .view)
    bench.act(1, 2, .set(["a"], 2))
    _ = bench.settle()
    #expect(resume(4, from: 1) == .view)
    #expect(resume(5, from: 2) == ServerMessage.Reason.none)
  }

  @Test func `a mirror of what is hidden shows nothing, until the client comes back and may`() {
    var pair = Pair(["public": 1, "secret": 2])
    let both = Policy([Rule(isForEveryone: true, mayConnect: true, read: [.whole])])
    let one = Policy([Rule(isForEveryone: true, mayConnect: true, read: patterns(["public"]))])
    let (root, secret) = (pair.subscribe(to: .root), pair.subscribe(to: ["secret"]))
    pair.run()
    #expect(pair.session.value(of: secret, as: Value.self) == 2)
    pair.bench.handle(.policy(one))
    pair.run()
    #expect(pair.session.value(of: secret, as: Value.self) == nil)
    #expect(pair.session.value(of: root, as: Value.self) == ["public": 1])
    #expect(
      pair.notices.contains { notice in
        if case .refused(secret, .denied) = notice { true } else { false }
      })
    pair.bench.handle(.policy(both))
    pair.run()
    #expect(pair.session.value(of: root, as: Value.self) == ["public": 1, "secret": 2])
    #expect(pair.session.value(of: secret, as: Value.self) == nil)
    pair.lose()
    pair.run()
    #expect(pair.session.value(of: secret, as: Value.self) == 2)
  }

  // MARK: Another process

  private func handOver(
    _ bench: inout Bench, to policy: Policy
  ) throws -> (next: Bench, commands: [Command]) {
    var commands: [Command] = []
    bench.server.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    let bytes = bench.server.handOver.encoded(schema: DocumentFeature.schema)
    let image = try HandOver<Document>(bytes, schema: DocumentFeature.schema)
    var next = bench
    next.server = Server(
      restoring: image.next, reducer: DocumentFeature(), policy: policy, isPolicyNew: true,
      at: bench.now)
    commands = []
    next.server.reserveScopes(of: image)
    for connection in image.connections {
      next.server.handle(
        .inherited(connection, isTranslated: false), at: bench.now, into: &commands)
    }
    return (next, commands + next.settle())
  }

  @Test func `the next process goes on with what each may see`() throws {
    var bench = bench(0, 1, 2)
    for uid in [0, 1, 2] as [UInt64] { bench.say(uid, .subscribe(subscription: 1, [], nil)) }
    _ = bench.settle()
    var (next, commands) = try handOver(&bench, to: Self.policy)
    for uid in [0, 1, 2] as [UInt64] { #expect(subscribed(next.said(to: uid, commands)).isEmpty) }
    next.act(0, 1, .set(["secret"], "more"), .set(["public", "n"], 2))
    let change = next.turn()
    for uid in [0, 1, 2] as [UInt64] { #expect(!next.frames(to: uid, change).isEmpty) }
    for uid in [1, 2] as [UInt64] {
      let text = String(decoding: next.frames(to: uid, change).joined(), as: UTF8.self)
      #expect(!text.contains("more"))
    }
  }

  @Test func `under another policy the next process shows what that lets be seen`() throws {
    var bench = bench(0, 1, 2)
    for uid in [0, 1, 2] as [UInt64] { bench.say(uid, .subscribe(subscription: 1, [], nil)) }
    bench.say(1, .subscribe(subscription: 2, ["list"], nil))
    _ = bench.settle()
    let policy = Policy([
      Rule(users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all]),
      Rule(users: [1], mayConnect: true, read: patterns(["secret"])),
    ])
    let (next, commands) = try handOver(&bench, to: policy)
    #expect(subscribed(next.said(to: 0, commands)).isEmpty)
    // The snapshot is small, and so it comes at once.
    #expect(subscribed(next.said(to: 1, commands)).map(\.reason) == [.denied, .view])
    let text = String(decoding: next.frames(to: 1, commands).joined(), as: UTF8.self)
    #expect(text.contains("hush") && !text.contains("public"))
    #expect(next.goodbye(to: 2, commands)?.code == .denied)
  }

  /// An acknowledgement says that the mirrors have come to its revision.
  @Test func `who is sent away by a policy is not told of what it does not see any more`() {
    var bench = bench(0)
    bench.say(0, .subscribe(subscription: 1, [], nil))
    _ = bench.settle()
    bench.act(0, 1, .set(["list"], "new"))
    bench.handle(.policy(Policy([])))
    let said = bench.said(to: 0, bench.turn())
    #expect(said.count == 1)
    guard case .goodbye(let goodbye)? = said.first else {
      Issue.record("no goodbye: \(said)")
      return
    }
    #expect(goodbye.code == .denied)
  }

  // MARK: Random histories

  @Test func `nobody is ever sent what it may not see, and all see what they may`() throws {
    var counts: [String: Int] = [:]
    for seed in 1...12 as ClosedRange<UInt64> {
      var crowd = Crowd(seed: seed)
      do throws(Crowd.Fault) {
        try crowd.run(steps: 1200)
      } catch {
        Issue.record("seed \(seed): \(error)")
      }
      counts.merge(crowd.counts, uniquingKeysWith: +)
    }
    for name in [
      "checks", "parts", "digests", "jobs", "reloads", "blocks", "cuts", "goodbye: denied",
      "refused: denied",
    ] { #expect(counts[name, default: 0] > 20, "\(name) in \(counts)") }
  }

  @Test(arguments: [true, false])
  func `it would be noticed`(_ inSnapshots: Bool) {
    var faults = Faults()
    faults.sendsWholeSnapshots = inSnapshots
    faults.sendsWholeDifferences = !inSnapshots
    let isNoticed = (1...12 as ClosedRange<UInt64>).contains { seed in
      var crowd = Crowd(seed: seed, faults)
      do throws(Crowd.Fault) {
        try crowd.run(steps: 1200)
        return false
      } catch {
        return true
      }
    }
    #expect(isNoticed)
  }
}
