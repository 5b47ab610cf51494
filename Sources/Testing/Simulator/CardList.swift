public import CBOR
public import Values

/// A state that is an array of identified elements.
public typealias CardList = SyncIdentifiedArray<SimulatedCard>

/// An element: a name and a number, encoded as `{0: id, 1: number}`.
public struct SimulatedCard: Synchronizable, Identifiable {
  public let id: String
  var number: Int

  public static var holdsCollections: Bool { false }

  public func isSame(as other: SimulatedCard) -> Bool {
    number == other.number && id.isSame(as: other.id)
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(2)
    StructureCoding.encode(0, id, into: &encoder)
    StructureCoding.encode(1, number, into: &encoder)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var (id, number): (String?, Int?)
    var fields = try FieldDecoder(&decoder)
    while let field = try fields.next(&decoder) {
      switch field {
      case 0: id = try decoder.text()
      case 1: number = Int(try decoder.integer())
      default: try decoder.skip()
      }
    }
    self.id = try StructureCoding.required(id, "SimulatedCard", "id", at: fields.start)
    self.number = try StructureCoding.required(number, "SimulatedCard", "number", at: fields.start)
  }

  init(id: String, number: Int) {
    self.id = id
    self.number = number
  }

  public func encodeDifference(
    from old: SimulatedCard, into encoder: inout CBOREncoder
  ) -> Bool {
    var patch = PatchMap(in: &encoder)
    StructureCoding.difference(1, number, old.number, &patch, &encoder)
    return patch.finish(&encoder)
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try StructureCoding.openPatch(&decoder)) {
      if try decoder.unsigned() == 1 {
        try number.apply(patch: &decoder, seed: seed)
      } else {
        try decoder.skip()
      }
    }
    decoder.close()
  }

  public func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    digest.add(0, id)
    digest.add(1, number)
    return digest.finish()
  }

  public mutating func adopt(seed: HashSeed) {}

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "SimulatedCard") { schema in
      .structure([
        schema.field(0, "id", \Self.id), schema.field(1, "number", \Self.number),
      ])
    }
  }
}
