// Addresses of values inside other values, for readers that hold no reference and copy nothing, such
// as programs in C.
//
// An address is valid as long as the value that it was reached from exists and is not changed: its
// nodes are then neither moved nor released, since every node keeps what is below it alive.

extension UnsafePointer<Value> {
  /// The address of the entry of an object or the element of an array that a key names, as
  /// `Value.child`.
  package func child(_ key: PathKey) -> UnsafePointer<Value>? {
    switch (pointee, key) {
    case (.object(let entries), .text(let name)): entries.address(of: name)
    case (.array(let elements), _): key.arrayIndex.flatMap(elements.address)
    default: nil
    }
  }
}

// For these types only, so that it is specialised where it is compiled.
extension TrieMap where Key == String, Value == Values.Value {
  /// The address of the value of a key; nil when the key is absent. O(log n).
  package func address(of key: Key) -> UnsafePointer<Value>? {
    withExtendedLifetime(root) {
      find(key, key.hash(seed: seed)).map { UnsafePointer(Ref.value($0)) }
    }
  }

  /// A position in a walk over the entries of a map that does not change meanwhile.
  package struct Place {
    /// The leaf with the next entry; nil at the start.
    package var leaf: UnsafeRawPointer?
    /// The index of the next entry in the leaf.
    package var index: Int

    package init(leaf: UnsafeRawPointer? = nil, index: Int = 0) {
      self.leaf = leaf
      self.index = index
    }
  }

  /// The addresses of the next entry in trie order, or nil at the end. O(1) amortised.
  package func next(
    _ place: inout Place
  ) -> (key: UnsafePointer<Key>, value: UnsafePointer<Value>)? {
    withExtendedLifetime(root) {
      var leaf: Ref
      if let known = place.leaf {
        leaf = Ref(address: UnsafeMutableRawPointer(mutating: known))
      } else {
        leaf = Ref(root).firstLeaf
      }
      if place.index >= leaf.count {
        // Only the root can be an empty leaf.
        guard leaf.count > 0, let next = Ref(root).leaf(after: leaf.hashes[leaf.count - 1]) else {
          return nil
        }
        leaf = next
        place.index = 0
      }
      place.leaf = UnsafeRawPointer(leaf.address)
      let entry = leaf.entries + place.index
      place.index += 1
      // A key is the first field of its entry.
      let key = UnsafeRawPointer(entry).assumingMemoryBound(to: Key.self)
      return (key, UnsafePointer(Ref.value(entry)))
    }
  }
}

extension TrieRef {
  @inlinable
  init(address: UnsafeMutableRawPointer) { self.address = address }
}

extension TreeArray where Element == Value {
  /// The address of the element at an index; nil outside. O(log n).
  package func address(of index: Int) -> UnsafePointer<Element>? {
    guard let root, index >= 0, index < root.count else { return nil }
    var place = index
    let leaf = Self.leaf(below: root, &place)
    return leaf.elements.withUnsafeBufferPointer { $0.baseAddress.map { $0 + place } }
  }
}
