import CBOR
import ClientCore
import Values

/// A value of any type that can be mirrored, or the absence of one: the mirrors of one connection
/// differ in type.
struct AnyMirrored: Sendable {
  private var part: any MirroredPart

  /// The value, if there is one of this type.
  func value<T: Synchronizable>(as type: T.Type) -> T? { (part as? PartOf<T>)?.value }

  /// How a session makes the values of a mirror of this type.
  static func form<T: Synchronizable>(of type: T.Type) -> MirrorForm<AnyMirrored> {
    MirrorForm(
      decode: { decoder, seed throws(CBORError) in
        AnyMirrored(part: PartOf<T>(value: try T?(from: &decoder, seed: seed)))
      },
      apply: { value, decoder, seed throws(CBORError) in
        try value?.apply(patch: &decoder, seed: seed)
      })
  }
}

private protocol MirroredPart: Sendable {
  func isSame(as other: any MirroredPart) -> Bool
  func encode(into encoder: inout CBOREncoder)
  func encodeDifference(from old: any MirroredPart, into encoder: inout CBOREncoder) -> Bool
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)
  func digest(seed: HashSeed) -> UInt64
  mutating func adopt(seed: HashSeed)
  var isAbsent: Bool { get }
}

private struct PartOf<T: Synchronizable>: MirroredPart {
  var value: T?

  func isSame(as other: any MirroredPart) -> Bool {
    (other as? PartOf).map { value.isSame(as: $0.value) } ?? false
  }

  func encode(into encoder: inout CBOREncoder) { value.encode(into: &encoder) }

  func encodeDifference(
    from old: any MirroredPart, into encoder: inout CBOREncoder
  ) -> Bool {
    value.encodeDifference(from: (old as? PartOf)?.value, into: &encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try value.apply(patch: &decoder, seed: seed)
  }

  func digest(seed: HashSeed) -> UInt64 { value.digest(seed: seed) }

  mutating func adopt(seed: HashSeed) { value.adopt(seed: seed) }

  var isAbsent: Bool { value == nil }
}

/// As the part that it holds. What needs the type alone is done by `form`.
extension AnyMirrored: Synchronizable {
  func isSame(as other: AnyMirrored) -> Bool { part.isSame(as: other.part) }

  func encode(into encoder: inout CBOREncoder) { part.encode(into: &encoder) }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    throw CBORError(.notAllowed("a value of no known type"), at: decoder.offset)
  }

  func encodeDifference(from old: AnyMirrored, into encoder: inout CBOREncoder) -> Bool {
    part.encodeDifference(from: old.part, into: &encoder)
  }

  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try part.apply(patch: &decoder, seed: seed)
  }

  func digest(seed: HashSeed) -> UInt64 { part.digest(seed: seed) }

  mutating func adopt(seed: HashSeed) { part.adopt(seed: seed) }

  var isAbsent: Bool { part.isAbsent }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }
}
