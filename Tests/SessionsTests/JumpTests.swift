import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Jumps, undo and redo: the next revision has the contents of a former one.
@Suite struct JumpTests {
  private static let policy = Policy([
    Rule(
      users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
      write: [.whole]),
    Rule(
      users: [1], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
      write: [.whole], denyWrite: patterns(["a"])),
    Rule(users: [2], mayConnect: true, read: [.whole], act: [.all], write: [.whole]),
  ])

  private func bench(
    _ root: Value = [:], historyBytes: Int = 4 << 20, durability: Durability = .none
  ) -> Bench {
    var limits = Limits()
    limits.historyBytes = historyBytes
    var bench = Bench(root, limits: limits, durability: durability, policy: Self.policy)
    for uid in [0, 1, 2] as [UInt64] { bench.join(uid, uid: uid, versions: 1...3) }
    bench.measure()
    bench.keepPast()
    return bench
  }

  private func code(_ report: Value) -> ReportError.Code? { ReportError(report)?.code }

  /// Undo as a text editor has it: contents, and where among them one is.
  private struct Editor {
    var contents: [Value]
    var place = 0

    mutating func change(to value: Value) {
      contents.removeSubrange((place + 1)...)
      contents.append(value)
      place += 1
    }
  }

  /// Whatever is jumped to, undone and redone, the contents are those of a model which has all of them,
  /// and the patches say the same.
  @Test(arguments: 0..<12 as Range<UInt64>)
  func `jumps, undo and redo are those of a model`(seed: UInt64) throws {
    try model(seed: seed)
  }

  @Test func `a wrong jump or undo would be noticed`() {
    for fault in [\Faults.jumpsFromLate, \.undoesUndoing] {
      var faults = Faults()
      faults[keyPath: fault] = true
      #expect(throws: Disagreement.self, "\(fault)") { try model(seed: 0, faults) }
    }
  }

  private struct Disagreement: Error, CustomStringConvertible {
    let description: String
  }

  private func model(seed: UInt64, _ faults: Faults = Faults()) throws {
    func check(_ condition: Bool, _ what: @autoclosure () -> String) throws {
      if !condition { throw Disagreement(description: "seed \(seed): \(what())") }
    }
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    let forgets = seed >= 8
    var bench = bench(["a": ["b": 0], "list": [1, 2]], historyBytes: forgets ? 1500 : 4 << 20)
    bench.server.plant(faults)
    var states = [bench.server.state.root]
    var editor = Editor(contents: states)
    var (jumps, undone, redone, refused) = (0, 0, 0, 0)
    var number: UInt64 = 0
    func act(_ bench: inout Bench) {
      number += 1
      let actions: [DocumentAction] = [
        .set(["a", "b"], .integer(Int64(below(9)))), .increment(["n"], by: 1),
        .append(["list"], .integer(Int64(number))), .remove(["a"]), .set(["a"], ["b": 1]),
      ]
      bench.act(2, number, actions[below(5)])
      _ = bench.turn()
      guard bench.server.revision >= states.count else { return }
      states.append(bench.server.state.root)
      editor.change(to: bench.server.state.root)
    }
    for _ in 1...300 {
      bench.keepPast()
      // What the history loses may have been the only checkpoint, and the next is not due at once.
      guard let oldest = bench.server.oldestRevision else {
        act(&bench)
        continue
      }
      let steps = 1 + below(3)
      switch below(6) {
      case 0:
        let target = below(states.count)
        if target < oldest {
          try check(code(bench.ask(0, "jump", "\(target)")) == .absent, "a jump too far back")
        } else {
          let jump = bench.begin(0, "jump", "\(target)")
          if below(2) == 0 { act(&bench) }
          let report = bench.finish(jump)
          try check(report.child("of") == .integer(Int64(target)), "\(report)")
          try check(bench.server.state.root == states[target], "a jump to \(target)")
          if bench.server.revision >= states.count { editor.change(to: states[target]) }
          jumps += 1
        }
      case 1:
        let report = bench.ask(0, "undo", "\(steps)")
        if let error = ReportError(report) {
          try check(error.code == .absent && (forgets || steps > editor.place), error.text)
          refused += 1
        } else {
          editor.place -= steps
          undone += 1
        }
      case 2:
        let report = bench.ask(0, "redo", "\(steps)")
        if let error = ReportError(report) {
          let isPossible = steps < editor.contents.count - editor.place
          try check(error.code == .absent && (forgets || !isPossible), error.text)
          refused += 1
        } else {
          editor.place += steps
          redone += 1
        }
      default: act(&bench)
      }
      try check(editor.contents.indices.contains(editor.place), "more was undone than was done")
      try check(bench.server.state.root == editor.contents[editor.place], "other contents")
      try check(bench.server.revision <= states.count, "more than one revision")
      if bench.server.revision == states.count { states.append(bench.server.state.root) }
      if bench.server.oldestRevision != nil {
        let again = bench.server.state(at: bench.server.revision)?.root
        try check(again == states.last, "the patch of the last revision says otherwise")
      }
    }
    try check(jumps > 10 && undone > 10 && redone > 0 && refused > 0, "too little was done")
    try check(forgets == (bench.server.oldestRevision != 0), "too much was remembered")
  }

