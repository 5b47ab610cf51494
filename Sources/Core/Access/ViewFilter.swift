public import CBOR
public import Values

/// Removes from the values and patches of one scope everything that may not be seen. Filters that
/// let the same through are equal.
///
/// A map, object or struct is shown with its visible entries, each of which is filtered in turn:
/// where some entries may be seen, and the map itself may not, it may be shown empty. A scalar is
/// shown where it is permitted. An array, and an enumeration's case with fields, is shown only
/// where all of it is permitted: paths do not lead through it.
public struct ViewFilter: Hashable, Sendable {
  let node: ViewNode

  init(_ node: ViewNode) { self.node = node }

  /// Lets everything through.
  public static let everything = ViewFilter(.everything)
  /// Lets nothing through.
  public static let nothing = ViewFilter(.nothing)

  /// Whether all bytes pass unchanged.
  public var isEverything: Bool { node == .everything }

  /// The filter of the entry with a key.
  public func entry(_ key: PathKey) -> ViewFilter {
    guard case .part(let part) = node else { return self }
    return ViewFilter(part.child(key))
  }

  /// Append the visible part of a value in value form. Returns false, and appends nothing, when
  /// nothing is visible, the value is absent, or the bytes are no value.
  public func filter(value bytes: UnsafeRawBufferPointer, into encoder: inout CBOREncoder) -> Bool {
    let start = encoder.bytes.count
    var decoder = CBORDecoder(bytes)
    let isSeen = try? Self.value(node, &decoder, &encoder)
    guard isSeen == true, decoder.isAtEnd else {
      encoder.bytes.removeSubrange(start...)
      return false
    }
    return true
  }

  /// The result of filtering a patch.
  public enum Outcome: Hashable, Sendable {
    /// No visible value changed.
    case untouched
    /// A patch was appended.
    case patch
    /// Nothing is visible any more, if anything was before.
    case absent
    /// The visible part changed, but how depends on the former value: filter the new value instead.
    case resync
  }

  /// Append the patch of the visible part, made from a patch of the value. Appends nothing with any
  /// outcome but `patch`. Bytes that are no patch give `resync`.
  ///
  /// The former value is not known here. Where a hidden value replaced a visible one, the patch
  /// would have to remove it, but removing a value that was hidden before is an error. So, below
  /// the root, two changes give `resync`: a path that is not permitted itself, but has parts that
  /// are, may have stopped being a map; a permitted path with parts that are not is removed, or
  /// becomes an array. Where a schema says that the value is always a map, or never one, they do
  /// not.
  public func filter(
    patch bytes: UnsafeRawBufferPointer, into encoder: inout CBOREncoder
  ) -> Outcome {
    let start = encoder.bytes.count
    var decoder = CBORDecoder(bytes)
    let outcome = (try? Self.patch(node, &decoder, &encoder, isRoot: true)) ?? .resync
    if outcome == .patch, decoder.isAtEnd { return .patch }
    encoder.bytes.removeSubrange(start...)
    return decoder.isAtEnd ? outcome : .resync
  }

  /// Append the patch of the visible part, made from the projection of a patch of the whole state
  /// on the scope. Otherwise like `filter(patch:into:)`.
  public func filter(
    _ projection: Projection, of patch: UnsafeRawBufferPointer, into encoder: inout CBOREncoder
  ) -> Outcome {
    switch projection {
    case .untouched: return .untouched
    case .absent: return .absent
    case .patch(let range):
      return filter(patch: UnsafeRawBufferPointer(rebasing: patch[range]), into: &encoder)
    case .value(let range):
      let start = encoder.bytes.count
      let value = UnsafeRawBufferPointer(rebasing: patch[range])
      guard filter(value: value, into: &encoder) else { return .absent }
      let major = encoder.bytes[start] >> 5
      if major == 4 || major == 5 { encoder.bytes.insert(0x81, at: start) }
      return .patch
    }
  }
}

// MARK: Values

