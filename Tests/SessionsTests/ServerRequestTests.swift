import CBOR
import DaemonCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// Requests are answered in order and in turns, at the cost of the client that sends them.
@Suite struct ServerRequestTests {
  private func bytes(_ messages: ClientMessage...) -> [UInt8] { messages.flatMap { frame($0) } }

  // MARK: Back-pressure

  @Test func `every request within the limits is answered, however many there are`() {
    var bench = Bench.withClients(1)
    let numbers = Array(1...9000) as [UInt64]
    var stream = numbers.flatMap {
      bytes(
        .subscribe(subscription: $0, ["n", .integer(Int64($0))], nil),
        .digestRequest(subscription: $0), .ping($0))
    }
    var isPaused = false
    var pongs: [UInt64] = []
    var pauses = 0
    while pongs.count < 9000, !stream.isEmpty || isPaused {
      if !isPaused {
        let part = Array(stream.prefix(65_536))
        stream.removeFirst(part.count)
        isPaused = bench.handle(.received(ConnectionID(1), part)).contains(
          .pauseReading(ConnectionID(1)))
        pauses += isPaused ? 1 : 0
      }
      let commands = bench.turn()
      for case .encodeSnapshot(let id) in commands { bench.encode(id) }
      #expect(bench.goodbye(to: 1, commands) == nil)
      for case .pong(let value, _) in bench.said(to: 1, commands) { pongs.append(value) }
      if commands.contains(.resumeReading(ConnectionID(1))) { isPaused = false }
    }
    for turn in bench.turns([1]) {
      for case .pong(let value, _) in turn[1] ?? [] { pongs.append(value) }
    }
    #expect(pongs == numbers)
    #expect(pauses > 2)
    #expect(bench.server.load.scopes == 9000)
  }

  @Test func `bytes that arrive while reading is paused wait in their order`() {
    var limits = Limits()
    limits.requestsPerTurn = 2
    var bench = Bench.withClients(1, limits: limits)
    for value in 1...9 as ClosedRange<UInt64> { bench.say(1, .ping(value)) }
    let pongs = bench.turns([1]).flatMap { $0[1] ?? [] }
    #expect(pongs == (1...9).map { .pong($0, revision: 0) })
  }

  @Test func `fewer requests wait when each takes much memory`() {
    var bench = Bench.withClients(1)
    let arguments = Array(repeating: "", count: 16)
    var count: UInt64 = 0
    var isPaused = false
    while !isPaused, count < 1000 {
      count += 1
      let query = ClientMessage.query(number: count, "limits", arguments: arguments)
      isPaused = bench.handle(.received(ConnectionID(1), frame(query)))
        .contains(.pauseReading(ConnectionID(1)))
    }
    #expect(count > 60 && count < 120, "\(count)")
    let path = Path(Array(repeating: PathKey.text(""), count: 100))
    bench.say(1, .subscribe(subscription: 1, path, nil))
    let said = bench.turns([1]).flatMap { $0[1] ?? [] }
    #expect(said.count { if case .report = $0 { true } else { false } } == Int(count))
    #expect(said.contains { if case .subscribed = $0 { true } else { false } })
  }

  @Test func `a query with more arguments than the limit is refused`() {
    var bench = Bench.withClients(1)
    bench.say(1, .query(number: 1, "limits", arguments: Array(repeating: "", count: 17)))
    bench.say(1, .query(number: 2, "limits", arguments: Array(repeating: "", count: 16)))
    let reports = bench.said(to: 1, bench.turn()).compactMap { message -> Value? in
      if case .report(_, let value, _) = message { value } else { nil }
    }
    #expect(reports.map { ReportError($0)?.code } == [.limit, nil])
    #expect(reports.first.flatMap(ReportError.init)?.text.contains("and 16 arguments") == true)
  }

  @Test func `an action missing in the log is absent, and a second pending query is refused`() {
    var bench = Bench.withClients(1)
    bench.say(1, .query(number: 1, "why", arguments: ["99"]))
    bench.say(1, .query(number: 2, "policy.reload"), .query(number: 2, "policy.reload"))
    let said = bench.turns([1]).flatMap { $0[1] ?? [] }
    let codes = said.compactMap { message in
      if case .report(_, let value, _) = message { ReportError(value)?.code } else { nil }
    }
    #expect(codes == [.absent, .refused])
  }

