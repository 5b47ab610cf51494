import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Recording and replaying the events of a server. The simulator's worlds are replayed by
/// `Scripts/simulate --replay`, and real processes in ProcessTests' `RecordingTests`.
@Suite struct RecordingTests {
  typealias DocumentEvent = Event<DocumentAction>

  static let policy = Policy([
    Rule(
      users: [7, 1000], groups: [27], mayConnect: true, mayAdminister: false, read: [.whole],
      denyRead: patterns(["secrets", "users/*/password"]), act: [.all], denyAct: [.part("admin")],
      write: patterns(["inbox"]), denyWrite: patterns(["inbox/old"])),
    Rule(isForEveryone: true, mayConnect: true, mayAdminister: true, read: [.whole]),
  ])

  /// A server with a document, and a recording of all its events.
  private struct Recorded {
    var server: Server<DocumentFeature>
    var bytes: [UInt8]
    var now = Instant(nanoseconds: 1_000_000_000)

    /// So many bytes were read for the state, and as many journaled; the recording says that it was
    /// `written` many.
    init(
      limits: Limits = Bench.besideLoop, policy: Policy? = nil, durability: Durability = .none,
      bytesRead: Int = 0, written: Int = 0
    ) {
      var setup = ServerSetup(
        RestoredState(
          state: Document(["n": 0, "map": ["a": 1]]), epoch: 9, seed: HashSeed(7), run: 1,
          runs: [JournalRun(run: 1, base: 0)], revision: 0, base: 0, sequence: 0), at: now)
      setup.limits = limits
      setup.policy = policy
      setup.durability = durability
      setup.about = [("version", .text("test"))]
      setup.owner = 1000
      (setup.kept.stateBytes, setup.kept.journaledBytes) = (bytesRead, bytesRead)
      server = Server(setup, reducer: DocumentFeature())
      (setup.kept.stateBytes, setup.kept.journaledBytes) = (written, written)
      bytes = Recording.head(setup, schema: DocumentFeature().schema)
    }

    /// Handle an event, and record it, or what is `written` in its place.
    @discardableResult
    mutating func handle(
      _ event: DocumentEvent, written: DocumentEvent? = nil
    ) throws -> [Command] {
      bytes += try #require(Recording.event(written ?? event, at: now))
      var commands: [Command] = []
      server.handle(event, at: now, into: &commands)
      bytes += Recording.commands(commands, revision: server.revision)
      now = now + .milliseconds(3)
      return commands
    }

    mutating func say(_ number: UInt64, _ messages: ClientMessage...) throws {
      try handle(.received(ConnectionID(number), messages.flatMap { frame($0) }))
    }

    /// End a turn, and deliver the snapshots and batches that it commands: the journal's of so many bytes,
    /// and all of them of as many as are `said`, if that is not nil, of which others are `written`.
    mutating func turn(said: Int? = nil, written: Int? = nil) throws {
      for command in try handle(.turnEnded) {
        switch command {
        case .encodeSnapshot(let id):
          guard let (frames, wholeBytes) = server.snapshot(for: id)?.measured() else { continue }
          try handle(
            .snapshotEncoded(id, frames, wholeBytes: said ?? wholeBytes),
            written: .snapshotEncoded(id, frames, wholeBytes: written ?? wholeBytes))
          try turn(said: said, written: written)
        case .keep(let batch): try handle(.journal(.committed(through: batch.number)))
        case .keepSnapshot:
          try handle(
            .journal(.snapshotKept(bytes: said ?? 1000)),
            written: .journal(.snapshotKept(bytes: written ?? 1000)))
        default: break
        }
      }
    }

