import CBOR
import Synchronization
import Testing

@testable import Values

private struct Random {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// An element that counts its comparisons.
private struct Counted: Synchronizable {
  static let comparisons = Atomic<Int>(0)
  var value: Int

  func isSame(as other: Counted) -> Bool {
    Self.comparisons.add(1, ordering: .relaxed)
    return value == other.value
  }
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
  func encode(into encoder: inout CBOREncoder) { value.encode(into: &encoder) }
  init(_ value: Int) { self.value = value }
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    value = try Int(from: &decoder, seed: seed)
  }
  func encodeDifference(from old: Counted, into encoder: inout CBOREncoder) -> Bool {
    if isSame(as: old) { return false }
    encodeReplacement(into: &encoder)
    return true
  }
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    value = try Int(from: &decoder, seed: seed)
  }
  func digest(seed: HashSeed) -> UInt64 { value.digest(seed: seed) }
  mutating func adopt(seed: HashSeed) {}
}

/// An element that records the seed it adopted.
private struct Seeded: SynchronizableScalar, Equatable {
  var value: Int
  var adopted = HashSeed.unseeded

  static func == (first: Seeded, second: Seeded) -> Bool { first.value == second.value }
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
  func encode(into encoder: inout CBOREncoder) { value.encode(into: &encoder) }
  init(_ value: Int) { self.value = value }
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    value = try Int(from: &decoder, seed: seed)
    adopted = seed
  }
  mutating func adopt(seed: HashSeed) { adopted = seed }
}

private let seed = HashSeed(0x5eed)

