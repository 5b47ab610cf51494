public import CBOR
public import Values

// Theory of operation
//
// A journal of another version is read patch by patch, each translated by names. That fails at a
// case that is not known here, though later patches may remove the case again. Such a journal is
// therefore replayed a second time, without types: the form of a patch determines its effect,
// whatever the types are (`Protocols/wire.md`, Patches), and only the final state is translated.
//
// Values that no patch touches stay bytes: a value is parsed only where a patch leads through it.

/// A state in value form, without its types, to which patches are applied.
public struct UntypedState: Sendable {
  private enum Node: Sendable {
    case bytes(ArraySlice<UInt8>)
    case map([PathKey: Node])
    case array([Node])
  }

  private var root: Node?

  /// The state of these bytes, a value in value form.
  public init(_ bytes: [UInt8]) { root = .bytes(bytes[...]) }

  // MARK: Patches

  private static func change(
    _ node: inout Node?, by patch: inout CBORDecoder
  ) throws(CBORError) {
    if patch.undefinedIfNext() {
      node = nil
      return
    }
    switch try patch.peekMajor() {
    case .map: try changeEntries(of: &node, by: &patch)
    case .array: try changeOrReplace(&node, by: &patch)
    default: node = try bytes(&patch)
    }
  }

  private static func bytes(_ decoder: inout CBORDecoder) throws(CBORError) -> Node {
    .bytes([UInt8](try decoder.rawItem())[...])
  }

  private static func changeEntries(
    of node: inout Node?, by patch: inout CBORDecoder
  ) throws(CBORError) {
    let start = patch.offset
    try expand(&node)
    guard case .map(var entries)? = node else {
      throw CBORError(.notAllowed("an edit of a value without entries"), at: start)
    }
    // Uniquely referenced during the change, so that nothing is copied.
    node = nil
    for _ in 0..<(try patch.map()) {
      let key = try PathKey(from: &patch)
      var entry = entries.removeValue(forKey: key)
      try change(&entry, by: &patch)
      entries[key] = entry
    }
    patch.close()
    node = .map(entries)
  }

  private static func changeOrReplace(
    _ node: inout Node?, by patch: inout CBORDecoder
  ) throws(CBORError) {
    let start = patch.offset
    switch try patch.array() {
    case 1: node = try bytes(&patch)
    case 2:
      try expand(&node)
      guard case .array(var elements)? = node else {
        throw CBORError(.notAllowed("an edit of a value without elements"), at: start)
      }
      node = nil
      try splice(&elements, by: &patch)
      try edit(&elements, by: &patch)
      node = .array(elements)
    default: throw CBORError(.notAllowed("an array of neither one nor two parts"), at: start)
    }
    patch.close()
  }

  private static func splice(
    _ elements: inout [Node], by patch: inout CBORDecoder
  ) throws(CBORError) {
    let start = patch.offset
    let count = try patch.array()
    guard count.isMultiple(of: 3) else {
      throw CBORError(.notAllowed("splices are triples"), at: start)
    }
    for _ in 0..<count / 3 {
      let (at, removed) = (try patch.unsigned(as: Int.self), try patch.unsigned(as: Int.self))
      guard at <= elements.count, removed <= elements.count - at else {
        throw CBORError(.notAllowed("a splice beyond the end"), at: start)
      }
      var inserted: [Node] = []
      for _ in 0..<(try patch.array()) { inserted.append(try bytes(&patch)) }
      patch.close()
      elements.replaceSubrange(at..<(at + removed), with: inserted)
    }
    patch.close()
  }

  private static func edit(
    _ elements: inout [Node], by patch: inout CBORDecoder
  ) throws(CBORError) {
    for _ in 0..<(try patch.map()) {
      let place = patch.offset
      let index = try patch.unsigned(as: Int.self)
      guard elements.indices.contains(index) else {
        throw CBORError(.notAllowed("an edit beyond the end"), at: place)
      }
      var element: Node? = elements[index]
      elements[index] = .array([])
      try change(&element, by: &patch)
      // An element is never absent: an optional that became nil is `undefined` at its index.
      elements[index] = element ?? .bytes([0xf7])
    }
    patch.close()
  }