    /// Two clients connect, act, query, are blocked, and leave.
    mutating func live() throws {
      try handle(.clockSet(Timestamp(nanoseconds: 1_700_000_000_000_000_000)))
      try handle(.started(.first))
      for number in 1...2 as ClosedRange<UInt64> {
        let peer = Peer(pid: number, uid: 1000, gid: 1000)
        try handle(.opened(ConnectionID(number), peer, Bench.token(number)))
        try say(number, .hello(.init(versions: 1...2, label: "client \(number)")))
        try say(number, .subscribe(subscription: 1, number == 1 ? .root : ["map"], nil))
      }
      try turn()
      for number in 1...20 as ClosedRange<UInt64> {
        let value = Value.array(TreeArray((0...Int64(number)).map { Value.integer($0) }))
        try say(
          1 + number % 2,
          .action(
            number: (number + 1) / 2, number % 3 == 0 ? .durable : .applied,
            payload: payload(.set(["map", .text("\(number % 5)")], value))))
        if number == 7 { try handle(.blocked(ConnectionID(2), unsent: 1 << 20)) }
        if number == 12 { try handle(.drained(ConnectionID(2))) }
        try turn()
      }
      try say(1, .query(number: 1, "log"), .query(number: 2, "metrics"))
      try handle(.acted(.put("n", 2)))
      try turn()
      try handle(.policy(RecordingTests.policy))
      try handle(.tick)
      try handle(.memoryMeasured(MemoryReading(free: 1 << 30, limit: 1 << 31, name: "the test")))
      try turn()
      try handle(.closed(ConnectionID(2)))
      try handle(.exited(ConnectionID(2)))
      try handle(.stop(retryAfter: 3))
      try turn()
    }

    mutating func end() -> [UInt8] {
      bytes += Recording.end(revision: server.revision, digest: server.digest())
      return bytes
    }
  }

  private func replayed(_ bytes: [UInt8]) throws(RecordingError) -> Replay<DocumentFeature>.Report {
    let replay = try Replay(bytes, reducer: DocumentFeature())
    return try replay.run()
  }

  @Test(arguments: [Durability.none, .sync]) func `what is done again is the same`(
    _ durability: Durability
  ) throws {
    var recorded = Recorded(durability: durability)
    try recorded.live()
    let report = try replayed(recorded.end())
    #expect(report.difference == nil && report.isWhole)
    #expect(report.revision == recorded.server.revision && report.revision >= 20)
    #expect(report.digest == recorded.server.digest())
    #expect(report.events > 60 && report.commands > 50)
  }

  @Test func `a recording that breaks off counts up to there`() throws {
    var recorded = Recorded()
    try recorded.live()
    let bytes = recorded.bytes
    let report = try replayed(bytes)
    #expect(report.difference == nil && !report.isWhole)
    #expect(report.digest == recorded.server.digest())
    var last = 0
    var reports = 0
    for count in [Int](stride(from: 0, to: bytes.count, by: 37)) + [bytes.count - 1] {
      let part: Replay<DocumentFeature>.Report
      do {
        part = try replayed(Array(bytes[..<count]))
      } catch {
        // The recording breaks off within its head.
        #expect(reports == 0)
        continue
      }
      reports += 1
      #expect(part.difference == nil && !part.isWhole && part.events >= last)
      last = part.events
    }
    #expect(last >= report.events - 1 && reports > 50)
  }

  @Test func `the first difference is named with its event`() throws {
    var recorded = Recorded()
    try recorded.live()
    // The changed recording has an action that sets another value.
    let bytes = recorded.end()
    let set = try #require(bytes.firstRange(of: payload(.put("n", 2))))
    var changed = bytes
    changed[set.upperBound - 1] = 3
    let difference = try #require(try replayed(changed).difference)
    let event = try #require(difference.event)
    #expect(difference.description.hasPrefix("event \(event), "))
    // The rest of the scene follows it.
    #expect(event < (try replayed(bytes).events))
  }

  @Test func `a snapshot that the state does not give is a difference`() throws {
    var recorded = Recorded()
    try recorded.live()
    let bytes = recorded.end()
    // One of the places that name the member is in the frames of a snapshot.
    let differences = bytes.ranges(of: Array("map".utf8)).dropFirst().compactMap { place in
      var changed = bytes
      changed[place.lowerBound] = 0x6e
      return try? replayed(changed).difference?.description
    }
    #expect(differences.contains { $0.contains("snapshotEncoded") })
  }

  @Test func `a server that is another one is found at the end at the latest`() throws {
    var recorded = Recorded()
    try recorded.live()
    let head = recorded.bytes
    let bytes =
      head + Recording.end(revision: recorded.server.revision, digest: Digest(1))
    let difference = try #require(try replayed(bytes).difference)
    #expect(difference.event == nil && difference.description.contains("digest"))
  }

  @Test func `the event during which the process ended is named, and handled on demand`() throws {
    var recorded = Recorded()
    try recorded.live()
    let event = DocumentEvent.acted(.put("last", 1))
    let last = try #require(Recording.event(event, at: recorded.now))
    let replay = try Replay(recorded.bytes + last, reducer: DocumentFeature())
    let report = try replay.run()
    #expect(report.difference == nil && !report.isWhole)
    #expect(report.lastEvent?.hasPrefix("acted(") == true)
    #expect(replay.server.revision == recorded.server.revision)
    replay.handleLastEvent()
    #expect(replay.server.revision == recorded.server.revision + 1)
  }

