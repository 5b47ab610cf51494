public import CBOR

// A peer may see a part of a state: the value at a path through fields and map keys. An absent part
// is a value too: `undefined` in value form and in patches.
extension Synchronizable {
  /// Append the value at `path` in value form, or `undefined` if it is absent. O(depth + its size).
  public func encode(at path: Path, into encoder: inout CBOREncoder) {
    if path.keys.isEmpty { return encode(into: &encoder) }
    var visitor = PartEncoder(encoder: encoder)
    encoder = CBOREncoder()
    Self.visit(self, nil, at: path, from: 0, &visitor)
    encoder = visitor.encoder
  }

  /// Append the patch that turns the value at `path` in `old` into the value at `path` now. Returns
  /// false, and appends nothing, when both are the same.
  public func encodeDifference(
    from old: Self, at path: Path, into encoder: inout CBOREncoder
  ) -> Bool {
    if path.keys.isEmpty { return encodeDifference(from: old, into: &encoder) }
    var visitor = PartDifference(encoder: encoder)
    encoder = CBOREncoder()
    Self.visit(self, old, at: path, from: 0, &visitor)
    encoder = visitor.encoder
    return visitor.isDifferent
  }

  /// The digest of the value at `path`, or of `undefined` if it is absent.
  public func digest(at path: Path, seed: HashSeed) -> UInt64 {
    if path.keys.isEmpty { return digest(seed: seed) }
    var visitor = PartDigest(seed: seed)
    Self.visit(self, nil, at: path, from: 0, &visitor)
    return visitor.digest
  }

  /// Whether the value at `path` is present.
  public func isPresent(at path: Path) -> Bool {
    var visitor = PartPresence()
    Self.visit(self, nil, at: path, from: 0, &visitor)
    return visitor.isPresent
  }
}

private struct PartEncoder: PartVisitor {
  var encoder: CBOREncoder
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) { new.encode(into: &encoder) }
  mutating func visitAbsent() { encoder.encodeUndefined() }
}

private struct PartDifference: PartVisitor {
  var encoder: CBOREncoder
  var isDifferent = false
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
    isDifferent = new.encodeDifference(from: old, into: &encoder)
  }
  mutating func visitAbsent() {}
}

private struct PartDigest: PartVisitor {
  let seed: HashSeed
  lazy var digest = Bool?.none.digest(seed: seed)
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) { digest = new.digest(seed: seed) }
  mutating func visitAbsent() {}
}

private struct PartPresence: PartVisitor {
  var isPresent = false
  mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
    isPresent = !(new?.isAbsent ?? true)
  }
  mutating func visitAbsent() {}
}

/// A value that may be absent: a scope, or a field of a struct. Not for the elements of
/// collections, where `undefined` removes the entry.
extension Optional: Synchronizable where Wrapped: Synchronizable {
  public func isSame(as other: Wrapped?) -> Bool {
    switch (self, other) {
    case (nil, nil): true
    case (let first?, let second?): first.isSame(as: second)
    case (nil, _?), (_?, nil): false
    }
  }

  @inlinable public func prefetchStorage() { self?.prefetchStorage() }

  /// An absent value is encoded as `undefined`, which encodes no present value.
  public func encode(into encoder: inout CBOREncoder) {
    guard let self else { return encoder.encodeUndefined() }
    self.encode(into: &encoder)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self = decoder.undefinedIfNext() ? nil : try Wrapped(from: &decoder, seed: seed)
  }

  public func encodeDifference(from old: Wrapped?, into encoder: inout CBOREncoder) -> Bool {
    switch (old, self) {
    case (nil, nil): return false
    case (_?, nil):
      encoder.encodeUndefined()
      return true
    case (nil, let new?):
      new.encodeReplacement(into: &encoder)
      return true
    case (let old?, let new?): return new.encodeDifference(from: old, into: &encoder)
    }
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if decoder.undefinedIfNext() {
      self = nil
    } else if let replacement = try Wrapped.replacement(from: &decoder, seed: seed) {
      self = replacement
    } else if var value = self {
      // Moved out while it changes, so that it stays uniquely referenced.
      self = nil
      defer { self = value }
      try value.apply(patch: &decoder, seed: seed)
    } else {
      throw CBORError(.notAllowed("an edit of an absent value"), at: decoder.offset)
    }
  }