  @Test func `a jump that actions overtake takes them back as well, an undo is refused`() {
    var bench = bench(["n": 0])
    bench.act(2, 1, .increment(["n"], by: 1), .increment(["n"], by: 1))
    _ = bench.turn()
    let query = bench.begin(0, "jump", "1")
    bench.act(2, 3, .set(["late"], 1))
    _ = bench.turn()
    #expect(bench.finish(query) == ["revision": 4, "of": 1])
    #expect(bench.server.state.root == ["n": 1])
    let undo = bench.begin(0, "undo")
    bench.act(2, 4, .set(["late"], 2))
    _ = bench.turn()
    #expect(code(bench.finish(undo)) == .refused)
    #expect(bench.server.state.root == ["n": 1, "late": 2])
    // And the jump is undone like any other change.
    #expect(bench.ask(0, "undo", "2") == ["revision": 6, "of": 3])
    #expect(bench.server.state.root == ["n": 2, "late": 1])
  }

  @Test func `only who may do everything may jump`() {
    var bench = bench(["n": 0])
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    for client in [1, 2] as [UInt64] {
      for query in ["jump", "undo", "redo"] {
        #expect(code(bench.ask(client, query, "1")) == .denied, "\(client) \(query)")
      }
    }
    // The right is lost while the jump is prepared.
    let query = bench.begin(0, "jump", "0")
    bench.handle(.policy(Policy([Rule(users: [0], mayConnect: true, read: [.whole])])))
    #expect(code(bench.finish(query)) == .restarting)
    #expect(bench.server.state.root == ["n": 1])
  }

  @Test func `a jump is logged with who made it, and one that changes nothing makes no revision`()
    throws
  {
    var bench = bench(["n": 0])
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    #expect(bench.ask(0, "jump", "1") == ["revision": 1, "of": 1])
    #expect(bench.ask(0, "jump", "0") == ["revision": 2, "of": 0])
    guard case .array(let records)? = bench.ask(0, "log").child("records") else {
      Issue.record("no records")
      return
    }
    let last = try #require(records.last)
    #expect(last.child("action") == "jump.0" && last.child("revision") == 2, "\(last)")
    #expect(last.child("uid") == 0 && last.child("outcome") == "changed", "\(last)")
  }

  @Test func `what cannot be jumped to is refused with the reason`() {
    var bench = bench(["n": 0])
    for (name, argument, expected) in [
      ("jump", "x", ReportError.Code.malformed), ("jump", "1", .absent), ("undo", "0", .malformed),
      ("undo", "1001", .malformed), ("undo", "1", .absent), ("redo", "1", .absent),
      ("redo", "-1", .malformed),
    ] {
      #expect(code(bench.ask(0, name, argument)) == expected, "\(name) \(argument)")
    }
  }

  @Test func `a client that goes takes its jump with it, and another may be made`() {
    var bench = bench(["n": 0])
    bench.join(5, uid: 0, versions: 1...3)
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    let jump = bench.begin(5, "jump", "0")
    #expect(code(bench.ask(0, "undo")) == .refused)
    bench.handle(.closed(ConnectionID(5)))
    bench.tell(jump)
    #expect(bench.server.state.root == ["n": 1])
    #expect(bench.ask(0, "undo") == ["revision": 2, "of": 0])
  }

  /// The journal keeps the change of a jump, and the outcomes of actions stay.
  @Test func `an action that was answered before a jump is not done again after it`() throws {
    var bench = bench(["n": 0], durability: .async)
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    bench.tell(bench.begin(0, "jump", "0"))
    let batches = bench.handle(.turnEnded).compactMap { command -> JournalBatch? in
      if case .keep(let batch) = command { batch } else { nil }
    }
    let row = try #require(batches.first?.rows.first)
    #expect(row.name == "jump.0" && row.change != nil && row.revision == 2)
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    #expect(bench.server.state.root == ["n": 0] && bench.server.revision == 2)
  }

