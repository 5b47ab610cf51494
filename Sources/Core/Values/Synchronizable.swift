public import CBOR

/// A value that can be synchronised: it travels whole, and so does every change of it.
///
/// **The law:** `old.apply(difference(from: old, to: new)) == new`, and the difference is empty
/// exactly when both encode to the same bytes. Equality is always equality of encoded bytes
/// (`isSame(as:)`): Swift's `==` holds for "é" in its composed and decomposed forms and would lose
/// that update.
///
/// In the position of a patch an item means (`Protocols/wire.md`, "Patches"):
///
///     undefined              the value becomes absent
///     [value]                it becomes `value`
///     a scalar               it becomes this scalar
///     {key: patch, …}        it stays a map or struct; these entries change
///     [splices, edits]       it stays an array; these elements change
public protocol Synchronizable: Sendable {
  /// Whether both encode to the same bytes. O(1) where both share storage.
  func isSame(as other: Self) -> Bool

  /// Append the value in value form. O(n). A collection asks the encoder for room (`hasRoom`,
  /// `isOver`): the daemon finds by encoding whether a part of its state is small.
  func encode(into encoder: inout CBOREncoder)

  /// Have what `encode` reads first read into the processor's cache, if it lies elsewhere than the value
  /// itself, as the bytes of a text do. Only a hint: a collection calls it for many elements before it
  /// encodes the first, so that memory is read for all at once. The default does nothing.
  func prefetchStorage()

  /// Decode a value from its value form. Collections hash with `seed`.
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)

  /// Append the patch that turns `old` into this value. Returns false, and appends nothing, when
  /// they are the same. For values of one lineage O(what changed).
  func encodeDifference(from old: Self, into encoder: inout CBOREncoder) -> Bool

  /// Apply the next item, a patch. After an error the value is unspecified.
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError)

  /// The digest of the value. O(n) at first, then O(what changed): collections cache theirs.
  func digest(seed: HashSeed) -> UInt64

  /// Make every collection inside hash with `seed`. O(1) where it already does.
  mutating func adopt(seed: HashSeed)

  /// Whether the value may contain collections. If it never does, `adopt` does nothing, and the
  /// owner of such values need not call it.
  static var holdsCollections: Bool { get }

  /// Whether the value means absence, as `nil` does: a struct leaves it out.
  var isAbsent: Bool { get }

  /// The kind of the type in a schema, after adding the definitions that it needs.
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind

  /// Pass the parts of `new` and `old` at `path`, from its key number `depth` on, to a visitor;
  /// either may be absent. Calls the visitor once: `visitAbsent` if no value of this type can
  /// contain the path, else `visit`. O(the path).
  static func visit<V: PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Path, from depth: Int, _ visitor: inout V)

  /// Whether the value notes its edits (`Journaled`), so that a transaction needs no copy of the
  /// value at its start.
  static var isJournaled: Bool { get }

  /// End a transaction that began with `old`, or, for a journaled value, with its notes: make every
  /// collection hash with `seed`, and append the patch from then to now. Returns false, and appends
  /// nothing, when the value is the same.
  mutating func settle(since old: Self?, seed: HashSeed, into encoder: inout CBOREncoder) -> Bool

  /// End a transaction and restore the value that it began with.
  mutating func rollBack(to old: Self?)

  /// Take what the transactions since the last call have dropped and what takes long to release.
  mutating func takeRemains() -> Remains
}

/// Receives the value at a path, whatever its type is.
public protocol PartVisitor {
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?)
  /// No value can be at the path.
  mutating func visitAbsent()
}

extension Synchronizable {
  @inlinable public static var holdsCollections: Bool { true }

  @inlinable public var isAbsent: Bool { false }

  @inlinable
  public static func visit<V: PartVisitor>(
    _ new: Self?, _ old: Self?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    if depth == path.keys.count { visitor.visit(new, old) } else { visitor.visitAbsent() }
  }

  @inlinable public static var isJournaled: Bool { false }

  @inlinable public func prefetchStorage() {}

