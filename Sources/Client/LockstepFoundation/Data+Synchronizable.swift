public import CBOR
public import FoundationEssentials
public import Values

/// Bytes travel as a byte string and are replaced whole.
extension Data: SynchronizableScalar {
  public func isSame(as other: Data) -> Bool { self == other }

  public func encode(into encoder: inout CBOREncoder) {
    guard encoder.hasRoom(for: count) else { return }
    encoder.head(.bytes, UInt64(count))
    encoder.raw(self)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init(try decoder.byteString())
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .bytes }
}
