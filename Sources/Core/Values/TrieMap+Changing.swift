// Mutation: a node is changed in place if a single reference leads to it, else copied first.

extension TrieRef {
  @inlinable @inline(__always)
  static func makeUnique(_ slot: UnsafeMutablePointer<Node>) {
    if !isKnownUniquelyReferenced(&slot.pointee) {
      let node = TrieRef(in: slot)
      slot.pointee = node.copied(capacity: node.capacity)
    }
  }

  /// Whether a pointer, which may be stale, is to the entry of this key in this leaf. The pointer
  /// is only compared, not dereferenced, until this is known.
  @inlinable @inline(__always)
  func isEntry(_ pointer: UnsafeMutablePointer<Entry>, _ key: Key, _ hash: UInt64) -> Bool {
    let index = pointer - entries
    return index >= 0 && index < count && entries + index == pointer && hashes[index] == hash
      && Key.isSame(entries[index].key, key)
  }

  /// The entry of a key, with every node from the root to it uniquely referenced; nil, with nothing
  /// copied, when the key is absent. `hint` is where the entry probably is.
  @inlinable @inline(__always)
  static func uniqueEntry(
    _ root: UnsafeMutablePointer<Node>, _ key: Key, _ hash: UInt64,
    hint: UnsafeMutablePointer<Entry>? = nil
  ) -> UnsafeMutablePointer<Entry>? {
    var slot = root
    var rest = hash
    while isKnownUniquelyReferenced(&slot.pointee) {
      let node = TrieRef(in: slot)
      node.forgetContents()
      if node.isLeaf {
        if let hint, node.isEntry(hint, key, hash) { return hint }
        return node.entryInLeaf(key, hash, rest: rest)
      }
      let digit = Int(truncatingIfNeeded: rest &>> 59)
      guard node.hasChild(digit) else { return nil }
      slot = node.children + digit
      rest &<<= 5
    }
    return copiedEntry(slot, key, hash, rest: rest)
  }

  @inlinable @inline(never)
  static func copiedEntry(
    _ slot: UnsafeMutablePointer<Node>, _ key: Key, _ hash: UInt64, rest: UInt64
  ) -> UnsafeMutablePointer<Entry>? {
    guard TrieRef(in: slot).find(key, hash, rest: rest) != nil else { return nil }
    var slot = slot
    var rest = rest
    while true {
      makeUnique(slot)
      let node = TrieRef(in: slot)
      if node.isLeaf { return node.entryInLeaf(key, hash, rest: rest) }
      slot = node.children + Int(truncatingIfNeeded: rest &>> 59)
      rest &<<= 5
    }
  }

  /// Insert an entry whose key is absent.
  @inlinable
  static func insert(
    _ root: UnsafeMutablePointer<Node>, _ hash: UInt64, _ key: Key, _ value: consuming Value
  ) {
    var slot = root
    var rest = hash
    var level = 0
    while true {
      makeUnique(slot)
      let node = TrieRef(in: slot)
      node.forgetContents()
      if node.isLeaf {
        if node.count == TrieShape.leafLimit && level < TrieShape.lastLevel {
          split(slot, level: level)
          continue
        }
        let index = node.position(key, hash, rest: rest).index
        if node.count == node.capacity { resize(slot, capacity: 2 &* node.capacity) }
        TrieRef(in: slot).insert(hash, Entry(key: key, value: value), at: index)
        return
      }
      node.header.pointee.count &+= 1
      let digit = Int(truncatingIfNeeded: rest &>> 59)
      guard node.hasChild(digit) else {
        let leaf = leaf(capacity: 1, seed: node.seed)
        TrieRef(leaf).insert(hash, Entry(key: key, value: value), at: 0)
        node.attach(leaf, digit: digit)
        return
      }
      slot = node.children + digit
      rest &<<= 5
      level &+= 1
    }
  }

  /// Replace the full leaf in a slot, which is unique, by a branch of smaller leaves.
  @inlinable @inline(never)
  static func split(_ slot: UnsafeMutablePointer<Node>, level: Int) {
    let node = TrieRef(in: slot)
    let branch = branch(
      moving: node.hashes, node.entries, count: node.count, level: level, seed: node.seed)
    // The entries have moved: the leaf must not destroy them.
    node.header.pointee.count = 0
    slot.pointee = branch
  }