  @Test func `unlimited limits do not overflow`() {
    var limits = Limits()
    for (name, _) in limits.table { limits.set(name, to: .max) }
    var bench = Bench.withClients(1, limits: limits)
    bench.say(1, .query(number: 1, "limits"), .ping(1))
    bench.act(1, 1, .put("n", 2))
    #expect(bench.said(to: 1, bench.turn()).count == 3)
  }

  /// With them every value is too large to be sent in place of what has changed since.
  private static let allLarge: Limits = {
    var limits = Limits()
    limits.inlineSnapshotBytes = 1
    return limits
  }()

  private static let kept = Value.object(
    TrieMap(uniqueKeysWithValues: (1...100).map { ("\($0)", .text("more than one byte")) }))

  /// 300,000 bytes of patches of something else.
  private static let longChanges = DocumentAction.put(
    "n", .text(String(repeating: "x", count: 300_000)))

  /// Whether a message says that a subscription begins with what it has missed.
  private func isBegun(_ message: ServerMessage) -> Bool {
    if case .subscribed(let begun) = message { begun.continuation == .patch } else { false }
  }

  @Test func `a turn ends when its work for requests reaches the limit`() {
    var bench = Bench.withClients(1, limits: Self.allLarge)
    bench.act(1, 1, .put("kept", Self.kept))
    bench.act(1, 2, Self.longChanges)
    _ = bench.turn()
    // It is no small value that is there, and the position is before the long patches.
    let position = Position(epoch: 9, run: 1, revision: 1)
    for number in 1...100 as ClosedRange<UInt64> {
      bench.say(1, .subscribe(subscription: number, ["kept", .text("\(number)")], position))
    }
    var answered: [Int] = []
    for turn in bench.turns([1]) {
      answered.append((turn[1] ?? []).count { isBegun($0) })
    }
    #expect(answered.reduce(0, +) == 100)
    // Each scans 300,000 bytes of patches.
    #expect(answered.max() ?? 0 <= 2, "\(answered)")
  }

  @Test func `many connections together get no more work in a turn than one`() {
    var bench = Bench.withClients(101, limits: Self.allLarge)
    bench.act(101, 1, .put("kept", Self.kept))
    bench.act(101, 2, Self.longChanges)
    _ = bench.turn()
    let position = Position(epoch: 9, run: 1, revision: 1)
    let clients = Array(1...100) as [UInt64]
    for number in clients {
      bench.say(number, .subscribe(subscription: 1, ["kept"], position))
      bench.say(number, .ping(number))
    }
    var answered: [Int] = []
    for turn in bench.turns(clients) {
      answered.append(
        turn.values.joined().count { isBegun($0) })
    }
    #expect(answered.reduce(0, +) == 100)
    #expect(answered.max() ?? 0 <= 2, "\(answered)")
  }

  @Test func `an action behind waiting requests is performed in its order`() {
    var limits = Limits()
    limits.requestsPerTurn = 1
    var bench = Bench.withSubscribers(1, limits: limits)
    bench.handle(
      .received(
        ConnectionID(1),
        bytes(
          .ping(1), .ping(2), .action(number: 1, .applied, payload: payload(.put("n", 5))),
          .ping(3))))
    let said = bench.turns([1]).flatMap { $0[1] ?? [] }
    #expect(said.contains(Acknowledgement.reduced(1, 1, at: 1)))
    #expect(said.suffix(2).contains(.pong(3, revision: 1)))
  }

  @Test func `garbage behind waiting requests ends the connection after their answers`() {
    var limits = Limits()
    limits.requestsPerTurn = 1
    var bench = Bench.withClients(1, limits: limits)
    bench.handle(.received(ConnectionID(1), bytes(.ping(1), .ping(2)) + [1, 0, 0, 0, 0xff]))
    let said = bench.turns([1]).flatMap { $0[1] ?? [] }
    #expect(said.prefix(2) == [.pong(1, revision: 0), .pong(2, revision: 0)])
    guard case .goodbye(let goodbye)? = said.last else {
      Issue.record("no goodbye: \(said)")
      return
    }
    #expect(goodbye.code == .malformed)
  }

  // MARK: Shares

