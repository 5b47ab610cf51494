public import CBOR

/// A key of a `SyncMap`: a CBOR scalar that hashes the same in every process.
public protocol SyncKey: Hashable, Sendable {
  /// The position of the key in a map's trie.
  func hash(seed: HashSeed) -> UInt64

  /// Whether both encode to the same bytes.
  static func isSame(_ first: Self, _ second: Self) -> Bool

  /// A total order that agrees with `isSame`, for keys with equal hashes.
  static func precedes(_ first: Self, _ second: Self) -> Bool

  func encode(into encoder: inout CBOREncoder)
  init(from decoder: inout CBORDecoder) throws(CBORError)

  /// The key as a component of a path, and back: nil for any component but this key's own. If two
  /// paths led to one key, one could be denied and the other permitted.
  var pathKey: PathKey { get }
  init?(pathKey: PathKey)

  /// The kind of the keys in a schema: text or integers.
  static var schemaKind: Schema.Kind { get }
}

extension String: SyncKey {
  /// SipHash-1-3 of the UTF-8.
  @inlinable
  public func hash(seed: HashSeed) -> UInt64 {
    // `withUTF8` by itself needs a copy of the text, which counts a reference.
    let hash = utf8.withContiguousStorageIfAvailable {
      Hashing.sip(UnsafeRawBufferPointer($0), seed: seed)
    }
    if let hash { return hash }
    var text = self
    return text.withUTF8 { Hashing.sip(UnsafeRawBufferPointer($0), seed: seed) }
  }

  @inlinable @inline(__always)
  public static func isSame(_ first: String, _ second: String) -> Bool {
    hasSameBits(first, second) || hasSameBytes(first, second)
  }

  @usableFromInline
  static func hasSameBytes(_ first: String, _ second: String) -> Bool {
    // Canonically equivalent strings may differ in bytes, so `==` alone is not enough.
    first.utf8.count == second.utf8.count && first == second
      && first.utf8.elementsEqual(second.utf8)
  }

  /// Whether both share storage, or are the same small string stored inline.
  @inlinable @inline(__always)
  static func hasSameBits(_ first: String, _ second: String) -> Bool {
    // Only the bits are compared, and a String of this size is two words of bits.
    guard MemoryLayout<String>.size == 16 else { return false }
    let (a, b) = (
      unsafeBitCast(first, to: (UInt64, UInt64).self),
      unsafeBitCast(second, to: (UInt64, UInt64).self)
    )
    return a == b
  }

  @inlinable
  public static func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.lexicographicallyPrecedes(second.utf8)
  }

  @inlinable
  public init(from decoder: inout CBORDecoder) throws(CBORError) { self = try decoder.text() }

  @inlinable public var pathKey: PathKey { .text(self) }

  public static var schemaKind: Schema.Kind { .text }

  @inlinable
  public init?(pathKey: PathKey) {
    guard case .text(let text) = pathKey else { return nil }
    self = text
  }
}

extension Int: SyncKey {
  /// A bijection of the number, so distinct numbers never have the same hash.
  @inlinable
  public func hash(seed: HashSeed) -> UInt64 {
    Hashing.mix(UInt64(bitPattern: Int64(self)) &+ Hashing.mix(seed.rawValue))
  }

  @inlinable
  public static func isSame(_ first: Int, _ second: Int) -> Bool { first == second }

  @inlinable
  public static func precedes(_ first: Int, _ second: Int) -> Bool { first < second }

  @inlinable
  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    self = Int(try decoder.integer())
  }

  @inlinable public var pathKey: PathKey { .integer(Int64(self)) }

  public static var schemaKind: Schema.Kind { .integer }

  @inlinable
  public init?(pathKey: PathKey) {
    guard case .integer(let value) = pathKey else { return nil }
    self = Int(value)
  }
}

/// One step of a path: a field's number, or a key of a map or object.
@frozen
public enum PathKey: Hashable, Sendable, CustomStringConvertible {
  case text(String)
  case integer(Int64)

  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .text(let text): encoder.encode(text)
    case .integer(let value): encoder.encode(value)
    }
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    self =
      try decoder.peekMajor() == .text ? .text(decoder.text()) : .integer(decoder.integer())
  }

  public var description: String {
    switch self {
    case .text(let text): text
    case .integer(let value): String(value)
    }
  }

  /// Paths compare by their bytes: Swift's `==` on text is coarser.
  public static func == (first: PathKey, second: PathKey) -> Bool {
    switch (first, second) {
    case (.text(let first), .text(let second)): String.isSame(first, second)
    case (.integer(let first), .integer(let second)): first == second
    case (.text, .integer), (.integer, .text): false
    }
  }
}

extension PathKey: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
  public init(stringLiteral value: String) { self = .text(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
}
