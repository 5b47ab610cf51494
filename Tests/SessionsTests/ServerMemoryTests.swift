import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// A server that knows how much memory its process has left.
@Suite struct ServerMemoryTests {
  private static let megabyte = 1 << 20

  private func bench(free: Int, of limit: Int = 150 << 20) -> Bench {
    var bench = Bench(["n": 0, "big": ["a": 1, "b": 2]])
    bench.join(1)
    bench.measureMemory(free: free, of: limit)
    return bench
  }

  /// The reason why each action is rejected; nil for an action that succeeds.
  private func answers(_ bench: inout Bench, _ first: UInt64, _ actions: DocumentAction...)
    -> [String?]
  {
    for (index, action) in actions.enumerated() { bench.act(1, first + UInt64(index), action) }
    var answers: [String?] = []
    for case .acknowledgement(let answer) in bench.said(to: 1, bench.settle()) {
      let count = Int(answer.last - answer.first) + 1
      var reason: String?
      if case .rejected(let rejection) = answer.outcome {
        #expect(rejection.code == Rejection.Code.limit.rawValue, "\(rejection)")
        reason = rejection.message
      }
      answers += Array(repeating: reason, count: count)
    }
    return answers
  }

  private let text = Value.text(String(repeating: "x", count: 1000))

  @Test func `with enough memory or without a limit every action is performed`() {
    var bench = bench(free: 100 << 20)
    #expect(answers(&bench, 1, .set(["k"], text), .set(["l"], 1)) == [nil, nil])
    bench.handle(.memoryMeasured(nil))
    #expect(answers(&bench, 3, .set(["m"], text)) == [nil])
  }

  @Test func `jobs together may take what is kept, and a quarter of what actions may take`() {
    var bench = bench(free: 100 << 20, of: 240 << 20)
    // Kept is the memory of a snapshot, and a twelfth of the limit for everything else.
    let kept = bench.server.snapshotMemory + (20 << 20)
    #expect(bench.server.jobMemory == kept + ((100 << 20) - kept) / 4)
    bench.measureMemory(free: 15 << 20, of: 240 << 20)
    #expect(bench.server.jobMemory == 15 << 20)
    bench.handle(.memoryMeasured(nil))
    #expect(bench.server.jobMemory == .max)
  }

  @Test func `work on a state that was read is granted memory before that is measured`() throws {
    var bench = Bench(["texts": [:]], durability: .sync)
    let snapshot = bench.server.pendingSnapshot
    var batches: [JournalBatch] = []
    for number in 1...30 {
      let text = Value.text("\(number)" + String(repeating: "x", count: 100_000))
      bench.handle(.acted(.set(["texts", .text("\(number % 20)")], text)))
      for case .keep(let batch) in bench.turn() {
        batches.append(batch)
        bench.handle(.journal(.committed(through: batch.number)))
      }
    }
    let count = StateMeasure(of: bench.server.state).encoded
    #expect(batches.count == 30 && count > 2_000_000)

    // Some texts were replaced.
    let kept = try bench.restored(from: snapshot, batches, limits: Limits())
    #expect(kept.stateBytes > count && kept.stateBytes < count * 8 / 5)
    var next = try bench.restarted(from: snapshot, batches)
    #expect(next.server.snapshotMemory == 3 * kept.stateBytes)
    let whole = try bench.restored(from: bench.server.pendingSnapshot, [], limits: Limits())
    #expect(whole.stateBytes >= count && whole.stateBytes < count + 1000)

    let bytes = HandOver(kept: kept, connections: [], connectionCount: 0)
      .encoded(schema: DocumentFeature.schema)
    let image = try HandOver<Document>(bytes, schema: DocumentFeature.schema)
    #expect(image.kept.stateBytes == count)

    // No action is rejected for it before that.
    next.join(1)
    next.measureMemory(free: count + (13 << 20), of: 150 << 20)
    #expect(answers(&next, 1, .set(["k"], text)) == [nil])
    next.measure()
    #expect(answers(&next, 2, .set(["l"], text)) != [nil])
  }

