public import CBOR
public import FoundationEssentials
public import Values

/// A UUID travels as its text of 36 characters in lower case, so that people can read it; either
/// case is accepted.
extension UUID: SynchronizableScalar {
  /// The encoded text.
  private var text: String { uuidString.lowercased() }

  public func isSame(as other: UUID) -> Bool { self == other }

  public func encode(into encoder: inout CBOREncoder) { encoder.encode(text) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try self.init(from: &decoder)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
}

extension UUID: SyncKey {
  /// The hash of the text.
  public func hash(seed: HashSeed) -> UInt64 { text.hash(seed: seed) }

  public static func isSame(_ first: UUID, _ second: UUID) -> Bool { first == second }

  /// In the order of the bytes, which is that of the texts.
  public static func precedes(_ first: UUID, _ second: UUID) -> Bool {
    String.precedes(first.text, second.text)
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let text = try decoder.text()
    guard text.utf8.count == 36, let value = UUID(uuidString: text) else {
      throw CBORError(.notAllowed("a text that is no UUID"), at: start)
    }
    self = value
  }

  public var pathKey: PathKey { .text(text) }

  /// Nil unless the text is a UUID in lower case: no other form is a key on the wire.
  public init?(pathKey: PathKey) {
    guard case .text(let text) = pathKey, let value = UUID(uuidString: text),
      String.isSame(value.text, text)
    else { return nil }
    self = value
  }

  public static var schemaKind: Schema.Kind { .text }
}
