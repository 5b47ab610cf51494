// Walks over one trie, and over two at once.

public import CPrefetch
public import Synchronization

extension TrieRef {
  /// Hand every entry of the subtree to `body`, in trie order, until it returns false.
  @inlinable
  func visit<E: Error>(
    _ body: (UInt64, UnsafeMutablePointer<Entry>) throws(E) -> Bool
  ) throws(E) -> Bool {
    if isLeaf {
      let (count, hashes, entries) = (count, hashes, entries)
      var index = 0
      while index < count {
        if try !body(hashes[index], entries + index) { return false }
        index &+= 1
      }
      return true
    }
    // Memory is read ahead: while a child is visited, what the values of the next refer to, and the node
    // behind that. Else each text that lies elsewhere would be waited for in turn. (Chen, Ailamaki, Gibbons
    // and Mowry, "Improving hash join performance through prefetching", 2004.)
    var rest = bitmap
    var next = rest & (rest &- 1)
    if next != 0 { child(next.trailingZeroBitCount).prefetch() }
    child(rest.trailingZeroBitCount).prefetchValues()
    while rest != 0 {
      let last = next & (next &- 1)
      if last != 0 { child(last.trailingZeroBitCount).prefetch() }
      if next != 0 { child(next.trailingZeroBitCount).prefetchValues() }
      if try !child(rest.trailingZeroBitCount).visit(body) { return false }
      (rest, next) = (next, last)
    }
    return true
  }

  /// Have the node read into the cache soon: as much of it as a leaf has on average, because a look at how
  /// much that is would wait for it. At most 32 lines.
  @inlinable
  func prefetch() {
    let leaf = Self.entriesOffset(capacity: 24) &+ 20 &* MemoryLayout<Entry>.stride
    let bytes = Swift.min(leaf, 2048)
    for offset in stride(from: 0, to: bytes, by: 64) { prefetch_line(address + offset) }
  }

  /// Have what the values of a leaf refer to read into the cache soon. A slot may be empty: that of an entry
  /// which is being removed.
  @inlinable
  func prefetchValues() {
    guard isLeaf else { return }
    let (count, entries) = (count, entries)
    for index in 0..<count { Self.slot(entries + index).inPlace.pointee.prefetchStorage() }
  }

  /// The leaf after the one that contains `hash`, below this root; nil at the end.
  @inlinable
  func leaf(after hash: UInt64) -> TrieRef? {
    var node = self
    var rest = hash
    var next: TrieRef?
    while !node.isLeaf {
      let digit = rest &>> 59
      // Smart shift: digit 31 has no greater ones.
      let greater = node.bitmap & (UInt32.max << UInt32(truncatingIfNeeded: digit &+ 1))
      if greater != 0 { next = node.child(greater.trailingZeroBitCount) }
      node = node.child(Int(truncatingIfNeeded: digit))
      rest &<<= 5
    }
    return next?.firstLeaf
  }

  @inlinable
  var firstLeaf: TrieRef {
    var node = self
    while !node.isLeaf { node = node.child(node.bitmap.trailingZeroBitCount) }
    return node
  }

  /// The sum of the entries' digests, cached in every node.
  @inlinable
  func digestSum() -> UInt64 {
    let known = digest.pointee.load(ordering: .relaxed)
    if known != 0 { return known }
    var sum: UInt64 = 0
    if isLeaf {
      prefetchValues()
      for index in 0..<count {
        let value = Self.value(entries + index).inPlace.pointee.digest(seed: seed)
        sum &+= Hashing.entry(keyHash: hashes[index], digest: value)
      }
    } else {
      withDigits { sum &+= child($0).digestSum() }
    }
    digest.pointee.store(sum, ordering: .relaxed)
    return sum
  }

  /// The greatest result of `levels` for a value of the subtree; cached in every node.
  func deepest(_ levels: (Value) -> Int) -> Int {
    let known = nesting.pointee.load(ordering: .relaxed)
    if known != 0 { return Int(truncatingIfNeeded: known) - 1 }
    var deepest = 0
    if isLeaf {
      for index in 0..<count {
        deepest = Swift.max(deepest, levels(Self.value(entries + index).pointee))
      }
    } else {
      withDigits { deepest = Swift.max(deepest, child($0).deepest(levels)) }
    }
    nesting.pointee.store(UInt64(truncatingIfNeeded: deepest) + 1, ordering: .relaxed)
    return deepest
  }

