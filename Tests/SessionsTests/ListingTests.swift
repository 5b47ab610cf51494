import Access
import CBOR
import DaemonCore
import Documents
import Testing
import Values
import Wire

/// The report `parts`: what there is in the state, without values.
@Suite struct ListingTests {
  /// User 0 sees all, and user 1 nothing of `a/b`, and of the lamps only their names and powers.
  private static let policy = Policy([
    Rule(users: [0], mayConnect: true, read: [.whole], act: [.all], write: [.whole]),
    Rule(
      users: [1], mayConnect: true, read: patterns(["a", "c", "lamps/*/power"]),
      denyRead: patterns(["a/b"])),
    Rule(users: [2], mayConnect: true, read: patterns(["c"])),
    Rule(users: [3], mayConnect: true, mayAdminister: true, read: [.whole]),
  ])

  private func bench(_ root: Value, limits: Limits = Limits()) -> Bench {
    var bench = Bench(root, limits: limits, policy: Self.policy)
    for uid in [0, 1, 2, 3] as [UInt64] { bench.join(uid, uid: uid, versions: 1...3) }
    return bench
  }

  private func rows(_ report: Value) -> [Row] {
    guard case .array(let rows)? = report.child("parts") else { return [] }
    return rows.map(Row.init)
  }

  private func paths(_ report: Value) -> [String] { rows(report).map(\.path) }

  // MARK: What is listed

