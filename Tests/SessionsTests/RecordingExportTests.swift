import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Recordings for others, without what they may not see.
@Suite struct RecordingExportTests {
  private static let hidden = patterns(["secrets", "users/*/password", "list", "rows/*/token"])

  private func export(
    _ bytes: [UInt8], without patterns: [PathPattern] = hidden
  ) throws(RecordingError) -> RecordingExport<DocumentFeature>.Report {
    var redaction = Redaction(of: patterns)
    return try RecordingExport(
      bytes,
      replacing: .init(
        state: { Document(redaction.value($0.root, at: .root, in: $0.root)) },
        action: { action, state in
          action.mapped(
            path: { redaction.path($0, in: state.root) },
            value: { redaction.value($0, at: $1, in: state.root) })
        }, path: { redaction.path($0, in: $1.root) }, text: { redaction.text($0) }),
      reducer: DocumentFeature()
    ).run()
  }

  private func replay(
    _ bytes: [UInt8]
  ) throws(RecordingError) -> (Replay<DocumentFeature>.Report, Value) {
    let replay = try Replay(bytes, reducer: DocumentFeature())
    let report = try replay.run()
    return (report, replay.server.state.root)
  }

  /// The parts of a value that are not left out, and the shape of the others.
  private func outline(_ value: Value) -> Value {
    func shape(_ value: Value) -> Value {
      switch value {
      case .object(let members): .array(TreeArray([.integer(Int64(members.count))]))
      case .array(let elements): .array(TreeArray(elements.map(shape)))
      case .null: .null
      default: .text("?")
      }
    }
    guard case .object(var members) = value else { return value }
    for name in ["secrets", "list", "rows"] {
      if let hidden = members[name] { members.updateValue(shape(hidden), forKey: name) }
    }
    if case .object(var users)? = members["users"] {
      for (name, user) in users {
        guard case .object(var user) = user, let password = user["password"] else { continue }
        user.updateValue(shape(password), forKey: "password")
        users.updateValue(.object(user), forKey: name)
      }
      members.updateValue(.object(users), forKey: "users")
    }
    return .object(members)
  }

  // MARK: Properties

  /// Whatever happens, nothing of what is left out is in the export, and the export is done again
  /// as it says.
  @Test(arguments: 0..<40 as Range<UInt64>)
  func `nothing that is left out is in the export`(seed: UInt64) throws {
    var daemon = RecordedDaemon(seed: seed, isTame: false)
    try daemon.live()
    let bytes = daemon.end()
    #expect(Secret.found(in: bytes) != nil)
    let export = try export(bytes)
    let found = Secret.found(in: export.bytes)
    #expect(found == nil, "seed \(seed)")
    let (report, _) = try replay(export.bytes)
    #expect(report.difference == nil && report.isWhole, "seed \(seed): \(report)")
    #expect(report.events == export.events && report.revision == export.revision)
  }

  /// Where nothing is computed from what is left out, everything happens as before.
  @Test(arguments: 100..<140 as Range<UInt64>)
  func `what is seen is as it was, and what is not has the same shape`(seed: UInt64) throws {
    var daemon = RecordedDaemon(seed: seed, isTame: true)
    try daemon.live()
    let bytes = daemon.end()
    let export = try export(bytes)
    #expect(export.firstOther == nil, "seed \(seed)")
    #expect(export.revision == daemon.server.revision)
    let (report, root) = try replay(export.bytes)
    #expect(report.difference == nil && report.isWhole, "seed \(seed): \(report)")
    #expect(outline(root) == outline(daemon.server.state.root), "seed \(seed)")
    let found = Secret.found(in: export.bytes)
    #expect(found == nil, "seed \(seed)")
  }

