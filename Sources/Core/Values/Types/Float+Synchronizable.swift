public import CBOR

/// A float travels as the double of its value; a double that is not exactly a float is rounded.
extension Float: SynchronizableScalar {
  /// Floats are compared by their bits, except that all NaNs are the same.
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