  @Test func `parts are listed with their kinds, counts and sizes, and no value`() {
    var bench = bench(["b": [1, 2, 3], "a": ["hush": .null], "n": -7, "t": "hush", "x": true])
    let report = bench.parts(0, "", "2")
    #expect(
      rows(report) == [
        Row("/a", "object", 1, bytes: 7), Row("/a/hush", "null", nil, bytes: 1),
        Row("/b", "array", 3, bytes: 4), Row("/n", "number", nil, bytes: 1),
        Row("/t", "string", nil, bytes: 5), Row("/x", "boolean", nil, bytes: 1),
      ])
    #expect(report.child("whole").map(Row.init)?.count == 5)
    #expect(report.child("hasMore") == false)
    #expect(report.child("revision") == 0 && report.child("since") == 0)
  }

  @Test func `what has no parts is described by itself`() {
    var bench = bench(["list": [["a": 1]], "n": 1])
    for (path, kind) in [("/list", "array"), ("/n", "number")] {
      let report = bench.parts(0, path)
      #expect(rows(report).isEmpty)
      let whole = report.child("whole").map(Row.init)
      #expect(whole?.path == path && whole?.kind == kind)
    }
  }

  @Test func `a listing says which part changed last, and not which was only beside it`() {
    var bench = bench(["a": ["x": 1, "y": 1], "c": ["d": 1]])
    bench.act(
      0, 1, .set(["a", "x"], 2), .set(["c"], ["d": 1, "e": 2]), .increment(["a", "x"], by: 1))
    _ = bench.turn()
    let changed = rows(bench.parts(0, "", "2")).map { ($0.path, $0.changed) }
    #expect(changed.map(\.0) == ["/a", "/a/x", "/a/y", "/c", "/c/d", "/c/e"])
    #expect(changed.map(\.1)[..<4] == [3, 3, nil, 2])
    #expect(changed.last?.1 == 2)
  }

  /// All that is listed is what a model of all past states says, for each user and page size.
  @Test(arguments: 0..<12 as Range<UInt64>) func `a listing equals the model`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    var bench = bench(["a": [:], "c": 0, "lamps": ["1": ["power": 1, "name": "n"]]])
    // The states behind each revision, and the path that made it.
    var states: [(value: Value, path: Path)] = [(bench.server.state.root, .root)]
    let names = ["a", "b", "c", "lamps", "1", "10", "2", "power", "~/"]
    func value(_ depth: Int) -> Value {
      if depth == 0 || below(3) == 0 {
        return [.integer(Int64(below(4))), "x", .null, [1, 2]][below(4)]
      }
      var entries = TrieMap<String, Value>()
      for _ in 0..<below(4) {
        entries.updateValue(value(depth - 1), forKey: names[below(names.count)])
      }
      return .object(entries)
    }
    for number in 1...40 as ClosedRange<UInt64> {
      let path = Path((0..<(1 + below(3))).map { _ in .text(names[below(names.count)]) })
      bench.act(0, number, below(4) == 0 ? .remove(path) : .set(path, value(2)))
      _ = bench.turn()
      if bench.server.revision == states.count { states.append((bench.server.state.root, path)) }
      if number == 3 { bench.measure() }
      if number % 7 == 3 { bench.keepPast() }
    }
    try checkPast(&bench, states.map(\.value))
    #expect(states.count > 5)
    for uid in [0, 1] as [UInt64] {
      for path in [Path.root, ["a"], ["lamps"]] {
        let view = uid == 0 ? nil : Self.policy.view(of: uid)?.filter(at: path)
        let shown = states.map { $0.value.shown(at: path, by: view) }
        for depth in 1...3 {
          let report = bench.parts(uid, path.pointer, "\(depth)")
          guard let now = shown[states.count - 1] else {
            #expect(ReportError(report)?.code == .absent)
            continue
          }
          let expected = now.listed(below: path, depth: depth)
          #expect(rows(report).map(\.withoutChange) == expected.map(\.withoutChange))
          for row in rows(report) {
            try check(
              row, below: path, shown, states.map(\.path),
              view: uid == 0 ? nil : Self.policy.view(of: uid))
          }
          // In pages of any size, too.
          let size = 1 + below(5)
          var paged: [Row] = []
          var page = bench.parts(uid, path.pointer, "\(depth)", "\(size)")
          while true {
            #expect(rows(page).count == size || page.child("hasMore") == false)
            paged += rows(page)
            guard page.child("hasMore") == true, let last = paged.last else { break }
            let rest = String(last.path.dropFirst(path.pointer.count))
            page = bench.parts(uid, path.pointer, "\(depth)", "\(size)", rest)
          }
          #expect(paged == rows(report))
        }
      }
    }
  }

  /// What was there at each revision is listed, with the changes until then.
  private func checkPast(_ bench: inout Bench, _ states: [Value]) throws {
    let oldest = try #require(bench.server.oldestRevision)
    for (revision, state) in states.enumerated() {
      for path in [Path.root, ["lamps"]] {
        let report = bench.parts(3, path.pointer, "2", "1000", "", "\(revision)")
        guard revision >= oldest, let value = state.scoped(to: path) else {
          #expect(ReportError(report)?.code == .absent)
          continue
        }
        #expect(report.child("revision") == .integer(Int64(revision)))
        let expected = value.listed(below: path, depth: 2)
        #expect(rows(report).map(\.withoutChange) == expected.map(\.withoutChange))
        #expect(rows(report).allSatisfy { ($0.changed ?? 0) <= UInt64(revision) })
      }
    }
    let after = ReportError(bench.parts(3, "", "1", "10", "", "\(states.count)"))
    #expect(after?.text.contains("the newest revision is") == true)
    #expect(ReportError(bench.parts(0, "", "1", "10", "", "1"))?.code == .denied)
    #expect(ReportError(bench.parts(3, "", "1", "10", "", "x"))?.code == .malformed)
  }

  /// A row's last change is that of its value, or a later one that put a whole around it.
  private func check(
    _ row: Row, below path: Path, _ shown: [Value?], _ changes: [Path], view: View?
  ) throws {
    let pointer = try #require(Path(pointer: row.path))
    let rest = Path(Array(pointer.keys.dropFirst(path.keys.count)))
    let values = shown.map { $0?.value(at: rest) }
    let last = (1..<values.count).last { values[$0] != values[$0 - 1] } ?? 0
    let said = Int(row.changed ?? 0)
    #expect(said >= last && said < values.count, "\(row)")
    if said > last {
      let made = changes[said]
      #expect(
        made.leads(to: pointer) || pointer.leads(to: made), "\(row) was not touched by \(made)")
      // Nor does it tell of a change that is hidden.
      #expect(view.map { $0.filter(at: made) != nil } ?? true, "\(row) tells of \(made)")
    }
  }

  // MARK: Rights

  @Test func `a listing shows what may be read, and nothing of the rest`() {
    var bench = bench([
      "a": ["b": ["hush": 1], "x": 1], "c": 1, "hush": 1,
      "lamps": ["1": ["power": 5, "hush": 1]],
    ])
    let report = bench.parts(1, "", "9")
    #expect(
      paths(report) == ["/a", "/a/x", "/c", "/lamps", "/lamps/1", "/lamps/1/power"])
    #expect(!"\(report)".contains("hush"))
    #expect(rows(report).first { $0.path == "/lamps/1" } == Row("/lamps/1", "object", 1, bytes: 8))
    #expect(ReportError(bench.parts(1, "/a/b"))?.code == .denied)
    #expect(ReportError(bench.parts(2, "/a"))?.code == .denied)
    // A hidden part changes, and the client does not see that it does.
    bench.act(0, 1, .set(["a", "b", "hush"], 2), .set(["lamps", "1", "hush"], 2))
    _ = bench.turn()
    #expect(rows(bench.parts(1, "", "9")).allSatisfy { $0.changed == nil })
    #expect(rows(bench.parts(0, "", "9")).contains { $0.changed == 2 })
  }

  @Test func `a listing that another policy overtakes is refused`() throws {
    var bench = bench(["a": ["x": 1]])
    let asked = bench.list(1, "")
    let (request, query) = try #require(asked)
    let listing = bench.server.inspection(of: request, for: ConnectionID(1))
    let report = try #require(listing).get().finding().report
    bench.handle(.policy(Policy([Rule(users: [1], mayConnect: true, read: patterns(["c"]))])))
    func codes(_ messages: [ServerMessage]) -> [ReportError.Code?] {
      messages.map { message in
        if case .report(query, let answer, _) = message { ReportError(answer)?.code } else { nil }
      }
    }
    // Until the shell has answered, a query of the same number would get what it has made.
    bench.say(1, .query(number: query, "parts", arguments: []))
    let said = bench.said(to: 1, (0..<10).flatMap { _ in bench.turn() })
    #expect(said.count == 2 && Set(codes(said)) == [.refused, .restarting])
    bench.handle(.answered(ConnectionID(1), query: query, report))
    #expect(bench.said(to: 1, (0..<10).flatMap { _ in bench.turn() }).isEmpty)
    #expect(ReportError(bench.parts(1, "/a"))?.code == .denied)
  }

  @Test func `a large report is not kept for who does not read`() throws {
    var limits = Limits()
    limits.reportPageBytes = 100
    for (bytes, isKept) in [(90, true), (110, false)] {
      var bench = bench(["a": 1], limits: limits)
      let asked = bench.list(0, "")
      let query = try #require(asked).query
      bench.handle(.blocked(ConnectionID(0), unsent: 1))
      let report = Value.text(String(repeating: "x", count: bytes))
      bench.handle(.answered(ConnectionID(0), query: query, report.encoded))
      #expect(bench.frames(to: 0, bench.turn()).isEmpty)
      bench.handle(.drained(ConnectionID(0)))
      let said = bench.said(to: 0, bench.turn())
      guard case .report(query, let answer, _)? = said.first else {
        Issue.record("\(said)")
        return
      }
      #expect(isKept ? answer == report : ReportError(answer)?.code == .refused)
    }
  }

  // MARK: Limits

  @Test func `what cannot be listed is refused with the reason`() {
    var bench = bench(["a": 1])
    for (arguments, code) in [
      (["a"], ReportError.Code.malformed), (["", "0"], .malformed), (["", "101"], .malformed),
      (["", "1", "0"], .malformed), (["", "1", "10001"], .malformed),
      (["", "1", "1", "a"], .malformed),
      (["/none"], .absent), (["/a/b"], .absent),
    ] {
      bench.say(0, .query(number: 1, "parts", arguments: arguments))
      #expect(ReportError(bench.answer(0, 1))?.code == code, "\(arguments)")
    }
  }

  @Test func `a connection has one listing made at a time, and another number for it`() throws {
    var bench = bench(["a": 1])
    bench.say(
      0, .query(number: 1, "parts"), .query(number: 2, "parts"), .query(number: 1, "limits"))
    let commands = (0..<10).flatMap { _ in bench.turn() }
    let asked = commands.filter { if case .answer = $0 { true } else { false } }
    #expect(asked.count == 1)
    let refused = bench.said(to: 0, commands).compactMap { message in
      if case .report(2, let value, _) = message { ReportError(value)?.code } else { nil }
    }
    #expect(refused == [.refused])
    bench.handle(.answered(ConnectionID(0), query: 1, Value.null.encoded))
    _ = bench.turn()
    #expect(paths(bench.parts(0, "")) == ["/a"])
  }

  @Test func `a part is not listed if its pointer is longer than a path may be`() {
    var limits = Limits()
    limits.pathBytes = 8
    var bench = bench(["a": ["12345": 1, "123456": ["x": 1], "~~~": 1]], limits: limits)
    #expect(paths(bench.parts(0, "", "9")) == ["/a", "/a/12345"])
  }

  @Test func `a large map is listed in pages that fit a frame`() throws {
    var limits = Limits()
    limits.frameBytes = 8192
    var entries = TrieMap<String, Value>()
    for number in 0..<500 { entries.updateValue(.integer(Int64(number)), forKey: "\(number)") }
    var bench = bench(.object(entries), limits: limits)
    var (listed, pages, last) = ([String](), 0, "")
    while true {
      let report = bench.parts(0, "", "1", "10000", last)
      try #require(ReportError(report) == nil, "\(report)")
      listed += paths(report)
      pages += 1
      guard report.child("hasMore") == true else { break }
      last = try #require(listed.last)
    }
    #expect(listed == (0..<500).map { "/\($0)" }.sorted())
    #expect(pages > 3)
  }
}

