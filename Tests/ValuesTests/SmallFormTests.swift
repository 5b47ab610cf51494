import CBOR
import Synchronization
import Testing
import Values

/// What is small is found by encoding it, and of what is large little is looked at.
@Suite struct SmallFormTests {
  private static let seed = HashSeed(7)

  @Test func `what fits is whole, and is never more than was asked for`() {
    var random = SplitMix64(9)
    for _ in 0..<300 {
      for value in Self.collections(count: Int(random.next() % 60), &random) {
        let whole = value.form(upTo: .max)
        for limit in [0, 1, 9, 40, 300, 3000] {
          let form = value.form(upTo: limit)
          if !form.isOver { #expect(form.bytes == whole.bytes && whole.bytes.count <= limit) }
        }
        #expect(!value.form(upTo: 64 * whole.bytes.count + 64).isOver)
      }
    }
  }

  @Test(arguments: [1, 100])
  func `of what is large no more is encoded than was asked for`(length: Int) {
    for value in Self.counting(count: 5000, length: length) {
      Self.looks.withLock { $0[length] = 0 }
      let form = value.form(upTo: 1000)
      let looks = Self.looks.withLock { $0[length] ?? 0 }
      #expect(form.isOver && form.bytes.count <= 1000, "\(type(of: value))")
      // An array of many looks no further than one of its nodes.
      #expect(looks <= 1000 / length + 64, "\(type(of: value)) looked at \(looks) elements")
    }
  }

  @Test func `a part of a state is found by its path`() {
    var rows = SyncMap<String, [Int]>(["short": [1, 2], "long": [Int](repeating: 1, count: 5000)])
    rows.adopt(seed: Self.seed)
    for (path, isSmall) in [(["short"], true), (["long"], false), (["none"], true), ([], false)]
      as [(Path, Bool)]
    {
      var encoder = CBOREncoder(upTo: 1000)
      rows.encode(at: path, into: &encoder)
      #expect(encoder.isOver == !isSmall, "\(path)")
    }
  }

  // MARK: Values

  /// How many elements of each length were encoded.
  private static let looks = Mutex<[Int: Int]>([:])

  /// Counts how often one of its length is encoded.
  private struct Counted: SynchronizableScalar, Equatable {
    var text: String

    func isSame(as other: Counted) -> Bool { text == other.text }

    func encode(into encoder: inout CBOREncoder) {
      SmallFormTests.looks.withLock { $0[text.utf8.count, default: 0] += 1 }
      encoder.encode(text)
    }

    init(_ text: String) { self.text = text }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      text = try decoder.text()
    }

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
  }

  private static func counting(count: Int, length: Int) -> [any Synchronizable] {
    let one = Counted(String(repeating: "x", count: length))
    let all = [Counted](repeating: one, count: count)
    let keyed = (0..<count).map { ("\($0)", one) }
    let few = [[Counted](repeating: one, count: 15)]
    let short = Value.text(one.text)
    return [
      all, SyncArray(all), SyncMap(uniqueKeysWithValues: keyed),
      Dictionary(uniqueKeysWithValues: keyed), SyncArray((0..<count).flatMap { _ in few }),
      Value.array(TreeArray((0..<count).map { _ in short })),
      Value.object(TrieMap(uniqueKeysWithValues: (0..<count).map { ("\($0)", short) })),
    ]
  }

  private static func collections(
    count: Int, _ random: inout SplitMix64
  ) -> [any Synchronizable] {
    let texts = (0..<count).map { _ in
      String(repeating: "é", count: Int(random.next() % 20))
    }
    let keyed = texts.enumerated().map { ("\($0.offset)", $0.element) }
    return [
      texts, SyncArray(texts), SyncMap(uniqueKeysWithValues: keyed), Set(texts),
      Dictionary(uniqueKeysWithValues: keyed), [UInt8](repeating: 1, count: count),
      SyncMap(uniqueKeysWithValues: keyed.map { ($0.0, [$0.1]) }),
      Value.array(TreeArray(texts.map { .text($0) })),
      Value.object(TrieMap(uniqueKeysWithValues: keyed.map { ($0.0, .text($0.1)) })),
    ]
  }
}

extension Synchronizable {
  fileprivate func form(upTo bytes: Int) -> CBOREncoder {
    var encoder = CBOREncoder(upTo: bytes)
    encode(into: &encoder)
    return encoder
  }
}
