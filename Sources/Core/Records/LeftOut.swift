public import CBOR
public import Values

/// The parts of a state that one version of a feature kept and the next does not know. They wait
/// beside the state, in its snapshots and hand-overs, for a version that knows them.
public struct LeftOut: Hashable, Sendable {
  /// The schema of the version that kept them.
  public let schema: Schema
  /// A patch by that schema which puts them back: it replaces fields, and leads to them through
  /// structs and the keys of maps only.
  public let patch: [UInt8]

  public init(schema: Schema, patch: [UInt8]) {
    self.schema = schema
    self.patch = patch
  }

  /// Append `[schema, patch]`, the patch as a byte string.
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    schema.encode(into: &encoder)
    encoder.encode(bytes: patch)
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(2, "parts that were left out")
    schema = try Schema(from: &decoder)
    patch = [UInt8](try decoder.byteString())
    decoder.close()
  }
}
