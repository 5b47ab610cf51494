import CBOR
import Testing

@testable import Values

/// An element: an id, a text and a collection, encoded as `{0: id, 1: title, 2: notes}`.
struct Card<ID: SyncKey & Synchronizable>: Synchronizable, Identifiable, Equatable {
  var id: ID
  var title = ""
  var notes: SyncArray<Int> = []

  init(_ id: ID, _ title: String = "", notes: SyncArray<Int> = []) {
    self.id = id
    self.title = title
    self.notes = notes
  }

  static func == (first: Self, second: Self) -> Bool { first.isSame(as: second) }

  func isSame(as other: Card) -> Bool {
    id.isSame(as: other.id) && title.isSame(as: other.title) && notes.isSame(as: other.notes)
  }

  func encode(into encoder: inout CBOREncoder) {
    encoder.map(3)
    StructureCoding.encode(0, id, into: &encoder)
    StructureCoding.encode(1, title, into: &encoder)
    StructureCoding.encode(2, notes, into: &encoder)
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var id: ID?
    var fields = try FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      switch number {
      case 0: id = try ID(from: &decoder, seed: seed)
      case 1: title = try String(from: &decoder, seed: seed)
      case 2: notes = try SyncArray(from: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    self.id = try StructureCoding.required(id, "Card", "id", at: fields.start)
  }

  func encodeDifference(from old: Card, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    StructureCoding.difference(0, id, old.id, &patch, &encoder)
    StructureCoding.difference(1, title, old.title, &patch, &encoder)
    StructureCoding.difference(2, notes, old.notes, &patch, &encoder)
    return patch.finish(&encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try StructureCoding.openPatch(&decoder)) {
      switch try decoder.unsigned() {
      case 0: try id.apply(patch: &decoder, seed: seed)
      case 1: try title.apply(patch: &decoder, seed: seed)
      case 2: try notes.apply(patch: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    decoder.close()
  }

  func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    digest.add(0, id)
    digest.add(1, title)
    digest.add(2, notes)
    return digest.finish()
  }

  mutating func adopt(seed: HashSeed) { notes.adopt(seed: seed) }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Card") { schema in
      .structure([
        schema.field(0, "id", \Self.id), schema.field(1, "title", \Self.title),
        schema.field(2, "notes", \Self.notes),
      ])
    }
  }
}

/// A key with very few hashes, which is a value, too.
struct CollidingID: SyncKey, SynchronizableScalar {
  var number: Int
  init(_ number: Int) { self.number = number }
  static var schemaKind: Schema.Kind { .integer }
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .integer }
  func hash(seed: HashSeed) -> UInt64 { UInt64(truncatingIfNeeded: number % 3) &* 0x0101 }
  static func isSame(_ first: Self, _ second: Self) -> Bool { first.number == second.number }
  static func precedes(_ first: Self, _ second: Self) -> Bool { first.number < second.number }
  func encode(into encoder: inout CBOREncoder) { encoder.encode(number) }
  init(from decoder: inout CBORDecoder) throws(CBORError) { number = Int(try decoder.integer()) }
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try self.init(from: &decoder)
  }
  var pathKey: PathKey { .integer(Int64(number)) }
  init?(pathKey: PathKey) {
    guard case .integer(let value) = pathKey else { return nil }
    number = Int(value)
  }
}

typealias Cards<ID: SyncKey & Synchronizable> = SyncIdentifiedArray<Card<ID>>

extension SyncIdentifiedArray {
  var labels: [UInt64] { ids.map { label(of: $0) ?? OrderLabel.none } }

  /// Whether the invariants of the type hold.
  var isSound: Bool {
    let labels = labels
    return order.count == content.count
      && zip(labels, labels.dropFirst()).allSatisfy { $0 < $1 }
      && labels.allSatisfy { $0 != OrderLabel.none && $0 != OrderLabel.pending }
      && ids.allSatisfy { id in content.trie[id].map { ID.isSame($0.element.id, id) } ?? false }
  }
}

/// Checks an array against the plain array that it should equal, and everything that must follow
/// from the contents alone.
func expectEqual<ID: SyncKey & Synchronizable>(
  _ array: Cards<ID>, _ model: [Card<ID>], _ location: SourceLocation = #_sourceLocation
) {
  #expect(Array(array) == model, sourceLocation: location)
  #expect(array.isSound, sourceLocation: location)
  #expect(array.count == model.count && array.ids.count == model.count, sourceLocation: location)
  for (index, card) in model.enumerated() {
    #expect(array.index(id: card.id) == index, sourceLocation: location)
    #expect(array[id: card.id] == card && array[index] == card, sourceLocation: location)
  }
  var built = Cards<ID>(uniqueElements: model)
  built.adopt(seed: array.seed)
  #expect(encoded(array) == encoded(built) && array == built, sourceLocation: location)
  #expect(
    array.digest(seed: array.seed) == built.digest(seed: array.seed), sourceLocation: location)
}

