import CBOR
import Testing

@testable import Values

private let seed = HashSeed(0x57d)

private func bytes(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

private func patch<T: Synchronizable>(from old: T, to new: T) -> [UInt8] {
  var encoder = CBOREncoder()
  let isChanged = new.encodeDifference(from: old, into: &encoder)
  #expect(isChanged == !encoder.bytes.isEmpty)
  return encoder.bytes
}

private func decoded<T: Synchronizable>(
  _ type: T.Type, _ bytes: [UInt8]
) throws(CBORError) -> T {
  try CBORDecoder.read(bytes) { decoder throws(CBORError) in
    try T(from: &decoder, seed: seed)
  }
}

private func apply<T: Synchronizable>(_ patch: [UInt8], to value: inout T) throws(CBORError) {
  try CBORDecoder.read(patch) { decoder throws(CBORError) in
    try value.apply(patch: &decoder, seed: seed)
  }
}

/// The law that every two values of a type must keep.
private func expectLaw<T: Synchronizable>(from old: T, to new: T) throws {
  let difference = patch(from: old, to: new)
  #expect(difference.isEmpty == (bytes(old) == bytes(new)))
  #expect(new.isSame(as: old) == difference.isEmpty)
  var mirror = try decoded(T.self, bytes(old))
  #expect(mirror.isSame(as: old) && bytes(mirror) == bytes(old))
  if !difference.isEmpty { try apply(difference, to: &mirror) }
  #expect(bytes(mirror) == bytes(new) && mirror.isSame(as: new))
  #expect(mirror.digest(seed: seed) == new.digest(seed: seed))
  var replacement = CBOREncoder()
  new.encodeReplacement(into: &replacement)
  var other = old
  try apply(replacement.bytes, to: &other)
  #expect(bytes(other) == bytes(new))
}

private enum Tab: String, SynchronizableScalar, SyncKey { case home, search }
private struct ItemID: RawRepresentable, Hashable, SynchronizableScalar, SyncKey {
  var rawValue: Int
}

private let texts = ["", "a", "b", "\u{e9}", "e\u{301}", "a text that is not small at all"]

@Suite struct StandardTypesTests {
  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `arrays keep the law`(run: UInt64) throws {
    var random = SplitMix64(run)
    func numbers() -> [Int] { (0..<random.below(7)).map { _ in random.below(3) } }
    for _ in 0..<300 {
      try expectLaw(from: numbers(), to: numbers())
      try expectLaw(
        from: (0..<random.below(4)).map { _ in numbers() },
        to: (0..<random.below(4)).map { _ in numbers() })
      let (old, new) = (numbers().map(UInt8.init), numbers().map(UInt8.init))
      try expectLaw(from: old, to: new)
      try expectLaw(
        from: numbers().map { texts[$0 + 2] }, to: numbers().map { texts[$0 + 2] })
    }
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `dictionaries and sets keep the law`(run: UInt64) throws {
    var random = SplitMix64(run)
    func entries() -> [String: [Int]] {
      var result: [String: [Int]] = [:]
      for _ in 0..<random.below(6) {
        result[texts[random.below(texts.count)]] = (0..<random.below(3)).map { _ in
          random.below(2)
        }
      }
      return result
    }
    for _ in 0..<300 {
      let (old, new) = (entries(), entries())
      try expectLaw(from: old, to: new)
      try expectLaw(from: Set(old.keys), to: Set(new.keys))
      try expectLaw(
        from: [Tab.home: old], to: random.chance(50) ? [.home: new] : [.search: new, .home: old])
    }
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `bytes do not depend on the order of insertion`(run: UInt64) {
    var random = SplitMix64(run)
    var keys = (0..<200).map { $0 * 37 - 3_000 }
    func dictionary() -> [Int: Int] {
      for place in keys.indices { keys.swapAt(place, random.below(keys.count)) }
      var result: [Int: Int] = [:]
      for key in keys { result[key] = key &* 3 }
      return result
    }
    #expect(bytes(dictionary()) == bytes(dictionary()))
    #expect(bytes(Set(dictionary().keys)) == bytes(Set(dictionary().keys)))
    #expect(patch(from: [:], to: dictionary()) == patch(from: [:], to: dictionary()))
  }

  @Test func `an array's patch is edits if the count stays equal, otherwise one splice`() {
    #expect(patch(from: [1, 2, 3], to: [1, 9, 3]) == [0x82, 0x80, 0xa1, 1, 9])
    #expect(patch(from: [1], to: [1, 2]) == [0x82, 0x83, 1, 0, 0x81, 2, 0xa0])
    #expect(patch(from: [1, 2, 3], to: [1, 3]) == [0x82, 0x83, 1, 1, 0x80, 0xa0])
    #expect(
      patch(from: [[1, 2], [3]], to: [[1, 2], [4]]) == [
        0x82, 0x80, 0xa1, 1, 0x82, 0x80, 0xa1, 0, 4,
      ])
  }

  @Test func `an array takes splices and edits within its bounds, and refuses others`() throws {
    var array = [1, 2, 3, 4, 5, 6]
    try apply(
      [0x82, 0x86, 0, 1, 0x80, 3, 0, 0x81, 9, 0xa2, 5, 7, 0, 0x81, 8], to: &array)
    #expect(array == [8, 3, 4, 9, 5, 7])
    let bad: [[UInt8]] = [
      [0x82, 0x83, 7, 0, 0x80, 0xa0], [0x82, 0x83, 0, 7, 0x80, 0xa0],
      [0x82, 0x82, 0, 0, 0xa0], [0x82, 0x80, 0xa1, 6, 1], [0x83, 0x80, 0xa0, 0],
      [0xa1, 0, 1], [0x80], [0xf7], [0x05], [0x82, 0x83, 0, 0, 0x9a, 0xff, 0xff, 0xff, 0xff, 0xa0],
      [0x82, 0x83, 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x80, 0xa0],
      [0x82, 0x80, 0xa1, 0x20, 1], [0x82, 0x80],
    ]
    for patch in bad {
      var copy = array
      #expect(throws: CBORError.self, "\(patch)") { try apply(patch, to: &copy) }
    }
    var octets: [UInt8] = [1]
    #expect(throws: CBORError.self) { try apply([0x82, 0x80, 0xa1, 0, 2], to: &octets) }
    #expect(throws: CBORError.self) { try apply([0x81, 0x81, 2], to: &octets) }
  }

  @Test func `bytes are encoded as a byte string`() throws {
    #expect(bytes([1, 2] as [UInt8]) == [0x42, 1, 2])
    #expect(patch(from: [1], to: [1, 2] as [UInt8]) == [0x42, 1, 2])
    #expect(([1, 2] as [UInt8]).digest(seed: seed) == Value.bytes([1, 2]).digest(seed: seed))
    #expect(try decoded([UInt8].self, [0x41, 7]) == [7])
    #expect(throws: CBORError.self) { try decoded([UInt8].self, [0x81, 7]) }
    var schema = SchemaBuilder()
    #expect([UInt8].schemaKind(in: &schema) == .bytes)
    #expect([[UInt8]].schemaKind(in: &schema) == .array(.bytes))
    #expect([Tab: [Int]].schemaKind(in: &schema) == .map(key: .text, value: .array(.integer)))
    #expect(Set<Int>.schemaKind(in: &schema) == .array(.integer))
  }

  @Test func `a standard collection has the digest of our collection with the same contents`()
    throws
  {
    let array = [1, 2]
    #expect(array.digest(seed: seed) == (TreeArray(array)).digest(seed: seed))
    let dictionary = ["a": 1, "b": 2]
    let map = TrieMap(seed: seed, uniqueKeysWithValues: [("a", 1), ("b", 2)])
    #expect(dictionary.digest(seed: seed) == map.digest(seed: seed))
    #expect(Set(["b", "a"]).digest(seed: seed) == ["a", "b"].digest(seed: seed))
  }

  @Test func `a dictionary refuses duplicate and absent keys`() throws {
    #expect(throws: CBORError(.notAllowed("duplicate key"), at: 3)) {
      try decoded([Int: Int].self, [0xa2, 1, 1, 1, 2])
    }
    var dictionary = [1: [1]]
    #expect(throws: CBORError(.notAllowed("removal of an absent key"), at: 1)) {
      try apply([0xa1, 2, 0xf7], to: &dictionary)
    }
    #expect(throws: CBORError(.notAllowed("an edit of an absent key"), at: 1)) {
      try apply([0xa1, 2, 0xa0], to: &dictionary)
    }
    #expect(throws: CBORError(.notAllowed("duplicate key"), at: 4)) {
      try apply([0xa2, 2, 0x81, 0x80, 2, 0x81, 0x80], to: &dictionary)
    }
    #expect(throws: CBORError(.notAllowed("the same element twice in a set"), at: 2)) {
      try decoded(Set<Int>.self, [0x82, 1, 1])
    }
  }

  @Test func `paths resolve in dictionaries`() {
    let dictionary = [Tab.home: ["a": 1]]
    var encoder = CBOREncoder()
    dictionary.encode(at: ["home", "a"], into: &encoder)
    #expect(encoder.bytes == [1])
    #expect(!dictionary.isPresent(at: ["search"]) && !dictionary.isPresent(at: ["nowhere", "a"]))
    #expect(dictionary.isPresent(at: ["home"]) && !dictionary.isPresent(at: ["home", 1]))
    encoder = CBOREncoder()
    let isChanged = [Tab.home: ["a": 2]].encodeDifference(
      from: dictionary, at: ["home", "a"], into: &encoder)
    #expect(isChanged && encoder.bytes == [2])
  }

  @Test func `durations are encoded in nanoseconds`() throws {
    #expect(bytes(Duration.seconds(1)) == bytes(1_000_000_000))
    #expect(bytes(Duration(secondsComponent: 0, attosecondsComponent: 1_900_000_000)) == [1])
    #expect(bytes(Duration(secondsComponent: 0, attosecondsComponent: -1_000_000_000)) == [0x20])
    let values: [Duration] = [
      .zero, .nanoseconds(-5), .seconds(Int64.max), .seconds(Int64.min), .milliseconds(7),
      .nanoseconds(Int64.min), .nanoseconds(Int64.max),
    ]
    for old in values { for new in values { try expectLaw(from: old, to: new) } }
  }

  @Test func `floats are encoded as doubles of their value`() throws {
    #expect(bytes(1.5 as Float) == [0xf9, 0x3e, 0])
    let values: [Float] = [0, -0.0, 1.1, .infinity, .nan, .leastNonzeroMagnitude, .pi]
    for old in values { for new in values { try expectLaw(from: old, to: new) } }
    #expect(try decoded(Float.self, bytes(0.1)) == 0.1)
  }

  @Test func `a raw-representable value is encoded as its raw value`() throws {
    #expect(bytes(Tab.home) == bytes("home"))
    try expectLaw(from: Tab.home, to: .search)
    #expect(throws: CBORError(.notAllowed("x is no Tab"), at: 0)) {
      try decoded(Tab.self, bytes("x"))
    }
    #expect(ItemID(rawValue: 3).hash(seed: seed) == 3.hash(seed: seed))
    try expectLaw(from: ItemID(rawValue: 3), to: ItemID(rawValue: 4))
    let map: SyncMap<ItemID, Tab> = [ItemID(rawValue: 3): .home]
    #expect(bytes(map) == [0xa1, 3, 0x64] + Array("home".utf8))
    #expect(map.isPresent(at: [3]) && !map.isPresent(at: ["home"]))
  }

  @Test func `integers of other sizes have the hash and path key of an Int`() throws {
    for number in [Int32.min, -1, 0, 7, .max] {
      #expect(number.hash(seed: seed) == Int(number).hash(seed: seed))
      #expect(number.pathKey == Int(number).pathKey)
      #expect(Int32(pathKey: number.pathKey) == number)
    }
    #expect(UInt32(pathKey: -1) == nil)
    #expect(throws: CBORError(.numberOutOfRange, at: 1)) {
      try decoded(SyncMap<UInt32, Int>.self, [0xa1, 0x20, 1])
    }
    #expect(try decoded(SyncMap<Int64, Int>.self, [0xa1, 0x20, 1])[-1] == 1)
  }

  @Test func `nested collections adopt the seed`() {
    var array = [[SyncArray([1])]]
    array.adopt(seed: seed)
    #expect(array[0][0].seed == seed)
    var dictionary = ["a": SyncMap<Int, Int>()]
    dictionary.adopt(seed: seed)
    #expect(dictionary["a"]?.seed == seed)
  }
}
