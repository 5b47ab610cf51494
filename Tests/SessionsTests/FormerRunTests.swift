import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// What a daemon knows of the processes before it: the log and the past.
@Suite struct FormerRunTests {
  /// A daemon whose journal is kept by the test.
  private struct Keeper {
    var bench: Bench
    let limits: Limits
    private var snapshot: PendingSnapshot<Document>
    private var batches: [JournalBatch] = []
    /// The connection of its only client, another one in each process, and the number of its action.
    private var client: UInt64 = 0
    private var number: UInt64 = 0

    init(_ limits: Limits = Limits()) {
      self.limits = limits
      bench = Bench([:], limits: limits, durability: .sync)
      snapshot = bench.server.pendingSnapshot
      meet()
    }

    private mutating func meet() {
      client += 1
      number = 0
      bench.join(client, versions: 1...3)
      bench.measure()
    }

    mutating func act(_ actions: DocumentAction...) {
      for action in actions {
        number += 1
        bench.act(client, number, action)
      }
      keep(bench.turn())
    }

    private mutating func keep(_ commands: [Command]) {
      for case .keep(let batch) in commands { batches.append(batch) }
    }

    mutating func keepSnapshot() {
      snapshot = bench.server.pendingSnapshot
      batches.removeAll()
    }

    var snapshotRevision: UInt64 { snapshot.head.revision }

    /// What another process would begin with.
    func restored() throws -> RestoredState<Document> {
      try bench.restored(from: snapshot, batches, limits: limits)
    }

    /// Another process begins, with the journal.
    mutating func restart() throws {
      bench = try bench.restarted(from: snapshot, batches, limits: limits)
      meet()
    }

    mutating func handOver() throws {
      keep(try bench.handOver(limits: limits, durability: .sync))
    }

    mutating func ask(_ name: String, _ arguments: String...) -> Value {
      bench.say(client, .query(number: 79, name, arguments: arguments))
      return bench.answer(client, 79)
    }

    mutating func log() -> [Value] {
      guard case .array(let records)? = ask("log", "10000").child("records") else { return [] }
      return Array(records)
    }
  }

  // MARK: The log

  @Test func `what clients did before a restart is in the log behind it`() throws {
    var keeper = Keeper()
    keeper.act(.set(["a"], 1), .test(["a"], 2), .remove(["b"]), .increment(["a"], by: 1))
    let before = keeper.log()
    #expect(before.count == 4)
    try keeper.restart()
    #expect(keeper.log() == before)
    keeper.act(.increment(["a"], by: 1))
    let after = keeper.log()
    #expect(Array(after.dropLast()) == before)
    #expect(after.last?.child("sequence") == 5)
    guard case .array(let chain)? = keeper.ask("why", "2").child("records") else {
      Issue.record("no chain")
      return
    }
    #expect(chain.first == before[1])
  }

  @Test func `of many actions the log has the latest`() throws {
    var limits = Limits()
    limits.logEntries = 5
    var keeper = Keeper(limits)
    for number in 1...23 as ClosedRange<Int64> { keeper.act(.set(["a"], .integer(number))) }
    try keeper.restart()
    #expect(keeper.log().map { $0.child("sequence") } == (19...23).map { .integer($0) })
    let forgotten = ReportError(keeper.ask("why", "18"))
    #expect(forgotten?.text.contains("it keeps the latest 5") == true, "\(forgotten as Any)")
  }

  @Test func `what the journal's snapshot replaces is not in the log, which says so`() throws {
    var keeper = Keeper()
    keeper.act(.set(["a"], 1), .set(["a"], 2))
    keeper.keepSnapshot()
    keeper.act(.set(["a"], 3))
    try keeper.restart()
    #expect(keeper.log().map { $0.child("sequence") } == [3])
    let forgotten = ReportError(keeper.ask("why", "2"))
    #expect(forgotten?.text.contains("what the journal still had") == true)
    #expect(ReportError(keeper.ask("why", "4"))?.text.contains("the newest is 3") == true)
  }

  // MARK: The past

  @Test func `the last change before a restart is undone behind it`() throws {
    var keeper = Keeper()
    keeper.act(.set(["a"], 1), .set(["a"], 2), .set(["a"], 3))
    try keeper.restart()
    #expect(keeper.ask("undo", "2").child("of") == 1)
    #expect(keeper.bench.server.state.root == ["a": 1])
    #expect(keeper.ask("jump", "2").child("of") == 2)
    #expect(keeper.bench.server.state.root == ["a": 2])
  }

