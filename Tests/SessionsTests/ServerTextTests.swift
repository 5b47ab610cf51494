import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Whatever clients send, the texts that the daemon keeps and sends of it are bounded.
@Suite struct ServerTextTests {
  /// 123 nested arrays: within a report they exceed the depth of any reader.
  private static let nested: [UInt8] =
    [0x84, 0x04, 0x01, 0x00, 0x83, 0x00, 0x81, 0x61, 0x7a] + [UInt8](repeating: 0x81, count: 123)
    + [0x00]

  @Test(arguments: ["log", "why", "log.follow"])
  func `no report nests deeper than a reader accepts`(name: String) throws {
    var bench = Bench.withClients(2)
    bench.say(2, .query(number: 1, "log.follow"))
    _ = bench.turn()
    let item = Self.nested
    let bytes = withUnsafeBytes(of: UInt32(item.count).littleEndian) { Array($0) } + item
    bench.handle(.received(ConnectionID(1), bytes))
    bench.say(1, .query(number: 5, name, arguments: name == "log" ? [] : ["1"]))
    bench.act(1, 2, .put("n", 1))
    let commands = bench.turn()
    for client in 1...2 as ClosedRange<UInt64> {
      var decoder = FrameDecoder(limit: 1 << 24)
      let bytes = Array(bench.frames(to: client, commands).joined())
      try bytes.withUnsafeBytes { bytes in
        try decoder.receiveAll(bytes) { item throws(WireError) in
          _ = try ServerMessage(item, seed: HashSeed(7))
        }
      }
    }
    guard
      case .report(5, let report, _)? = bench.said(to: 1, commands).first(where: {
        if case .report = $0 { true } else { false }
      }), case .array(let records)? = report.child("records")
    else {
      Issue.record("no report")
      return
    }
    if name == "log" {
      #expect(records.count == 2 && records[0].child("payload") == nil)
      #expect(records[1].child("payload") != nil)
    }
  }

