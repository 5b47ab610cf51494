import CBOR
import Testing

@testable import Values

@Suite struct SyncMapTests {
  /// Settles, and checks the patch against the difference from the start.
  func settle<K, V>(
    _ map: inout SyncMap<K, V>, from start: TrieMap<K, V>
  ) throws {
    var encoder = CBOREncoder()
    let isChanged = map.settle(into: &encoder)
    let expected = difference(from: start, to: map.trie)
    #expect(isChanged == (expected != nil))
    #expect(encoder.bytes == expected ?? [])
    var again = CBOREncoder()
    let isChangedAgain = map.settle(into: &again)
    #expect(!isChangedAgain)
    if let expected { #expect(try applying(expected, to: start, seed: start.seed) == map.trie) }
  }

  /// A walk over the map reads ahead what values refer to, also while the last of them is taken out.
  @Test func `texts are taken out in place until a branch is a leaf again, and all are gone`() {
    func take(_ value: inout String?) -> String? {
      defer { value = nil }
      return value
    }
    for length in [3, 40] {
      var map = SyncMap<Int, String>(seed: HashSeed(7))
      for key in 0..<2000 { map[key] = String(repeating: "\(key % 10)", count: length) }
      for key in 0..<2000 {
        #expect(take(&map[key]) == String(repeating: "\(key % 10)", count: length))
        #expect(map.count == 1999 - key && map[key] == nil)
      }
    }
  }

  func write<K: SyncKey>(
    seed: UInt64, keys: Int, steps: Int, makeKey: (Int) -> K
  ) throws {
    var random = SplitMix64(seed)
    let hashSeed = HashSeed(seed)
    var map = SyncMap<K, Entry>(seed: hashSeed)
    var oracle: [K: Entry] = [:]
    var (start, oracleAtStart) = (map.trie, oracle)
    var copy = map
    var (copyStart, copyOracle, copyOracleAtStart) = (start, oracle, oracle)
    for step in 0..<steps {
      let key = makeKey(random.below(keys))
      let value = Entry(title: "t\(random.below(3))", votes: random.below(3))
      switch random.below(16) {
      case 0, 1:
        map[key] = value
        oracle[key] = value
      case 2:
        map[key] = nil
        oracle[key] = nil
      case 3:
        map[key]?.votes += 1
        oracle[key]?.votes += 1
      case 4:
        map.modifyValue(forKey: key) { $0.title += "!" }
        oracle[key]?.title += "!"
      case 5: #expect(map.updateValue(value, forKey: key) == oracle.updateValue(value, forKey: key))
      case 6: #expect(map.removeValue(forKey: key) == oracle.removeValue(forKey: key))
      case 7:
        map[key, default: value].votes += 2
        oracle[key, default: value].votes += 2
      case 8:
        func change(_ slot: inout Entry?) { slot = random.chance(50) ? nil : value }
        var generator = random
        change(&map[key])
        swap(&random, &generator)
        change(&oracle[key])
      case 9: #expect(map[key] == oracle[key])
      case 10 where random.chance(20):
        // Keeps a copy in the middle of a transaction, with its notes.
        (copy, copyStart) = (map, start)
        (copyOracle, copyOracleAtStart) = (oracle, oracleAtStart)
      case 11 where random.chance(20):
        swap(&map, &copy)
        swap(&start, &copyStart)
        swap(&oracle, &copyOracle)
        swap(&oracleAtStart, &copyOracleAtStart)
      case 12 where random.chance(10):
        map.replaceContents(with: copy.trie)
        oracle = copyOracle
      case 13 where random.chance(10):
        map.rollBack()
        oracle = oracleAtStart
        #expect(map.trie == start)
        #expect(map.trie.nodeCount == start.nodeCount)
      case 14 where random.chance(20):
        try settle(&map, from: start)
        (start, oracleAtStart) = (map.trie, oracle)
      default: _ = map.digest(seed: hashSeed)
      }
      #expect(map.count == oracle.count)
      if step % 499 == 0 {
        checkCanonical(map.trie, oracle, &random)
        checkCanonical(copy.trie, copyOracle, &random)
        checkCanonical(start, oracleAtStart, &random)
      }
    }
    try settle(&map, from: start)
    try settle(&copy, from: copyStart)
    checkCanonical(map.trie, oracle, &random)
    checkCanonical(copy.trie, copyOracle, &random)
  }

  @Test(arguments: [1, 2, 3, 4])
  func `random edits settle to the difference`(seed: UInt64) throws {
    let keys = [10, 60, 400, 2_000][Int(seed) - 1]
    try write(seed: seed, keys: keys, steps: stepsOfAWriter) { $0 * 3 }
  }

  @Test func `random edits of texts settle to the difference`() throws {
    try write(seed: 8, keys: 100, steps: stepsOfAWriter) { "key \($0)" }
  }

  @Test func `edits of keys with equal hashes settle to the difference`() throws {
    try write(seed: 9, keys: 150, steps: stepsOfAWriter / 2) { CollidingKey($0) }
  }

  @Test(arguments: [0, 1, 16, 17, 33, 5_000, 20_000])
  func `any number of edits settle at once`(edits: Int) throws {
    var map = SyncMap(seed: HashSeed(1), uniqueKeysWithValues: (0..<30_000).map { ($0, $0) })
    for _ in 0..<3 {
      let start = map.trie
      for key in 0..<edits {
        map[key]? += 1
        map[key]? += 1
      }
      try settle(&map, from: start)
      for key in 0..<edits { map[key] = nil }
      map.rollBack()
      #expect(map.count == 30_000)
      try settle(&map, from: map.trie)
    }
  }

  @Test func `a copy assigned back settles to the difference`() throws {
    var a: SyncMap<Int, Int> = [1: 1, 2: 2]
    let start = a.trie
    a[1] = 10
    var b = a
    b[2] = 20
    a[3] = 30
    a = b
    #expect(a[3] == nil)
    try settle(&a, from: start)
  }

  @Test func `two maps swap their contents by replacement`() throws {
    var a = SyncMap(uniqueKeysWithValues: (0..<100).map { ($0, $0) })
    var b = SyncMap(uniqueKeysWithValues: (50..<150).map { ($0, $0 / 2 * 2) })
    let (startOfA, startOfB) = (a.trie, b.trie)
    a[0] = -1
    let held = a.trie
    a.replaceContents(with: b.trie)
    b.replaceContents(with: held)
    #expect(a.trie == startOfB)
    try settle(&a, from: startOfA)
    try settle(&b, from: startOfB)
  }

  @Test func `replacing the contents keeps the seed`() throws {
    var map = SyncMap(seed: HashSeed(3), uniqueKeysWithValues: (0..<50).map { ($0, $0) })
    let start = map.trie
    map.replaceContents(with: TrieMap(uniqueKeysWithValues: (25..<75).map { ($0, $0 + $0 % 2) }))
    #expect(map.seed == HashSeed(3))
    try settle(&map, from: start)
    let next = map.trie
    map.removeAll()
    try settle(&map, from: next)
    #expect(map.isEmpty)
  }

  @Test func `an edit that is reverted leaves no patch`() throws {
    var map: SyncMap<Int, Entry> = [1: Entry(title: "a", votes: 1)]
    let start = map.trie
    map[1]?.votes = 2
    map[1]?.votes = 1
    map[2] = Entry(title: "b", votes: 0)
    map[2] = nil
    map[1] = nil
    map[1] = Entry(title: "a", votes: 1)
    #expect(difference(from: start, to: map.trie) == nil)
    try settle(&map, from: start)
  }

  @Test func `reading through the subscript of an absent key inserts nothing`() throws {
    var map: SyncMap<Int, Entry> = [1: Entry(title: "a", votes: 1)]
    let start = map.trie
    map[2]?.votes += 1
    #expect(map.trie.isIdentical(to: start))
    try settle(&map, from: start)
  }

  @Test func `an error thrown inside the subscript keeps the edit and its note`() throws {
    struct Failure: Error {}
    func fail(_ entry: inout Entry?, _ value: Entry?) throws {
      entry = value
      throw Failure()
    }
    var map: SyncMap<Int, Entry> = [1: Entry(title: "a", votes: 1)]
    let start = map.trie
    let value = Entry(title: "b", votes: 2)
    #expect(throws: Failure.self) { try fail(&map[1], value) }
    #expect(throws: Failure.self) { try fail(&map[2], value) }
    #expect(map[1] == value)
    #expect(map[2] == value)
    #expect(throws: Failure.self) { try fail(&map[1], nil) }
    #expect(map.count == 1)
    try settle(&map, from: start)
  }

  @Test func `settling rehashes new values with the seed of the map`() throws {
    typealias Inner = SyncMap<String, Int>
    let seed = HashSeed(12)
    var map = SyncMap<Int, Inner>(seed: seed)
    let start = map.trie
    map[1] = ["a": 1]
    map[2] = Inner(uniqueKeysWithValues: (0..<50).map { ("\($0)", $0) })
    try settle(&map, from: start)
    #expect(map[1]?.seed == seed)
    #expect(map[2]?.seed == seed)
    let next = map.trie
    map[2]?["7"] = 70
    map[2]?["new"] = 1
    map[1]?["a"]? += 1
    #expect(map[2]?.notes != nil)
    try settle(&map, from: next)
    // The inner transactions end with the outer one.
    #expect(map[2]?.notes?.table.pointee.count == 0)
    let last = map.trie
    map[2]?["7"] = 71
    map.rollBack()
    #expect(map.trie == last)
    #expect(map[2]?["7"] == 70)
  }

  @Test func `a patch that fails can be rolled back`() throws {
    var map: SyncMap<Int, Int> = [1: 1, 2: 2]
    let start = map.trie
    let patch: [UInt8] = [0xa4, 0x01, 0x05, 0x02, 0xf7, 0x03, 0x07, 0x09, 0xf7]
    patch.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes)
      #expect(throws: CBORError(.notAllowed("removal of an absent key"), at: 7)) {
        try map.apply(patch: &decoder, seed: .unseeded)
      }
    }
    #expect(map.trie != start)
    map.rollBack()
    #expect(map.trie == start)
  }

  @Test(arguments: [0, 5])
  func `applying a patch is noted like any other edit`(seed: UInt64) throws {
    var map: SyncMap<Int, Int> = [1: 1, 2: 2, 4: 4]
    let start = map.trie
    map[4] = 5
    for patch: [UInt8] in [[0xa3, 0x01, 0x05, 0x02, 0xf7, 0x03, 0x07], [0x81, 0xa1, 0x08, 0x08]] {
      map = try applying(patch, to: map, seed: HashSeed(seed))
      #expect(map.seed == HashSeed(seed))
    }
    #expect(map.count == 1)
    let copy = map
    try settle(&map, from: start)
    map = copy
    map.rollBack()
    #expect(map.trie == start)
  }

  @Test func `adopting a seed begins a transaction`() throws {
    var map: SyncMap<Int, Int> = [1: 1]
    map[1] = 2
    map.adopt(seed: HashSeed(4))
    #expect(map.seed == HashSeed(4))
    try settle(&map, from: map.trie)
    map[1] = 3
    map.adopt(seed: HashSeed(4))
    try settle(&map, from: map.trie)
  }

  @Test func `copies with their notes can be used by other tasks`() async throws {
    var map = SyncMap(seed: HashSeed(3), uniqueKeysWithValues: (0..<500).map { ($0, "\($0)") })
    for key in 0..<40 { map[key] = "edited" }
    let (start, expected) = (map, difference(from: map.trie, to: map.trie))
    #expect(expected == nil)
    await withTaskGroup(of: [UInt8].self) { group in
      for task in 0..<8 {
        group.addTask {
          var copy = start
          copy[100 + task] = "x"
          copy[100 + task] = "\(100 + task)"
          var encoder = CBOREncoder()
          _ = copy.settle(into: &encoder)
          return encoder.bytes
        }
      }
      var results: Set<[UInt8]> = []
      for await bytes in group { results.insert(bytes) }
      #expect(results.count == 1)
    }
  }
}
