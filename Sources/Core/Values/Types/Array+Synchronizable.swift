public import CBOR

// An array in a state, for a few elements, where a `SyncArray` would be too much: writing to a copy
// copies all elements, and a patch costs O(n).
//
// `[UInt8]` travels as a byte string and is replaced whole. The element's type is tested where that
// matters; the optimizer folds the test.

extension Array: Synchronizable where Element: Synchronizable {
  /// Whether both hold the same elements. O(n), O(1) where both share storage.
  @inlinable
  public func isSame(as other: [Element]) -> Bool {
    guard count == other.count else { return false }
    let isOne = withUnsafeBufferPointer { mine in
      other.withUnsafeBufferPointer { mine.baseAddress == $0.baseAddress }
    }
    if isOne { return true }
    for index in indices where !self[index].isSame(as: other[index]) { return false }
    return true
  }

  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    if Element.self == UInt8.self, let bytes = self as? [UInt8] {
      return encoder.encode(bytes: bytes)
    }
    encoder.array(count)
    guard encoder.hasRoom(for: SmallForm.bytes(ofElements: count)) else { return }
    for element in self {
      element.encode(into: &encoder)
      if encoder.isOver { return }
    }
  }

  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    if Element.self == UInt8.self {
      self = try decoder.byteString() as? [Element] ?? []
      return
    }
    self = try Self.elements(from: &decoder, seed: seed)
  }

  /// Read an array of elements. Nothing is reserved: memory grows with the elements read.
  @inlinable
  static func elements(
    from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> [Element] {
    let count = try decoder.array()
    var elements: [Element] = []
    for _ in 0..<count { elements.append(try Element(from: &decoder, seed: seed)) }
    decoder.close()
    return elements
  }

  /// Append `[splices, edits]`: edits alone if both have equal counts, else one splice between the
  /// common prefix and the common suffix. O(n).
  @inlinable
  public func encodeDifference(from old: [Element], into encoder: inout CBOREncoder) -> Bool {
    if Element.self == UInt8.self {
      if isSame(as: old) { return false }
      encode(into: &encoder)
      return true
    }
    if count == old.count { return encodeEdits(from: old, into: &encoder) }
    encodeSplice(from: old, into: &encoder)
    return true
  }

  @inlinable
  func encodeEdits(from old: [Element], into encoder: inout CBOREncoder) -> Bool {
    let start = encoder.bytes.count
    encoder.array(2)
    encoder.array(0)
    var edits = PatchMap(in: &encoder)
    for index in indices {
      let mark = edits.open(encoder)
      encoder.encode(index)
      let isChanged = self[index].encodeDifference(from: old[index], into: &encoder)
      edits.close(mark, changed: isChanged, &encoder)
    }
    if edits.finish(&encoder) { return true }
    encoder.bytes.removeSubrange(start...)
    return false
  }

  @inlinable
  func encodeSplice(from old: [Element], into encoder: inout CBOREncoder) {
    let most = Swift.min(count, old.count)
    var head = 0
    while head < most && self[head].isSame(as: old[head]) { head += 1 }
    var tail = 0
    while tail < most - head && self[count - 1 - tail].isSame(as: old[old.count - 1 - tail]) {
      tail += 1
    }
    encoder.array(2)
    encoder.array(3)
    encoder.encode(head)
    encoder.encode(old.count - tail - head)
    encoder.array(count - tail - head)
    for element in self[head..<count - tail] { element.encode(into: &encoder) }
    encoder.map(0)
  }

  /// `[value]` replaces the array; `[splices, edits]` changes it. O(n) a splice.
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let value = try Self.replacement(from: &decoder, seed: seed) {
      self = value
      return
    }
    guard Element.self != UInt8.self else {
      throw CBORError(.notAllowed("an edit of a value without parts"), at: decoder.offset)
    }
    try applyParts(&decoder, seed: seed)
  }

  /// A polynomial over the elements' digests; for bytes, the digest of a scalar. O(n).
  @inlinable
  public func digest(seed: HashSeed) -> UInt64 {
    if Element.self == UInt8.self { return Hashing.scalar(self, seed: seed) }
    var polynomial: UInt64 = 0
    for element in self {
      polynomial = polynomial &* Hashing.arrayBase &+ element.digest(seed: seed)
    }
    return Hashing.array(polynomial: polynomial, count: count)
  }

  /// O(n) for elements that may hold collections, else O(1).
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    guard Element.holdsCollections else { return }
    for index in indices { self[index].adopt(seed: seed) }
  }

  /// True, except for bytes: asking the element's type would not terminate for a type that contains
  /// an array of itself.
  @inlinable public static var holdsCollections: Bool { Element.self != UInt8.self }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    Element.self == UInt8.self ? .bytes : .array(Element.schemaKind(in: &schema))
  }
}

extension Array: PatchableArray where Element: Synchronizable {
  @inlinable
  mutating func splice(
    _ range: Range<Int>, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    replaceSubrange(range, with: try Self.elements(from: &decoder, seed: seed))
  }

  @inlinable
  mutating func edit(
    at index: Int, by decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try self[index].apply(patch: &decoder, seed: seed)
  }
}

extension Hashing {
  /// The digest of a value without parts: SipHash-1-3 of its encoded bytes.
  public static func scalar(_ value: some Synchronizable, seed: HashSeed) -> UInt64 {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return encoder.bytes.withUnsafeBytes { sip($0, seed: seed) }
  }
}