/// A row of the report.
private struct Row: Equatable {
  var path: String
  var kind: String
  var count: UInt64?
  var bytes: UInt64?
  var changed: UInt64?

  init(_ path: String, _ kind: String, _ count: UInt64?, bytes: UInt64, changed: UInt64? = nil) {
    (self.path, self.kind, self.count) = (path, kind, count)
    (self.bytes, self.changed) = (bytes, changed)
  }

  init(_ value: Value) {
    func number(_ name: String) -> UInt64? {
      if case .integer(let number)? = value.child(.text(name)) { UInt64(number) } else { nil }
    }
    func text(_ name: String) -> String {
      if case .text(let text)? = value.child(.text(name)) { text } else { "?" }
    }
    (path, kind) = (text("path"), text("kind"))
    (count, bytes, changed) = (number("count"), number("bytes"), number("changed"))
  }

  var withoutChange: Row {
    var row = self
    row.changed = nil
    return row
  }
}

extension Value {
  /// The rows that a listing has, from the value itself.
  fileprivate func listed(below path: Path, depth: Int) -> [Row] {
    guard case .object(let entries) = self, depth > 0 else { return [] }
    let sorted = entries.sorted { String.precedes($0.key, $1.key) }
    return sorted.flatMap { key, value -> [Row] in
      let place = Path(path.keys + [.text(key)])
      return [value.row(at: place)] + value.listed(below: place, depth: depth - 1)
    }
  }