private func bytes(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

private func difference<T: Synchronizable>(_ old: T, _ new: T) -> [UInt8] {
  var encoder = CBOREncoder()
  let changed = new.encodeDifference(from: old, into: &encoder)
  #expect(changed == !encoder.bytes.isEmpty)
  return encoder.bytes
}

private func applying<T: Synchronizable>(_ patch: [UInt8], to value: T) throws(CBORError) -> T {
  try CBORDecoder.read(patch) { decoder throws(CBORError) in
    var copy = value
    try copy.apply(patch: &decoder, seed: seed)
    return copy
  }
}

/// Checks the law for two values, in both directions.
private func expectLaw<T: Synchronizable>(
  _ first: T, _ second: T, _ location: SourceLocation = #_sourceLocation
) throws {
  let same = bytes(first) == bytes(second)
  #expect(first.isSame(as: second) == same, sourceLocation: location)
  for (old, new) in [(first, second), (second, first)] {
    let patch = difference(old, new)
    #expect(patch.isEmpty == same, sourceLocation: location)
    if patch.isEmpty { continue }
    let result = try applying(patch, to: old)
    #expect(bytes(result) == bytes(new), sourceLocation: location)
    #expect(result.digest(seed: seed) == new.digest(seed: seed), sourceLocation: location)
  }
}

extension TreeArray {
  /// Checks every invariant of the tree; returns a description of the first violation.
  func broken() -> String? {
    guard let root else { return nil }
    if root.height > 0 && root.children.count < 2 { return "a root of one child" }
    return Self.broken(root, isRoot: true, atRightEdge: true)
  }

  private static func broken(
    _ node: TreeArrayNode<Element>, isRoot: Bool, atRightEdge: Bool
  ) -> String? {
    if node.slots > 32 { return "\(node.slots) slots" }
    if !isRoot && node.slots < (atRightEdge ? 1 : 16) {
      return "\(node.slots) slots at height \(node.height)"
    }
    if node.height == 0 { return node.children.isEmpty ? nil : "children in a leaf" }
    if !node.elements.isEmpty { return "elements in a branch" }
    var end = 0
    for (slot, child) in node.children.enumerated() {
      if child.node.height != node.height - 1 { return "leaves at different depths" }
      end += child.node.count
      if child.end != end { return "counts that do not add up" }
      let isLast = slot == node.children.count - 1
      if let what = broken(child.node, isRoot: false, atRightEdge: atRightEdge && isLast) {
        return what
      }
    }
    return nil
  }
}

/// The digest computed from the definition alone.
private func plainDigest(_ elements: [Int], _ seed: HashSeed) -> UInt64 {
  var polynomial: UInt64 = 0
  for (index, element) in elements.enumerated() {
    var term = element.digest(seed: seed)
    for _ in 0..<elements.count - 1 - index { term &*= Hashing.arrayBase }
    polynomial &+= term
  }
  return Hashing.array(polynomial: polynomial, count: elements.count)
}

/// Performs one random operation on both.
private func step(
  _ tree: inout TreeArray<Int>, _ oracle: inout [Int], _ random: inout Random, growth: Int
) {
  let value = random.below(1000)
  let index = oracle.isEmpty ? 0 : random.below(oracle.count)
  switch random.below(16) {
  case 0...2 where !oracle.isEmpty:
    tree[index] = value
    oracle[index] = value
  case 3 where !oracle.isEmpty:
    tree.modifyElement(at: index) { $0 += value }
    oracle[index] += value
  case 4...5:
    tree.insert(value, at: index)
    oracle.insert(value, at: index)
  case 6...8 where !oracle.isEmpty && growth <= 0:
    #expect(tree.remove(at: index) == oracle.remove(at: index))
  case 9:
    tree.append(value)
    oracle.append(value)
  case 10 where !oracle.isEmpty:
    let last = oracle.count - 1
    #expect(tree.remove(at: last) == oracle.remove(at: last))
  case 11:
    let upper = Swift.min(oracle.count, index + random.below(60))
    let count = random.below(growth > 0 ? 90 : growth < 0 ? 20 : 60)
    let inserted = (0..<count).map { $0 + value }
    tree.replaceSubrange(index..<upper, with: inserted)
    oracle.replaceSubrange(index..<upper, with: inserted)
  case 12 where random.below(20) == 0 && !oracle.isEmpty:
    // A slice is moved to another index, with its nodes.
    let upper = Swift.min(oracle.count, index + random.below(3000))
    let moved = Array(oracle[index..<upper])
    let slice = TreeArray(tree[index..<upper])
    tree.replaceSubrange(index..<upper, with: [])
    oracle.removeSubrange(index..<upper)
    let place = random.below(oracle.count + 1)
    tree.replaceSubrange(place..<place, withTree: slice)
    oracle.insert(contentsOf: moved, at: place)
  case 13 where random.below(200) == 0:
    // An array appended to itself: every node occurs twice.
    if oracle.count < 2000 {
      tree.append(contentsOf: tree)
      oracle.append(contentsOf: oracle)
    }
  case 14 where random.below(400) == 0:
    tree.removeAll()
    oracle.removeAll()
  default:
    tree.append(value)
    oracle.append(value)
  }
}

@Suite struct TreeArrayTests {
  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `a tree under random edits agrees with an Array, and held copies never change`(run: UInt64) {
    var random = Random(run)
    var tree = TreeArray<Int>()
    var oracle: [Int] = []
    var held: [(TreeArray<Int>, [Int])] = []
    for number in 0..<20_000 {
      step(&tree, &oracle, &random, growth: number % 3000 < 1500 ? 1 : -1)
      if oracle.count > 8000 {
        tree.replaceSubrange(500..<oracle.count - 200, with: [])
        oracle.removeSubrange(500..<oracle.count - 200)
      }
      if number % 501 == 0 {
        #expect(tree.broken() == nil)
        #expect(Array(tree) == oracle)
        if !oracle.isEmpty {
          let index = random.below(oracle.count)
          #expect(tree[index] == oracle[index])
        }
        held.append((tree, oracle))
        if held.count > 8 {
          let (copy, contents) = held.remove(at: random.below(held.count))
          #expect(Array(copy) == contents)
        }
      }
    }
    for (copy, contents) in held { #expect(Array(copy) == contents) }
  }

  @Test(arguments: [0, 1, 2, 15, 31, 61, 70])
  func `a tree of any small size keeps its invariants`(size: Int) {
    var appended = TreeArray<Int>()
    for value in 0..<size * 17 { appended.append(value) }
    #expect(appended.broken() == nil)
    #expect(TreeArray(0..<size * 17).broken() == nil)
    var shrinking = appended
    while !shrinking.isEmpty { shrinking.remove(at: shrinking.count / 2) }
    #expect(shrinking.broken() == nil)
    #expect(shrinking.isEmpty && Array(appended) == Array(0..<size * 17))
  }

  @Test func `random splits and concatenations keep the tree valid`() {
    var random = Random(99)
    for _ in 0..<100 {
      let (first, second) = (random.below(1 << random.below(14)), random.below(3000))
      var tree = TreeArray(0..<first)
      for _ in 0..<random.below(20) where !tree.isEmpty {
        tree.insert(5, at: random.below(tree.count))
      }
      var oracle = Array(tree)
      let lower = random.below(oracle.count + 1)
      let upper = lower + random.below(oracle.count - lower + 1)
      tree.replaceSubrange(lower..<upper, withTree: TreeArray(0..<second))
      oracle.replaceSubrange(lower..<upper, with: 0..<second)
      #expect(tree.broken() == nil)
      #expect(tree.elementsEqual(oracle))
    }
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `the law holds along one lineage`(run: UInt64) throws {
    var random = Random(run &* 77)
    var tree = TreeArray<Int>()
    var oracle: [Int] = []
    tree.adopt(seed: seed)
    var old = tree
    for round in 0..<70 {
      for _ in 0..<random.below(1 << random.below(7)) + 1 {
        step(&tree, &oracle, &random, growth: round % 30 < 18 ? 1 : -1)
      }
      try expectLaw(old, tree)
      if oracle.count > 2000 { tree.replaceSubrange(50..<oracle.count, with: []) }
      oracle = Array(tree)
      if random.below(3) > 0 { old = tree }
    }
  }

  @Test func `the law holds for unrelated arrays`() throws {
    var random = Random(5)
    for _ in 0..<500 {
      let make = { (values: Int) in
        let count = random.below(1 << random.below(9))
        return TreeArray((0..<count).map { _ in random.below(values) })
      }
      let values = 1 + random.below(8)
      try expectLaw(make(values), make(values))
    }
    try expectLaw(TreeArray<Int>(), TreeArray(0..<5000))
    try expectLaw(TreeArray(0..<5000), TreeArray(100..<5100))
    try expectLaw(TreeArray(0..<5000), TreeArray((0..<5000).reversed()))
  }

  @Test func `the law holds for arrays of arrays`() throws {
    var random = Random(6)
    var tree = TreeArray<TreeArray<Int>>()
    tree.adopt(seed: seed)
    for _ in 0..<400 {
      let old = tree
      for _ in 0...random.below(4) {
        let index = tree.isEmpty ? 0 : random.below(tree.count)
        switch random.below(6) {
        case 0 where !tree.isEmpty: tree.remove(at: index)
        case 1: tree.insert(TreeArray(0..<random.below(90)), at: index)
        case 2: tree.insert([], at: index)
        default:
          if tree.isEmpty { continue }
          tree[index].append(random.below(50))
          if let half = tree[index].indices.randomElement(using: &random) { tree[index][half] = 1 }
        }
      }
      try expectLaw(old, tree)
    }
  }

  @Test func `composed and decomposed text differ`() throws {
    let composed: TreeArray<String> = ["a", "\u{e9}", "b", "c"]
    let decomposed: TreeArray<String> = ["a", "e\u{301}", "b", "c"]
    #expect(composed != decomposed)
    try expectLaw(composed, decomposed)
    try expectLaw(composed, ["e\u{301}", "a", "\u{e9}", "c"])
  }

  // MARK: Patches

  @Test func `inserting in the middle of many elements is one small splice`() {
    let tree = TreeArray((0..<100_000).map(Counted.init))
    for index in [50_000, 50_016, 1, 99_999, 77_777] {
      var longer = tree
      longer.insert(Counted(7), at: index)
      let before = Counted.comparisons.load(ordering: .relaxed)
      let patch = difference(tree, longer)
      #expect(Counted.comparisons.load(ordering: .relaxed) - before < 200)
      #expect(patch.count <= 20)
      #expect(patch.starts(with: [0x82, 0x83]) && patch.last == 0xa0)
    }
  }

  @Test func `two insertions far apart are two splices`() throws {
    let tree = TreeArray(0..<100_000)
    var longer = tree
    longer.insert(1, at: 10)
    longer.insert(2, at: 90_000)
    let expected: [UInt8] = [
      0x82, 0x86, 0x0a, 0x00, 0x81, 0x01, 0x1a, 0x00, 0x01, 0x5f, 0x90, 0x00, 0x81, 0x02, 0xa0,
    ]
    #expect(difference(tree, longer) == expected)
    try expectLaw(tree, longer)
  }

  @Test func `removing a long range is one splice without elements`() {
    let tree = TreeArray(0..<100_000)
    var shorter = tree
    shorter.replaceSubrange(1000..<90_000, with: [])
    #expect(shorter.broken() == nil)
    #expect(notation(difference(tree, shorter)) == "[[1000, 89000, []], {}]")
  }

  @Test func `patches are the shortest that the format permits`() {
    let cases: [(TreeArray<Int>, TreeArray<Int>, String)] = [
      ([1, 2, 3], [1, 9, 3], "[[], {1: 9}]"),
      ([1, 2, 3], [2, 3, 4], "[[0, 1, [], 2, 0, [4]], {}]"),
      ([1, 2, 3, 4], [1, 9, 8, 3, 4], "[[2, 0, [8]], {1: 9}]"),
      ([1, 2, 3], [], "[[0, 3, []], {}]"),
      ([], [1, 2], "[[0, 0, [1, 2]], {}]"),
      ([1, 2, 3, 4, 5], [5, 1, 2, 3, 4], "[[0, 0, [5], 5, 1, []], {}]"),
      (
        [1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16],
        "[[0, 6, [11, 12, 13, 14, 15, 16]], {}]"
      ),
      ([1, 2], [3, 4], "[[], {0: 3, 1: 4}]"),
    ]
    for (old, new, expected) in cases { #expect(notation(difference(old, new)) == expected) }
    let nested: TreeArray<TreeArray<Int>> = [[1], [2], [3]]
    var edited = nested
    edited[1].append(5)
    #expect(notation(difference(nested, edited)) == "[[], {1: [[1, 0, [5]], {}]}]")
  }

  @Test func `moving a block of nodes costs the block and not the array`() throws {
    let tree = TreeArray(0..<50_000)
    var moved = tree
    moved.replaceSubrange(45_000..<46_000, with: [])
    moved.replaceSubrange(100..<100, with: 45_000..<46_000)
    #expect(difference(tree, moved).count < 4000)
    try expectLaw(tree, moved)
  }

  @Test func `a patch of one item replaces the array`() throws {
    #expect(try applying([0x81, 0x82, 1, 2], to: [7, 7, 7]) == [1, 2] as TreeArray<Int>)
    #expect(throws: CBORError.self) { try applying([0xa0], to: [7] as TreeArray<Int>) }
    #expect(throws: CBORError.self) { try applying([0x80], to: [7] as TreeArray<Int>) }
    #expect(throws: CBORError.self) { try applying([0xf7], to: [7] as TreeArray<Int>) }
    #expect(throws: CBORError.self) { try applying([1], to: [7] as TreeArray<Int>) }
  }

  @Test func `a patch that reaches outside the array is an error at its offset`() {
    let cases: [([UInt8], Int)] = [
      ([0x82, 0x83, 4, 0, 0x80, 0xa0], 2),
      ([0x82, 0x83, 1, 3, 0x80, 0xa0], 3),
      ([0x82, 0x82, 1, 2, 0xa0], 1),
      ([0x82, 0x80, 0xa1, 3, 1], 3),
      ([0x83, 0x80, 0xa0, 1], 0),
      ([0x82, 0x83, 0, 0, 0x9b, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0], 4),
      ([0x82, 0x83, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0x80, 0xa0], 2),
      ([0x82, 0x83, 0, 0x1b, 127, 255, 255, 255, 255, 255, 255, 255, 0x80, 0xa0], 3),
    ]
    for (patch, offset) in cases {
      let error = #expect(throws: CBORError.self) {
        try applying(patch, to: [1, 2, 3] as TreeArray<Int>)
      }
      #expect(error?.offset == offset)
    }
  }

  @Test func `hostile patches and values are errors and never crash`() throws {
    var random = Random(11)
    var tree = TreeArray((0..<300).map { TreeArray(0..<$0 % 40) })
    let old = tree
    tree[5].append(9)
    tree.insert([1, 2, 3], at: 200)
    tree.replaceSubrange(20..<90, with: [[4], [5], [6], [7], [8], [9]])
    let patch = difference(old, tree)
    let value = bytes(old)
    for length in 0..<patch.count {
      #expect(throws: CBORError.self) { try applying(Array(patch[..<length]), to: old) }
    }
    for _ in 0..<4000 {
      var damaged = patch
      for _ in 0...random.below(3) {
        damaged[random.below(damaged.count)] = UInt8(truncatingIfNeeded: random.next())
      }
      if let result = try? applying(damaged, to: old) { #expect(result.broken() == nil) }
    }
    for length in 0..<Swift.min(value.count, 2000) {
      #expect(throws: CBORError.self) {
        try CBORDecoder.read(Array(value[..<length])) { decoder throws(CBORError) in
          try TreeArray<TreeArray<Int>>(from: &decoder, seed: seed)
        }
      }
    }
    let decoded = try CBORDecoder.read(value) { decoder throws(CBORError) in
      try TreeArray<TreeArray<Int>>(from: &decoder, seed: seed)
    }
    #expect(decoded == old && decoded.broken() == nil && decoded.seed == seed)
  }

  // MARK: Digests and seeds

  @Test func `the digest is that of the definition, whatever edits made the tree`() {
    var random = Random(3)
    var tree = TreeArray<Int>()
    var oracle: [Int] = []
    for number in 0..<1000 {
      step(&tree, &oracle, &random, growth: 0)
      if oracle.count > 300 {
        tree.replaceSubrange(100..<oracle.count, with: [])
        oracle.removeSubrange(100...)
      }
      if number % 7 > 0 { continue }
      let other = HashSeed(random.next())
      #expect(tree.digest(seed: seed) == TreeArray(oracle).digest(seed: seed))
      if number % 49 == 0 {
        #expect(tree.digest(seed: seed) == plainDigest(oracle, seed))
        #expect(tree.digest(seed: other) == plainDigest(oracle, other))
        #expect(tree.digest(seed: seed) == plainDigest(oracle, seed))
      }
    }
  }

  @Test func `adopting a seed reaches every element, and leaves copies unchanged`() {
    var random = Random(4)
    var tree = TreeArray((0..<3000).map(Seeded.init))
    let before = tree
    tree.adopt(seed: seed)
    #expect(tree.seed == seed && tree.allSatisfy { $0.adopted == seed })
    #expect(before.allSatisfy { $0.adopted == .unseeded })
    for number in 0..<1500 {
      let index = random.below(tree.count)
      switch random.below(5) {
      case 0: tree.insert(Seeded(1), at: index)
      case 1: tree[index] = Seeded(2)
      case 2: tree.remove(at: index)
      case 3:
        let upper = Swift.min(tree.count, index + random.below(200))
        tree.replaceSubrange(index..<upper, with: (0..<random.below(200)).map(Seeded.init))
      default: tree.append(Seeded(3))
      }
      if number % 50 == 0 {
        let held = tree
        let marks = held.map(\.adopted)
        tree.adopt(seed: seed)
        #expect(tree.allSatisfy { $0.adopted == seed })
        #expect(held.map(\.adopted) == marks)
      }
    }
    tree.removeAll()
    #expect(tree.seed == seed)
    tree.append(Seeded(1))
    #expect(tree.seed == seed)
    tree.adopt(seed: HashSeed(9))
    #expect(tree.seed == HashSeed(9) && tree[0].adopted == HashSeed(9))
  }

  @Test func `arrays are read, written and hashed concurrently by many threads`() async {
    let tree = TreeArray(0..<5000)
    let expected = [tree.digest(seed: HashSeed(1)), tree.digest(seed: HashSeed(2))]
    let fresh = TreeArray(0..<5000)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          var mine = fresh
          for round in 0..<8 {
            let pick = (number + round) % 2
            #expect(fresh.digest(seed: HashSeed(UInt64(pick + 1))) == expected[pick])
            mine[round] = number
          }
          #expect(mine[7] == number)
        }
      }
    }
    #expect(Array(fresh) == Array(0..<5000))
  }
}

extension Random: RandomNumberGenerator {}

/// The patch in diagnostic notation.
private func notation(_ bytes: [UInt8]) -> String {
  (try? CBORItem(bytes).description) ?? "not an item"
}