  /// In every turn of a flood another client is answered, and the turn's work is bounded.
  @Test(arguments: ["log", "limits", "clients", "status", "effects", "metrics", "why", "?"])
  func `a flood of queries delays other clients by at most one turn's work`(name: String) {
    var bench = Bench.withClients(3)
    for number in 1...300 as ClosedRange<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))))
    }
    _ = bench.turn()
    let arguments = name == "log" ? ["2048"] : name == "why" ? ["300"] : []
    for number in 1...100 as ClosedRange<UInt64> {
      bench.say(1, .query(number: number, name, arguments: arguments))
      bench.say(2, .query(number: number, name, arguments: arguments))
    }
    var reports: [[UInt64]] = [[], []]
    var (count, isWoken) = (0, true)
    while isWoken {
      count += 1
      bench.say(3, .ping(UInt64(count)))
      let commands = bench.turn()
      #expect(bench.said(to: 3, commands) == [.pong(UInt64(count), revision: 300)])
      let bytes = commands.reduce(0) { sum, command in
        if case .send(_, let frames) = command {
          sum + frames.reduce(0) { $0 + $1.count }
        } else {
          sum
        }
      }
      #expect(bytes < 300_000)
      for client in 0..<2 {
        for case .report(let number, _, false) in bench.said(to: UInt64(client) + 1, commands) {
          reports[client].append(number)
        }
      }
      // Neither client gets far ahead of the other.
      #expect(abs(reports[0].count - reports[1].count) <= 1 + reports[0].count / 20)
      isWoken = commands.contains(.wake)
    }
    #expect(reports == [Array(1...100), Array(1...100)])
  }

  @Test func `users share the work, however many connections each has`() {
    var bench = Bench()
    for number in 1...40 as ClosedRange<UInt64> { bench.join(number, uid: 7) }
    bench.join(50, uid: 8)
    for round in 1...50 as ClosedRange<UInt64> {
      for number in 1...40 as ClosedRange<UInt64> {
        bench.say(number, .query(number: round, "status"))
      }
      bench.say(50, .query(number: round, "status"))
    }
    var (own, others, turns) = (0, 0, 0)
    while own < 50 {
      let commands = bench.turn()
      turns += 1
      own += bench.said(to: 50, commands).count
      for number in 1...40 as ClosedRange<UInt64> {
        others += bench.said(to: number, commands).count
      }
    }
    #expect(others < 4 * own, "\(others) in \(turns) turns")
  }

  // MARK: Pages

  @Test func `a client with many long paths does not crowd others out of the report`() throws {
    var bench = Bench.withClients(60)
    let long = String(repeating: "x", count: 4000)
    for number in 1...900 as ClosedRange<UInt64> {
      bench.say(30, .subscribe(subscription: number, [.text("\(number)\(long)")], nil))
      if number.isMultiple(of: 100) { _ = bench.turns([]) }
    }
    bench.say(1, .query(number: 4, "clients"))
    let pages = bench.turns([1]).flatMap { $0[1] ?? [] }
    let joined = join(pages, 4)
    guard case .array(let clients) = joined else {
      Issue.record("no array: \(joined)")
      return
    }
    #expect(clients.map { $0.child("connection") } == (1...60).map { .integer($0) })
    #expect(clients[29].child("subscriptions") == 900)
    guard case .array(let scopes)? = clients[29].child("scopes") else {
      Issue.record("no scopes")
      return
    }
    #expect(!scopes.isEmpty && scopes.count <= 32)
  }

  /// The pages of a report, concatenated.
  private func join(_ messages: [ServerMessage], _ query: UInt64) -> Value {
    var elements = TreeArray<Value>()
    var hasEnded = false
    for case .report(query, let page, let hasMore) in messages {
      #expect(!hasEnded)
      hasEnded = !hasMore
      guard case .array(let rows) = page.child("records") ?? page else { return page }
      elements.append(contentsOf: rows)
    }
    #expect(hasEnded)
    return .array(elements)
  }

  @Test func `a page is within its limit, and the pages together are the report`() {
    var limits = Limits()
    limits.reportPageBytes = 2000
    var bench = Bench.withClients(1, limits: limits, versions: 1...2)
    for number in 1...500 as ClosedRange<UInt64> {
      bench.act(1, number, .put("n", .integer(Int64(number))))
    }
    _ = bench.turn()
    for (name, expected) in [("300", 201..<501), ("9999", 1..<501), ("0", 1..<1)]
      as [(String, Range<Int>)]
    {
      bench.say(1, .query(number: 9, "log", arguments: [name]))
      let turns = bench.turns([1])
      let messages = turns.flatMap { $0[1] ?? [] }
      #expect(messages.allSatisfy { frame($0).count < 3000 })
      guard case .array(let rows) = join(messages, 9) else { return }
      #expect(rows.map { $0.child("sequence") } == expected.map { .integer(Int64($0)) })
    }
  }

  @Test(arguments: ["clients", "log"])
  func `while a user sends now and then, pages for others are short, and say the same`(
    report name: String
  ) {
    var reports: [[Value?]] = []
    for isLight in [false, true] {
      var bench = Bench()
      bench.join(1, uid: 7, versions: 1...2)
      for number in 2...80 as ClosedRange<UInt64> { bench.join(number, uid: 7) }
      bench.join(100, uid: 8)
      for number in 1...300 as ClosedRange<UInt64> {
        bench.act(1, number, .put("n", .integer(Int64(number))))
      }
      _ = bench.turn()
      bench.pass(.seconds(2))
      if isLight { bench.say(100, .ping(0)) }
      bench.say(1, .query(number: 9, name, arguments: name == "log" ? ["300"] : []))
      let messages = bench.turns([1]).flatMap { $0[1] ?? [] }
      let longest = messages.map { frame($0).count }.max() ?? 0
      // A row is shorter than 500 bytes.
      #expect(isLight ? longest < 2600 : longest > 10_000, "\(longest)")
      guard case .array(let rows) = join(messages, 9) else {
        Issue.record("no report")
        return
      }
      reports.append(rows.map { $0.child(name == "log" ? "sequence" : "connection") })
    }
    #expect(reports[0] == reports[1])
    #expect(reports[0].count > 80)
  }

  @Test func `others do not wait until the work of a long answer is paid`() {
    var limits = Limits()
    limits.requestWorkPerTurn = 100
    var bench = Bench.withClients(150, limits: limits, versions: 1...2)
    bench.join(151, uid: 8)
    bench.say(151, .subscribe(subscription: 1, [], nil))
    _ = bench.settle()
    bench.pass(.seconds(1))
    for number in 1...2 as ClosedRange<UInt64> {
      bench.say(1, .query(number: number, "clients", arguments: []))
    }
    // A page of 128 rows is more than the work of five turns.
    let first = bench.turn()
    let sent = bench.said(to: 1, first) + bench.said(to: 1, bench.turn())
    #expect(sent.contains { if case .report = $0 { true } else { false } })
    // The one that owes comes first in this turn.
    bench.say(1, .ping(1))
    bench.say(151, .digestRequest(subscription: 1))
    let said = bench.said(to: 151, bench.turn())
    #expect(said.contains { if case .digest = $0 { true } else { false } })
  }

  @Test(arguments: ["log", "log.follow"])
  func `an argument that is not a number is an error`(name: String) {
    var bench = Bench.withClients(1)
    bench.say(1, .query(number: 1, name, arguments: ["-1"]))
    guard case .report(1, let report, _)? = bench.said(to: 1, bench.turn()).first,
      let error = ReportError(report)
    else {
      Issue.record("no error")
      return
    }
    #expect(error.code == .malformed)
    #expect(error.text.hasSuffix("\"-1\" is no number"))
  }

  // MARK: Digests

  @Test func `a digest request is always answered from version 2 on`() {
    for version in 1...2 as ClosedRange<UInt64> {
      var bench = Bench()
      bench.open(1)
      bench.say(1, .hello(.init(versions: version...version, label: "")))
      bench.say(
        1, .digestRequest(subscription: 5), .subscribe(subscription: 1, [], nil), .ping(1),
        .digestRequest(subscription: 1))
      _ = bench.settle()
      bench.say(1, .digestRequest(subscription: 5), .digestRequest(subscription: 1), .ping(2))
      let said = bench.said(to: 1, bench.settle())
      let none = ServerMessage.digest(subscription: 5, revision: 0, nil)
      #expect(said.contains(none) == (version == 2))
      #expect(
        said.contains(.digest(subscription: 1, revision: 0, bench.server.digest())))
      #expect(said.last == .pong(2, revision: 0))
    }
  }

  @Test func `a client of version 1 gets a report as one page, for the same work`() {
    var limits = Limits()
    limits.reportPageBytes = 500
    var turnCounts: [Int] = []
    for (version, pages) in [(1, 1...1), (2, 30...150)] as [(UInt64, ClosedRange<Int>)] {
      var bench = Bench(limits: limits)
      bench.open(1)
      bench.say(1, .hello(.init(versions: 1...version, label: "old")))
      for number in 1...300 as ClosedRange<UInt64> {
        bench.act(1, number, .put("n", .integer(Int64(number))))
      }
      _ = bench.turn()
      bench.say(1, .query(number: 1, "log", arguments: ["300"]))
      let turns = bench.turns([1])
      turnCounts.append(turns.count)
      let reports = turns.flatMap { $0[1] ?? [] }.compactMap { message -> Int? in
        guard case .report(1, let value, _) = message,
          case .array(let rows)? = value.child("records")
        else { return nil }
        return rows.count
      }
      #expect(pages.contains(reports.count) && reports.reduce(0, +) == 300, "\(reports)")
    }
    #expect(turnCounts[0] <= turnCounts[1] + 1, "\(turnCounts)")
  }

  // MARK: The log

  @Test func `following the log can be ended`() {
    var bench = Bench.withClients(1)
    bench.say(1, .query(number: 3, "log.follow"))
    #expect(bench.said(to: 1, bench.turn()) == [.report(number: 3, ["records": []])])
    bench.act(1, 1, .put("n", 1))
    #expect(bench.said(to: 1, bench.turn()).count == 2)
    for (number, isStopped) in [(4, true), (5, false)] as [(UInt64, Bool)] {
      bench.say(1, .query(number: number, "log.unfollow"))
      #expect(
        bench.said(to: 1, bench.turn()) == [.report(number: number, ["stopped": .bool(isStopped)])])
    }
    bench.act(1, 2, .put("n", 2))
    #expect(bench.said(to: 1, bench.turn()) == [Acknowledgement.reduced(2, 2, at: 2)])
  }

  @Test func `an acknowledgement has its action's sequence number in the log`() throws {
    var bench = Bench()
    for number in 1...2 as ClosedRange<UInt64> {
      bench.open(number)
      bench.say(number, .hello(.init(versions: 1...number, label: "")))
    }
    _ = bench.turn()
    bench.act(2, 1, .put("n", 1))
    bench.act(1, 1, .put("n", 2))
    bench.act(2, 2, .put("n", 3), .put("n", 4), .test(["n"], 9), .put("n", 5))
    bench.handle(
      .received(ConnectionID(2), frame(.action(number: 6, .applied, payload: [0x60]))))
    bench.act(2, 7, .put("n", 6))
    let commands = bench.turn()
    let sequences = bench.said(to: 2, commands).map { message -> [UInt64?] in
      guard case .acknowledgement(let item) = message else { return [] }
      return [item.first, item.last, item.sequence]
    }
    // Number 2 of the log belongs to the other client; a malformed action is not logged.
    #expect(
      sequences == [[1, 1, 1], [2, 3, 3], [4, 4, 5], [5, 5, 6], [6, 6, nil], [7, 7, 7]])
    #expect(bench.said(to: 1, commands) == [Acknowledgement.reduced(1, 1, at: 2)])
    bench.say(2, .query(number: 1, "why", arguments: ["5"]))
    guard case .report(1, let why, false)? = bench.said(to: 2, bench.turn()).first,
      case .array(let records)? = why.child("records")
    else {
      Issue.record("no report")
      return
    }
    #expect(records.first?.child("action") == "test")
  }

  @Test func `numbers missing in the log lead to no other action`() {
    var bench = Bench(durability: .sync)
    bench.join(1)
    bench.act(1, 1, .put("n", 1))
    for number in 2...40 as ClosedRange<UInt64> {
      bench.handle(
        .received(ConnectionID(1), frame(.action(number: number, .applied, payload: [0x60]))))
    }
    bench.act(1, 41, .put("n", 2))
    _ = bench.turn()
    for (sequence, expected) in [("1", ["1"]), ("41", ["41"]), ("7", []), ("42", [])]
      as [(String, [String])]
    {
      bench.say(1, .query(number: 1, "why", arguments: [sequence]))
      let said = bench.said(to: 1, bench.turn())
      guard case .report(1, let why, _)? = said.first else { continue }
      guard case .array(let records)? = why.child("records") else {
        #expect(expected.isEmpty)
        continue
      }
      #expect(records.compactMap { $0.child("sequence").map { "\($0)" } }.count == expected.count)
      #expect(records.first?.child("sequence") == Int64(sequence).map { .integer($0) })
    }
    bench.say(1, .query(number: 2, "log.follow", arguments: ["1"]))
    guard case .report(2, let following, _)? = bench.said(to: 1, bench.turn()).first,
      case .array(let records)? = following.child("records")
    else {
      Issue.record("no report")
      return
    }
    #expect(records.map { $0.child("sequence") } == [41])
  }
}