  @inlinable
  public mutating func settle(
    since old: Self?, seed: HashSeed, into encoder: inout CBOREncoder
  ) -> Bool {
    guard let old else { preconditionFailure("A value without notes settles by what it was.") }
    adopt(seed: seed)
    return encodeDifference(from: old, into: &encoder)
  }

  @inlinable
  public mutating func rollBack(to old: Self?) {
    guard let old else { preconditionFailure("A value without notes goes back to what it was.") }
    self = old
  }

  @inlinable
  public mutating func takeRemains() -> Remains { Remains() }

  /// Append the patch that turns an absent or different value into this one.
  @inlinable
  public func encodeReplacement(into encoder: inout CBOREncoder) {
    let start = encoder.bytes.count
    // All values but scalars are wrapped in an array of one. The likelier form is written first,
    // and corrected if it was wrong.
    if Self.holdsCollections { encoder.bytes.append(0x81) }
    let value = encoder.bytes.count
    encode(into: &encoder)
    let first = encoder.bytes[value]
    let major = first >> 5
    let isWrapped = major == 4 || major == 5 || first == 0xf7
    if isWrapped == Self.holdsCollections { return }
    if isWrapped {
      encoder.bytes.insert(0x81, at: start)
    } else {
      encoder.bytes.remove(at: start)
    }
  }

  /// Read the next item, a patch, if it replaces the whole value; leave it and return nil if it
  /// changes a value in place.
  @inlinable
  public static func replacement(
    from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> Self? {
    let first = try decoder.peek()
    switch first >> 5 {
    case 4:
      guard try decoder.isArrayOfOneNext() else { return nil }
      _ = try decoder.array()
      let value = try Self(from: &decoder, seed: seed)
      decoder.close()
      return value
    case 5: return nil
    default:
      if first == 0xf7 {
        throw CBORError(.notAllowed("this value cannot become absent"), at: decoder.offset)
      }
      return try Self(from: &decoder, seed: seed)
    }
  }

  /// The digest as a printable value.
  public func digest(_ seed: HashSeed) -> Digest { Digest(digest(seed: seed)) }
}

/// A value without parts: it is replaced, never edited.
public protocol SynchronizableScalar: Synchronizable {}

extension SynchronizableScalar {
  @inlinable
  public func encodeDifference(from old: Self, into encoder: inout CBOREncoder) -> Bool {
    if isSame(as: old) { return false }
    encodeReplacement(into: &encoder)
    return true
  }

  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    guard let value = try Self.replacement(from: &decoder, seed: seed) else {
      throw CBORError(.notAllowed("an edit of a value without parts"), at: decoder.offset)
    }
    self = value
  }

  /// SipHash-1-3 of the encoded bytes.
  public func digest(seed: HashSeed) -> UInt64 {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes.withUnsafeBytes { Hashing.sip($0, seed: seed) }
  }

  @inlinable
  public mutating func adopt(seed: HashSeed) {}

  @inlinable public static var holdsCollections: Bool { false }
}

extension SynchronizableScalar where Self: Equatable {
  @inlinable
  public func isSame(as other: Self) -> Bool { self == other }
}

/// A value that notes its edits, so that a patch costs what was touched.
///
/// A *transaction* is everything between two calls of `settle` or `rollBack`.
public protocol Journaled: Synchronizable {
  /// End the transaction: append the patch from its start to now and forget the notes. Returns
  /// false, and appends nothing, when the value is the same as at the start. The bytes are those
  /// of `encodeDifference` from the value at the start.
  mutating func settle(into encoder: inout CBOREncoder) -> Bool

  /// End the transaction and restore the value that it began with. O(what was touched).
  mutating func rollBack()
}

extension Journaled {
  @inlinable public static var isJournaled: Bool { true }

  @inlinable
  public mutating func settle(
    since old: Self?, seed: HashSeed, into encoder: inout CBOREncoder
  ) -> Bool {
    settle(into: &encoder)
  }

  @inlinable
  public mutating func rollBack(to old: Self?) { rollBack() }
}
