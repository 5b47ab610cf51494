import CBOR
import Testing

@testable import Values

private let seed = HashSeed(77)

/// Builds items by hand, so that they can say what no array would.
private func bytes(_ write: (inout CBOREncoder) -> Void) -> [UInt8] {
  var encoder = CBOREncoder()
  write(&encoder)
  return encoder.bytes
}

private func whole(rows: [(Int, Card<Int>)], order: [Int]) -> [UInt8] {
  bytes { encoder in
    encoder.map(2)
    encoder.encode(0)
    encoder.map(rows.count)
    for (key, card) in rows {
      encoder.encode(key)
      card.encode(into: &encoder)
    }
    encoder.encode(1)
    order.encode(into: &encoder)
  }
}

@Suite struct IdentifiedPatchTests {
  @Test(
    arguments: [
      ([1, 2], [1], "an order of 1 ids over 2 rows"),
      ([1], [1, 2], "an order of 2 ids over 1 rows"),
      ([1, 2], [1, 1], "1 in the order twice"),
      ([1, 2], [2, 3], "3 in the order without a row"),
    ])
  func `bytes in which rows and order disagree are refused`(
    rows: [Int], order: [Int], text: String
  ) {
    let item = whole(rows: rows.map { ($0, Card($0)) }, order: order)
    #expect(throws: CBORError(.notAllowed(text), at: 0)) {
      try decoded(Cards<Int>.self, item, seed: seed)
    }
    // In a patch, rows and order are replaced one by one.
    let patch = bytes { encoder in
      encoder.map(2)
      encoder.encode(0)
      encoder.array(1)
      encoder.map(rows.count)
      for id in rows {
        encoder.encode(id)
        Card(id).encode(into: &encoder)
      }
      encoder.encode(1)
      encoder.array(1)
      order.encode(into: &encoder)
    }
    #expect(throws: CBORError(.notAllowed(text), at: 0)) {
      try applying(patch, to: [Card(1), Card(5)] as Cards<Int>, seed: seed)
    }
  }

  @Test func `an element under another's id is refused`() {
    let error = CBORError(.notAllowed("the element 3 in the row 2"), at: 0)
    #expect(throws: error) {
      try decoded(
        Cards<Int>.self, whole(rows: [(1, Card(1)), (2, Card(3))], order: [1, 2]), seed: seed)
    }
    // {0: {2: {0: 3}}}
    #expect(throws: error) {
      try applying(
        [0xa1, 0x00, 0xa1, 0x02, 0xa1, 0x00, 0x03], to: [Card(1), Card(2)] as Cards<Int>,
        seed: seed)
    }
  }

  /// Patches of the order [1, 2, 3] and its rows, and what is wrong with them.
  static let wrong: [(patch: [UInt8], text: String)] = [
    // {1: [[0, 1, []], {}]}: an id leaves the order, and its row stays.
    ([0xa1, 0x01, 0x82, 0x83, 0x00, 0x01, 0x80, 0xa0], "an order of 2 ids over 3 rows"),
    // {0: {1: undefined}}: a row goes, and its id stays.
    ([0xa1, 0x00, 0xa1, 0x01, 0xf7], "an order of 3 ids over 2 rows"),
    // {0: {1: undefined}, 1: [[1, 1, []], {}]}: the id of another row leaves.
    (
      [0xa2, 0x00, 0xa1, 0x01, 0xf7, 0x01, 0x82, 0x83, 0x01, 0x01, 0x80, 0xa0],
      "the row 2, which is not in the order"
    ),
    // {1: [[0, 1, [2]], {}]}: an id comes that is there already.
    ([0xa1, 0x01, 0x82, 0x83, 0x00, 0x01, 0x81, 0x02, 0xa0], "2 in the order twice"),
    // {1: [[0, 1, [9]], {}]}: an id comes without a row.
    ([0xa1, 0x01, 0x82, 0x83, 0x00, 0x01, 0x81, 0x09, 0xa0], "9 in the order without a row"),
    // {1: [[], {0: 3}]}: an edit that writes the id of another row.
    ([0xa1, 0x01, 0x82, 0x80, 0xa1, 0x00, 0x03], "3 in the order twice"),
  ]

  @Test(arguments: wrong)
  func `a patch after which rows and order disagree is refused, and changes nothing`(
    patch: [UInt8], text: String
  ) {
    var array: Cards<Int> = [Card(1), Card(2), Card(3)]
    array.adopt(seed: seed)
    #expect(throws: CBORError(.notAllowed(text), at: 0)) {
      try CBORDecoder.read(patch) { decoder throws(CBORError) in
        try array.apply(patch: &decoder, seed: seed)
      }
    }
    expectEqual(array, [Card(1), Card(2), Card(3)])
    array.rollBack()
    expectEqual(array, [Card(1), Card(2), Card(3)])
  }

  /// Patches that our daemons do not write, and that are right nevertheless.
  @Test(
    arguments: [
      // {1: [[2, 0, [1], 0, 1, []], {}]}: splices from right to left.
      ([0xa1, 0x01, 0x82, 0x86, 0x02, 0x00, 0x81, 0x01, 0x00, 0x01, 0x80, 0xa0], [2, 1, 3]),
      // {1: [[0, 0, [3], 3, 1, []], {}]}: an id comes before it goes.
      ([0xa1, 0x01, 0x82, 0x86, 0x00, 0x00, 0x81, 0x03, 0x03, 0x01, 0x80, 0xa0], [3, 1, 2]),
      // {1: [[], {0: 3, 2: 1}]}: an exchange.
      ([0xa1, 0x01, 0x82, 0x80, 0xa2, 0x00, 0x03, 0x02, 0x01], [3, 2, 1]),
      // {1: [[3, 2, 1]]}: the whole order.
      ([0xa1, 0x01, 0x81, 0x83, 0x03, 0x02, 0x01], [3, 2, 1]),
      // {1: [[2, 0, [1]], {}], 1: [[0, 1, []], {}]}: the order twice.
      (
        [
          0xa2, 0x01, 0x82, 0x83, 0x02, 0x00, 0x81, 0x01, 0xa0, 0x01, 0x82, 0x83, 0x00, 0x01, 0x80,
          0xa0,
        ], [2, 1, 3]
      ),
      // {1: …, 0: …}: the order before the rows.
      (
        [
          0xa2, 0x01, 0x82, 0x83, 0x01, 0x01, 0x80, 0xa0, 0x00, 0xa1, 0x02, 0xf7,
        ], [1, 3]
      ),
    ] as [([UInt8], [Int])])
  func `a patch may take any form that the protocol permits`(patch: [UInt8], ids: [Int]) throws {
    let array: Cards<Int> = [Card(1), Card(2), Card(3)]
    expectEqual(try applying(patch, to: array, seed: .unseeded), ids.map { Card($0) })
  }

  /// Any bytes are a patch, after which rows and order agree, or an error, after which the array is
  /// what it was.
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `damaged patches are refused, or leave a sound array`(run: UInt64) throws {
    var writer = CardWriter<Int>(random: SplitMix64(run), makeID: { $0 }, ids: 12)
    var array = Cards(uniqueElements: (0..<8).map { Card($0) })
    array.adopt(seed: seed)
    var model = Array(array)
    var (refused, taken) = (0, 0)
    for _ in 0..<300 {
      let start = array
      for _ in 0...writer.random.below(3) { writer.write(&array, &model) }
      var encoder = CBOREncoder()
      guard array.settle(into: &encoder) else { continue }
      var damaged = encoder.bytes
      for _ in 0...writer.random.below(2) {
        damaged[writer.random.below(damaged.count)] = UInt8(writer.random.below(16))
      }
      var mirror = start
      var isTaken = false
      // An error of the reader, which comes after the patch, is one of bytes that follow it.
      try? CBORDecoder.read(damaged) { decoder throws(CBORError) in
        try mirror.apply(patch: &decoder, seed: seed)
        isTaken = true
      }
      expectEqual(mirror, Array(isTaken ? mirror : start))
      if isTaken { taken += 1 } else { refused += 1 }
      // The whole value, damaged.
      var bytes = encoded(array)
      bytes[writer.random.below(bytes.count)] = UInt8(writer.random.below(16))
      if let other = try? decoded(Cards<Int>.self, bytes, seed: seed) {
        #expect(other.isSound)
      }
    }
    #expect(refused > 50 && taken > 10)
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `a patch that cannot be applied is rolled back`(run: UInt64) throws {
    var writer = CardWriter<Int>(random: SplitMix64(run), makeID: { $0 }, ids: 30)
    var model = (0..<20).map { Card($0) }
    var array = Cards(uniqueElements: model)
    array.adopt(seed: seed)
    for _ in 0..<50 {
      let (start, startModel) = (array, model)
      for _ in 0..<4 { writer.write(&array, &model) }
      guard let patch = difference(from: start, to: array) else { continue }
      array.adopt(seed: seed)
      var mirror = start
      mirror = try applying(patch, to: mirror, seed: seed)
      expectEqual(mirror, model)
      mirror.rollBack()
      expectEqual(mirror, startModel)
    }
  }
}
