public import CBOR
public import Values

// The code that `@ObservableState` would generate, if this module could use it. So a request that
// begins travels as one field, whatever the size of the value.

extension Loadable: ObservableState {
  public func isSame(as other: Loadable) -> Bool {
    isLoading == other.isLoading && value.isSame(as: other.value)
      && failure.isSame(as: other.failure)
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(1 + StructureCoding.presence(of: value) + StructureCoding.presence(of: failure))
    StructureCoding.encode(0, isLoading, into: &encoder)
    StructureCoding.encode(1, value, into: &encoder)
    StructureCoding.encode(2, failure, into: &encoder)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init()
    var fields = try FieldDecoder(&decoder)
    while let number = try fields.next(&decoder) {
      switch number {
      case 0: try StructureCoding.decode(&isLoading, from: &decoder, seed: seed)
      case 1: try StructureCoding.decode(&value, from: &decoder, seed: seed)
      case 2: try StructureCoding.decode(&failure, from: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
  }

  public func encodeDifference(from old: Loadable, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    StructureCoding.difference(0, isLoading, old.isLoading, &patch, &encoder)
    StructureCoding.difference(1, value, old.value, &patch, &encoder)
    StructureCoding.difference(2, failure, old.failure, &patch, &encoder)
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
      switch try decoder.unsigned() {
      case 0: try isLoading.apply(patch: &decoder, seed: seed)
      case 1: try value.apply(patch: &decoder, seed: seed)
      case 2: try failure.apply(patch: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    decoder.close()
  }

  public func digest(seed: HashSeed) -> UInt64 {
    var digest = FieldDigest(seed: seed)
    digest.add(0, isLoading)
    digest.add(1, value)
    digest.add(2, failure)
    return digest.finish()
  }

  public mutating func adopt(seed: HashSeed) {
    value.adopt(seed: seed)
    failure.adopt(seed: seed)
  }

  public static var holdsCollections: Bool { Value.holdsCollections || Failure.holdsCollections }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Loadable<\(Value.self), \(Failure.self)>") { schema in
      .structure([
        schema.field(0, "isLoading", \Self.isLoading, hasDefault: true),
        schema.field(1, "value", \Self.value, hasDefault: true),
        schema.field(2, "failure", \Self.failure, hasDefault: true),
      ])
    }
  }

  public static func visit<V: PartVisitor>(
    _ new: Loadable?, _ old: Loadable?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    let next = depth + 1
    switch StructureCoding.field(path, depth) {
    case 0: StructureCoding.visit(new?.isLoading, old?.isLoading, at: path, from: next, &visitor)
    case 1: StructureCoding.visit(new?.value, old?.value, at: path, from: next, &visitor)
    case 2: StructureCoding.visit(new?.failure, old?.failure, at: path, from: next, &visitor)
    default: visitor.visitAbsent()
    }
  }

  public static var fields: [StateField<Loadable>] {
    [
      StateField(0, "isLoading", \.isLoading, isEphemeral: true), StateField(1, "value", \.value),
      StateField(2, "failure", \.failure),
    ]
  }

  public static var initialValue: Loadable? { Loadable() }

  public mutating func resetEphemeral() {
    isLoading = false
    EphemeralFields.reset(&value)
    EphemeralFields.reset(&failure)
  }
}