  @Test func `without memory the state does not grow, and the rejection names the limit`() {
    var bench = bench(free: 7 << 20)
    let refusal = answers(&bench, 1, .set(["k"], text)).first ?? nil
    #expect(
      refusal?.contains("bytes of memory left, of the 157286400 that the test allows") == true)
    #expect(refusal?.contains("removals are done") == true)
    #expect(bench.server.revision == 0)
    // Existing values may be replaced, removed and tested, and a little may be added.
    #expect(
      answers(
        &bench, 2, .increment(["n"], by: 1), .set(["n"], 7), .remove(["big", "a"]),
        .test(["n"], 7), .set(["new"], 1),
        .transaction([.remove(["big", "b"]), .test(["n"], 7)])) == [nil, nil, nil, nil, nil, nil])
    #expect(answers(&bench, 8, .append(["n"], text)) != [nil])
    // Additions succeed again as soon as there is memory.
    bench.measureMemory(free: 100 << 20, of: 150 << 20)
    #expect(answers(&bench, 9, .set(["k"], text)) == [nil])
  }

  @Test func `small additions end when they have used half of the reserve`() {
    var bench = bench(free: 12 << 20)
    var number: UInt64 = 0
    var last: String?
    while last == nil, number < 1_000_000 {
      number += 1
      last = answers(&bench, number, .set([.text("k\(number)")], 1)).first ?? nil
    }
    // They count for more than they take.
    #expect(number > 5000 && number < 100_000, "\(number)")
    // Existing values can still be replaced and removed.
    #expect(
      answers(&bench, number + 1, .set(["k1"], 2), .increment(["n"], by: 1), .remove(["k1"]))
        == [nil, nil, nil])
    // The next measurement corrects the estimate.
    bench.measureMemory(free: 11 << 20, of: 150 << 20)
    #expect(answers(&bench, number + 4, .set(["l"], 1)) == [nil])
    // The state does not grow with every measurement.
    bench.measureMemory(free: 5 << 20, of: 150 << 20)
    #expect(answers(&bench, number + 5, .set(["m"], 1)) != [nil])
    #expect(answers(&bench, number + 6, .set(["l"], 2)) == [nil])
    // It is not the state's growth if the limit itself is lowered.
    bench.measureMemory(free: 7 << 20, of: 150 << 20)
    #expect(answers(&bench, number + 7, .set(["o"], 1)) == [nil])
    bench.measureMemory(free: 6 << 20, of: 120 << 20)
    #expect(answers(&bench, number + 8, .set(["m"], 1)) == [nil])
    number += 2
    bench.measureMemory(free: 0, of: 150 << 20)
    #expect(answers(&bench, number + 7, .set(["l"], 3)) != [nil])
    #expect(answers(&bench, number + 8, .remove(["l"])) == [nil])
    #expect(bench.server.load.connections == 1)
  }

  @Test func `memory is measured again when half of it may be used, and at every tick`() {
    var bench = bench(free: 100 << 20)
    func measurements(_ commands: [Command]) -> Int { commands.count { $0 == .measureMemory } }
    func turn(_ bench: inout Bench) -> Int {
      var commands: [Command] = []
      bench.server.handle(.turnEnded, at: bench.now, into: &commands)
      return measurements(commands)
    }
    var number: UInt64 = 0
    var asked = 0
    while asked == 0, number < 10_000 {
      number += 1
      bench.act(1, number, .set([.text("k\(number)")], text))
      asked = turn(&bench)
    }
    #expect(number > 500 && number < 2000, "\(number)")
    // Only once until the measurement arrives.
    for _ in 0..<100 {
      number += 1
      bench.act(1, number, .set([.text("k\(number)")], text))
      #expect(turn(&bench) == 0)
    }
    bench.measureMemory(free: 100 << 20, of: 150 << 20)
    #expect(turn(&bench) == 0)
    var commands: [Command] = []
    bench.server.handle(.tick, at: bench.now, into: &commands)
    #expect(measurements(commands) == 1)
  }

  @Test func `scarce memory is not measured again at every turn`() {
    var bench = bench(free: 7 << 20)
    func measurements() -> Int {
      var commands: [Command] = []
      bench.server.handle(.turnEnded, at: bench.now, into: &commands)
      return commands.count { $0 == .measureMemory }
    }
    for _ in 0..<10 { #expect(measurements() == 0) }
    for number in 1...10 as ClosedRange<UInt64> {
      bench.act(1, number, .set(["n"], .unsigned(number)))
      #expect(measurements() == 0)
    }
  }

  @Test func `an array of many small values is not decoded, a long text is`() {
    var bench = bench(free: 60 << 20)
    let many = Value.array(TreeArray(repeatElement(.integer(1), count: 2 * Self.megabyte)))
    let refusal = answers(&bench, 1, .set(["many"], many)).first ?? nil
    #expect(refusal?.contains("would take about") == true, "\(refusal ?? "done")")
    let text = Value.text(String(repeating: "x", count: 2 * Self.megabyte))
    #expect(answers(&bench, 2, .set(["text"], text)) == [nil])
    // Action numbers stay consecutive, whether or not an action was decoded.
    #expect(answers(&bench, 3, .set(["n"], 1)) == [nil])
  }

  @Test func `many small containers are rejected for the memory they would take`() {
    var bench = bench(free: 140 << 20)
    let many = Value.array(TreeArray(repeatElement([], count: 1_400_000)))
    let refusal = answers(&bench, 1, .set(["many"], many)).first ?? nil
    #expect(refusal?.contains("would take about") == true, "\(refusal ?? "done")")
    #expect(answers(&bench, 2, .set(["n"], 1)) == [nil])
  }

  @Test func `the items of a value are counted without decoding it`() {
    let values: [(Value, Int)] = [
      (1, 1), (300, 1), (.text("abc"), 1), ([], 1), ([1, 2, 3], 4), (["a": 1, "b": [1]], 6),
      (.text(String(repeating: "x", count: 70_000)), 1), (1.5, 1), (.null, 1),
    ]
    for (value, count) in values {
      var encoder = CBOREncoder()
      value.encode(into: &encoder)
      #expect(encoder.bytes.withUnsafeBytes { ItemCount.items(in: $0) } == count, "\(value)")
    }
    // No bytes contain more items than bytes.
    var random = SplitMix64(5)
    for length in 0..<200 {
      let bytes = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      #expect(bytes.withUnsafeBytes { ItemCount.items(in: $0) } <= length)
    }
  }

  @Test(
    arguments: [
      (.remove(["a"]), .smaller), (.test(["a"], 1), .smaller), (.set(["a"], 1), .same),
      (.increment(["a"], by: 1), .same), (.replace(["a"], 1), .same), (.merge(["a"], 1), .larger),
      (.append(["a"], 1), .larger), (.insert(["a", 0], 1), .larger),
      (.copy(from: ["a"], to: ["b"]), .larger), (.move(from: ["a"], to: ["b"]), .larger),
      (.transaction([]), .smaller), (.transaction([.remove(["a"]), .remove(["b"])]), .smaller),
      (.transaction([.remove(["a"]), .set(["b"], 1)]), .same),
      (.transaction([.transaction([.append(["a"], 1)]), .remove(["a"])]), .larger),
    ] as [(DocumentAction, ActionFootprint)])
  func `an action has its effect on the size of the state`(
    _ action: DocumentAction, _ footprint: ActionFootprint
  ) {
    #expect(action.footprint == footprint)
  }
}
