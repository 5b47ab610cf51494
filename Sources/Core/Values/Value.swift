public import CBOR
public import CPrefetch

/// A dynamically typed value: the values of JSON, with exact 64-bit integers, and bytes in
/// addition.
///
/// Two values are the same when they encode to the same bytes: `1` and `1.0` differ, and so do
/// `0.0` and `-0.0`.
@frozen
public enum Value: Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// Only for numbers above `Int64.max`, which `Value.init(_: UInt64)` ensures.
  case unsigned(UInt64)
  case double(Double)
  case text(String)
  case bytes([UInt8])
  case array(TreeArray<Value>)
  case object(TrieMap<String, Value>)

  /// The number, as `.integer` where it fits.
  @inlinable
  public init(_ number: UInt64) {
    if let small = Int64(exactly: number) {
      self = .integer(small)
    } else {
      self = .unsigned(number)
    }
  }

  /// The type of the value in a word, as in JSON.
  public var kind: String {
    switch self {
    case .null: "null"
    case .bool: "boolean"
    case .integer, .unsigned, .double: "number"
    case .text: "string"
    case .bytes: "bytes"
    case .array: "array"
    case .object: "object"
    }
  }
}

extension Value {
  /// The value in value form, by itself.
  package var encoded: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }
}

// MARK: Sameness and form

extension Value: Synchronizable {
  @inlinable
  public func prefetchStorage() {
    switch self {
    case .null, .bool, .integer, .unsigned, .double: break
    case .text(let value): value.prefetchStorage()
    case .bytes(let value): value.withUnsafeBytes { prefetch_line($0.baseAddress) }
    case .array(let elements): elements.prefetchStorage()
    case .object(let entries): entries.prefetchStorage()
    }
  }

  @inlinable
  public func isSame(as other: Value) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.bool(let first), .bool(let second)): first == second
    case (.integer(let first), .integer(let second)): first == second
    case (.unsigned(let first), .unsigned(let second)): first == second
    case (.double(let first), .double(let second)): first.isSame(as: second)
    case (.text(let first), .text(let second)): String.isSame(first, second)
    case (.bytes(let first), .bytes(let second)): first == second
    case (.array(let first), .array(let second)): first.isSame(as: second)
    case (.object(let first), .object(let second)): first.isSame(as: second)
    default: false
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  public static func visit<V: PartVisitor>(
    _ new: Value?, _ old: Value?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    visitor.visit(new?.scoped(to: path, from: depth), old?.scoped(to: path, from: depth))
  }

  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .null: encoder.encodeNull()
    case .bool(let value): encoder.encode(value)
    case .integer(let value): encoder.encode(value)
    case .unsigned(let value): encoder.encode(value)
    case .double(let value): encoder.encode(value)
    case .text(let value): encoder.encode(value)
    case .bytes(let value): encoder.encode(bytes: value)
    case .array(let elements): elements.encode(into: &encoder)
    case .object(let entries): entries.encode(into: &encoder)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    switch try decoder.peekMajor() {
    case .unsigned: self = Value(try decoder.unsigned())
    case .negative: self = .integer(try decoder.integer())
    case .bytes: self = .bytes(try decoder.byteString())
    case .text: self = .text(try decoder.text())
    case .array: self = .array(try TreeArray(from: &decoder, seed: seed))
    case .map: self = .object(try TrieMap(from: &decoder, seed: seed))
    case .tag:
      throw CBORError(.notAllowed("a tag is not a document value"), at: decoder.offset)
    case .simple:
      switch try decoder.peek() {
      case 0xf4, 0xf5: self = .bool(try decoder.bool())
      case 0xf9...0xfb: self = .double(try decoder.double())
      default:
        guard decoder.nullIfNext() else {
          let found = decoder.nextName()
          throw CBORError(.notAllowed("\(found) is not a document value"), at: decoder.offset)
        }
        self = .null
      }
    }
  }

  public func encodeDifference(from old: Value, into encoder: inout CBOREncoder) -> Bool {
    switch (old, self) {
    case (.array(let before), .array(let after)):
      return after.encodeDifference(from: before, into: &encoder)
    case (.object(let before), .object(let after)):
      return after.encodeDifference(from: before, into: &encoder)
    default:
      if isSame(as: old) { return false }
      // As `encodeReplacement`, which need not find out what is wrapped.
      switch self {
      case .array, .object: encoder.array(1)
      case .null, .bool, .integer, .unsigned, .double, .text, .bytes: break
      }
      encode(into: &encoder)
      return true
    }
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let replacement = try Value.replacement(from: &decoder, seed: seed) {
      self = replacement
      return
    }
    // The container is moved out while it changes, so that it stays uniquely referenced.
    switch self {
    case .object(var entries):
      self = .null
      defer { self = .object(entries) }
      try entries.apply(patch: &decoder, seed: seed)
    case .array(var elements):
      self = .null
      defer { self = .array(elements) }
      try elements.apply(patch: &decoder, seed: seed)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      throw CBORError(.notAllowed("an edit inside a \(kind)"), at: decoder.offset)
    }
  }

  public func digest(seed: HashSeed) -> UInt64 {
    switch self {
    case .array(let elements): return elements.digest(seed: seed)
    case .object(let entries): return entries.digest(seed: seed)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      var encoder = CBOREncoder()
      encode(into: &encoder)
      return encoder.bytes.withUnsafeBytes { Hashing.sip($0, seed: seed) }
    }
  }

  public mutating func adopt(seed: HashSeed) {
    switch self {
    case .array(var elements):
      self = .null
      elements.adopt(seed: seed)
      self = .array(elements)
    case .object(var entries):
      self = .null
      entries.adopt(seed: seed)
      self = .object(entries)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes: break
    }
  }
}

