#if !SANITIZED
  import CBOR
  import CJemalloc
  import Glibc
  import Testing
  import Values

  /// What values take in the allocator of a daemon is at most what `MemoryEstimate` says.
  @Suite struct TakenMemoryTests {
    @Test func `values take at most what their encodings are estimated at`() async {
      await #expect(processExitsWith: .success) {
        let before = ThreadMemory.bytes
        let block = malloc(1000)
        try #require(ThreadMemory.bytes >= before + 1000, "the allocator is another one")
        free(block)
        for (name, value) in Shapes.all {
          let (taken, estimated) = try decode(value)
          #expect(taken <= estimated, "\(name): \(taken), not \(estimated)")
        }
      }
    }

    /// As a state of documents grows, by single actions.
    @Test func `so do values that grew by one element at a time`() async {
      await #expect(processExitsWith: .success) {
        // The first ones make what the language keeps about their types.
        for count in [1, 100] { _ = (growArray(count), growObject(count)) }
        for count in Array(0...70) + [100, 300, 513, 1025, 1057, 5000, 20_000, 32_769] {
          let (array, object) = (growArray(count), growObject(count))
          #expect(array.taken <= array.estimated, "\(count) elements: \(array)")
          #expect(object.taken <= object.estimated, "\(count) members: \(object)")
        }
      }
    }

    /// Which decide the number of its branches, and how full its leaves are.
    @Test func `so do objects, whatever the hashes of their keys`() async {
      await #expect(processExitsWith: .success) {
        let counts =
          Array(31...64).map { ($0, 100) } + stride(from: 1057, to: 1500, by: 49).map { ($0, 10) }
        for (count, seeds) in counts {
          for seed in 1...seeds {
            let (taken, estimated) = try decode(
              Shapes.object(count) { ("k\($0)", .bool(true)) }, seed: HashSeed(UInt64(seed)))
            #expect(
              taken <= estimated, "\(count) members, seed \(seed): \(taken), not \(estimated)")
          }
        }
      }
    }
  }

  private func growArray(_ count: Int) -> (taken: Int, estimated: Int) {
    let before = ThreadMemory.bytes
    var elements = TreeArray<Value>()
    for number in 0..<count { elements.append(.integer(Int64(number))) }
    let taken = ThreadMemory.bytes - before
    return (taken, StateMeasure(of: Value.array(elements)).memory)
  }

  private func growObject(_ count: Int) -> (taken: Int, estimated: Int) {
    let before = ThreadMemory.bytes
    var members = TrieMap<String, Value>()
    for number in 0..<count { members.updateValue(.integer(1), forKey: "m\(number)") }
    let taken = ThreadMemory.bytes - before
    return (taken, StateMeasure(of: Value.object(members)).memory)
  }

  /// Decode the encoding of a value. Returns the bytes that the new value takes, and the estimate.
  private func decode(
    _ value: Value, seed: HashSeed = HashSeed(7)
  ) throws -> (taken: Int, estimated: Int) {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    let encoded = encoder.bytes
    return try encoded.withUnsafeBytes { bytes in
      var estimate = MemoryEstimate()
      var decoder = CBORDecoder(bytes)
      try estimate.addValue(&decoder)
      decoder = CBORDecoder(bytes)
      let before = ThreadMemory.bytes
      let decoded = try Value(from: &decoder, seed: seed)
      return withExtendedLifetime(decoded) {
        (ThreadMemory.bytes - before, estimate.bytes)
      }
    }
  }

  private enum Shapes {
    static var all: [(String, Value)] {
      var shapes: [(String, Value)] = []
      for length in Array(0...16) + [
        23, 24, 33, 100, 300, 1000, 2050, 5000, 9000, 14_337, 16_384, 20_000, 28_673, 70_000,
        1_100_000,
      ] {
        shapes.append(("text \(length)", .text(String(repeating: "x", count: length))))
        shapes.append(("bytes \(length)", .bytes([UInt8](repeating: 1, count: length))))
      }
      for count in Array(0...70) + [100, 129, 300, 513, 1025, 1057, 2049, 5000, 20_000] {
        shapes.append(("numbers \(count)", array(count) { .integer(Int64($0)) }))
        shapes.append(("texts \(count)", array(count) { .text("a text of its own, \($0)") }))
        shapes.append(("empty arrays \(count)", array(count) { _ in .array([]) }))
        shapes.append(("empty objects \(count)", array(count) { _ in .object([:]) }))
        shapes.append(("small objects \(count)", array(count) { ["a": .integer(Int64($0))] }))
        shapes.append(("pairs \(count)", array(count) { ["a": .integer(Int64($0)), "b": 1] }))
        shapes.append(("bytes \(count)", array(count) { .bytes([UInt8(truncatingIfNeeded: $0)]) }))
        shapes.append(("short arrays \(count)", array(count) { [.integer(Int64($0))] }))
        shapes.append(("members \(count)", object(count) { ("\($0)", .integer(Int64($0))) }))
        shapes.append(
          ("long keys \(count)", object(count) { ("a key of its own, \($0)", .bool(true)) }))
        shapes.append(("rows \(count)", object(count) { ("r\($0)", ["n": .integer(Int64($0))]) }))
      }
      return shapes
    }

    private static func array(_ count: Int, _ element: (Int) -> Value) -> Value {
      .array(TreeArray((0..<count).map(element)))
    }

    static func object(_ count: Int, _ member: (Int) -> (String, Value)) -> Value {
      .object(TrieMap(uniqueKeysWithValues: (0..<count).map(member)))
    }
  }

  /// What this thread has allocated and not freed, as the allocator rounds it up.
  private enum ThreadMemory {
    static var bytes: Int { number("thread.allocated") - number("thread.deallocated") }

    private static func number(_ name: String) -> Int {
      var (value, size): (UInt64, Int) = (0, MemoryLayout<UInt64>.size)
      #expect(mallctl(name, &value, &size, nil, 0) == 0, "\(name)")
      return Int(value)
    }
  }
#endif