  private func row(at path: Path) -> Row {
    let count: Int? =
      switch self {
      case .object(let entries): entries.count
      case .array(let elements): elements.count
      default: nil
      }
    return Row(path.pointer, kind, count.map { UInt64($0) }, bytes: UInt64(encoded.count))
  }

  /// The visible part of what is at the path.
  fileprivate func shown(at path: Path, by filter: ViewFilter?) -> Value? {
    guard let value = value(at: path) else { return nil }
    guard let filter else { return value }
    var encoder = CBOREncoder()
    guard value.encoded.withUnsafeBytes({ filter.filter(value: $0, into: &encoder) }) else {
      return nil
    }
    return try? CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      try Value(from: &decoder, seed: HashSeed(7))
    }
  }
}

extension Policy {
  fileprivate func view(of uid: UInt64) -> View? {
    rights(uid: uid, gid: 0, groups: []).view
  }
}

extension Bench {
  /// Ask for a listing. Returns the request that the shell gets, and the number of the query.
  fileprivate mutating func list(
    _ client: UInt64, _ arguments: String...
  ) -> (ShellQuery, query: UInt64)? {
    say(client, .query(number: 77, "parts", arguments: arguments))
    for _ in 0..<10 {
      for case .answer(ConnectionID(client), let query, let request) in turn() {
        return (request, query)
      }
    }
    return nil
  }

  fileprivate mutating func parts(_ client: UInt64, _ arguments: String...) -> Value {
    say(client, .query(number: 78, "parts", arguments: arguments))
    return answer(client, 78)
  }
}
