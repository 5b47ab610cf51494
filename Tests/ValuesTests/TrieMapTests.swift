import CBOR
import Testing

@testable import Values

/// SplitMix64, so that a failure can be repeated.
struct SplitMix64: RandomNumberGenerator {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }
  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

/// A key with very few hashes, so that distinct keys collide in all 64 bits.
struct CollidingKey: SyncKey {
  var number: Int
  init(_ number: Int) { self.number = number }
  static var schemaKind: Schema.Kind { .integer }
  func hash(seed: HashSeed) -> UInt64 { UInt64(truncatingIfNeeded: number % 3) &* 0x0101 }
  static func isSame(_ first: Self, _ second: Self) -> Bool { first.number == second.number }
  static func precedes(_ first: Self, _ second: Self) -> Bool { first.number < second.number }
  func encode(into encoder: inout CBOREncoder) { encoder.encode(number) }
  init(from decoder: inout CBORDecoder) throws(CBORError) { number = Int(try decoder.integer()) }
  var pathKey: PathKey { .integer(Int64(number)) }
  init?(pathKey: PathKey) {
    guard case .integer(let value) = pathKey else { return nil }
    number = Int(value)
  }
}

/// Two fields, encoded as `{0: title, 1: votes}`.
struct Entry: Synchronizable, Hashable {
  var title: String
  var votes: Int

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
  func isSame(as other: Entry) -> Bool { votes == other.votes && title.isSame(as: other.title) }
  func encode(into encoder: inout CBOREncoder) {
    encoder.map(2)
    encoder.encode(0)
    encoder.encode(title)
    encoder.encode(1)
    encoder.encode(votes)
  }
  init(title: String, votes: Int) {
    self.title = title
    self.votes = votes
  }
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init(title: "", votes: 0)
    guard try decoder.map() == 2 else { throw CBORError(.malformed, at: decoder.offset) }
    for _ in 0..<2 { try decodeField(&decoder) }
    decoder.close()
  }
  func encodeDifference(from old: Entry, into encoder: inout CBOREncoder) -> Bool {
    var map = PatchMap(in: &encoder)
    var mark = map.open(encoder)
    encoder.encode(0)
    map.close(mark, changed: title.encodeDifference(from: old.title, into: &encoder), &encoder)
    mark = map.open(encoder)
    encoder.encode(1)
    map.close(mark, changed: votes.encodeDifference(from: old.votes, into: &encoder), &encoder)
    return map.finish(&encoder)
  }
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try decoder.map()) { try decodeField(&decoder) }
    decoder.close()
  }
  private mutating func decodeField(_ decoder: inout CBORDecoder) throws(CBORError) {
    switch try decoder.unsigned() {
    case 0: title = try decoder.text()
    case 1: votes = Int(try decoder.integer())
    default: throw CBORError(.malformed, at: decoder.offset)
    }
  }
  func digest(seed: HashSeed) -> UInt64 {
    Hashing.mix(title.digest(seed: seed) &+ Hashing.mix(votes.digest(seed: seed)))
  }
  mutating func adopt(seed: HashSeed) {}
}

