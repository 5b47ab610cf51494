public import CBOR
public import Values

/// A UUID (RFC 9562): 128 bits, as text `f81d4fae-7dec-41d0-a765-00a0c91e6bf6` on the wire.
public struct UniqueID: Hashable, Sendable, CustomStringConvertible {
  public let high: UInt64
  public let low: UInt64

  /// The UUID of these bits, which include the version.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A random UUID (version 4).
  public init(using generator: inout some RandomNumberGenerator) {
    self.init(version: 4, generator.next(), generator.next())
  }

  /// The UUID derived from two numbers (version 8).
  init(from first: UInt64, _ second: UInt64) {
    let mixed = Hashing.mix(first &+ Hashing.mix(second))
    self.init(version: 8, mixed, Hashing.mix(mixed ^ second))
  }

  private init(version: UInt64, _ high: UInt64, _ low: UInt64) {
    self.high = high & ~0xf000 | version << 12
    self.low = low & ~(3 << 62) | 2 << 62
  }

  /// A UUID from its text of 36 characters; nil for any other.
  public init?(_ text: String) {
    let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard groups.map(\.count) == [8, 4, 4, 4, 12] else { return nil }
    let digits = groups.joined()
    guard digits.allSatisfy({ $0 != UInt8(ascii: "+") }),
      let high = UInt64(String(decoding: digits.prefix(16), as: UTF8.self), radix: 16),
      let low = UInt64(String(decoding: digits.dropFirst(16), as: UTF8.self), radix: 16)
    else { return nil }
    self.init(high: high, low: low)
  }

  public var description: String {
    func hex(_ value: UInt64, _ digits: Int) -> String {
      let text = String(value, radix: 16)
      return String(repeating: "0", count: digits - text.count) + text
    }
    let parts = [
      hex(high >> 32, 8), hex(high >> 16 & 0xffff, 4), hex(high & 0xffff, 4), hex(low >> 48, 4),
      hex(low & 0xffff_ffff_ffff, 12),
    ]
    return parts.joined(separator: "-")
  }
}

extension UniqueID: SynchronizableScalar {
  public func encode(into encoder: inout CBOREncoder) { encoder.encode(description) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try self.init(from: &decoder)
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
}

extension UniqueID: SyncKey {
  public func hash(seed: HashSeed) -> UInt64 { description.hash(seed: seed) }

  public static func isSame(_ first: UniqueID, _ second: UniqueID) -> Bool { first == second }

  public static func precedes(_ first: UniqueID, _ second: UniqueID) -> Bool {
    (first.high, first.low) < (second.high, second.low)
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard let id = UniqueID(try decoder.text()) else {
      throw CBORError(.notAllowed("text that is no UUID"), at: start)
    }
    self = id
  }

  public var pathKey: PathKey { .text(description) }

  /// Nil unless the text is a UUID in lower case: no other form is a key on the wire.
  public init?(pathKey: PathKey) {
    guard case .text(let text) = pathKey, let id = UniqueID(text),
      String.isSame(id.description, text)
    else { return nil }
    self = id
  }

  public static var schemaKind: Schema.Kind { .text }
}
