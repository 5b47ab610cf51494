public import CBOR

// Support for the code that the macros write: each field is one call, and the call infers the type
// of the field, which the macros never write.

/// The parts of a struct's coding that are the same for every field.
public enum StructureCoding {
  /// Whether two values of a field are the same.
  @inlinable @inline(__always)
  public static func isSame<T: Synchronizable>(_ first: T, _ second: T) -> Bool {
    first.isSame(as: second)
  }

  /// The number of fields that the value takes in an encoding: 0 if it is absent, else 1.
  @inlinable @inline(__always)
  public static func presence(of value: some Synchronizable) -> Int { value.isAbsent ? 0 : 1 }

  /// Have what a field refers to read into the cache soon.
  @inlinable @inline(__always)
  public static func prefetchStorage(of value: some Synchronizable) { value.prefetchStorage() }

  /// Append a field, unless its value is absent.
  @inlinable @inline(__always)
  public static func encode(
    _ number: Int, _ value: some Synchronizable, into encoder: inout CBOREncoder
  ) {
    if value.isAbsent { return }
    encoder.encode(number)
    value.encode(into: &encoder)
  }

  /// Append a value that a case carries. An enumeration may contain itself, as a tree.
  @inlinable @inline(__always)
  public static func encode(_ value: some Synchronizable, into encoder: inout CBOREncoder) {
    if encoder.isOver { return }
    value.encode(into: &encoder)
  }

  /// Decode the next item into a field.
  @inlinable @inline(__always)
  public static func decode<T: Synchronizable>(
    _ value: inout T, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    value = try T(from: &decoder, seed: seed)
  }

  /// Nil, of the type of the field that a closure returns. The closure is not called.
  @inlinable @inline(__always)
  public static func nothing<Root, T: Synchronizable>(_ field: (Root) -> T) -> T? { nil }

  /// Decode the next item into a field that has no default.
  @inlinable @inline(__always)
  public static func decode<T: Synchronizable>(
    required value: inout T?, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    value = .some(try T(from: &decoder, seed: seed))
  }

  /// The value of a field that has no default: nil if it was left out and is optional.
  @inlinable @inline(__always)
  public static func required<T: Synchronizable>(
    _ value: T?, _ type: @autoclosure () -> String, _ name: StaticString, at offset: Int
  ) throws(CBORError) -> T {
    if let value { return value }
    return try absent(type(), name, at: offset)
  }

  @usableFromInline
  static func absent<T: Synchronizable>(
    _ type: String, _ name: StaticString, at offset: Int
  ) throws(CBORError) -> T {
    // Type aliases hide from the macro which fields are optional.
    if let type = T.self as? any ExpressibleByNilLiteral.Type,
      let value = type.init(nilLiteral: ()) as? T
    {
      return value
    }
    throw CBORError(.notAllowed("\(type) has no field \"\(name)\""), at: offset)
  }

  /// Append the patch of a field, if it changed.
  @inlinable @inline(__always)
  public static func difference<T: Synchronizable>(
    _ number: Int, _ new: T, _ old: T, _ patch: inout PatchMap, _ encoder: inout CBOREncoder
  ) {
    let mark = patch.open(encoder)
    encoder.encode(number)
    let isChanged = new.encodeDifference(from: old, into: &encoder)
    patch.close(mark, changed: isChanged, &encoder)
  }

  /// Append the patch of a field, if it changed.
  @inlinable @inline(__always)
  public static func difference<T: SynchronizableScalar>(
    _ number: Int, _ new: T, _ old: T, _ patch: inout PatchMap, _ encoder: inout CBOREncoder
  ) {
    if new.isSame(as: old) { return }
    let mark = patch.open(encoder)
    encoder.encode(number)
    new.encodeReplacement(into: &encoder)
    patch.close(mark, changed: true, &encoder)
  }

  /// Open the map of a patch that changes fields in place.
  @inlinable
  public static func openPatch(_ decoder: inout CBORDecoder) throws(CBORError) -> Int {
    guard try decoder.peekMajor() == .map else {
      throw CBORError(.notAllowed("an edit of a struct by an array"), at: decoder.offset)
    }
    return try decoder.map()
  }

  /// Apply the next item, a patch, to a field.
  @inlinable @inline(__always)
  public static func apply<T: Synchronizable>(
    _ value: inout T, patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try value.apply(patch: &decoder, seed: seed)
  }

  /// Make the collections in a field hash with `seed`.
  @inlinable @inline(__always)
  public static func adopt<T: Synchronizable>(_ value: inout T, seed: HashSeed) {
    value.adopt(seed: seed)
  }

  /// Whether values of a type that a case carries may hold collections.
  @inlinable @inline(__always)
  public static func holdsCollections<T: Synchronizable>(_ type: T.Type) -> Bool {
    T.holdsCollections
  }

