public import CBOR

/// A type with a raw value travels as its raw value: `enum Tab: String, SynchronizableScalar` needs
/// nothing more. A raw value that the type does not have is an error.
extension SynchronizableScalar where Self: RawRepresentable, RawValue: SynchronizableScalar {
  @inlinable
  public func isSame(as other: Self) -> Bool { rawValue.isSame(as: other.rawValue) }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { rawValue.encode(into: &encoder) }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    let raw = try RawValue(from: &decoder, seed: seed)
    guard let value = Self(rawValue: raw) else {
      throw CBORError(.notAllowed("\(raw) is no \(Self.self)"), at: start)
    }
    self = value
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    RawValue.schemaKind(in: &schema)
  }
}

extension SynchronizableScalar
where Self: RawRepresentable & Equatable, RawValue: SynchronizableScalar {
  // Both extensions apply to most raw-valued types; this one resolves the ambiguity.
  @inlinable
  public func isSame(as other: Self) -> Bool { rawValue.isSame(as: other.rawValue) }
}

/// A type whose raw value is a key is a key: `struct TodoID: RawRepresentable, SyncKey`.
extension SyncKey where Self: RawRepresentable, RawValue: SyncKey {
  @inlinable
  public func hash(seed: HashSeed) -> UInt64 { rawValue.hash(seed: seed) }

  @inlinable
  public static func isSame(_ first: Self, _ second: Self) -> Bool {
    RawValue.isSame(first.rawValue, second.rawValue)
  }

  @inlinable
  public static func precedes(_ first: Self, _ second: Self) -> Bool {
    RawValue.precedes(first.rawValue, second.rawValue)
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) { rawValue.encode(into: &encoder) }

  @inlinable
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let raw = try RawValue(from: &decoder)
    guard let value = Self(rawValue: raw) else {
      throw CBORError(.notAllowed("\(raw) is no \(Self.self)"), at: start)
    }
    self = value
  }

  @inlinable public var pathKey: PathKey { rawValue.pathKey }

  @inlinable
  public init?(pathKey: PathKey) {
    guard let raw = RawValue(pathKey: pathKey) else { return nil }
    self.init(rawValue: raw)
  }

  public static var schemaKind: Schema.Kind { RawValue.schemaKind }
}

extension SyncKey
where
  Self: RawRepresentable & SynchronizableScalar, RawValue: SyncKey & SynchronizableScalar
{
  // For a type that is both a value and a key.
  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    (rawValue as RawValue).encodeAsKey(into: &encoder)
  }
}

extension SyncKey {
  @usableFromInline
  func encodeAsKey(into encoder: inout CBOREncoder) { encode(into: &encoder) }
}