  /// Move the contents of the leaf in a slot, which is unique, to a leaf of another capacity.
  @inlinable @inline(never)
  static func resize(_ slot: UnsafeMutablePointer<Node>, capacity: Int) {
    let node = TrieRef(in: slot)
    let count = node.count
    let larger = leaf(capacity: capacity, count: count, seed: node.seed)
    TrieRef(larger).hashes.update(from: node.hashes, count: count)
    TrieRef(larger).entries.moveInitialize(from: node.entries, count: count)
    // The entries have moved: the old leaf must not destroy them.
    node.header.pointee.count = 0
    slot.pointee = larger
  }

  /// Put an entry into a leaf that has room for it.
  @inlinable @inline(__always)
  func insert(_ hash: UInt64, _ entry: consuming Entry, at index: Int) {
    let count = count
    let (hashes, entries) = (hashes, entries)
    // Overlapping ranges are allowed: `update` and `moveInitialize` are memmove.
    (hashes + (index &+ 1)).update(from: hashes + index, count: count &- index)
    (entries + (index &+ 1)).moveInitialize(from: entries + index, count: count &- index)
    hashes[index] = hash
    (entries + index).initialize(to: entry)
    header.pointee.count = count &+ 1
  }

  /// Remove an entry from a leaf and return its value.
  @inlinable
  func remove(at index: Int) -> Value? {
    let rest = count &- index &- 1
    let (hashes, entries) = (hashes, entries)
    let removed = (entries + index).move()
    (hashes + index).update(from: hashes + (index &+ 1), count: rest)
    (entries + index).moveInitialize(from: entries + (index &+ 1), count: rest)
    header.pointee.count &-= 1
    return removed.value
  }

  /// Remove the entry of a key that is present, and return its value.
  @inlinable
  static func remove(
    _ root: UnsafeMutablePointer<Node>, _ key: Key, _ hash: UInt64
  ) -> Value? {
    var slot = root
    var parent: TrieRef?
    var rest = hash
    while true {
      let old = TrieRef(in: slot)
      if !old.isLeaf && old.count == TrieShape.leafLimit &+ 1 {
        return collapse(slot, without: key, hash, rest: rest)
      }
      makeUnique(slot)
      let node = TrieRef(in: slot)
      node.forgetContents()
      if node.isLeaf {
        let value = node.remove(at: node.position(key, hash, rest: rest).index)
        if node.count == 0, let parent {
          let digit = slot - parent.children
          parent.header.pointee.bitmap &= ~(1 &<< UInt32(truncatingIfNeeded: digit))
          slot.deinitialize(count: 1)
        } else if 4 &* node.count <= node.capacity && node.capacity > 2 {
          resize(slot, capacity: node.capacity / 2)
        }
        return value
      }
      node.header.pointee.count &-= 1
      parent = node
      slot = node.children + Int(truncatingIfNeeded: rest &>> 59)
      rest &<<= 5
    }
  }

  /// Replace the branch in a slot, which has one entry too many for a leaf, by a leaf without a key
  /// that is present. Returns the value of that key.
  @inlinable @inline(never)
  static func collapse(
    _ slot: UnsafeMutablePointer<Node>, without key: Key, _ hash: UInt64, rest: UInt64
  ) -> Value? {
    let branch = TrieRef(in: slot)
    let removed = branch.find(key, hash, rest: rest)
    let value = removed?.pointee.value
    slot.pointee = branch.flattened(without: removed)
    return value
  }

  /// One leaf with all entries of the subtree except `removed`.
  @inlinable
  func flattened(without removed: UnsafeMutablePointer<Entry>?) -> Node {
    let total = count &- (removed == nil ? 0 : 1)
    let node = Self.leaf(capacity: Self.capacity(for: total), seed: seed)
    let leaf = TrieRef(node)
    _ = visit { hash, entry in
      if entry != removed { leaf.insert(hash, entry.pointee, at: leaf.count) }
      return true
    }
    return node
  }
}