  /// Whether the field that a closure returns may hold collections. The closure is not called.
  @inlinable @inline(__always)
  public static func holdsCollections<Root, T: Synchronizable>(
    _ field: (Root) -> T
  ) -> Bool { T.holdsCollections }

  /// The number of the field that a path leads through at `depth`; nil if that key is a text.
  @inlinable
  public static func field(_ path: Path, _ depth: Int) -> Int64? {
    guard case .integer(let number) = path.keys[depth] else { return nil }
    return number
  }

  /// Continue along a path into a field.
  @inlinable
  public static func visit<T: Synchronizable, V: PartVisitor>(
    _ new: T?, _ old: T?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    T.visit(new, old, at: path, from: depth, &visitor)
  }
}

/// Reads the numbers of a struct's fields.
@frozen
public struct FieldDecoder {
  /// The offset at which the struct begins.
  public let start: Int
  @usableFromInline var remaining: Int
  /// The fields below 64 that have been read, as bits.
  @usableFromInline var seen: UInt64 = 0
  @usableFromInline var others: Set<UInt64> = []

  /// Open the map that is next.
  @inlinable
  public init(_ decoder: inout CBORDecoder) throws(CBORError) {
    start = decoder.offset
    remaining = try decoder.map()
  }

  /// The number of the next field, whose value must be read or skipped; nil at the end, when the
  /// map has been closed. A field that comes twice is an error.
  @inlinable
  public mutating func next(_ decoder: inout CBORDecoder) throws(CBORError) -> UInt64? {
    guard remaining > 0 else {
      decoder.close()
      return nil
    }
    remaining -= 1
    let offset = decoder.offset
    let number = try decoder.unsigned()
    guard note(number) else { throw CBORError(.notAllowed("duplicate key"), at: offset) }
    return number
  }

  @inlinable
  mutating func note(_ number: UInt64) -> Bool {
    guard number < 64 else { return others.insert(number).inserted }
    let bit = 1 as UInt64 &<< number
    if seen & bit != 0 { return false }
    seen |= bit
    return true
  }
}

/// Adds up the digest of a struct.
@frozen
public struct FieldDigest {
  @usableFromInline let seed: HashSeed
  @usableFromInline var sum: UInt64 = 0
  @usableFromInline var count = 0

  @inlinable
  public init(seed: HashSeed) { self.seed = seed }

  /// Add a field, unless its value is absent.
  @inlinable @inline(__always)
  public mutating func add(_ number: Int, _ value: some Synchronizable) {
    if value.isAbsent { return }
    sum &+= Hashing.entry(keyHash: number.hash(seed: seed), digest: value.digest(seed: seed))
    count += 1
  }

  /// The digest of the fields that were added.
  @inlinable
  public func finish() -> UInt64 { Hashing.map(sum: sum, count: count) }
}

/// Reads a case of an enumeration: its number, or an array of its number and its fields.
@frozen
public struct CaseDecoder {
  /// The offset at which the case begins.
  public let start: Int
  public let number: UInt64
  @usableFromInline let isArray: Bool
  @usableFromInline var remaining = 0

  @inlinable
  public init(_ decoder: inout CBORDecoder) throws(CBORError) {
    start = decoder.offset
    isArray = try decoder.peekMajor() == .array
    if isArray {
      let items = try decoder.array()
      guard items > 0 else {
        throw CBORError(.notAllowed("a case without its number"), at: start)
      }
      remaining = items - 1
    }
    number = try decoder.unsigned()
  }

  /// The error to throw when no case has the number.
  public var unknown: CBORError { CBORError(.unknownCase(number), at: start) }

  /// Read the next field; an optional one may be left out at the end.
  @inlinable
  public mutating func field<T: Synchronizable>(
    _ type: @autoclosure () -> String, _ name: StaticString, from decoder: inout CBORDecoder,
    seed: HashSeed
  ) throws(CBORError) -> T {
    guard remaining > 0 else { return try StructureCoding.absent(type(), name, at: start) }
    remaining -= 1
    return try T(from: &decoder, seed: seed)
  }

  /// Read the next field; it has a default, and may be left out at the end or be `undefined`.
  @inlinable
  public mutating func field<T: Synchronizable>(
    default value: @autoclosure () -> T, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> T {
    guard remaining > 0 else { return value() }
    remaining -= 1
    // For an optional, `undefined` means nil.
    if !(T.self is any ExpressibleByNilLiteral.Type), decoder.undefinedIfNext() { return value() }
    return try T(from: &decoder, seed: seed)
  }

  /// Skip the fields of a later version, and leave the case.
  @inlinable
  public mutating func finish(_ decoder: inout CBORDecoder) throws(CBORError) {
    for _ in 0..<remaining { try decoder.skip() }
    if isArray { decoder.close() }
  }
}
