public import CBOR

/// A result travels as an enumeration: `[0, success]` or `[1, failure]`.
extension Result: Synchronizable where Success: Synchronizable, Failure: Synchronizable {
  public func isSame(as other: Self) -> Bool {
    switch (self, other) {
    case (.success(let first), .success(let second)): first.isSame(as: second)
    case (.failure(let first), .failure(let second)): first.isSame(as: second)
    case (.success, .failure), (.failure, .success): false
    }
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    switch self {
    case .success(let value):
      encoder.encode(0)
      value.encode(into: &encoder)
    case .failure(let error):
      encoder.encode(1)
      error.encode(into: &encoder)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var item = try CaseDecoder(&decoder)
    switch item.number {
    case 0: self = .success(try item.field("Result.success", "_0", from: &decoder, seed: seed))
    case 1: self = .failure(try item.field("Result.failure", "_0", from: &decoder, seed: seed))
    default: throw item.unknown
    }
    try item.finish(&decoder)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Result<\(Success.self), \(Failure.self)>") { schema in
      let success = Success.schemaKind(in: &schema)
      let failure = Failure.schemaKind(in: &schema)
      return .enumeration([
        .init(0, "success", [.init(1, "_0", success)]),
        .init(1, "failure", [.init(1, "_0", failure)]),
      ])
    }
  }
}

extension Result: SynchronizableScalar where Success: Synchronizable, Failure: Synchronizable {
  public mutating func adopt(seed: HashSeed) {
    switch self {
    case .success(var value):
      value.adopt(seed: seed)
      self = .success(value)
    case .failure(var error):
      error.adopt(seed: seed)
      self = .failure(error)
    }
  }

  public static var holdsCollections: Bool {
    Success.holdsCollections || Failure.holdsCollections
  }
}
