import CBOR
import Testing

@testable import Values

private let seed = HashSeed(0xca4d5)

@Suite struct SyncIdentifiedArrayTests {
  /// Settles, checks the patch against the difference from the start, and returns it.
  @discardableResult
  func settle<ID: SyncKey & Synchronizable>(_ array: inout Cards<ID>, from start: Cards<ID>)
    -> [UInt8]?
  {
    var encoder = CBOREncoder()
    let isChanged = array.settle(into: &encoder)
    let expected = difference(from: start, to: array)
    #expect(isChanged == (expected != nil))
    #expect(encoder.bytes == expected ?? [])
    #expect((expected == nil) == (encoded(start) == encoded(array)))
    var again = CBOREncoder()
    let isChangedAgain = array.settle(into: &again)
    #expect(!isChangedAgain && again.bytes.isEmpty)
    return expected
  }

  func write<ID: SyncKey & Synchronizable>(
    run: UInt64, rounds: Int = 150, ids: Int = 40, makeID: @escaping (Int) -> ID
  ) throws {
    var writer = CardWriter(random: SplitMix64(run), makeID: makeID, ids: ids)
    var (array, model) = (Cards<ID>(), [Card<ID>]())
    array.adopt(seed: seed)
    var mirror = array
    for round in 0..<rounds {
      let (start, modelAtStart) = (array, model)
      for _ in 0..<writer.random.below(8) { writer.write(&array, &model) }
      if writer.random.chance(20) {
        array.rollBack()
        model = modelAtStart
        expectEqual(array, model)
      }
      if let patch = settle(&array, from: start) {
        mirror = try applying(patch, to: mirror, seed: seed)
        mirror.adopt(seed: seed)
      }
      #expect(mirror == array)
      if round % 10 == 0 {
        expectEqual(array, model)
        expectEqual(mirror, model)
        expectEqual(try decoded(Cards<ID>.self, encoded(array), seed: seed), model)
      }
    }
    expectEqual(array, model)
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `random edits settle to the difference, which updates a mirror`(run: UInt64) throws {
    try write(run: run, ids: [5, 40, 300][Int(run) % 3]) { $0 * 7 }
  }

  @Test(arguments: 1...2 as ClosedRange<UInt64>)
  func `random edits under ids that are texts settle to the difference`(run: UInt64) throws {
    // Composed and decomposed texts are equal for Swift, and different ids.
    try write(run: run) { $0 % 2 == 0 ? "\u{e9}\($0 / 2)" : "e\u{301}\($0 / 2)" }
  }

  @Test func `random edits under ids with equal hashes settle to the difference`() throws {
    try write(run: 9, rounds: 80, ids: 60) { CollidingID($0) }
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `a large array settles to the difference`(run: UInt64) throws {
    var writer = CardWriter<Int>(random: SplitMix64(run), makeID: { $0 }, ids: 4_000)
    var model = (0..<3_000).map { Card($0, "t\($0 % 3)") }
    var array = Cards(uniqueElements: model)
    array.adopt(seed: seed)
    var mirror = array
    for _ in 0..<20 {
      let start = array
      for _ in 0..<10 { writer.write(&array, &model) }
      if let patch = settle(&array, from: start) {
        mirror = try applying(patch, to: mirror, seed: seed)
      }
    }
    expectEqual(array, model)
    expectEqual(mirror, model)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `a copy in the middle of a transaction has its own notes`(run: UInt64) throws {
    var writer = CardWriter<Int>(random: SplitMix64(run), makeID: { $0 })
    var array = Cards(uniqueElements: (0..<20).map { Card($0) })
    array.adopt(seed: seed)
    var model = Array(array)
    for _ in 0..<60 {
      let (start, modelAtStart) = (array, model)
      for _ in 0..<3 { writer.write(&array, &model) }
      var (copy, copyModel) = (array, model)
      for _ in 0..<3 { writer.write(&copy, &copyModel) }
      for _ in 0..<3 { writer.write(&array, &model) }
      #expect(Array(copy) == copyModel && Array(array) == model)
      // A copy assigned back carries the notes from the start of the transaction.
      if writer.random.chance(30) { (array, model) = (copy, copyModel) }
      if writer.random.chance(30) {
        copy.rollBack()
        expectEqual(copy, modelAtStart)
      } else {
        settle(&copy, from: start)
      }
      settle(&array, from: start)
    }
    expectEqual(array, model)
  }

  @Test func `replaced contents settle to the difference, and can be rolled back`() throws {
    let old = (0..<50).map { Card($0, "a") }
    // The same rows with other labels, in another order.
    let new = Cards(uniqueElements: (10..<60).reversed().map { Card($0, $0 < 20 ? "b" : "a") })
    for rollsBack in [false, true] {
      var array = Cards(uniqueElements: old)
      array.adopt(seed: seed)
      let start = array
      array.move(id: 3, to: 40)
      array.replaceContents(with: new)
      expectEqual(array, Array(new))
      array[id: 15]?.title = "c"
      if rollsBack {
        array.rollBack()
        expectEqual(array, old)
      }
      settle(&array, from: start)
      #expect(array.isSound && array.seed == seed)
    }
  }

  @Test func `a whole array in place of another is a difference, too`() throws {
    let start = Cards(uniqueElements: (0..<30).map { Card($0) })
    for new in [[], Cards(uniqueElements: (20..<40).map { Card($0, "new") }), start] {
      let patch = difference(from: start, to: new)
      #expect((patch == nil) == (new == start))
      if let patch {
        expectEqual(try applying(patch, to: start, seed: .unseeded), Array(new))
      }
    }
  }

  // MARK: Forms

  @Test func `an array travels as a struct of rows and order`() throws {
    let array: Cards<Int> = [Card(2, "b"), Card(1, "a")]
    var expected = CBOREncoder()
    expected.map(2)
    expected.encode(0)
    SyncMap(uniqueKeysWithValues: array.map { ($0.id, $0) }).encode(into: &expected)
    expected.encode(1)
    SyncArray([2, 1]).encode(into: &expected)
    #expect(encoded(array) == expected.bytes)
    #expect(encoded(Cards<Int>()) == [0xa2, 0x00, 0xa0, 0x01, 0x80])
    // Fields may come in any order, be missing as from an older peer, or be of a later version.
    let others: [[UInt8]] = [[0xa2, 0x01, 0x80, 0x00, 0xa0], [0xa0], [0xa1, 0x07, 0x07]]
    for bytes in others { #expect(try decoded(Cards<Int>.self, bytes, seed: seed).isEmpty) }
    let schema = Schema(state: Cards<Int>.self) { _ in .value }
    guard case .type(let name) = schema.state, case .structure(let fields) = schema.types[name]
    else {
      Issue.record("\(schema.state) is no struct")
      return
    }
    #expect(fields.map(\.name) == ["rows", "order"] && fields.map(\.id) == [0, 1])
    #expect(fields[0].kind == .map(key: .integer, value: .type("Card")))
    #expect(fields[1].kind == .array(.integer))
  }

  @Test func `a move is two splices of one id, and no row travels`() throws {
    var array = Cards(uniqueElements: (0..<10).map { Card($0) })
    let start = array
    array.move(id: 2, to: 7)
    // {1: [[2, 1, [], 7, 0, [2]], {}]}
    let patch: [UInt8] = [
      0xa1, 0x01, 0x82, 0x86, 0x02, 0x01, 0x80, 0x07, 0x00, 0x81, 0x02, 0xa0,
    ]
    #expect(settle(&array, from: start) == patch)
    let next = array
    array[id: 2]?.title = "x"
    // {0: {2: {1: "x"}}}
    #expect(settle(&array, from: next) == [0xa1, 0x00, 0xa1, 0x02, 0xa1, 0x01, 0x61, 0x78])
    #expect(array.ids == next.ids && array.hasIdenticalRows(to: next) == false)
  }

  @Test func `moving, sorting and inserting in a large array make small patches`() throws {
    var array = Cards(uniqueElements: (0..<6_000).map { Card($0 * 2, "\($0 * 2 + 100_000)") })
    array.adopt(seed: seed)
    let writes: [(inout Cards<Int>) -> Void] = [
      { $0.move(id: 11_000, to: 5) },
      { $0.move(fromOffsets: [17, 18, 5_000], toOffset: 3_000) },
      { $0.insert(Card(1, "100001"), at: 2_000) },
      { $0.swapAt(3, 5_999) },
      { $0.sort { $0.title < $1.title } },
      { $0[id: 600]?.title = "200000" },
      { $0.sort { $0.title < $1.title } },
      { $0.remove(atOffsets: [0, 3_000, 5_900]) },
    ]
    for write in writes {
      let start = array
      write(&array)
      let patch = try #require(settle(&array, from: start))
      #expect(patch.count < 120)
      #expect(array.isSound)
    }
    #expect(array.map(\.title) == array.map(\.title).sorted())
  }

  @Test func `an upsert, a move and a removal take O(log n)`() {
    func array(_ count: Int) -> Cards<Int> {
      var array = Cards(uniqueElements: (0..<count).map { Card($0) })
      array.adopt(seed: seed)
      return array
    }
    /// The time for 300 of each.
    func time(_ array: inout Cards<Int>, _ round: Int) -> Duration {
      let (count, step) = (array.count, array.count / 300)
      return ContinuousClock().measure {
        for index in 0..<300 {
          let id = (index * 17 % 300) * step
          array.move(id: id, to: count - 1 - id)
          array.upsert(Card(id, "\(round)"))
          array.remove(id: id)
          array.insert(Card(id), at: id)
        }
      }
    }
    // In turns, and the least of each: whatever else the machine does.
    var (small, large) = (array(1000), array(300_000))
    var (leastSmall, leastLarge) = (Duration.seconds(1000), Duration.seconds(1000))
    for round in 0..<9 {
      leastSmall = min(leastSmall, time(&small, round))
      leastLarge = min(leastLarge, time(&large, round))
    }
    // Three hundred times as many: to move their ids in memory alone would take longer than that.
    #expect(leastLarge < leastSmall * 4, "\(leastLarge) and \(leastSmall)")
  }

  @Test func `a row and the order have paths of their own`() throws {
    let array: Cards<Int> = [Card(2, "b"), Card(1, "a")]
    func part(_ path: Path) -> [UInt8] {
      var encoder = CBOREncoder()
      array.encode(at: path, into: &encoder)
      return encoder.bytes
    }
    #expect(part([0, 1]) == encoded(Card(1, "a")))
    #expect(part([1]) == [0x82, 0x02, 0x01])
    #expect(part([0, 3]) == [0xf7] && part([2]) == [0xf7] && part([1, 0]) == [0xf7])
    var moved = array
    moved.move(id: 1, to: 0)
    #expect(!changes([0], from: array, to: moved) && changes([1], from: array, to: moved))
    var written = array
    written[0].title = "c"
    #expect(!changes([1], from: array, to: written) && !changes([0, 1], from: array, to: written))
    #expect(changes([0, 2], from: array, to: written))
  }

  private func changes(_ path: Path, from old: Cards<Int>, to new: Cards<Int>) -> Bool {
    var encoder = CBOREncoder()
    return new.encodeDifference(from: old, at: path, into: &encoder)
  }

  @Test func `an inserted element adopts the seed of the array`() throws {
    var array = Cards<Int>()
    array.adopt(seed: seed)
    let start = array
    var card = Card(1, notes: [1])
    card.notes.append(2)
    array.append(card)
    settle(&array, from: start)
    #expect(array[0].notes.seed == seed && array.seed == seed && array.ids.seed == seed)
    let next = array
    array[0].notes.append(3)
    settle(&array, from: next)
    #expect(Array(array[0].notes) == [1, 2, 3])
  }

  // MARK: A collection

  @Test func `it is a random-access collection`() throws {
    let array: Cards<String> = [Card("b"), Card("a"), Card("c")]
    #expect(array.first?.id == "b" && array.last?.id == "c" && array.count == 3)
    #expect(array.reversed().map(\.id) == ["c", "a", "b"] && array[1...].map(\.id) == ["a", "c"])
    #expect(array.index(id: "c") == 2 && array.index(id: "d") == nil)
    #expect(array.contains(id: "a") && !array.contains(id: "d") && array[id: "d"] == nil)
    #expect(Array(array.ids) == ["b", "a", "c"] && array.elements == Array(array))
    #expect(array.rows["a"]?.element == Card("a") && array.description == Array(array).description)
    let merged = Cards([Card(1, "a"), Card(2), Card(1, "b")]) { Card($0.id, $0.title + $1.title) }
    expectEqual(merged, [Card(1, "ab"), Card(2)])
    var sorted: SyncIdentifiedArray<Ranked> = [Ranked(id: 3), Ranked(id: 1)]
    sorted.sort()
    #expect(sorted.map(\.id) == [1, 3])
  }

  @Test func `an error in a comparison or a condition changes nothing`() {
    struct Failure: Error {}
    var array: Cards<Int> = [Card(2), Card(1), Card(3)]
    let model = Array(array)
    #expect(throws: Failure.self) { try array.sort { _, _ in throw Failure() } }
    #expect(throws: Failure.self) {
      try array.removeAll { card in
        if card.id == 3 { throw Failure() }
        return true
      }
    }
    expectEqual(array, model)
  }

  @Test func `an error inside an access keeps the edit and its note`() throws {
    struct Failure: Error {}
    func fail(_ slot: inout Card<Int>?, _ value: Card<Int>?) throws {
      slot = value
      throw Failure()
    }
    var array: Cards<Int> = [Card(1), Card(2)]
    let start = array
    #expect(throws: Failure.self) { try fail(&array[id: 1], nil) }
    #expect(throws: Failure.self) { try fail(&array[id: 3], Card(3)) }
    expectEqual(array, [Card(2), Card(3)])
    settle(&array, from: start)
  }

  @Test func `an element cannot change its id in the array`() async {
    await #expect(processExitsWith: .failure) {
      var array: Cards<Int> = [Card(1)]
      array[0].id = 2
    }
    await #expect(processExitsWith: .failure) {
      var array: Cards<Int> = [Card(1)]
      array[id: 1]?.id = 2
    }
    await #expect(processExitsWith: .failure) {
      var array: Cards<Int> = [Card(1)]
      array[id: 2] = Card(1)
    }
    await #expect(processExitsWith: .failure) { _ = [Card(1), Card(1)] as Cards<Int> }
  }
}

/// An element that is its own rank.
private struct Ranked: SynchronizableScalar, Identifiable, Comparable {
  var id: Int
  init(id: Int) { self.id = id }
  static func < (first: Ranked, second: Ranked) -> Bool { first.id < second.id }
  func encode(into encoder: inout CBOREncoder) { encoder.encode(id) }
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    id = Int(try decoder.integer())
  }
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
}