  public func digest(seed: HashSeed) -> UInt64 {
    self?.digest(seed: seed)
      ?? ([0xf7] as [UInt8]).withUnsafeBytes { Hashing.sip($0, seed: seed) }
  }

  public mutating func adopt(seed: HashSeed) { self?.adopt(seed: seed) }

  @inlinable public static var holdsCollections: Bool { Wrapped.holdsCollections }

  @inlinable public var isAbsent: Bool { self == nil }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .optional(Wrapped.schemaKind(in: &schema))
  }

  /// A scope does not distinguish an absent optional from an optional inside an absent value.
  public static func visit<V: PartVisitor>(
    _ new: Wrapped??, _ old: Wrapped??, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    Wrapped.visit(new ?? nil, old ?? nil, at: path, from: depth, &visitor)
  }
}

/// How a patch of the whole state changes a scope.
public enum Projection: Equatable, Sendable {
  /// Nothing in the scope changed.
  case untouched
  /// These bytes of the whole patch are the scope's patch.
  case patch(Range<Int>)
  /// A value that contains the scope's was replaced: these bytes are the scope's new value.
  case value(Range<Int>)
  /// The scope's value is absent now; it may have been absent before.
  case absent
}

extension Path {
  /// How `patch`, a patch of the whole state, changes the value at this path. O(the bytes of the
  /// entries before it), no allocation. The patch is our own; a malformed one projects as
  /// untouched.
  public func projection(of patch: UnsafeRawBufferPointer) -> Projection {
    if keys.isEmpty { return .patch(0..<patch.count) }
    var decoder = CBORDecoder(patch)
    return (try? project(&decoder)) ?? .untouched
  }

  private func project(_ decoder: inout CBORDecoder) throws(CBORError) -> Projection {
    var isValue = false
    for key in keys {
      // `undefined` and scalars have no entries; `[value]` continues in value form.
      if !isValue, try decoder.isArrayOfOneNext() {
        _ = try decoder.array()
        isValue = true
      }
      guard try decoder.peekMajor() == .map else { return .absent }
      guard try Self.find(key, &decoder) else { return isValue ? .absent : .untouched }
    }
    let start = decoder.offset
    if isValue {
      try decoder.skip()
      return .value(start..<decoder.offset)
    }
    if decoder.undefinedIfNext() { return .absent }
    try decoder.skip()
    return .patch(start..<decoder.offset)
  }

  /// Move to the value of `key` in the map that is next. Returns false when it has no such key.
  private static func find(
    _ key: PathKey, _ decoder: inout CBORDecoder
  ) throws(CBORError) -> Bool {
    for _ in 0..<(try decoder.map()) {
      if try matches(key, &decoder) { return true }
      try decoder.skip()
    }
    return false
  }

  private static func matches(
    _ key: PathKey, _ decoder: inout CBORDecoder
  ) throws(CBORError) -> Bool {
    switch (key, try decoder.peekMajor()) {
    case (.text(let text), .text):
      var text = text
      let item = try decoder.rawItem()
      return text.withUTF8 { utf8 in
        item.count - utf8.count == CBORDecoder.headLength(UInt64(utf8.count))
          && isSame(UnsafeRawBufferPointer(utf8), item, from: item.count - utf8.count)
      }
    case (.integer(let value), .unsigned), (.integer(let value), .negative):
      return try decoder.integer() == value
    default:
      try decoder.skip()
      return false
    }
  }

  /// Whether these are the bytes of an item from an offset to its end. Eight at a time: the library's
  /// comparison of sequences takes forty instructions for each byte.
  private static func isSame(
    _ bytes: UnsafeRawBufferPointer, _ item: UnsafeRawBufferPointer, from start: Int
  ) -> Bool {
    var offset = 0
    while bytes.count - offset >= 8 {
      let (first, second) = (
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
        item.loadUnaligned(fromByteOffset: start + offset, as: UInt64.self)
      )
      if first != second { return false }
      offset += 8
    }
    while offset < bytes.count {
      if bytes[offset] != item[start + offset] { return false }
      offset += 1
    }
    return true
  }
}