  /// However often the daemon restarts or hands over, every state from the oldest on that it says is
  /// that of a model, and no restart makes it forget what the journal and the history have.
  @Test(arguments: 0..<6 as Range<UInt64>)
  func `the past of former processes is that of a model`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    var limits = Limits()
    limits.historyBytes = 200 << 10
    var keeper = Keeper(limits)
    var states = [keeper.bench.server.state.root]
    // About how many bytes each revision changed.
    var sizes = [0]
    var (looks, forgotten) = (0, 0)
    for number in 1...600 as ClosedRange<Int64> {
      let text = String(repeating: "\(number) ", count: 1 + below(800))
      keeper.act(.set([.text("\(below(8))")], .text(text)))
      if states.count <= Int(keeper.bench.server.revision) {
        sizes.append(keeper.bench.server.state.root == states.last ? 0 : text.utf8.count)
        states.append(keeper.bench.server.state.root)
      }
      if below(20) == 0 { keeper.bench.keepPast() }
      if below(300) == 0 { keeper.keepSnapshot() }
      if below(25) > 0 { continue }
      let before = keeper.bench.server.oldestRevision
      let revision = keeper.bench.server.revision
      if below(3) > 0 {
        try keeper.restart()
        let oldest = try #require(keeper.bench.server.oldestRevision)
        #expect(oldest >= keeper.snapshotRevision && oldest <= revision)
        if oldest > keeper.snapshotRevision {
          // All but a chunk of patches, and what lies before the first mark, of which there are four.
          forgotten += 1
          #expect(sizes[(Int(oldest) + 1)...].reduce(0, +) > 80 << 10)
        }
      } else {
        try keeper.handOver()
        #expect(keeper.bench.server.oldestRevision == before)
      }
      guard let oldest = keeper.bench.server.oldestRevision, oldest < revision else { continue }
      for _ in 0..<5 {
        let at = oldest + UInt64(below(Int(revision - oldest)))
        #expect(keeper.bench.server.state(at: at)?.root == states[Int(at)])
        looks += 1
      }
    }
    #expect(looks > 20 && forgotten > 0, "\(looks) \(forgotten)")
  }

  /// A recording begins with what was restored, in the form of a hand-over.
  @Test func `who begins with the same past makes the next checkpoint at the same time`() throws {
    var limits = Limits()
    limits.historyBytes = 100_000
    var keeper = Keeper(limits)
    let text = Value.text(String(repeating: "x", count: 1000))
    for number in 1...40 { keeper.act(.set([.text("\(number % 4)")], text), .set(["n"], [])) }
    let kept = try keeper.restored()
    let bytes = HandOver(kept: kept, connections: [], connectionCount: 0)
      .encoded(schema: DocumentFeature.schema)
    let image = try HandOver<Document>(bytes, schema: DocumentFeature.schema)
    let due = [kept, image.kept].map { (kept: RestoredState<Document>) -> [Int] in
      var bench = keeper.bench
      bench.server = Server(
        restoring: kept, reducer: DocumentFeature(), limits: limits, at: bench.now)
      bench.join(9, versions: 1...3)
      bench.measure()
      return (1...60).filter { number in
        bench.act(9, UInt64(number), .set([.text("\(number % 4)")], .text("\(number)\(text)")))
        _ = bench.turn()
        var commands: [Command] = []
        bench.server.handle(.tick, at: bench.now, into: &commands)
        guard commands.contains(.makeCheckpoint) else { return false }
        var encoder = CBOREncoder()
        bench.server.state.encode(into: &encoder)
        bench.server.handle(
          .checkpointMade(bench.server.revision, encoder.bytes), at: bench.now, into: &commands)
        return true
      }
    }
    #expect(due[0].count > 1 && due[0] == due[1], "\(due)")
  }

  @Test func `a state that is too large has no past behind a restart, nor a start that is slow`()
    throws
  {
    var limits = Limits()
    limits.historyBytes = 4000
    var keeper = Keeper(limits)
    keeper.act(.set(["a"], .text(String(repeating: "x", count: 3000))))
    keeper.act(.set(["b"], 1))
    try keeper.restart()
    #expect(keeper.bench.server.oldestRevision == nil)
    keeper.keepSnapshot()
    keeper.act(.remove(["a"]))
    try keeper.restart()
    #expect(keeper.bench.server.oldestRevision == nil)
    keeper.bench.keepPast()
    #expect(keeper.bench.server.oldestRevision == keeper.bench.server.revision)
  }
}