  @usableFromInline
  var nodeCount: Int {
    var total = 1
    withDigits { total += child($0).nodeCount }
    return total
  }
}

/// A part of a trie for a walk over two: a whole node, or a range of a leaf's entries.
@frozen
@usableFromInline
struct TriePart<Key: SyncKey, Value: Synchronizable> {
  @usableFromInline typealias Ref = TrieRef<Key, Value>
  @usableFromInline typealias Slot = UnsafeMutablePointer<TrieEntry<Key, Value>>

  @usableFromInline let node: Ref
  @usableFromInline var low: Int
  @usableFromInline let high: Int

  @inlinable
  init(_ node: Ref) {
    self.node = node
    low = 0
    high = node.count
  }

  @inlinable
  init(_ node: Ref, _ low: Int, _ high: Int) {
    self.node = node
    self.low = low
    self.high = high
  }

  /// Split off the part of one digit; digits must be asked for in ascending order.
  @inlinable
  mutating func take(_ digit: Int, level: Int) -> TriePart {
    if node.isLeaf {
      let start = low
      while low < high && TrieShape.digit(node.hashes[low], level: level) == digit { low &+= 1 }
      return TriePart(node, start, low)
    }
    return node.hasChild(digit) ? TriePart(node.child(digit)) : TriePart(node, 0, 0)
  }

  @inlinable var isEmpty: Bool { low == high }

  /// Hand all entries that differ in storage to `body` (the old one, the new one) in trie order,
  /// until it returns false. Shared nodes are skipped. Both tries must have the same seed.
  @inlinable
  static func walk(
    _ old: TriePart, _ new: TriePart, level: Int, _ body: (UInt64, Slot?, Slot?) -> Bool
  ) -> Bool {
    if old.isEmpty {
      return new.isEmpty || new.visit { body($0, nil, $1) }
    }
    if new.isEmpty { return old.visit { body($0, $1, nil) } }
    if old.node.address == new.node.address && old.low == new.low && old.high == new.high {
      return true
    }
    if old.node.isLeaf && new.node.isLeaf { return merge(old, new, body) }
    var (old, new) = (old, new)
    // Any digit may have entries in a range of a leaf.
    var rest = old.node.isLeaf || new.node.isLeaf ? .max : old.node.bitmap | new.node.bitmap
    while rest != 0 {
      let digit = rest.trailingZeroBitCount
      rest &= rest &- 1
      let (first, second) = (old.take(digit, level: level), new.take(digit, level: level))
      if !walk(first, second, level: level &+ 1, body) { return false }
    }
    return true
  }

  @inlinable
  func visit(_ body: (UInt64, Slot) -> Bool) -> Bool {
    guard node.isLeaf else { return node.visit(body) }
    for index in low..<high where !body(node.hashes[index], node.entries + index) { return false }
    return true
  }

  @inlinable
  static func merge(
    _ old: TriePart, _ new: TriePart, _ body: (UInt64, Slot?, Slot?) -> Bool
  ) -> Bool {
    var (first, second) = (old.low, new.low)
    let (oldHashes, newHashes) = (old.node.hashes, new.node.hashes)
    let (oldEntries, newEntries) = (old.node.entries, new.node.entries)
    while first < old.high || second < new.high {
      let order: Int
      if first == old.high {
        order = 1
      } else if second == new.high {
        order = -1
      } else if oldHashes[first] != newHashes[second] {
        order = oldHashes[first] < newHashes[second] ? -1 : 1
      } else if Key.isSame(oldEntries[first].key, newEntries[second].key) {
        order = 0
      } else {
        order = Key.precedes(oldEntries[first].key, newEntries[second].key) ? -1 : 1
      }
      let hash = order <= 0 ? oldHashes[first] : newHashes[second]
      if !body(
        hash, order <= 0 ? oldEntries + first : nil, order >= 0 ? newEntries + second : nil)
      {
        return false
      }
      if order <= 0 { first &+= 1 }
      if order >= 0 { second &+= 1 }
    }
    return true
  }
}
