import CBOR
import Testing

@testable import Values

private struct Random {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }

  mutating func below(_ bound: Int) -> Int {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Int(Hashing.mix(state) % UInt64(bound))
  }
}

private let seed = HashSeed(0xa11)

private func settled<T: Journaled>(_ value: inout T) -> [UInt8] {
  var encoder = CBOREncoder()
  let changed = value.settle(into: &encoder)
  #expect(changed == !encoder.bytes.isEmpty)
  return encoder.bytes
}

private func difference<T: Synchronizable>(_ old: T, _ new: T) -> [UInt8] {
  var encoder = CBOREncoder()
  _ = new.encodeDifference(from: old, into: &encoder)
  return encoder.bytes
}

/// Performs one random operation.
private func step(_ array: inout SyncArray<Int>, _ random: inout Random) {
  let index = array.isEmpty ? 0 : random.below(array.count)
  switch random.below(12) {
  case 0...2 where !array.isEmpty: array[index] = random.below(100)
  case 3 where !array.isEmpty: array[index] += 0
  case 4: array.insert(random.below(100), at: index)
  case 5...6 where !array.isEmpty: array.remove(at: index)
  case 7 where !array.isEmpty: array.removeLast()
  case 8:
    let upper = Swift.min(array.count, index + random.below(50))
    array.replaceSubrange(index..<upper, with: (0..<random.below(60)))
  case 9 where array.count > 1: array.swapAt(index, array.count - 1 - index)
  case 10:
    if random.below(30) == 0 { array.removeAll() }
    if random.below(30) == 0 { array.replaceContents(with: TreeArray(0..<random.below(300))) }
    var copy = array
    copy.append(random.below(100))
    array = copy
  default: array.append(random.below(100))
  }
}

@Suite struct SyncArrayTests {
  @Test(arguments: 1...4 as ClosedRange<UInt64>, [HashSeed.unseeded, seed])
  func `settling gives the bytes of the difference`(run: UInt64, seed: HashSeed) throws {
    var random = Random(run)
    var array = SyncArray<Int>()
    if seed != .unseeded { array.adopt(seed: seed) }
    var mirror = array.tree
    for round in 0..<250 {
      let start = array.tree
      for _ in 0..<random.below(6) { step(&array, &random) }
      let expected = difference(start, array.tree)
      let patch = settled(&array)
      #expect(patch == expected)
      if !patch.isEmpty {
        try CBORDecoder.read(patch) { decoder throws(CBORError) in
          try mirror.apply(patch: &decoder, seed: seed)
        }
      }
      #expect(mirror == array.tree)
      if round % 20 == 0 {
        #expect(mirror.digest(seed: seed) == array.digest(seed: seed))
      }
      #expect(settled(&array).isEmpty)
      #expect(array.seed == seed)
      if array.count > 1000 { array.removeSubrange(10...) }
    }
  }

  @Test func `rolling back restores the start of the transaction`() {
    var random = Random(8)
    var array = SyncArray(0..<500)
    array.adopt(seed: seed)
    for _ in 0..<500 {
      let start = Array(array)
      for _ in 0..<random.below(8) { step(&array, &random) }
      if random.below(2) == 0 {
        array.rollBack()
        #expect(Array(array) == start)
        #expect(settled(&array).isEmpty)
      } else {
        _ = settled(&array)
      }
    }
  }

  @Test func `a copy has its own notes, and leaves those of the original unchanged`() {
    var array: SyncArray = [1, 2, 3]
    array.append(4)
    var copy = array
    copy[0] = 9
    #expect(settled(&copy) == difference([1, 2, 3] as TreeArray, [9, 2, 3, 4]))
    #expect(settled(&array) == difference([1, 2, 3] as TreeArray, [1, 2, 3, 4]))
  }

  @Test func `an inserted value adopts the array's seed, and its notes end with the transaction`()
    throws
  {
    var array = SyncArray<SyncArray<Int>>()
    array.adopt(seed: seed)
    var inner: SyncArray = [1, 2]
    inner.append(3)
    array.append(inner)
    array.append([])
    _ = settled(&array)
    #expect(array.allSatisfy { $0.seed == seed && $0.base == nil })
    let start = array.tree
    array[0].append(7)
    array[1].append(8)
    let expected = difference(start, array.tree)
    #expect(settled(&array) == expected)
    #expect(array.allSatisfy { $0.base == nil })
    array[0].removeAll()
    array.rollBack()
    #expect(array[0].elementsEqual([1, 2, 3, 7]))
  }

  @Test func `a patch is a mutation that can be rolled back`() throws {
    var array = SyncArray(0..<100)
    array.adopt(seed: seed)
    let start = array.tree
    var later = start
    later.insert(5, at: 50)
    let patch = difference(start, later)
    try CBORDecoder.read(patch) { decoder throws(CBORError) in
      try array.apply(patch: &decoder, seed: seed)
    }
    #expect(array.tree == later)
    var undone = array
    undone.rollBack()
    #expect(undone.tree == start)
    #expect(settled(&array) == patch)
  }

  @Test func `the methods of a range-replaceable collection work in place`() {
    var array: SyncArray = [3, 1, 2]
    array.sort()
    #expect(Array(array) == [1, 2, 3])
    array += [9, 8]
    array.reverse()
    #expect(Array(array) == [8, 9, 3, 2, 1])
    array.removeAll { $0 > 5 }
    array.removeFirst()
    array.insert(contentsOf: [7, 7], at: 1)
    #expect(array == [2, 7, 7, 1])
    #expect(Array(array.filter { $0 == 7 }) == [7, 7])
    array.modifyElement(at: 0) { $0 += 40 }
    #expect(array.first == 42 && array.popLast() == 1)
  }
}