extension ViewFilter {
  /// Append the visible part of the next item, a value or `undefined`. Returns false, and appends
  /// nothing, when nothing is visible.
  private static func value(
    _ node: ViewNode, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    if decoder.undefinedIfNext() { return false }
    switch node {
    case .nothing:
      try decoder.skip()
      return false
    case .everything:
      encoder.raw(try decoder.rawItem())
      return true
    case .part(let part):
      switch try decoder.peekMajor() {
      case .map:
        try map(part, &decoder, &encoder)
        return true
      case .array:
        try decoder.skip()
        return false
      case .unsigned, .negative, .bytes, .text, .simple:
        let item = try decoder.rawItem()
        if part.isPermitted { encoder.raw(item) }
        return part.isPermitted
      case .tag: throw CBORError(.notAllowed("a tag in a value"), at: decoder.offset)
      }
    }
  }

  private static func map(
    _ part: ViewPart, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) {
    let count = try decoder.map()
    var map = GrowingMap(in: &encoder)
    for _ in 0..<count {
      let mark = encoder.bytes.count
      if try value(entry(part, &decoder, &encoder), &decoder, &encoder) {
        map.count += 1
      } else {
        encoder.bytes.removeSubrange(mark...)
      }
    }
    decoder.close()
    map.finish(&encoder)
  }

  /// Append the next key unchanged. Returns the node of its value.
  private static func entry(
    _ part: ViewPart, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> ViewNode {
    let start = decoder.offset
    let node: ViewNode
    if part.entries.isEmpty {
      try decoder.skip()
      node = part.others
    } else {
      node = part.child(try PathKey(from: &decoder))
    }
    encoder.raw(decoder.consumed(since: start))
    return node
  }
}

// MARK: Patches

extension ViewFilter {
  /// Append the patch of the visible part, made from the next item, a patch.
  private static func patch(
    _ node: ViewNode, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder, isRoot: Bool
  ) throws(CBORError) -> Outcome {
    switch node {
    case .nothing:
      try decoder.skip()
      return .untouched
    case .everything:
      if isRoot, decoder.undefinedIfNext() { return .absent }
      encoder.raw(try decoder.rawItem())
      return .patch
    case .part(let part):
      switch try decoder.peekMajor() {
      case .map: return try edit(part, &decoder, &encoder)
      case .array where try decoder.isArrayOfOneNext():
        _ = try decoder.array()
        defer { decoder.close() }
        return try replacement(part, &decoder, &encoder, isRoot: isRoot)
      case .array:
        // Splices and edits: the value was an array, and still is, so it was hidden, and still is.
        try decoder.skip()
        return .untouched
      case .unsigned, .negative, .bytes, .text, .simple, .tag:
        return try replacement(part, &decoder, &encoder, isRoot: isRoot)
      }
    }
  }

  /// Append the patch of an edit of a map.
  private static func edit(
    _ part: ViewPart, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Outcome {
    let count = try decoder.map()
    let start = encoder.bytes.count
    var map = GrowingMap(in: &encoder)
    for _ in 0..<count {
      let mark = encoder.bytes.count
      let node = try entry(part, &decoder, &encoder)
      switch try patch(node, &decoder, &encoder, isRoot: false) {
      case .patch: map.count += 1
      case .absent:
        encoder.encodeUndefined()
        map.count += 1
      case .untouched: encoder.bytes.removeSubrange(mark...)
      case .resync: return .resync
      }
    }
    decoder.close()
    if map.count == 0 {
      encoder.bytes.removeSubrange(start...)
      return .untouched
    }
    map.finish(&encoder)
    return .patch
  }

  /// Append the patch that replaces an unknown value by the visible part of the next item, a value
  /// or, unless it is wrapped, `undefined`.
  private static func replacement(
    _ part: ViewPart, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder, isRoot: Bool
  ) throws(CBORError) -> Outcome {
    let isRemoval = try decoder.peek() == 0xf7
    let isMap = try decoder.peekMajor() == .map
    let start = encoder.bytes.count
    if isMap { encoder.array(1) }
    if try value(.part(part), &decoder, &encoder) { return .patch }
    encoder.bytes.removeSubrange(start...)
    if isRoot { return .absent }
    if part.forms.isDisjoint(with: part.visibleForms) { return .untouched }
    return isRemoval && part.forms.isSubset(of: part.visibleForms) ? .absent : .resync
  }
}
