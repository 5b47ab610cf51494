import CBOR
import Values

/// The scopes by their paths, as a tree of keys: finds the scopes that a patch changes, and how, in one
/// pass over the patch.
struct ScopeTree: Sendable {
  /// The scopes of this path: one for each view of it.
  private var scopes: [UInt64] = []
  private var children: [EncodedKey: ScopeTree] = [:]

  private var isEmpty: Bool { scopes.isEmpty && children.isEmpty }

  mutating func insert(_ id: UInt64, at keys: ArraySlice<PathKey>) {
    guard let key = keys.first else {
      scopes.append(id)
      return
    }
    children[EncodedKey(key), default: ScopeTree()].insert(id, at: keys.dropFirst())
  }

  mutating func remove(_ id: UInt64, at keys: ArraySlice<PathKey>) {
    guard let key = keys.first else {
      scopes.removeAll { $0 == id }
      return
    }
    let encoded = EncodedKey(key)
    children[encoded]?.remove(id, at: keys.dropFirst())
    if children[encoded]?.isEmpty == true { children[encoded] = nil }
  }

  /// Call `body` with each scope that a patch of the whole state changes, and how: what
  /// `Path.projection` says of its path, and those of which it says `untouched` left out. O(bytes of
  /// the patch, and the scopes that it changes).
  func visit(_ patch: UnsafeRawBufferPointer, _ body: (UInt64, Projection) -> Void) {
    for scope in scopes { body(scope, .patch(0..<patch.count)) }
    if children.isEmpty { return }
    var decoder = CBORDecoder(patch)
    // The patch is our own: all of it can be read.
    try? visitChildren(&decoder, isValue: false, body)
  }

  /// Read the item that is next, and visit the scopes below this path, whose patch it is or whose value.
  private func visitChildren(
    _ decoder: inout CBORDecoder, isValue: Bool, _ body: (UInt64, Projection) -> Void
  ) throws(CBORError) {
    if children.isEmpty { return try decoder.skip() }
    guard !isValue, try decoder.isArrayOfOneNext() else {
      return try visitEntries(&decoder, isValue: isValue, body)
    }
    _ = try decoder.array()
    try visitEntries(&decoder, isValue: true, body)
    decoder.close()
  }

  private func visitEntries(
    _ decoder: inout CBORDecoder, isValue: Bool, _ body: (UInt64, Projection) -> Void
  ) throws(CBORError) {
    guard try decoder.peekMajor() == .map else {
      for child in children.values { child.visitAbsent(body) }
      return try decoder.skip()
    }
    // In a value, what is not there is absent; in a patch it is as it was.
    var found = Set<Dictionary<EncodedKey, ScopeTree>.Index>()
    for _ in 0..<(try decoder.map()) {
      guard let index = children.index(forKey: EncodedKey(try decoder.rawItem())) else {
        try decoder.skip()
        continue
      }
      if isValue { found.insert(index) }
      try children.values[index].visit(&decoder, isValue: isValue, body)
    }
    decoder.close()
    guard isValue, found.count < children.count else { return }
    for index in children.indices where !found.contains(index) {
      children.values[index].visitAbsent(body)
    }
  }

  /// Read the item that is next, and visit the scopes of this path, whose patch it is or whose value,
  /// and those below.
  private func visit(
    _ decoder: inout CBORDecoder, isValue: Bool, _ body: (UInt64, Projection) -> Void
  ) throws(CBORError) {
    let start = decoder.offset
    if !isValue, decoder.undefinedIfNext() { return visitAbsent(body) }
    try visitChildren(&decoder, isValue: isValue, body)
    let range = start..<decoder.offset
    for scope in scopes { body(scope, isValue ? .value(range) : .patch(range)) }
  }

  private func visitAbsent(_ body: (UInt64, Projection) -> Void) {
    for scope in scopes { body(scope, .absent) }
    for child in children.values { child.visitAbsent(body) }
  }
}

/// A key as it stands in a patch: the dictionary's own has its bytes, and one that is looked up refers
/// to the patch's.
private struct EncodedKey: Hashable, Sendable {
  private enum Bytes: @unchecked Sendable {
    case own([UInt8])
    /// Only of a key that is looked up while its patch is read, and never stored: so it is seen by one
    /// thread, while the bytes are there.
    case borrowed(UnsafeRawBufferPointer)
  }

  private let bytes: Bytes

  init(_ key: PathKey) {
    // In memory that is reserved once.
    let count = if case .text(let text) = key { text.utf8.count } else { 0 }
    var encoder = CBOREncoder(reservingCapacity: 9 + count)
    key.encode(into: &encoder)
    bytes = .own(encoder.bytes)
  }

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = .borrowed(bytes) }

  private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    switch bytes {
    case .own(let bytes): bytes.withUnsafeBytes(body)
    case .borrowed(let bytes): body(bytes)
    }
  }

  static func == (first: EncodedKey, second: EncodedKey) -> Bool {
    first.withBytes { first in second.withBytes { isSame(first, $0) } }
  }

  /// Compares eight bytes at a time.
  private static func isSame(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
  ) -> Bool {
    guard first.count == second.count else { return false }
    var index = 0
    while index &+ 8 <= first.count {
      let word = first.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      guard word == second.loadUnaligned(fromByteOffset: index, as: UInt64.self) else {
        return false
      }
      index &+= 8
    }
    while index < first.count {
      guard first[index] == second[index] else { return false }
      index &+= 1
    }
    return true
  }

  func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }
}
