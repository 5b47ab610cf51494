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

  @Test func `of what is large no more is encoded than was asked for`() {
    for value in Self.counting(count: 5000) + Self.counting(count: 15) {
      Self.looks.withLock { $0 = 0 }
      let form = value.form(upTo: 1000)
      #expect(form.isOver && form.bytes.count <= 1100, "\(type(of: value))")
      // Each takes more than 100 bytes.
      let looks = Self.looks.withLock { $0 }
      #expect(looks <= 10, "\(type(of: value)) encoded \(looks) elements")
    }
  }

  @Test func `keys are no more than was asked for either`() {
    let long = (0..<15).map { "\($0)" + String(repeating: "x", count: 10_000) }
    let keyed = long.map { ($0, 1) }
    for value in [
      Set(long), Dictionary(uniqueKeysWithValues: keyed), SyncMap(uniqueKeysWithValues: keyed),
    ] as [any Synchronizable] {
      let form = value.form(upTo: 5000)
      #expect(form.isOver && form.bytes.count <= 100, "\(type(of: value))")
    }
  }

  @Test func `an enumeration that contains itself is not encoded whole`() {
    var tree = Tree.leaf
    for _ in 0..<12 { tree = .node(tree, tree) }
    #expect(tree.form(upTo: .max).bytes.count > 8000)
    let form = tree.form(upTo: 100)
    #expect(form.isOver && form.bytes.count < 200)
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

  /// How many of `Counted` were encoded. One test uses it.
  private static let looks = Mutex(0)

  /// Counts how often one is encoded.
  private struct Counted: SynchronizableScalar, Equatable {
    var text = String(repeating: "x", count: 100)

    init() {}

    func isSame(as other: Counted) -> Bool { text == other.text }

    func encode(into encoder: inout CBOREncoder) {
      SmallFormTests.looks.withLock { $0 += 1 }
      encoder.encode(text)
    }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      text = try decoder.text()
    }

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
  }

  /// As the macros write the coding of an enumeration.
  private indirect enum Tree: SynchronizableScalar, Equatable {
    case leaf
    case node(Tree, Tree)

    func isSame(as other: Tree) -> Bool { self == other }

    func encode(into encoder: inout CBOREncoder) {
      switch self {
      case .leaf: encoder.encode(0)
      case .node(let first, let second):
        encoder.array(3)
        encoder.encode(1)
        StructureCoding.encode(first, into: &encoder)
        StructureCoding.encode(second, into: &encoder)
      }
    }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      try decoder.skip()
      self = .leaf
    }

    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
  }

  private static func counting(count: Int) -> [any Synchronizable] {
    let all = [Counted](repeating: Counted(), count: count)
    let keyed = (0..<count).map { ("\($0)", Counted()) }
    return [
      all, SyncArray(all), SyncMap(uniqueKeysWithValues: keyed),
      Dictionary(uniqueKeysWithValues: keyed), SyncArray((0..<count).map { _ in [Counted()] }),
      SyncMap(uniqueKeysWithValues: keyed.map { ($0.0, SyncArray([$0.1])) }),
      [SyncArray(all), SyncArray(all)],
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
