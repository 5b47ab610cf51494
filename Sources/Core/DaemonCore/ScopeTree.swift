import CBOR
import Values

/// The scopes by their paths, as a tree of keys: finds those that a patch can have touched without
/// looking at the others.
struct ScopeTree: Sendable {
  /// Those of one path: one for each view of it.
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

  /// Name every scope that the patch may have touched, and no other but those below a place that
  /// was replaced. O(bytes of the patch down to the deepest of these scopes, and those scopes).
  func visit(_ patch: UnsafeRawBufferPointer, _ body: (UInt64) -> Void) {
    var decoder = CBORDecoder(patch)
    // The patch is our own; what cannot be read is taken for a replacement.
    if (try? visit(&decoder, body)) == nil { visitAll(body) }
  }

  private func visit(
    _ decoder: inout CBORDecoder, _ body: (UInt64) -> Void
  ) throws(CBORError) {
    // An edit of a map touches the entries that it names. Anything else touches all below.
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