  /// The change is small, and what others have removed meanwhile is large.
  @Test func `what others have removed is not brought back on the loop`() throws {
    let large = Value.array(TreeArray((0..<4000).map { .integer($0) }))
    var bench = bench(["n": 0, "large": large])
    bench.act(2, 1, .increment(["n"], by: 1))
    _ = bench.turn()
    let found = bench.begin(0, "jump", "0")
    bench.act(2, 2, .remove(["large"]))
    let commands = bench.tell(found)
    #expect(bench.server.revision == 2)
    let report = bench.finish(bench.found(by: commands, for: 0))
    #expect(report.child("of") == 0)
    #expect(bench.server.state.root == ["n": 0, "large": large])
  }

  @Test func `a jump that is found again is given up when its client leaves`() throws {
    let large = Value.text(String(repeating: "x", count: 40 << 10))
    var bench = bench(["n": 0, "large": large])
    bench.act(2, 1, .set(["large"], .text("small")))
    _ = bench.turn()
    let found = bench.begin(0, "jump", "0")
    bench.act(2, 2, .increment(["n"], by: 1))
    let again = bench.found(by: bench.tell(found), for: 0)
    bench.handle(.closed(ConnectionID(0)))
    bench.tell(again)
    _ = bench.turn()
    #expect(bench.server.state.root == ["n": 1, "large": .text("small")])
    bench.open(5)
    #expect(bench.server.revision == 2)
  }

  /// To find on the loop what others make of a large change would have everybody wait.
  @Test func `a large change is found again if others come meanwhile, and then refused`() throws {
    let large = Value.text(String(repeating: "x", count: 40 << 10))
    for attempts in 1...5 {
      var bench = bench(["n": 0, "large": large])
      bench.act(2, 1, .set(["large"], .text("small")))
      _ = bench.turn()
      var found = bench.begin(0, "jump", "0")
      for number in 1..<attempts {
        bench.act(2, UInt64(number) + 1, .increment(["n"], by: 1))
        let commands = bench.tell(found)
        guard number <= 3 else { break }
        #expect(bench.server.state.root.child("large") == .text("small"))
        found = bench.found(by: commands, for: 0)
      }
      if attempts <= 4 {
        let report = bench.finish(found)
        #expect(report.child("of") == 0)
        #expect(bench.server.state.root == ["n": 0, "large": large])
      } else {
        let error = try #require(ReportError(bench.answer(0, found.query)))
        #expect(error.code == .refused && error.text.contains("pause"))
        #expect(bench.server.state.root == ["n": 4, "large": .text("small")])
        bench.act(2, 6, .increment(["n"], by: 1))
        _ = bench.turn()
        #expect(bench.ask(0, "jump", "0").child("of") == 0)
      }
    }
  }
}

extension Bench {
  /// What the shell has found for a query, and has not told yet.
  fileprivate struct Found {
    var client: UInt64 = 0
    var query: UInt64 = 0
    var finding = Finding.report([])
  }

  /// Ask for a jump, and have the shell find what it changes.
  fileprivate mutating func begin(
    _ client: UInt64, _ name: String, _ arguments: String...
  ) -> Found {
    say(client, .query(number: 78, name, arguments: arguments))
    // A query may have to wait for some turns, until the work of earlier ones is paid.
    for _ in 0..<30 {
      let commands = turn()
      let found = found(by: commands, for: client)
      if found.query != 0 { return found }
    }
    return Found()
  }

  /// What the shell finds for commands.
  fileprivate func found(by commands: [Command], for client: UInt64) -> Found {
    for case .answer(let id, let query, let asked) in commands {
      if case .success(let job)? = server.inspection(of: asked, for: id) {
        return Found(client: client, query: query, finding: job.finding())
      }
    }
    return Found()
  }

  /// The report alone, of which a recording has no more, has the server do the same.
  @discardableResult
  fileprivate mutating func tell(_ found: Found) -> [Command] {
    let id = ConnectionID(found.client)
    var replayed = self
    let event: Event<DocumentAction> = found.finding.event(for: id, query: found.query)
    let recorded: Event<DocumentAction> = .answered(id, query: found.query, found.finding.report)
    #expect(bytes(of: event) == bytes(of: recorded))
    let commands = handle(event)
    #expect(replayed.handle(recorded) == commands)
    var same = self
    #expect(replayed.turn() == same.turn() && replayed.server.state == same.server.state)
    return commands
  }

  private func bytes(of event: Event<DocumentAction>) -> [UInt8] {
    var encoder = CBOREncoder()
    event.encode(into: &encoder)
    return encoder.bytes
  }

  /// Tell what the shell has found, and return the answer to the client.
  fileprivate mutating func finish(_ found: Found) -> Value {
    tell(found)
    return answer(found.client, found.query)
  }
}
