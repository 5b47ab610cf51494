public import CBOR

/// A float travels as the double of its value; a double that is no float is rounded.
extension Float: SynchronizableScalar {
  /// Floats are the same by their bits, except that every NaN is the one NaN.
  @inlinable
  public func isSame(as other: Float) -> Bool {
    bitPattern == other.bitPattern || isNaN && other.isNaN
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { encoder.encode(Double(self)) }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = Float(try decoder.double())
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .double }
}
