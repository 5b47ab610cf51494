import CBOR
import Values

/// An entry as in an application: three fields, the second of which changes.
struct Item: Synchronizable {
  var name: String
  var count: Int
  var done: Bool

  init(_ number: Int) {
    name = "item \(number)"
    count = number
    done = false
  }

  static var holdsCollections: Bool { false }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  func isSame(as other: Item) -> Bool {
    count == other.count && done == other.done && name.isSame(as: other.name)
  }

  func encode(into encoder: inout CBOREncoder) {
    encoder.map(3)
    encoder.encode(0)
    encoder.encode(name)
    encoder.encode(1)
    encoder.encode(count)
    encoder.encode(2)
    encoder.encode(done)
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init(0)
    for _ in 0..<(try decoder.map()) { try decodeField(&decoder, seed) }
    decoder.close()
  }

  func encodeDifference(from old: Item, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    if !name.isSame(as: old.name) {
      let mark = patch.open(encoder)
      encoder.encode(0)
      name.encodeReplacement(into: &encoder)
      patch.close(mark, changed: true, &encoder)
    }
    if count != old.count {
      let mark = patch.open(encoder)
      encoder.encode(1)
      count.encodeReplacement(into: &encoder)
      patch.close(mark, changed: true, &encoder)
    }
    if done != old.done {
      let mark = patch.open(encoder)
      encoder.encode(2)
      done.encodeReplacement(into: &encoder)
      patch.close(mark, changed: true, &encoder)
    }
    return patch.finish(&encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try decoder.map()) { try decodeField(&decoder, seed) }
    decoder.close()
  }

  private mutating func decodeField(
    _ decoder: inout CBORDecoder, _ seed: HashSeed
  ) throws(CBORError) {
    let offset = decoder.offset
    switch try decoder.unsigned() {
    case 0: name = try String(from: &decoder, seed: seed)
    case 1: count = try Int(from: &decoder, seed: seed)
    case 2: done = try Bool(from: &decoder, seed: seed)
    default: throw CBORError(.notAllowed("an unknown field"), at: offset)
    }
  }

  func digest(seed: HashSeed) -> UInt64 {
    var sum: UInt64 = 0
    for (field, digest) in [
      name.digest(seed: seed), count.digest(seed: seed), done.digest(seed: seed),
    ].enumerated() {
      sum &+= Hashing.entry(keyHash: field.hash(seed: seed), digest: digest)
    }
    return Hashing.map(sum: sum, count: 3)
  }

  mutating func adopt(seed: HashSeed) {}
}