/// Changes an array and a plain array in the same way, in each way that there is.
struct CardWriter<ID: SyncKey & Synchronizable> {
  var random: SplitMix64
  let makeID: (Int) -> ID
  /// The number of different ids.
  var ids = 40

  mutating func card() -> Card<ID> {
    Card(
      makeID(random.below(ids)), "t\(random.below(3))",
      notes: SyncArray((0..<random.below(3)).map { $0 }))
  }

  private func index(_ card: Card<ID>, _ model: [Card<ID>]) -> Int? {
    model.firstIndex { $0.id.isSame(as: card.id) }
  }

  mutating func write(_ array: inout Cards<ID>, _ model: inout [Card<ID>]) {
    let card = card()
    let id = card.id
    let present = index(card, model)
    let (first, second) = (random.below(model.count + 1), random.below(model.count + 1))
    switch random.below(26) {
    case 0...2:
      let result = array.append(card)
      #expect(result == (present == nil, present ?? model.count))
      if present == nil { model.append(card) }
    case 3, 4:
      let result = array.insert(card, at: first)
      #expect(result == (present == nil, present ?? first))
      if present == nil { model.insert(card, at: first) }
    case 5:
      #expect(array.updateOrAppend(card) == present.map { model[$0] })
      if let present { model[present] = card } else { model.append(card) }
    case 6:
      #expect(array.updateOrInsert(card, at: first) == present.map { model[$0] })
      if let present { model[present] = card } else { model.insert(card, at: first) }
    case 7:
      array.upsert(contentsOf: [card, card])
      if let present { model[present] = card } else { model.append(card) }
    case 8:
      #expect(array.remove(id: id) == present.map { model[$0] })
      if let present { model.remove(at: present) }
    case 9 where first < model.count: #expect(array.remove(at: first) == model.remove(at: first))
    case 10 where random.chance(20):
      array.removeAll { $0.title == card.title }
      model.removeAll { $0.title == card.title }
    case 11 where random.chance(10):
      array.removeAll()
      model = []
    case 12...14:
      let to = second < model.count ? second : 0
      #expect(array.move(id: id, to: to) == (present != nil))
      if let present { model.insert(model.remove(at: present), at: to) }
    case 15 where first < model.count:
      let other = model[first].id
      let isBefore = random.chance(50)
      let moved = isBefore ? array.move(id: id, before: other) : array.move(id: id, after: other)
      #expect(moved == (present != nil))
      if let present, present != first {
        let moving = model.remove(at: present)
        let target = present < first ? first - 1 : first
        model.insert(moving, at: isBefore ? target : target + 1)
      }
    case 16:
      let offsets = Set((0..<random.below(5)).map { _ in random.below(model.count + 1) })
        .filter { $0 < model.count }
      array.move(fromOffsets: offsets, toOffset: second)
      let moved = offsets.sorted().map { model[$0] }
      let target = second - offsets.count { $0 < second }
      for offset in offsets.sorted(by: >) { model.remove(at: offset) }
      model.insert(contentsOf: moved, at: target)
    case 17 where first < model.count && second < model.count:
      array.swapAt(first, second)
      model.swapAt(first, second)
    case 18 where random.chance(30):
      array.sort { $0.title < $1.title }
      model.sort { $0.title < $1.title }
    case 19 where random.chance(30):
      array.reverse()
      model.reverse()
    case 20:
      array[id: id]?.notes.append(first)
      if let present { model[present].notes.append(first) }
    case 21 where first < model.count:
      array[first].title += "!"
      model[first].title += "!"
    case 22:
      array[id: id] = nil
      if let present { model.remove(at: present) }
    case 23:
      array[id: id] = card
      if let present { model[present] = card } else { model.append(card) }
    case 24:
      // Through an inout access, which may change, remove or insert.
      let replacement = random.chance(40) ? nil : card
      func change(_ slot: inout Card<ID>?) { slot = replacement }
      change(&array[id: id])
      switch (present, replacement) {
      case (let present?, let card?): model[present] = card
      case (let present?, nil): model.remove(at: present)
      case (nil, let card?): model.append(card)
      case (nil, nil): break
      }
    default:
      array.modifyElement(id: id) { $0.title = "m" }
      if let present { model[present].title = "m" }
    }
  }
}