extension Value: Equatable {
  public static func == (first: Value, second: Value) -> Bool { first.isSame(as: second) }
}

// MARK: Paths

extension Value {
  /// The value at a path through objects and, by decimal tokens, arrays; nil where there is none.
  /// O(depth · log n).
  public func value(at path: Path) -> Value? {
    var current = self
    for key in path.keys {
      guard let next = current.child(key) else { return nil }
      current = next
    }
    return current
  }

  /// The entry of an object or the element of an array that a key names, as in RFC 6901.
  public func child(_ key: PathKey) -> Value? {
    switch (self, key) {
    case (.object(let entries), .text(let name)): return entries[name]
    case (.array(let elements), _):
      guard let index = key.arrayIndex, index < elements.count else { return nil }
      return elements[index]
    default: return nil
    }
  }

  /// The value at a path through objects only: the value of a scope of this path.
  @inlinable
  public func scoped(to path: Path, from depth: Int = 0) -> Value? {
    var current = self
    for key in path.keys[depth...] {
      guard case .object(let entries) = current, case .text(let name) = key,
        let next = entries[name]
      else { return nil }
      current = next
    }
    return current
  }
}

extension PathKey {
  /// The array index that the key names: a number, or decimal digits without a leading zero.
  public var arrayIndex: Int? {
    switch self {
    case .integer(let value): return value >= 0 ? Int(exactly: value) : nil
    case .text(let text):
      let digits = text.utf8
      guard let first = digits.first, digits.count <= 18,
        digits.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }),
        first != UInt8(ascii: "0") || digits.count == 1
      else { return nil }
      return Int(text)
    }
  }
}

// MARK: Literals

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .double(value) }
  public init(stringLiteral value: String) { self = .text(value) }
  public init(arrayLiteral elements: Value...) { self = .array(TreeArray(elements)) }
  public init(dictionaryLiteral elements: (String, Value)...) {
    var entries = TrieMap<String, Value>()
    for (key, value) in elements { entries.updateValue(value, forKey: key) }
    self = .object(entries)
  }
}
