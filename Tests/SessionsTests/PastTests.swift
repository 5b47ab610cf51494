import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// The past of a state: the value at a path at a revision, and its changes.
@Suite struct PastTests {
  private static let policy = Policy([
    Rule(
      users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
      write: [.whole]),
    Rule(
      users: [1], mayConnect: true, mayAdminister: true, read: [.whole],
      denyRead: patterns(["a/b"])),
    Rule(users: [2], mayConnect: true, read: [.whole]),
  ])

  private func bench(_ root: Value = [:], historyBytes: Int = 4 << 20) -> Bench {
    var limits = Limits()
    limits.historyBytes = historyBytes
    var bench = Bench(root, limits: limits, policy: Self.policy)
    for uid in [0, 1, 2] as [UInt64] { bench.join(uid, uid: uid, versions: 1...3) }
    return bench
  }

  /// The value that the report gives; nil if it says that there was none.
  private func value(_ report: Value, _ name: PathKey = "value") throws -> Value? {
    guard case .bytes(let bytes)? = report.child(name) else {
      #expect(report.child(name) == .null, "\(report)")
      return nil
    }
    return try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      try Value(from: &decoder, seed: HashSeed(7))
    }
  }

  private func code(_ report: Value) -> ReportError.Code? { ReportError(report)?.code }

  // MARK: The model

  /// Whatever is asked of the past is what a model of all states says.
  @Test(arguments: 0..<8 as Range<UInt64>)
  func `the past is that of a model which has every state`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    var bench = bench(["a": ["b": 0, "c": 0], "list": [1, 2]], historyBytes: 1000)
    bench.measure()
    var states = [bench.server.state.root]
    var (oldest, looked) = (Set<UInt64>(), 0)
    let names: [PathKey] = ["a", "b", "c", "d"]
    for number in 1...400 as ClosedRange<UInt64> {
      let path = Path((0..<(1 + below(3))).map { _ in names[below(4)] })
      let actions: [DocumentAction] = [
        .set(path, .integer(Int64(below(9)))), .set(path, ["b": .integer(Int64(below(9)))]),
        .remove(path), .increment(["n"], by: 1), .append(["list"], .integer(Int64(number))),
        .remove(["list", "0"]),
      ]
      bench.act(0, number, actions[below(6)])
      _ = bench.turn()
      while states.count <= Int(bench.server.revision) { states.append(bench.server.state.root) }
      if below(10) == 0 {
        bench.keepPast()
      }
      guard below(8) == 0, let first = bench.server.oldestRevision else { continue }
      oldest.insert(first)
      let at = UInt64(below(states.count))
      let place = Path((0..<below(3)).map { _ in names[below(4)] })
      let report = bench.ask(0, "past", place.pointer, "\(at)")
      if at < first {
        #expect(code(report) == .absent)
      } else {
        looked += 1
        #expect(try value(report) == states[Int(at)].scoped(to: place))
        #expect(bench.server.state(at: at)?.root == states[Int(at)])
      }
      try checkChanges(&bench, place, states, since: first, count: 1 + below(6))
    }
    #expect(oldest.count > 1 && looked > 5, "\(oldest) \(looked)")
  }

  /// All changes, page by page from the newest, are those of the model.
  private func checkChanges(
    _ bench: inout Bench, _ path: Path, _ states: [Value], since first: UInt64, count: Int
  ) throws {
    let values = states.map { $0.scoped(to: path) }
    let expected = (Int(first) + 1..<states.count).filter { values[$0] != values[$0 - 1] }
    var found: [Int] = []
    var before = UInt64.max
    while true {
      let report = bench.ask(0, "changes", path.pointer, "\(count)", "\(before)")
      #expect(report.child("since") == .integer(Int64(first)))
      guard case .array(let rows)? = report.child("changes") else {
        Issue.record("\(report)")
        return
      }
      #expect(rows.count <= count)
      var page: [Int] = []
      for row in rows {
        guard case .integer(let revision)? = row.child("revision") else { continue }
        page.append(Int(revision))
        try checkPlaces(
          row, below: path, from: states[Int(revision) - 1], to: states[Int(revision)])
      }
      found = page + found
      guard case .integer(let next)? = report.child("next") else { break }
      before = UInt64(next)
    }
    #expect(found == expected)
  }

  /// The places that a revision changed have the values of before and after, and nothing else differs.
  private func checkPlaces(_ row: Value, below path: Path, from old: Value, to new: Value) throws {
    guard case .array(let places)? = row.child("places"), !places.isEmpty else {
      Issue.record("\(row)")
      return
    }
    var made = old.scoped(to: path)
    for place in places {
      guard case .text(let pointer)? = place.child("path"), let at = Path(pointer: pointer) else {
        Issue.record("\(place)")
        continue
      }
      #expect(path.leads(to: at))
      let (from, to) = (try value(place, "from"), try value(place, "to"))
      #expect(from == old.scoped(to: at) && to == new.scoped(to: at) && from != to)
      if case .object? = from, case .object? = to { Issue.record("\(at) has parts that differ") }
      let rest = Path(Array(at.keys.dropFirst(path.keys.count)))
      if rest.keys.isEmpty {
        made = to
      } else if var document = made.map({ Document($0) }) {
        if let to { try document.set(to, at: rest) } else { _ = try document.remove(at: rest) }
        made = document.root
      }
    }
    #expect(made == new.scoped(to: path))
  }

  // MARK: Rights

  @Test func `the past is for those who administer, and shows them what they may read`() throws {
    var bench = bench(["a": ["b": "hush", "c": 1]])
    bench.measure()
    bench.keepPast()
    bench.act(0, 1, .set(["a", "b"], "hush too"), .set(["a", "c"], 2), .remove(["a"]))
    _ = bench.turn()
    #expect(try value(bench.ask(0, "past", "/a/b", "0")) == "hush")
    #expect(try value(bench.ask(0, "past", "/a/b", "3")) == nil)
    #expect(try value(bench.ask(1, "past", "", "1")) == ["a": ["c": 1]])
    #expect(code(bench.ask(1, "past", "/a/b", "1")) == .denied)
    #expect(code(bench.ask(2, "past", "", "1")) == .denied)
    #expect(code(bench.ask(2, "changes", "")) == .denied)
    let changes = bench.ask(1, "changes", "/a")
    guard case .array(let rows)? = changes.child("changes") else {
      Issue.record("\(changes)")
      return
    }
    #expect(rows.map { $0.child("revision") } == [2, 3])
    let places = try rows.map { row -> [[Value?]] in
      guard case .array(let places)? = row.child("places") else { return [] }
      return try places.map { [$0.child("path"), try value($0, "from"), try value($0, "to")] }
    }
    #expect(places == [[["/a/c", 1, 2]], [["/a", ["c": 2], nil]]])
    // Nor does it tell that there was a hidden change before these.
    #expect(bench.ask(1, "changes", "/a", "2").child("next") == .null)
    #expect(bench.ask(0, "changes", "/a", "2").child("next") == 2)
  }

  // MARK: Limits

  @Test func `what cannot be asked of the past is refused with the reason`() {
    var bench = bench()
    #expect(code(bench.ask(0, "past", "", "0")) == .absent)
    bench.measure()
    bench.keepPast()
    for (name, arguments, expected) in [
      ("past", [""], ReportError.Code.malformed), ("past", ["", "x"], .malformed),
      ("past", ["a", "0"], .malformed), ("past", ["", "1"], .absent),
      ("changes", ["", "0"], .malformed), ("changes", ["", "1001"], .malformed),
      ("changes", ["", "1", "x"], .malformed), ("changes", ["x"], .malformed),
    ] {
      bench.say(0, .query(number: 5, name, arguments: arguments))
      #expect(code(bench.answer(0, 5)) == expected, "\(name) \(arguments)")
    }
  }

  @Test func `the past of a first start does not wait for the next second`() {
    var bench = bench()
    let measurements = bench.measurements
    bench.handle(.started(.first))
    #expect(bench.measurements == measurements + 1 && !bench.isCheckpointDue)
    bench.measure()
    #expect(bench.isCheckpointDue)
  }

  @Test func `changes that would not fit are left for another page`() throws {
    var limits = Limits()
    limits.frameBytes = 8192
    var bench = Bench([:], limits: limits, policy: Self.policy)
    bench.join(0, uid: 0, versions: 1...3)
    bench.measure()
    bench.keepPast()
    let texts = (0..<12).map { String(repeating: "\($0 % 10)", count: $0 < 6 ? 1500 : 10) }
    for (number, text) in texts.enumerated() {
      bench.act(0, UInt64(number) + 1, .set(["t"], .text(text)))
      _ = bench.turn()
    }
    var (found, pages, before) = ([Value?](), 0, "\(UInt64.max)")
    while true {
      let report = bench.ask(0, "changes", "/t", "1000", before)
      guard case .array(let rows)? = report.child("changes") else {
        Issue.record("\(report)")
        return
      }
      found =
        try rows.map { row in
          guard case .array(let places)? = row.child("places") else { return nil }
          #expect(places.count == 1)
          return try places.first.flatMap { try value($0, "to") }
        } + found
      pages += 1
      guard case .integer(let next)? = report.child("next") else { break }
      before = "\(next)"
    }
    #expect(found == texts.map { .text($0) })
    #expect(pages > 2)
  }

  @Test func `a state that is larger than half of the history has no past`() {
    var bench = bench(["text": .text(String(repeating: "x", count: 600))], historyBytes: 1000)
    bench.measure()
    bench.keepPast()
    #expect(bench.server.oldestRevision == nil)
    let error = ReportError(bench.ask(0, "past", "", "0"))
    #expect(error?.text.contains("historyBytes") == true)
    bench.act(0, 1, .set([], ["small": 1]))
    _ = bench.turn()
    bench.measure()
    bench.keepPast()
    #expect(bench.server.oldestRevision == 1)
  }

  @Test func `without memory for a checkpoint there is none, and another try later`() {
    var bench = bench()
    bench.measure()
    #expect(bench.isCheckpointDue)
    var commands: [Command] = []
    bench.server.handle(.tick, at: bench.now, into: &commands)
    #expect(!commands.contains(.makeCheckpoint))
    bench.handle(.checkpointMade(0, []))
    #expect(bench.server.oldestRevision == nil)
    bench.keepPast()
    #expect(bench.server.oldestRevision == 0)
  }

  /// As when a daemon begins with a flood: its first checkpoint is of its first state.
  @Test func `a checkpoint that the history has lost is made again, even of an idle state`() {
    var bench = bench(historyBytes: 1000)
    bench.measure()
    for number in 1...1000 as ClosedRange<UInt64> { bench.act(0, number, .increment(["n"], by: 1)) }
    _ = bench.turn()
    bench.measure()
    #expect(bench.isCheckpointDue)
    bench.handle(.checkpointMade(0, Value.object([:]).encoded))
    #expect(bench.server.oldestRevision == nil)
    bench.keepPast()
    #expect(bench.server.oldestRevision == 1000)
  }

  @Test func `an idle daemon makes no checkpoint again`() {
    var bench = bench()
    bench.measure()
    bench.keepPast()
    var commands: [Command] = []
    for _ in 0..<5 { bench.server.handle(.tick, at: bench.now, into: &commands) }
    #expect(!commands.contains(.makeCheckpoint))
  }
}
