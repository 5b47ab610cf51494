public import CBOR
public import Values

/// A field that notifies its observers at every assignment, even of an equal value: an alert that
/// must be shown again, for example.
///
///     @Pulse var alert: String?
///
/// It travels as a struct of its counter (field 0) and its value (field 1). A reader acts once for
/// each counter that differs from the last it has seen, and not for its first snapshot.
@propertyWrapper
public struct Pulse<Value: Synchronizable>: Sendable {
  /// How many times the value was assigned, modulo 2^64.
  public private(set) var count: UInt64 = 0
  private var value: Value

  public init(wrappedValue: Value) { value = wrappedValue }

  public var wrappedValue: Value {
    get { value }
    set {
      value = newValue
      count &+= 1
    }
  }

  public var projectedValue: Pulse { self }
}

extension Pulse: Equatable where Value: Equatable {}

extension Pulse: Synchronizable {
  public func isSame(as other: Pulse) -> Bool {
    count == other.count && value.isSame(as: other.value)
  }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(value.isAbsent ? 1 : 2)
    encoder.encode(0)
    encoder.encode(count)
    guard !value.isAbsent else { return }
    encoder.encode(1)
    value.encode(into: &encoder)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    var count: UInt64?
    var value: Value?
    for _ in 0..<(try decoder.map()) {
      switch try decoder.unsigned() {
      case 0: count = try decoder.unsigned()
      case 1: value = try Value(from: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    decoder.close()
    guard let count else { throw CBORError(.notAllowed("a pulse without its counter"), at: start) }
    self.count = count
    if let value {
      self.value = value
    } else if let absent = Self.absent {
      self.value = absent
    } else {
      throw CBORError(.notAllowed("a pulse without its value"), at: start)
    }
  }

  /// The nil of a type that has one.
  private static var absent: Value? {
    (Value.self as? any ExpressibleByNilLiteral.Type)?.init(nilLiteral: ()) as? Value
  }

  public func encodeDifference(from old: Pulse, into encoder: inout CBOREncoder) -> Bool {
    var patch = PatchMap(in: &encoder)
    var mark = patch.open(encoder)
    encoder.encode(0)
    patch.close(mark, changed: count.encodeDifference(from: old.count, into: &encoder), &encoder)
    mark = patch.open(encoder)
    encoder.encode(1)
    patch.close(mark, changed: value.encodeDifference(from: old.value, into: &encoder), &encoder)
    return patch.finish(&encoder)
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    for _ in 0..<(try decoder.map()) {
      switch try decoder.unsigned() {
      case 0: try count.apply(patch: &decoder, seed: seed)
      case 1: try value.apply(patch: &decoder, seed: seed)
      default: try decoder.skip()
      }
    }
    decoder.close()
  }

  public func digest(seed: HashSeed) -> UInt64 {
    var sum = Hashing.entry(keyHash: 0.hash(seed: seed), digest: count.digest(seed: seed))
    if !value.isAbsent {
      sum &+= Hashing.entry(keyHash: 1.hash(seed: seed), digest: value.digest(seed: seed))
    }
    return Hashing.map(sum: sum, count: value.isAbsent ? 1 : 2)
  }

  public mutating func adopt(seed: HashSeed) { value.adopt(seed: seed) }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    let kind = Value.schemaKind(in: &schema)
    return schema.kind(of: Self.self, named: "Pulse") { _ in
      .structure([.init(0, "count", .unsigned), .init(1, "value", kind)])
    }
  }
}