  // MARK: Putting back

  /// Replace the fields that a patch replaces (`Translation.leftOut(of:)`), where the parts that have
  /// them are still there. O(the patch + the entries of the maps on the way).
  @_optimize(size)
  public mutating func putBack(_ patch: [UInt8]) throws(CBORError) {
    try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      try Self.putBack(&root, by: &decoder)
    }
  }

  @_optimize(size)
  private static func putBack(
    _ node: inout Node?, by patch: inout CBORDecoder
  ) throws(CBORError) {
    if try patch.isArrayOfOneNext() {
      _ = try patch.array()
      node = try bytes(&patch)
      return patch.close()
    }
    try expand(&node)
    guard case .map(var entries)? = node else { return try patch.skip() }
    node = nil
    for _ in 0..<(try patch.map()) {
      let key = try PathKey(from: &patch)
      var entry = entries.removeValue(forKey: key)
      try putBack(&entry, by: &patch)
      entries[key] = entry
    }
    patch.close()
    node = .map(entries)
  }

  // MARK: Bytes

  /// Parse a map or an array, one level deep. O(its entries).
  private static func expand(_ node: inout Node?) throws(CBORError) {
    guard case .bytes(let bytes)? = node else { return }
    node = try CBORDecoder.read([UInt8](bytes)) { (decoder) throws(CBORError) in
      switch try decoder.peekMajor() {
      case .map: try entries(&decoder)
      case .array: try elements(&decoder)
      default: try Self.bytes(&decoder)
      }
    }
  }

  private static func entries(_ decoder: inout CBORDecoder) throws(CBORError) -> Node {
    var entries: [PathKey: Node] = [:]
    for _ in 0..<(try decoder.map()) {
      let place = decoder.offset
      let key = try PathKey(from: &decoder)
      guard entries.updateValue(try bytes(&decoder), forKey: key) == nil else {
        throw CBORError(.notAllowed("duplicate key"), at: place)
      }
    }
    decoder.close()
    return .map(entries)
  }

  private static func elements(_ decoder: inout CBORDecoder) throws(CBORError) -> Node {
    var elements: [Node] = []
    for _ in 0..<(try decoder.array()) { elements.append(try bytes(&decoder)) }
    decoder.close()
    return .array(elements)
  }

  private static func encode(_ node: Node, into encoder: inout CBOREncoder) {
    switch node {
    case .bytes(let bytes): encoder.raw(bytes)
    case .map(let entries):
      encoder.map(entries.count)
      // In any order: the state that is decoded from these bytes has its own.
      for (key, value) in entries {
        key.encode(into: &encoder)
        encode(value, into: &encoder)
      }
    case .array(let elements):
      encoder.array(elements.count)
      for element in elements { encode(element, into: &encoder) }
    }
  }
}

/// The part of `Synchronizable` that recovery needs. Digests depend on types, which are not known
/// here.
extension UntypedState: Synchronizable {
  public func isSame(as other: UntypedState) -> Bool { encoded == other.encoded }

  public func encode(into encoder: inout CBOREncoder) {
    if let root { Self.encode(root, into: &encoder) } else { encoder.encodeUndefined() }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    root = try Self.bytes(&decoder)
  }

  public func encodeDifference(from old: UntypedState, into encoder: inout CBOREncoder) -> Bool {
    if isSame(as: old) { return false }
    encoder.array(1)
    encode(into: &encoder)
    return true
  }

  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    try Self.change(&root, by: &decoder)
  }

  public func digest(seed: HashSeed) -> UInt64 { 0 }

  public mutating func adopt(seed: HashSeed) {}

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  /// The state in value form.
  public var encoded: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }
}