  @Test func `it stops where it is told`() throws {
    var recorded = Recorded()
    try recorded.live()
    let replay = try Replay(recorded.end(), reducer: DocumentFeature())
    let report = try replay.run(until: 5)
    #expect(report.revision == 5 && !report.isWhole && replay.server.revision == 5)
    #expect(try replay.run().revision == recorded.server.revision)
  }

  @Test func `bytes that are no recording are refused, whatever they are`() throws {
    #expect(throws: RecordingError("it is no recording of a daemon")) { try replayed([]) }
    #expect(throws: RecordingError("it is no recording of a daemon")) {
      try replayed(Array("LSRX and more".utf8))
    }
    var recorded = Recorded()
    try recorded.live()
    let bytes = recorded.end()
    var random = SplitMix64(11)
    for _ in 0..<400 {
      var broken = bytes
      for _ in 0...random.next() % 3 {
        broken[Int(random.next() % UInt64(broken.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      // The replay may throw, differ, break off, or succeed, but it must end.
      _ = try? replayed(broken)
    }
  }

  @Test(arguments: [Int.max, .min, 1 << 62, -1])
  func `numbers of bytes that no process can have end no replay`(count: Int) throws {
    // What is read of it.
    let most = max(-1 << 48, min(count, 1 << 48))
    var limits = Bench.besideLoop
    limits.journalBytes = 1
    var recorded = Recorded(
      limits: limits, durability: .sync, bytesRead: most, written: count)
    func handle(_ event: (Int) -> DocumentEvent) throws {
      try recorded.handle(event(most), written: event(count))
    }
    let numbers = 1...20 as ClosedRange<UInt64>
    for number in numbers {
      let peer = Peer(pid: number, uid: 1000, gid: 1000)
      try recorded.handle(.opened(ConnectionID(number), peer, Bench.token(number)))
      try recorded.say(number, .hello(.init(versions: 1...2, label: "client \(number)")))
    }
    try recorded.turn(said: most, written: count)
    for round in 1...4 as ClosedRange<UInt64> {
      try handle {
        .memoryMeasured(
          MemoryReading(
            free: round % 2 == 0 ? $0 : 0, limit: round > 2 ? $0 : 0, name: "the test"))
      }
      for number in 1...2 as ClosedRange<UInt64> {
        try recorded.say(number, .subscribe(subscription: round, .root, nil))
        try recorded.say(
          number,
          .action(number: round, .durable, payload: payload(.set(["n"], .integer(Int64(round))))))
      }
      try recorded.turn(said: most, written: count)
      for number in numbers { try handle { .blocked(ConnectionID(number), unsent: $0) } }
      try recorded.handle(.tick)
      for _ in numbers { try recorded.handle(.journal(.snapshotImpossible("no memory"))) }
      try recorded.turn(said: most, written: count)
      for number in numbers { try recorded.handle(.drained(ConnectionID(number))) }
      try handle { .stateMeasured(StateMeasure(encoded: $0, memory: $0)) }
    }
    let report = try replayed(recorded.end())
    #expect(report.isWhole && report.difference == nil, "\(report)")
  }

  // MARK: Coding

  /// At least one event of every case.
  private static func everyEvent() throws -> [DocumentEvent] {
    let id = ConnectionID(3)
    var bench = Bench.withSubscribers(1)
    bench.act(1, 1, .put("n", 1))
    var commands: [Command] = []
    bench.server.handle(.handingOver(retryAfter: 1), at: bench.now, into: &commands)
    let handed = try #require(bench.server.handOver.connections.first)
    let effect = EffectID(5, salt: 7)
    return [
      .opened(id, Peer(pid: 1, uid: 2, gid: 3, groups: [4, 5]), Bench.token(6)),
      .received(id, [1, 2, 3]), .closed(id), .blocked(id, unsent: 7), .drained(id),
      .snapshotEncoded(SnapshotJobID(1), [[1], [], [2, 3]], wholeBytes: nil),
      .snapshotEncoded(SnapshotJobID(1), [], wholeBytes: 9), .snapshotImpossible(SnapshotJobID(2)),
      .actionDecoded(id, nil), .actionDecoded(id, .recorded),
      .checkpointMade(4, [0xa0]), .digestComputed,
      .stateMeasured(StateMeasure(encoded: 4, memory: 5)),
      .memoryMeasured(nil),
      .memoryMeasured(MemoryReading(free: -1, limit: 2, name: "a group")), .turnEnded,
      .journal(.committed(through: 4)), .journal(.failed("full")), .journal(.reopened),
      .journal(.stillFailing("full")), .journal(.snapshotKept(bytes: 6)),
      .journal(.snapshotImpossible("no memory")), .started(.first), .started(.restarted),
      .started(.crashed), .exited(id),
      .policy(policy), .policy(.standard(owner: 5)),
      .policy(Policy(policy.rules, from: .file("/a", lines: [1, 7]))),
      .answered(id, query: 8, (["a": [1, .null]] as Value).encoded), .tick, .stop(retryAfter: nil),
      .stop(retryAfter: 4), .acted(.put("a", 1)), .effectSent(effect, .increment(["n"], by: 2)),
      .effectCancelled(ScopedEffectKey(texts: ["a", "b"])), .effectEnded(effect, unhandled: nil),
      .effectEnded(effect, unhandled: "no"), .clockSet(Timestamp(nanoseconds: -5)),
      .handingOver(retryAfter: 2), .scopesReserved([1, 5]), .inherited(handed, isTranslated: true),
    ]
  }

  @Test func `every event is read as it was written`() throws {
    let events = try Self.everyEvent()
    for event in events {
      var encoder = CBOREncoder()
      event.encode(into: &encoder)
      let read = try CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
        try DocumentEvent(from: &decoder, seed: HashSeed(7))
      }
      // Every part of an event is in its description, in which the members of a set have no order.
      #expect(String(describing: read).sorted() == String(describing: event).sorted())
      var again = CBOREncoder()
      read.encode(into: &again)
      #expect(again.bytes == encoder.bytes)
      // Every proper prefix is rejected.
      for count in 0..<encoder.bytes.count {
        #expect(throws: CBORError.self) {
          try CBORDecoder.read(Array(encoder.bytes[..<count])) { (decoder) throws(CBORError) in
            try DocumentEvent(from: &decoder, seed: HashSeed(7))
          }
        }
      }
    }
    // Every case is among them, but that of a change for a jump, which is written as its report.
    var kinds: Set<Substring> = []
    for event in events { kinds.insert("\(event)".prefix { $0 != "(" }) }
    #expect(kinds.count == 28)
  }

  @Test func `commands that differ are written differently`() throws {
    var recorded = Recorded(durability: .sync)
    var commands: [Command] = []
    try recorded.live()
    commands += try recorded.handle(.turnEnded)
    let id = ConnectionID(3)
    let row = JournalRow(
      sequence: 1, time: Timestamp(nanoseconds: 2), cause: .owner, name: "a",
      action: nil, revision: 3, change: nil, answer: nil)
    var batch = JournalBatch(number: 1, revision: 3)
    batch.rows = [row]
    commands += [
      .send(id, []), .send(id, [[]]), .send(id, [[1], [2]]), .send(id, [[1, 2]]), .close(id),
      .close(ConnectionID(4)), .abort(id), .pauseReading(id), .resumeReading(id),
      .effect(.start(EffectID(1, salt: 1))), .effect(.cancel(EffectID(1, salt: 1))),
      .effect(.cancelTasks(ScopedEffectKey(texts: ["a", "b"]))),
      .effect(.cancelTasks(ScopedEffectKey(texts: ["a"]))), .wake, .keep(batch),
      .keepSnapshot(heals: true), .keepSnapshot(heals: false), .reopenJournal,
      .encodeSnapshot(SnapshotJobID(1)), .decodeAction(ConnectionID(1)), .measureState,
      .measureMemory,
      .answer(id, query: 1, .reloadPolicy), .answer(id, query: 1, .metrics("a")), .unwatch(id),
      .log(LogLine(.info, "a")), .log(LogLine(.notice, "a")),
      .log(LogLine(.info, "a", [.init("b", 1)])),
    ]
    batch.rows[0].name = "b"
    commands.append(.keep(batch))
    batch.revision = 4
    commands.append(.keep(batch))
    var written: [[UInt8]: Command] = [:]
    for command in commands {
      var encoder = CBOREncoder()
      command.encode(into: &encoder)
      if let other = written.updateValue(command, forKey: encoder.bytes) {
        #expect(other == command)
      }
    }
    #expect(written.count >= 28)
  }
}
