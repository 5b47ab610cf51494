import CBOR
import Values

/// A `SyncIdentifiedArray` of a given length: each change with its patch.
struct IdentifiedBenchmark {
  /// An element under a number.
  struct Row: Synchronizable, Identifiable {
    let id: Int
    var item: Item

    init(_ id: Int) {
      self.id = id
      item = Item(id)
    }

    static var holdsCollections: Bool { false }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
    func isSame(as other: Row) -> Bool { item.isSame(as: other.item) }
    func encode(into encoder: inout CBOREncoder) { item.encode(into: &encoder) }

    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      item = try Item(from: &decoder, seed: seed)
      id = item.count
    }

    func encodeDifference(from old: Row, into encoder: inout CBOREncoder) -> Bool {
      item.encodeDifference(from: old.item, into: &encoder)
    }

    mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      try item.apply(patch: &decoder, seed: seed)
    }

    func digest(seed: HashSeed) -> UInt64 { item.digest(seed: seed) }
    mutating func adopt(seed: HashSeed) {}
  }

  private let operations: Int
  private var array: SyncIdentifiedArray<Row>
  /// An array that is only moved in, and its mirror: they share no storage.
  private var source: SyncIdentifiedArray<Row>
  private var mirror: SyncIdentifiedArray<Row>
  private var encoder = CBOREncoder(reservingCapacity: 4096)
  private var random = SplitMix(state: 11)
  private var nextID: Int

  init(entries: Int, operations: Int) {
    self.operations = operations
    (array, source, mirror) = (Self.make(entries), Self.make(entries), Self.make(entries))
    nextID = entries
  }

  private static func make(_ entries: Int) -> SyncIdentifiedArray<Row> {
    var array = SyncIdentifiedArray(uniqueElements: (0..<entries).lazy.map { Row($0) })
    array.adopt(seed: HashSeed(7))
    return array
  }

  mutating func run(rounds: Int, into report: inout Report) {
    let size = array.count
    let times = interleaved(
      &self, rounds: rounds,
      [
        { $0.find() }, { $0.insert(at: { $0 / 2 }) }, { $0.insert(at: { _ in 1 }) },
        { $0.move() }, { $0.upsert() }, { $0.moveInMirror() },
      ])
    let names = [
      "index(id:)", "insert in the middle + patch", "insert at 1 + patch", "move + patch",
      "upsert + patch", "a move's patch applied",
    ]
    for (name, time) in zip(names, times) { report.add("Identified: \(name)", size, time) }
  }

  /// Operations on the whole array, a few times each.
  mutating func runWhole(into report: inout Report) {
    let size = array.count
    let times = interleaved(
      &self, rounds: 5, [{ $0.sort() }, { $0.encodeWhole() }, { $0.decode() }])
    report.add("Identified: sort of almost sorted", size, times[0])
    report.add("Identified: encode, per row", size, times[1] / Double(size))
    report.add("Identified: decode, per row", size, times[2] / Double(size))
  }

  private mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

  private mutating func settle() {
    encoder.bytes.removeAll(keepingCapacity: true)
    _ = array.settle(into: &encoder)
  }

  private mutating func find() -> Double {
    nanoseconds(operations) {
      for _ in 0..<operations { consume(array.index(id: array.ids[below(array.count)])) }
    }
  }

  /// Inserts and, outside of the measured time, removes again.
  private mutating func insert(at place: (Int) -> Int) -> Double {
    let time = nanoseconds(operations) {
      for number in 0..<operations {
        array.insert(Row(nextID + number), at: place(array.count))
        settle()
      }
    }
    for number in 0..<operations { array.remove(id: nextID + number) }
    settle()
    return time
  }

  private mutating func move() -> Double {
    nanoseconds(operations) {
      for _ in 0..<operations {
        array.move(id: array.ids[below(array.count)], to: below(array.count))
        settle()
      }
    }
  }

  private mutating func upsert() -> Double {
    nanoseconds(operations) {
      for _ in 0..<operations {
        array.upsert(Row(array.ids[below(array.count)]))
        settle()
      }
    }
  }

  /// Applies the patch of a move to a mirror, which ends its transaction.
  private mutating func moveInMirror() -> Double {
    var patches: [[UInt8]] = []
    for _ in 0..<operations {
      source.move(id: source.ids[below(source.count)], to: below(source.count))
      encoder.bytes.removeAll(keepingCapacity: true)
      _ = source.settle(into: &encoder)
      patches.append(encoder.bytes)
    }
    return nanoseconds(operations) {
      for patch in patches {
        try? CBORDecoder.read(patch) { decoder throws(CBORError) in
          try mirror.apply(patch: &decoder, seed: HashSeed(7))
        }
        mirror.adopt(seed: HashSeed(7))
      }
    }
  }

  /// Sorts after ten moves: with the patch.
  private mutating func sort() -> Double {
    array.sort { $0.id < $1.id }
    settle()
    for _ in 0..<10 { array.move(from: below(array.count), to: below(array.count)) }
    settle()
    return nanoseconds(1) {
      array.sort { $0.id < $1.id }
      settle()
    }
  }

  private mutating func encodeWhole() -> Double {
    encoder.bytes.removeAll(keepingCapacity: true)
    return nanoseconds(1) { array.encode(into: &encoder) }
  }

  private mutating func decode() -> Double {
    encoder.bytes.removeAll(keepingCapacity: true)
    array.encode(into: &encoder)
    return nanoseconds(1) {
      let copy = try? CBORDecoder.read(encoder.bytes) { decoder throws(CBORError) in
        try SyncIdentifiedArray<Row>(from: &decoder, seed: HashSeed(7))
      }
      consume(copy)
    }
  }
}