func encoded(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

/// The patch, or nil when it is empty.
func difference<V: Synchronizable>(from old: V, to new: V) -> [UInt8]? {
  var encoder = CBOREncoder()
  guard new.encodeDifference(from: old, into: &encoder) else {
    #expect(encoder.bytes.isEmpty)
    return nil
  }
  return encoder.bytes
}

func decoded<V: Synchronizable>(
  _ type: V.Type, _ bytes: [UInt8], seed: HashSeed
) throws(CBORError) -> V {
  try CBORDecoder.read(bytes) { decoder throws(CBORError) in try V(from: &decoder, seed: seed) }
}

func applying<V: Synchronizable>(
  _ patch: [UInt8], to value: V, seed: HashSeed
) throws(CBORError) -> V {
  try CBORDecoder.read(patch) { decoder throws(CBORError) in
    var result = value
    try result.apply(patch: &decoder, seed: seed)
    return result
  }
}

/// The digest computed from the contents by its definition.
func digestFromScratch<K, V>(_ map: TrieMap<K, V>, seed: HashSeed) -> UInt64 {
  var sum: UInt64 = 0
  for (key, value) in map {
    sum &+= Hashing.entry(keyHash: key.hash(seed: seed), digest: value.digest(seed: seed))
  }
  return Hashing.map(sum: sum, count: map.count)
}

/// Checks a map against its contents, and that its order and shape depend on the contents alone.
func checkCanonical<K>(
  _ map: TrieMap<K, Entry>, _ oracle: [K: Entry], _ random: inout SplitMix64
) {
  #expect(map.count == oracle.count)
  let sorted = oracle.keys.sorted {
    let (first, second) = ($0.hash(seed: map.seed), $1.hash(seed: map.seed))
    return first == second ? K.precedes($0, $1) : first < second
  }
  #expect(Array(map.keys) == sorted)
  var other = TrieMap<K, Entry>(seed: map.seed)
  for key in sorted.shuffled(using: &random) { other.updateValue(oracle[key]!, forKey: key) }
  #expect(other.nodeCount == map.nodeCount)
  let bytes = encoded(map)
  #expect(encoded(other) == bytes)
  #expect(other == map)
  #expect(difference(from: other, to: map) == nil)
  let bulk = try? decoded(TrieMap<K, Entry>.self, bytes, seed: map.seed)
  #expect(bulk?.nodeCount == map.nodeCount)
  #expect(bulk == map)
  #expect(map.digest(seed: map.seed) == digestFromScratch(map, seed: map.seed))
  #expect(bulk?.digest(seed: map.seed) == map.digest(seed: map.seed))
}

#if SANITIZED
  let stepsOfAWriter = 1_500
#else
  let stepsOfAWriter = 15_000
#endif

@Suite struct TrieMapTests {
  /// Random operations on several maps of one lineage, compared with dictionaries.
  func write<K: SyncKey>(
    seed: UInt64, keys: Int, steps: Int, makeKey: (Int) -> K
  ) throws {
    var random = SplitMix64(seed)
    let hashSeed = HashSeed(seed)
    var map = TrieMap<K, Entry>(seed: hashSeed)
    var oracle: [K: Entry] = [:]
    var held: [(TrieMap<K, Entry>, [K: Entry])] = []
    var growth = 60
    for step in 0..<steps {
      let key = makeKey(random.below(keys))
      let value = Entry(title: "t\(random.below(5))", votes: random.below(4))
      if step % 1_000 == 0 { growth = random.chance(50) ? 75 : 25 }
      switch random.below(10) {
      case 0, 1, 2, 3:
        if random.chance(growth) {
          #expect(map.updateValue(value, forKey: key) == oracle.updateValue(value, forKey: key))
        } else {
          #expect(map.removeValue(forKey: key) == oracle.removeValue(forKey: key))
        }
      case 4, 5:
        let result = map.modifyValue(forKey: key) { entry in
          entry.votes += 1
          return entry.votes
        }
        oracle[key]?.votes += 1
        #expect(result == oracle[key]?.votes)
      case 6, 7:
        #expect(map[key] == oracle[key])
        #expect(map.contains(key) == (oracle[key] != nil))
      case 8:
        _ = map.digest(seed: hashSeed)
      default:
        if random.chance(10) {
          held.append((map, oracle))
          if held.count > 5 { held.remove(at: random.below(5)) }
        }
      }
      #expect(map.count == oracle.count)
      if step % 997 == 0 {
        checkCanonical(map, oracle, &random)
        for (old, contents) in held { try checkLaw(old, contents, map) }
      }
    }
    checkCanonical(map, oracle, &random)
    for (old, contents) in held { checkCanonical(old, contents, &random) }
  }

  func checkLaw<K>(
    _ old: TrieMap<K, Entry>, _ contents: [K: Entry], _ new: TrieMap<K, Entry>
  ) throws {
    #expect(Dictionary(uniqueKeysWithValues: old.map { ($0.key, $0.value) }) == contents)
    let isSame = encoded(old) == encoded(new)
    #expect((old == new) == isSame)
    guard let patch = difference(from: old, to: new) else {
      #expect(isSame)
      return
    }
    #expect(!isSame)
    let result = try applying(patch, to: old, seed: old.seed)
    #expect(encoded(result) == encoded(new))
    #expect(result.nodeCount == new.nodeCount)
    // The same patch, found by lookups.
    var reseeded = old
    reseeded.adopt(seed: HashSeed(old.seed.rawValue &+ 1))
    #expect(difference(from: reseeded, to: new) == patch)
    #expect(reseeded == old)
    #expect((reseeded == new) == isSame)
  }

  @Test(arguments: [1, 2, 3, 4])
  func `a map under random edits agrees with a dictionary`(seed: UInt64) throws {
    let keys = [40, 300, 3_000, 33][Int(seed) - 1]
    try write(seed: seed, keys: keys, steps: stepsOfAWriter) { $0 * 7 - 50 }
  }

  @Test func `a map of texts under random edits agrees with a dictionary`() throws {
    try write(seed: 5, keys: 500, steps: stepsOfAWriter) { "key number \($0)" }
  }

  @Test(arguments: [30, 100, 400])
  func `keys with equal hashes are kept apart`(keys: Int) throws {
    try write(seed: 6, keys: keys, steps: stepsOfAWriter / 2) { CollidingKey($0) }
  }

  @Test func `composed and decomposed text are two keys`() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    var map = TrieMap<String, Int>(seed: HashSeed(9))
    map.updateValue(1, forKey: composed)
    map.updateValue(2, forKey: decomposed)
    #expect(map.count == 2)
    #expect(map[composed] == 1)
    #expect(map[decomposed] == 2)
    #expect(try decoded(TrieMap<String, Int>.self, encoded(map), seed: HashSeed(9)) == map)
    map.removeValue(forKey: composed)
    #expect(map[composed] == nil)
    #expect(map[decomposed] == 2)
    let old: TrieMap<Int, String> = [1: composed]
    #expect(difference(from: old, to: [1: decomposed]) != nil)
  }

  @Test func `a map is one word`() {
    #expect(MemoryLayout<TrieMap<Int, Entry>>.size == 8)
  }

  @Test func `a value is at the offset that the compiler chose`() {
    func check<Key: SyncKey, Value: Synchronizable>(_ key: Key.Type, _ value: Value.Type) {
      let offset = MemoryLayout<TrieEntry<Key, Value>>.offset(of: \.value)
      #expect(offset == TrieRef<Key, Value>.valueOffset, "\(key), \(value)")
    }
    func check<Key: SyncKey>(_ key: Key.Type) {
      check(key, Bool.self)
      check(key, Int16.self)
      check(key, Double.self)
      check(key, String.self)
      check(key, [UInt8].self)
      check(key, Entry.self)
      check(key, TrieMap<Int, String>.self)
    }
    enum OneByte: String, SynchronizableScalar, SyncKey { case this, that }
    check(OneByte.self)
    check(Int.self)
    check(String.self)
  }

  @Test func `removing or changing an absent key copies nothing`() {
    let keys = 0..<1_000
    var map = TrieMap(seed: HashSeed(1), uniqueKeysWithValues: keys.map { ($0, $0) })
    let copy = map
    #expect(map.removeValue(forKey: -1) == nil)
    #expect(map.modifyValue(forKey: -1) { $0 += 1 } == nil)
    #expect(map.isIdentical(to: copy))
    map.updateValue(0, forKey: 0)
    #expect(!map.isIdentical(to: copy))
    #expect(map == copy)
  }

  @Test func `an error thrown while changing leaves the map usable`() throws {
    struct Failure: Error {}
    var map: TrieMap<Int, Int> = [1: 1]
    #expect(throws: Failure.self) {
      try map.modifyValue(forKey: 1) { value throws(Failure) in
        value = 2
        throw Failure()
      }
    }
    #expect(map[1] == 2)
  }

  @Test func `an iterator iterates over the map that it was made from`() {
    var map = TrieMap(seed: HashSeed(1), uniqueKeysWithValues: (0..<500).map { ($0, $0) })
    var seen = 0
    for (key, _) in map {
      map.removeValue(forKey: key)
      seen += 1
    }
    #expect(seen == 500)
    #expect(map.isEmpty)
    for _ in map { Issue.record("an empty map has an entry") }
  }

  @Test(arguments: [0, 1, 2, 31, 32, 33, 34, 100, 1_024, 1_025, 5_000])
  func `every size has one shape, whatever edits led to it`(size: Int) throws {
    let seed = HashSeed(UInt64(size))
    var random = SplitMix64(3)
    let oracle = Dictionary(
      uniqueKeysWithValues: (0..<size).map { ($0, Entry(title: "\($0)", votes: $0)) })
    var map = TrieMap<Int, Entry>(seed: seed)
    for key in (0..<size + 40).shuffled(using: &random) {
      map.updateValue(Entry(title: "\(key)", votes: key), forKey: key)
    }
    for key in size..<size + 40 { map.removeValue(forKey: key) }
    checkCanonical(map, oracle, &random)
  }

  @Test(arguments: [3, 32, 33, 200, 3_000])
  func `entries in any order decode to the same map`(size: Int) throws {
    var random = SplitMix64(UInt64(size))
    let seed = HashSeed(77)
    let map = TrieMap(seed: seed, uniqueKeysWithValues: (0..<size).map { ($0, $0) })
    for swaps in [1, 5, size] {
      var entries = Array(map)
      for _ in 0..<swaps { entries.swapAt(random.below(size), random.below(size)) }
      var encoder = CBOREncoder()
      encoder.map(size)
      for (key, value) in entries {
        encoder.encode(key)
        encoder.encode(value)
      }
      let result = try decoded(TrieMap<Int, Int>.self, encoder.bytes, seed: seed)
      #expect(result.nodeCount == map.nodeCount)
      #expect(encoded(result) == encoded(map))
    }
  }

  @Test(arguments: [2, 33, 500])
  func `a duplicate key is an error at its offset`(size: Int) throws {
    let seed = HashSeed(8)
    let map = TrieMap(seed: seed, uniqueKeysWithValues: (0..<size).map { ($0, $0) })
    for second in [0, size / 2, size - 1] {
      for first in 0..<Swift.min(size, 40) {
        var encoder = CBOREncoder()
        encoder.map(size + 1)
        var offset = 0
        for (position, entry) in map.enumerated() {
          encoder.encode(entry.key)
          encoder.encode(entry.value)
          if position == second {
            offset = encoder.bytes.count
            encoder.encode(Array(map)[Swift.min(first, second)].key)
            encoder.encode(0)
          }
        }
        #expect(throws: CBORError(.notAllowed("duplicate key"), at: offset)) {
          try decoded(TrieMap<Int, Int>.self, encoder.bytes, seed: seed)
        }
      }
    }
  }

  @Test func `truncated bytes are an error`() {
    let seed = HashSeed(5)
    let entries = (0..<60).map { ("key \($0)", Entry(title: "t", votes: $0)) }
    let bytes = encoded(TrieMap(seed: seed, uniqueKeysWithValues: entries))
    for length in 0..<bytes.count {
      #expect(throws: CBORError.self) {
        try decoded(
          TrieMap<String, Entry>.self, Array(bytes[..<length]), seed: seed)
      }
    }
  }

  @Test func `a length without entries reserves no memory`() {
    let bytes: [UInt8] = [0xbb, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x01, 0x01]
    #expect(throws: CBORError(.lengthBeyondInput(0x7f_ffff_ffff), at: 0)) {
      try decoded(TrieMap<Int, Int>.self, bytes, seed: .unseeded)
    }
  }

  @Test func `a patch may neither remove nor edit an absent key`() {
    let map: TrieMap<Int, Entry> = [1: Entry(title: "one", votes: 1)]
    func error(_ patch: [UInt8]) -> CBORError? {
      do throws(CBORError) {
        _ = try applying(patch, to: map, seed: .unseeded)
        return nil
      } catch { return error }
    }
    #expect(
      error([0xa1, 0x02, 0xf7]) == CBORError(.notAllowed("removal of an absent key"), at: 1))
    #expect(
      error([0xa1, 0x02, 0xa1, 0x01, 0x05])
        == CBORError(.notAllowed("an edit of an absent key"), at: 1))
    #expect(error([0xf7]) != nil)
    #expect(error([0x01]) != nil)
    #expect(error([0x80]) != nil)
    #expect(error([0x82, 0x80, 0x80]) != nil)
    #expect(error([0xa1, 0x01, 0xf7]) == nil)
    #expect(error([0x81, 0xa0]) == nil)
  }

  @Test func `a patch replaces, removes, adds and edits`() throws {
    let map: TrieMap<Int, Entry> = [
      1: Entry(title: "one", votes: 1), 2: Entry(title: "two", votes: 2),
    ]
    var new = map
    new.modifyValue(forKey: 1) { $0.votes = 9 }
    new.removeValue(forKey: 2)
    new.updateValue(Entry(title: "x", votes: 3), forKey: 3)
    let patch = try #require(difference(from: map, to: new))
    #expect(
      patch == [
        0xa3, 0x01, 0xa1, 0x01, 0x09, 0x02, 0xf7, 0x03, 0x81, 0xa2, 0x00, 0x61, 0x78, 0x01, 0x03,
      ])
    #expect(try applying(patch, to: map, seed: .unseeded) == new)
    #expect(try applying([0x81] + encoded(new), to: map, seed: .unseeded) == new)
    // A patch with another seed makes the map hash with that seed.
    let moved = try applying(patch, to: map, seed: HashSeed(4))
    #expect(moved.seed == HashSeed(4))
    #expect(moved == new)
  }

  @Test func `a map inside a map adopts the seed`() {
    let inner = TrieMap<String, Int>(uniqueKeysWithValues: (0..<100).map { ("\($0)", $0) })
    var outer: TrieMap<Int, TrieMap<String, Int>> = [1: inner, 2: [:]]
    let before = encoded(outer[1]!)
    outer.adopt(seed: HashSeed(3))
    #expect(outer.seed == HashSeed(3))
    #expect(outer[1]?.seed == HashSeed(3))
    #expect(outer[2]?.seed == HashSeed(3))
    #expect(outer[1] == inner)
    #expect(encoded(outer[1]!) != before)
    #expect(outer.digest(seed: HashSeed(3)) == digestFromScratch(outer, seed: HashSeed(3)))
    #expect(outer.digest(seed: HashSeed(4)) == digestFromScratch(outer, seed: HashSeed(4)))
  }

  @Test func `copies are read and written concurrently by many tasks`() async {
    let seed = HashSeed(6)
    let map = TrieMap(seed: seed, uniqueKeysWithValues: (0..<2_000).map { ($0, "\($0)") })
    let digest = digestFromScratch(map, seed: seed)
    await withTaskGroup(of: UInt64.self) { group in
      for task in 0..<8 {
        group.addTask {
          var copy = map
          for key in 0..<200 { copy.updateValue("changed by \(task)", forKey: key) }
          _ = encoded(copy)
          for key in 0..<200 { copy.updateValue("\(key)", forKey: key) }
          return task % 2 == 0 ? copy.digest(seed: seed) : map.digest(seed: seed)
        }
      }
      for await result in group { #expect(result == digest) }
    }
  }

  @Test func `reference-counted values are released as often as they are retained`() {
    final class Witness: Sendable {}
    struct Holder: SynchronizableScalar, Equatable {
      var witness: Witness
      static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
      static func == (first: Holder, second: Holder) -> Bool { true }
      init(_ witness: Witness) { self.witness = witness }
      init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
        throw CBORError(.malformed, at: 0)
      }
      func encode(into encoder: inout CBOREncoder) { encoder.encodeNull() }
    }
    weak var leaked: Witness?
    var random = SplitMix64(11)
    do {
      let witness = Witness()
      leaked = witness
      var map = SyncMap<Int, Holder>(seed: HashSeed(2))
      var copies: [SyncMap<Int, Holder>] = []
      for step in 0..<3_000 {
        let key = random.below(200)
        if random.chance(55) { map[key] = Holder(witness) } else { map[key] = nil }
        if step % 100 == 0 { copies.append(map) }
        if step % 250 == 0 { map.rollBack() }
      }
      #expect(leaked != nil)
    }
    #expect(leaked == nil)
  }
}