  @Test func `the text of rejections is bounded, for each and for a whole session`() throws {
    var bench = Bench.withClients(1)
    let text = String(repeating: "é", count: 500_000)
    for number in 1...100 as ClosedRange<UInt64> {
      // One path is quoted because it is present, the other because it is absent.
      bench.act(1, 2 * number - 1, .remove([.text(text)]))
      bench.act(1, 2 * number, .set(["n", .text(text)], 1))
      let commands = bench.turn()
      for frame in bench.frames(to: 1, commands) { #expect(frame.count < 8192) }
      for case .acknowledgement(let item) in bench.said(to: 1, commands) {
        guard case .rejected(let rejection) = item.outcome else { continue }
        #expect(rejection.message.utf8.count <= 1024)
        // The path without a container is short; any long path is omitted.
        #expect(rejection.path == nil || rejection.path == ["n"])
      }
    }
    let outcomes = try #require(bench.server.handOver.kept.sessions.first).outcomes
    let texts = outcomes.map { outcome -> String in
      if case .rejected(let rejection) = outcome.outcome { rejection.message } else { "" }
    }
    #expect(texts.count == 200)
    #expect(texts.reduce(0) { $0 + $1.utf8.count } < 60_000)
    // The newest rejections have their message, the oldest the meaning of their code.
    #expect(texts.last?.contains("no container") == true)
    #expect(texts.first == "the path names nothing that the action could work on")
    bench.say(1, .query(number: 1, "log", arguments: ["2000"]))
    let bytes = bench.frames(to: 1, bench.turn()).reduce(0) { $0 + $1.count }
    #expect(bytes < 400_000)
  }

  /// The log keeps the same text that it reports.
  @Test func `the store shortens the rejection of a feature`() throws {
    var core = StoreCore(
      Document([:]), reducer: DocumentFeature(), seed: HashSeed(7), textBytes: 300)
    var patch = CBOREncoder()
    let key = PathKey.text(String(repeating: "x", count: 5000))
    let reduction = core.send(.remove([key]), patch: &patch)
    guard case .rejected(let rejection) = reduction else {
      Issue.record("not rejected")
      return
    }
    #expect(rejection.path == nil && rejection.message.utf8.count <= 300)
    #expect(core.log.newest?.outcome == reduction)
  }

  @Test func `an acknowledgement fits the smallest frame`() {
    var limits = Limits()
    limits.frameBytes = 4096
    var bench = Bench.withClients(1, limits: limits)
    for length in stride(from: 3000, through: 4060, by: 20) {
      let number = UInt64((length - 3000) / 20 + 1)
      bench.act(1, number, .set(["n", .text(String(repeating: "x", count: length))], 1))
      for frame in bench.frames(to: 1, bench.turn()) { #expect(frame.count <= 4100) }
    }
  }

  @Test func `outcomes of an older journal are shortened too`() throws {
    let long = RejectionMessage(
      code: 3, message: String(repeating: "x", count: 1 << 20),
      path: [.text(String(repeating: "y", count: 1 << 20))])
    let kept = (1...50).map { number in
      Acknowledgement(first: number, last: number, revision: 0, .rejected(long))
    }
    var restoredState = RestoredState(
      state: Document([:]), epoch: 9, seed: HashSeed(7), run: 2,
      runs: [JournalRun(run: 1, base: 0), JournalRun(run: 2, base: 0)], revision: 0, base: 0,
      sequence: 50)
    restoredState.sessions = [
      JournalSession(token: Bench.token(1), uid: 1000, number: 1, outcomes: kept)
    ]
    let server = Server(
      restoring: restoredState, reducer: DocumentFeature(), at: Instant(nanoseconds: 0))
    let outcomes = try #require(server.handOver.kept.sessions.first).outcomes
    #expect(outcomes.count == 50)
    let bytes = outcomes.reduce(0) { sum, outcome in
      if case .rejected(let rejection) = outcome.outcome {
        sum + rejection.message.utf8.count
      } else {
        sum
      }
    }
    #expect(bytes < 40_000)
  }

  @Test(arguments: [1, 2, 3, 4, 5]) func `a text is cut between its characters`(limit: Int) {
    let rejection = Rejection(.refused, "aé€😀 and more", at: ["n"])
    let bounded = rejection.bounded(to: 2 + limit)
    #expect(bounded.message.utf8.count <= 2 + limit)
    #expect(bounded.message.hasSuffix("…"))
    #expect(rejection.message.hasPrefix(bounded.message.dropLast()))
    #expect(bounded.path == ["n"])
  }

  // MARK: Memory

  @Test func `an action whose values take too much memory is not decoded`() {
    var limits = Limits()
    limits.actionMemoryBytes = 1 << 20
    var bench = Bench.withClients(1, limits: limits)
    func outcome(_ number: UInt64, _ element: UInt8, count: Int) -> Acknowledgement.Outcome? {
      let head: [UInt8] = [0x84, 4, UInt8(number), 0, 0x83, 0, 0x81, 0x61, 0x7a, 0x9a]
      let length = withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) }
      let item = head + length + [UInt8](repeating: element, count: count)
      bench.handle(
        .received(
          ConnectionID(1), withUnsafeBytes(of: UInt32(item.count).littleEndian) { Array($0) } + item
        ))
      guard case .acknowledgement(let answer)? = bench.said(to: 1, bench.turn()).last else {
        return nil
      }
      return answer.outcome
    }
    #expect(outcome(1, 0xa0, count: 5900) == .reduced)
    guard case .rejected(let rejection)? = outcome(2, 0xa0, count: 6000) else {
      Issue.record("not rejected")
      return
    }
    #expect(rejection.code == Rejection.Code.limit.rawValue)
    #expect(rejection.message.contains("actionMemoryBytes, which is 1048576"))
    #expect(outcome(3, 0x07, count: 32_000) == .reduced)
    #expect(outcome(4, 0x07, count: 33_000) != .reduced)
    #expect(outcome(5, 0x07, count: 4) == .reduced)
    // Malformed CBOR after the point where decoding stopped is harmless, because the frame is
    // whole.
    #expect(bench.server.state.root.child("z") == [7, 7, 7, 7])
  }
}