  @Test(arguments: 0..<6 as Range<UInt64>)
  func `a recording that breaks off is exported up to there, with its last event`(
    seed: UInt64
  ) throws {
    var daemon = RecordedDaemon(seed: seed, isTame: true)
    try daemon.live()
    let action = DocumentAction.set(["secrets", "last"], .text(Secret.key(&daemon.random)))
    let last = Event<DocumentAction>.received(
      ConnectionID(1),
      frame(.action(number: 10_000, .applied, payload: payload(action))))
    let bytes =
      daemon.bytes + (try #require(Recording.event(last, at: daemon.now)))
    let export = try export(bytes)
    let found = Secret.found(in: export.bytes)
    #expect(found == nil)
    let (report, _) = try replay(export.bytes)
    #expect(report.difference == nil && !report.isWhole)
    #expect(report.lastEvent?.hasPrefix("received(") == true)
  }

  // MARK: Values and paths

  @Test func `values are replaced by others of the same form, equal ones by equal ones`() {
    var redaction = Redaction(of: patterns(["s", "u/*/p"]))
    let document: Value = [
      "s": [
        "t": ["one", "two", "one", "\u{e9}", "e\u{301}", ""], "n": [7, 7, -8, 2.5], "b": true,
      ],
      "u": ["ann": ["p": 5, "q": 6], "17": ["p": "x"]], "open": "one",
    ]
    let other = redaction.value(document, at: .root, in: document)
    #expect(other.scoped(to: ["open"]) == "one" && other.scoped(to: ["u", "ann", "q"]) == 6)
    #expect(other.scoped(to: ["u", "17", "p"]) != "x")
    #expect(redaction.count == 13)
    guard case .object(let secrets)? = other.child("s") else {
      Issue.record("\(other)")
      return
    }
    let all = secrets.map(\.1)
    let texts =
      all.compactMap { value -> [Value]? in
        if case .array(let texts) = value, texts.count == 6 { Array(texts) } else { nil }
      }.first ?? []
    #expect(texts.count == 6 && texts[0] == texts[2] && texts[5] == "")
    let sizes = texts.map { text in if case .text(let text) = text { text.utf8.count } else { 0 } }
    #expect(sizes == [3, 3, 3, 2, 3, 0])
    #expect(Set(texts.map { "\($0)" }).count == 5)
    #expect(all.contains(false) && !all.contains(true))
    // The keys, too: of this one nobody says that it is there.
    #expect(secrets["t"] == nil && secrets["b"] == nil)
  }

  @Test func `paths keep what is no secret, and lead where they led`() {
    var redaction = Redaction(of: patterns(["s", "u/*/p", "l/*/p"]))
    let document: Value = ["s": ["key": 1], "u": ["ann": ["p": 5]], "l": [["p": 1]]]
    let other = redaction.value(document, at: .root, in: document)
    for path in [["u", "ann", "p"], ["u", "ann"], ["open", "x"], ["s"], []] as [Path] {
      #expect(redaction.path(path, in: document) == path)
    }
    let hidden = redaction.path(["s", "key"], in: document)
    #expect(hidden != ["s", "key"] && other.scoped(to: hidden) != nil)
    #expect(redaction.path(["s", "12345"], in: document) != ["s", "12345"])
    #expect(redaction.path(["s", .integer(12345)], in: document) != ["s", .integer(12345)])
    #expect(redaction.path(["s", "123", "-"], in: document) == ["s", "123", "-"])
    // Through an array nothing is seen, and an index may be given as a number.
    for index in ["0", .integer(0), "-", "7"] as [PathKey] {
      #expect(redaction.value("open", at: ["l", index, "q"], in: document) != "open")
      #expect(redaction.value("open", at: ["new", index, "q"], in: document) == "open")
    }
    #expect(redaction.value("open", at: ["u", "17", "q"], in: document) == "open")
    #expect(redaction.value("open", at: ["u", "17", "p"], in: document) != "open")
  }

  // MARK: What differs, and what is refused

  @Test func `an action that computes with what is left out may have another outcome`() throws {
    var daemon = RecordedDaemon(seed: 1, isTame: true)
    try daemon.begin()
    try daemon.act(1, .set(["secrets", "n"], 5))
    try daemon.act(1, .increment(["secrets", "n"], by: 7))
    try daemon.act(1, .test(["secrets", "n"], 12))
    let export = try export(daemon.end())
    #expect(export.firstOther == nil)
    try daemon.act(
      1, .transaction([.test(["secrets", "n"], 12), .set(["open", "is"], "reached")]))
    let other = try self.export(daemon.end())
    #expect(other.firstOther != nil)
    #expect(try replay(other.bytes).0.difference == nil)
  }

  @Test func `bytes that are no recording are refused, whatever they are`() throws {
    #expect(throws: RecordingError("it is no recording of a daemon")) { try export([1, 2]) }
    var daemon = RecordedDaemon(seed: 2, isTame: false)
    try daemon.live()
    let bytes = daemon.end()
    var random = SplitMix64(5)
    for _ in 0..<100 {
      var broken = bytes
      for _ in 0...random.next() % 3 {
        broken[Int(random.next() % UInt64(broken.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      // It may throw, or export another recording, but it must end.
      _ = try? export(broken)
    }
  }

  @Test func `the policies of a recording are those that it had`() throws {
    var daemon = RecordedDaemon(seed: 3, isTame: true)
    try daemon.begin()
    try daemon.handle(.policy(RecordingTests.policy))
    let policies = try RecordingExport<DocumentFeature>.policies(in: daemon.end())
    #expect(policies == [RecordedDaemon.policy, RecordingTests.policy])
  }
}

/// What is in secret values only: texts that begin with a word, and numbers that begin with three bytes.
private enum Secret {
  private static let word = Array("sEcReT".utf8)
  private static let number: [UInt8] = [0x3b, 0x9a, 0xca]

  static func key(_ random: inout SplitMix64) -> String { "sEcReT\(random.next() % 5)" }

  static func number(_ random: inout SplitMix64) -> Value {
    .integer(0x3b9a_ca00 + Int64(random.next() % 9))
  }

  /// The first place of one in bytes, with what is before it; nil if there is none.
  static func found(in bytes: [UInt8]) -> String? {
    guard let place = bytes.firstRange(of: word) ?? bytes.firstRange(of: number) else { return nil }
    let context = bytes[..<place.upperBound].suffix(60)
    return "\(place.lowerBound): \(String(decoding: context, as: UTF8.self))"
  }
}

/// A daemon with secrets, which takes over from another one, and its recording. What it does beside its
/// loop is done some time later.
private struct RecordedDaemon {
  static let policy = Policy([
    Rule(
      users: [1000], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
      write: [.whole])
  ])

  private(set) var server: Server<DocumentFeature>
  private(set) var bytes: [UInt8]
  private(set) var now = Instant(nanoseconds: 5_000_000_000_000)
  var random: SplitMix64
  /// Whether nothing is computed from secrets.
  private let isTame: Bool
  private var inherited: [HandedConnection]
  /// Results that are still to come.
  private var late: [Event<DocumentAction>] = []
  private var numbers: [UInt64: UInt64] = [:]
  private var queries: UInt64 = 0
  /// What a client has said and has not been received yet.
  private var partial: [UInt64: [UInt8]] = [:]

  init(seed: UInt64, isTame: Bool) {
    random = SplitMix64(seed)
    self.isTame = isTame
    var limits = Bench.besideLoop
    limits.largeActionBytes = 2000
    // A former process, whose log, history and answers have secrets, too.
    var former = Bench(
      ["open": ["n": 0], "secrets": ["sEcReT0": ["sEcReT1", 1_000_000_007]], "users": [:]],
      limits: limits, policy: Self.policy)
    former.open(1)
    former.say(1, .hello(.init(versions: 1...3, label: "former")))
    former.say(1, .subscribe(subscription: 1, .root, nil))
    _ = former.settle()
    former.act(
      1, 1, .set(["secrets", "sEcReT1"], "sEcReT2"), .test(["secrets", "sEcReT1"], "sEcReT3"),
      .remove(["secrets", "sEcReT4"]))
    _ = former.settle()
    former.measure()
    former.keepPast()
    former.say(1, .query(number: 1, "parts", arguments: ["/secrets/sEcReT1"]))
    former.handle(.handingOver(retryAfter: 1))
    let image = former.server.handOver
    inherited = image.connections
    numbers = [1: 3]
    var setup = ServerSetup(image.next, at: now)
    setup.limits = limits
    setup.policy = Self.policy
    setup.durability = .sync
    bytes = Recording.head(setup, schema: DocumentFeature.schema)
    server = Server(setup, reducer: DocumentFeature())
  }

  mutating func end() -> [UInt8] {
    bytes + Recording.end(revision: server.revision, digest: server.digest())
  }

  // MARK: Events

  @discardableResult
  mutating func handle(_ event: Event<DocumentAction>) throws -> [Command] {
    bytes += try #require(Recording.event(event, at: now))
    var commands: [Command] = []
    server.handle(event, at: now, into: &commands)
    bytes += Recording.commands(commands, revision: server.revision)
    now = now + .milliseconds(3)
    for command in commands { note(command) }
    return commands
  }

  private mutating func note(_ command: Command) {
    switch command {
    case .encodeSnapshot(let id):
      guard let (frames, wholeBytes) = server.snapshot(for: id)?.measured() else { return }
      late.append(.snapshotEncoded(id, frames, wholeBytes: wholeBytes))
    case .decodeAction(let id):
      late.append(.actionDecoded(id, server.action(for: id)?.decoded()))
    case .makeCheckpoint:
      var encoder = CBOREncoder()
      server.state.encode(into: &encoder)
      late.append(.checkpointMade(server.revision, encoder.bytes))
    case .computeDigest: late.append(.digestComputed)
    case .measureState: late.append(.stateMeasured(StateMeasure(of: server.state)))
    case .answer(let id, let query, .metrics(let text)):
      late.append(.answered(id, query: query, Value.text(text).encoded))
    case .answer(let id, let query, let asked):
      switch server.inspection(of: asked, for: id) {
      case .success(let inspection)?:
        late.append(inspection.finding().event(for: id, query: query))
      case .failure(let error)?: late.append(.answered(id, query: query, error.report.encoded))
      case nil: break
      }
    case .keep(let batch): late.append(.journal(.committed(through: batch.number)))
    default: break
    }
  }

  /// End a turn; some of what is done beside the loop becomes ready.
  private mutating func turn() throws {
    try handle(.turnEnded)
    while !late.isEmpty, random.next() % 3 > 0 {
      try handle(late.removeFirst())
      try handle(.turnEnded)
    }
  }

  mutating func act(_ number: UInt64, _ action: DocumentAction) throws {
    numbers[number, default: 0] += 1
    let mark: Mark = random.next() % 2 == 0 ? .durable : .applied
    try say(number, .action(number: numbers[number] ?? 0, mark, payload: payload(action)))
    try turn()
  }

  /// The bytes of a message arrive, and some of them with the next.
  private mutating func say(_ number: UInt64, _ message: ClientMessage) throws {
    var bytes = partial.removeValue(forKey: number) ?? []
    bytes += frame(message)
    let late = random.next() % 4 == 0 ? Int(random.next() % UInt64(bytes.count)) : 0
    partial[number] = Array(bytes.suffix(late))
    try handle(.received(ConnectionID(number), Array(bytes.dropLast(late))))
  }

  mutating func begin() throws {
    try handle(.clockSet(Timestamp(nanoseconds: 1_700_000_000_000_000_000)))
    try handle(.scopesReserved(inherited.flatMap { $0.subscriptions.map(\.scope) }))
    for connection in inherited { try handle(.inherited(connection, isTranslated: false)) }
    try handle(.started(.restarted))
    for number in 2...3 as ClosedRange<UInt64> {
      let peer = Peer(pid: number, uid: 1000, gid: 1000)
      try handle(.opened(ConnectionID(number), peer, Bench.token(number)))
      try say(number, .hello(.init(versions: 1...3, label: "client \(number)")))
      try say(number, .subscribe(subscription: 1, number == 2 ? .root : ["secrets"], nil))
    }
    try turn()
  }

  /// Some clients act, ask and leave.
  mutating func live() throws {
    try begin()
    for step in 0..<60 {
      let number = 1 + random.next() % 3
      switch random.next() % 12 {
      case 0: try ask(number)
      case 1 where step % 5 == 0: try handle(.tick)
      case 2:
        let path: Path = ["secrets", .text(Secret.key(&random))]
        try say(number, .subscribe(subscription: 10 + UInt64(step), path, nil))
      case 3: try say(number, .digestRequest(subscription: 1))
      case 4 where !isTame: try handle(.acted(action()))
      default: try act(number, action())
      }
      try turn()
    }
    for number in 1...3 as ClosedRange<UInt64> where partial[number]?.isEmpty == false {
      try say(number, .ping(1))
    }
    while !late.isEmpty {
      try handle(late.removeFirst())
      try handle(.turnEnded)
    }
    if !isTame { try handle(.received(ConnectionID(3), [0, 0, 0, 1] + Array("sEcReT".utf8))) }
    try handle(.closed(ConnectionID(2)))
    try handle(.stop(retryAfter: 3))
  }

  private mutating func ask(_ number: UInt64) throws {
    let key = "/secrets/" + Secret.key(&random)
    let revision = "\(server.revision)"
    let questions: [(String, [String])] = [
      ("parts", ["/secrets", "2"]), ("parts", [key]), ("past", [key, revision]),
      ("past", ["", revision]), ("parts", ["/secrets", "1", "1", "/" + key.dropFirst(9)]),
      ("parts", [String(key.dropFirst())]), ("parts", [key + "~x"]), ("sEcReT", ["sEcReT"]),
      ("changes", ["/secrets", "0", revision]), ("log", ["100"]),
      ("metrics", []), ("clients", []), ("status", []),
    ]
    // A jump takes values to where they were before, also those that were computed.
    let jumps = [("undo", ["1"]), ("jump", ["\(random.next() % (server.revision + 1))"])]
    let all = isTame ? questions : questions + jumps
    let (name, arguments) = all[Int(random.next() % UInt64(all.count))]
    queries += 1
    try say(number, .query(number: queries, name, arguments: arguments))
  }

  // MARK: Actions

  private mutating func action() -> DocumentAction {
    if random.next() % 8 == 0 {
      return .transaction((0..<3).map { _ in simpleAction() })
    }
    return simpleAction()
  }

  private mutating func simpleAction() -> DocumentAction {
    let path = path()
    let value = value(at: path)
    switch random.next() % (isTame ? 8 : 11) {
    case 0: return .merge(path, value)
    case 1: return .remove(path)
    case 2: return .append(["list"], secret(2))
    case 3: return .insert(["list", .text("\(random.next() % 3)")], secret(1))
    case 4: return .test(path, value)
    case 5: return .move(from: ["list", "0"], to: ["list", "-"])
    case 6: return rowAction()
    case 8:
      let isSeen = path.keys.first == "open" || path.keys.first == "users" && path.keys.count == 2
      return .increment(path, by: isSeen ? 1 : Secret.number(&random))
    case 9: return .move(from: path, to: self.path())
    case 10: return .copy(from: path, to: self.path())
    default: return .set(path, value)
    }
  }

  /// An array of objects of which a part is hidden, so that nothing of it is seen; and keys that are
  /// numbers.
  private mutating func rowAction() -> DocumentAction {
    let row: Value = ["n": secret(0), "token": secret(1)]
    switch random.next() % 8 {
    case 0: return .set(["rows"], [row, row])
    case 1: return .append(["rows"], row)
    case 2: return .insert(["rows", "0"], row)
    case 3: return .set(["rows", .integer(0), "token"], secret(0))
    case 4: return .set(["rows", .integer(0), "n"], secret(0))
    case 5: return .set(["rows", "1"], row)
    case 6: return .remove(["rows", .integer(0)])
    default: return .set(["secrets", .integer(0x3b9a_ca00)], secret(0))
    }
  }

  private mutating func path() -> Path {
    switch random.next() % 6 {
    case 0: ["open", .text("k\(random.next() % 3)")]
    case 1: ["users", .text("u\(random.next() % 3)")]
    case 2: ["users", .text("u\(random.next() % 3)"), "password"]
    case 3: ["secrets", .text(Secret.key(&random))]
    case 4: ["secrets", .text(Secret.key(&random)), .text(Secret.key(&random))]
    default: ["list", .text("\(random.next() % 3)")]
    }
  }

  private mutating func value(at path: Path) -> Value {
    if path.keys.first == "open" { return .integer(Int64(random.next() % 3)) }
    if path.keys.count == 2, path.keys.first == "users" {
      let secret = secret(1)
      return ["name": .text("n\(random.next() % 3)"), "password": secret]
    }
    // Now and then one that is decoded beside the loop.
    if random.next() % 10 == 0 {
      let text = String(repeating: "sEcReT", count: 400)
      return .text(text + "\(random.next() % 3)")
    }
    return secret(2)
  }

  private mutating func secret(_ depth: Int) -> Value {
    switch random.next() % (depth > 0 ? 6 : 4) {
    case 0: return Secret.number(&random)
    case 1: return .null
    case 2 where !isTame: return .bool(random.next() % 2 == 0)
    case 4: return .array(TreeArray((0..<2).map { _ in secret(depth - 1) }))
    case 5:
      var members = TrieMap<String, Value>()
      for _ in 0..<2 { members.updateValue(secret(depth - 1), forKey: Secret.key(&random)) }
      return .object(members)
    default: return .text(Secret.key(&random))
    }
  }
}
