import CBOR
import Values

/// The scopes by their paths, as a tree of keys: finds the scopes that a patch can have touched
/// without visiting the others.
struct ScopeTree: Sendable {
  /// The scopes of this path: one for each view of it.
  private var scopes: [UInt64] = []
  private var children: [PathKey: ScopeTree] = [:]

  private var isEmpty: Bool { scopes.isEmpty && children.isEmpty }

  mutating func insert(_ id: UInt64, at keys: ArraySlice<PathKey>) {
    guard let key = keys.first else {
      scopes.append(id)
      return
    }
    children[key, default: ScopeTree()].insert(id, at: keys.dropFirst())
  }

  mutating func remove(_ id: UInt64, at keys: ArraySlice<PathKey>) {
    guard let key = keys.first else {
      scopes.removeAll { $0 == id }
      return
    }
    children[key]?.remove(id, at: keys.dropFirst())
    if children[key]?.isEmpty == true { children[key] = nil }
  }

  /// Call `body` with every scope that the patch may have touched, and with no other except those
  /// below a replaced value. O(bytes of the patch down to the deepest of these scopes, and those
  /// scopes).
  func visit(_ patch: UnsafeRawBufferPointer, _ body: (UInt64) -> Void) {
    var decoder = CBORDecoder(patch)
    // The patch is our own; one that cannot be read counts as a replacement.
    if (try? visit(&decoder, body)) == nil { visitAll(body) }
  }

  private func visit(
    _ decoder: inout CBORDecoder, _ body: (UInt64) -> Void
  ) throws(CBORError) {
    // An edit of a map touches only the entries that it names. Anything else touches all scopes
    // below.
    guard !children.isEmpty, try decoder.peekMajor() == .map else {
      visitAll(body)
      return try decoder.skip()
    }
    scopes.forEach(body)
    for _ in 0..<(try decoder.map()) {
      if let child = children[try PathKey(from: &decoder)] {
        try child.visit(&decoder, body)
      } else {
        try decoder.skip()
      }
    }
    decoder.close()
  }

  private func visitAll(_ body: (UInt64) -> Void) {
    scopes.forEach(body)
    for child in children.values { child.visitAll(body) }
  }
}
