// The nodes of `TrieMap`.
//
// A node is one allocation: the object's header, a `TrieHeader`, and a tail.
//
//     leaf     hashes (capacity × 8 bytes, ascending) · entries (capacity × TrieEntry)
//     branch   32 child references; the digits that have one are set in `bitmap`
//
// A walk holds the address of a node instead of a reference and so costs no reference counting.
// That is safe because the caller keeps the root alive (it is borrowed, or inout) and every node
// keeps its children alive. A node is written only after `isKnownUniquelyReferenced` held for every
// slot from the root down to it: then no other map reaches it. The exceptions are `digest` and
// `nesting`, caches that any thread may fill; every access to them is atomic.

public import Synchronization

/// How the trie is laid out. None of it is on the wire except the order it implies.
@usableFromInline
enum TrieShape {
  /// A hash range with more entries than this is a branch.
  @inlinable @inline(__always) static var leafLimit: Int { 32 }
  /// The level where all 64 bits are used up: 12 digits of five bits and one of four.
  @inlinable @inline(__always) static var lastLevel: Int { 13 }

  @inlinable @inline(__always)
  static func digit(_ hash: UInt64, level: Int) -> Int {
    Int(truncatingIfNeeded: (hash &<< UInt64(truncatingIfNeeded: 5 &* level)) &>> 59)
  }
}

@frozen
@usableFromInline
struct TrieHeader {
  /// The digits of a branch's children; 0 for a leaf, since a branch is never empty.
  @usableFromInline var bitmap: UInt32 = 0
  /// The number of entries that a leaf has room for.
  @usableFromInline var capacity: UInt32
  /// The number of entries of the subtree.
  @usableFromInline var count: Int
  @usableFromInline var seed: HashSeed
  /// The digest sum of the subtree, or 0 when it is not cached. Accessed only through
  /// `TrieRef.digest`.
  @usableFromInline var digest: UInt64 = 0
  /// The nesting depth of the subtree's values, plus one, or 0 when it is not cached. Accessed only
  /// through `TrieRef.nesting`.
  @usableFromInline var nesting: UInt64 = 0

  @inlinable
  init(capacity: Int, count: Int, seed: HashSeed) {
    self.capacity = UInt32(capacity)
    self.count = count
    self.seed = seed
  }
}

/// A key and its value. The value is an Optional so that `SyncMap.subscript` can yield it in place;
/// it is nil only during such an access, and while the entry is removed at its end.
@frozen
@usableFromInline
struct TrieEntry<Key: SyncKey, Value: Synchronizable> {
  @usableFromInline let key: Key
  @usableFromInline var value: Value?

  @inlinable
  init(key: Key, value: Value?) {
    self.key = key
    self.value = value
  }
}

/// Written only while a single reference exists, except for the atomic caches.
@usableFromInline
final class TrieNode<Key: SyncKey, Value: Synchronizable>: ManagedBuffer<TrieHeader, UInt64> {
  @inlinable
  deinit { TrieRef(self).deinitialize() }
}

/// The address of a node, without a reference count.
@frozen
@usableFromInline
struct TrieRef<Key: SyncKey, Value: Synchronizable> {
  @usableFromInline typealias Node = TrieNode<Key, Value>
  @usableFromInline typealias Entry = TrieEntry<Key, Value>

  @usableFromInline let address: UnsafeMutableRawPointer

  @inlinable @inline(__always)
  init(_ node: borrowing Node) {
    address = Unmanaged.passUnretained(copy node).toOpaque()
  }

  /// The node that a slot refers to: a slot is one reference, which is the object's address.
  @inlinable @inline(__always)
  init(in slot: UnsafeMutablePointer<Node>) {
    address = UnsafeMutableRawPointer(slot).load(as: UnsafeMutableRawPointer.self)
  }

  // MARK: Layout

  /// A Swift object starts with two words; `allocate` asserts that the header follows them.
  @inlinable @inline(__always)
  static var headerOffset: Int { 2 &* MemoryLayout<Int>.size }

  @inlinable @inline(__always)
  static var tailOffset: Int { headerOffset &+ MemoryLayout<TrieHeader>.stride }

  @inlinable @inline(__always)
  static func entriesOffset(capacity: Int) -> Int {
    let mask = MemoryLayout<Entry>.alignment &- 1
    return (tailOffset &+ capacity &* 8 &+ mask) & ~mask
  }

  @inlinable @inline(__always)
  var header: UnsafeMutablePointer<TrieHeader> {
    (address + Self.headerOffset).assumingMemoryBound(to: TrieHeader.self)
  }

  @inlinable @inline(__always) var bitmap: UInt32 { header.pointee.bitmap }
  @inlinable @inline(__always) var isLeaf: Bool { header.pointee.bitmap == 0 }
  @inlinable @inline(__always) var count: Int { header.pointee.count }
  @inlinable @inline(__always) var capacity: Int { Int(header.pointee.capacity) }
  @inlinable @inline(__always) var seed: HashSeed { header.pointee.seed }

  /// `Atomic<UInt64>` has the layout of the UInt64 in its place, and all accesses go through it.
  @inlinable @inline(__always)
  var digest: UnsafeMutablePointer<Atomic<UInt64>> {
    (address + (Self.headerOffset &+ 24)).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// As `digest`.
  @inlinable @inline(__always)
  var nesting: UnsafeMutablePointer<Atomic<UInt64>> {
    (address + (Self.headerOffset &+ 32)).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// Clear the caches: the contents are about to change.
  @inlinable @inline(__always)
  func forgetContents() {
    digest.pointee.store(0, ordering: .relaxed)
    nesting.pointee.store(0, ordering: .relaxed)
  }

  @inlinable @inline(__always)
  var hashes: UnsafeMutablePointer<UInt64> {
    (address + Self.tailOffset).assumingMemoryBound(to: UInt64.self)
  }

  @inlinable @inline(__always)
  var entries: UnsafeMutablePointer<Entry> {
    (address + Self.entriesOffset(capacity: capacity)).assumingMemoryBound(to: Entry.self)
  }

  @inlinable @inline(__always)
  var children: UnsafeMutablePointer<Node> {
    (address + Self.tailOffset).assumingMemoryBound(to: Node.self)
  }

  @inlinable @inline(__always)
  func child(_ digit: Int) -> TrieRef { TrieRef(in: children + digit) }

  @inlinable @inline(__always)
  func hasChild(_ digit: Int) -> Bool {
    bitmap & (1 as UInt32) &<< UInt32(truncatingIfNeeded: digit) != 0
  }

  /// The offset of the value in an entry: after the key, aligned. Swift lays out a struct this way
  /// (TypeLayout.rst).
  @inlinable @inline(__always)
  static var valueOffset: Int {
    let mask = MemoryLayout<Value?>.alignment &- 1
    return (MemoryLayout<Key>.size &+ mask) & ~mask
  }

  /// The address of an entry's value. It is computed, because `&entry.pointee.value` counts as a
  /// modification, and other threads may be reading the same entry.
  @inlinable @inline(__always)
  static func slot(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Value?> {
    (UnsafeMutableRawPointer(entry) + valueOffset).assumingMemoryBound(to: Value?.self)
  }

  /// The value of an entry, not copied. An Optional has its payload at its start, in the payload's
  /// own layout, so the address of a `.some` is the address of its value.
  @inlinable @inline(__always)
  static func value(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Value> {
    UnsafeMutableRawPointer(slot(entry)).assumingMemoryBound(to: Value.self)
  }

  /// The key of an entry, not copied. It is the first field, and so lies at the entry's start.
  @inlinable @inline(__always)
  static func key(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Key> {
    UnsafeMutableRawPointer(entry).assumingMemoryBound(to: Key.self)
  }

  // MARK: Making nodes

  @inlinable
  static func allocate(bytes: Int, _ header: TrieHeader) -> Node {
    let node = Node.create(minimumCapacity: (bytes &+ 7) / 8) { _ in header }
    assert(
      node.withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
        == TrieRef(unsafeDowncast(node, to: Node.self)).address + tailOffset)
    return unsafeDowncast(node, to: Node.self)
  }

  /// A leaf whose entries are yet to be initialized.
  @inlinable
  static func leaf(capacity: Int, count: Int = 0, seed: HashSeed) -> Node {
    precondition(MemoryLayout<Entry>.alignment <= 16, "malloc aligns to 16 bytes")
    let end = entriesOffset(capacity: capacity) &+ capacity &* MemoryLayout<Entry>.stride
    return allocate(
      bytes: end &- tailOffset, TrieHeader(capacity: capacity, count: count, seed: seed))
  }

  /// A branch without children; it must get one before it is used.
  @inlinable
  static func branch(count: Int, seed: HashSeed) -> Node {
    allocate(bytes: 32 &* 8, TrieHeader(capacity: 32, count: count, seed: seed))
  }

  /// The smallest power of two with room for `count` entries.
  @inlinable
  static func capacity(for count: Int) -> Int {
    count <= 1 ? 1 : 1 &<< (Int.bitWidth &- (count &- 1).leadingZeroBitCount)
  }

  /// A leaf of entries that are moved out of these buffers.
  @inlinable
  static func leaf(
    moving hashes: UnsafeMutablePointer<UInt64>, _ entries: UnsafeMutablePointer<Entry>,
    count: Int, seed: HashSeed
  ) -> Node {
    let node = leaf(capacity: capacity(for: count), count: count, seed: seed)
    TrieRef(node).hashes.update(from: hashes, count: count)
    TrieRef(node).entries.moveInitialize(from: entries, count: count)
    return node
  }

  /// The canonical subtree of entries in trie order, moved out of these buffers. O(n).
  @inlinable
  static func subtree(
    moving hashes: UnsafeMutablePointer<UInt64>, _ entries: UnsafeMutablePointer<Entry>,
    count: Int, level: Int, seed: HashSeed
  ) -> Node {
    if count <= TrieShape.leafLimit || level == TrieShape.lastLevel {
      return leaf(moving: hashes, entries, count: count, seed: seed)
    }
    return branch(moving: hashes, entries, count: count, level: level, seed: seed)
  }

  @inlinable @inline(never)
  static func branch(
    moving hashes: UnsafeMutablePointer<UInt64>, _ entries: UnsafeMutablePointer<Entry>,
    count: Int, level: Int, seed: HashSeed
  ) -> Node {
    let node = branch(count: count, seed: seed)
    var start = 0
    while start < count {
      let digit = TrieShape.digit(hashes[start], level: level)
      // The first entry with a greater digit, by bisection.
      var end = start &+ 1
      var limit = count
      while end < limit {
        let middle = (end &+ limit) &>> 1
        if TrieShape.digit(hashes[middle], level: level) == digit {
          end = middle &+ 1
        } else {
          limit = middle
        }
      }
      let child = subtree(
        moving: hashes + start, entries + start, count: end &- start, level: level &+ 1, seed: seed)
      TrieRef(node).attach(child, digit: digit)
      start = end
    }
    return node
  }

  /// Add a child that the branch lacks.
  @inlinable
  func attach(_ child: Node, digit: Int) {
    (children + digit).initialize(to: child)
    header.pointee.bitmap |= 1 &<< UInt32(truncatingIfNeeded: digit)
  }

  /// A copy of a node that shares the children.
  @inlinable @inline(never)
  func copied(capacity: Int) -> Node {
    let count = count
    guard isLeaf else {
      let node = Self.branch(count: count, seed: seed)
      let copy = TrieRef(node)
      if bitmap == .max {
        copy.children.initialize(from: children, count: 32)
      } else {
        withDigits { (copy.children + $0).initialize(to: children[$0]) }
      }
      copy.header.pointee.bitmap = bitmap
      return node
    }
    let node = Self.leaf(capacity: capacity, count: count, seed: seed)
    TrieRef(node).hashes.update(from: hashes, count: count)
    TrieRef(node).entries.initialize(from: entries, count: count)
    return node
  }

  @inlinable @inline(__always)
  func withDigits(_ body: (Int) -> Void) {
    var rest = bitmap
    while rest != 0 {
      body(rest.trailingZeroBitCount)
      rest &= rest &- 1
    }
  }

  @inlinable
  func deinitialize() {
    if isLeaf {
      entries.deinitialize(count: count)
    } else if bitmap == .max {
      children.deinitialize(count: 32)
    } else {
      withDigits { (children + $0).deinitialize(count: 1) }
    }
  }

  // MARK: Finding

  /// The index of a key in a leaf, or the index at which to insert it. `rest` is the hash without
  /// the bits above the leaf.
  @inlinable @inline(__always)
  func position(_ key: Key, _ hash: UInt64, rest: UInt64) -> (index: Int, isFound: Bool) {
    let count = count
    if count > TrieShape.leafLimit { return positionInLongLeaf(key) }
    let hashes = hashes
    // Hashes are uniform, so the remaining bits give the approximate index of the entry.
    let guess = Int(truncatingIfNeeded: ((rest &>> 32) &* UInt64(truncatingIfNeeded: count)) &>> 32)
    // Counting the smaller hashes around it takes no branch that could be mispredicted.
    let width = Swift.min(count, 12)
    let start = Swift.max(0, Swift.min(guess &- 6, count &- width))
    var index = start
    for offset in 0..<width where hashes[start &+ offset] < hash { index &+= 1 }
    if index < count && hashes[index] == hash && Key.isSame(entries[index].key, key) {
      return (index, true)
    }
    return exactPosition(key, hash, from: index)
  }

  /// The index of a key, searched for from any start.
  @inlinable @inline(never)
  func exactPosition(
    _ key: Key, _ hash: UInt64, from start: Int
  ) -> (index: Int, isFound: Bool) {
    let (count, hashes, entries) = (count, hashes, entries)
    var index = start
    while index < count && hashes[index] < hash { index &+= 1 }
    while index > 0 && hashes[index &- 1] >= hash { index &-= 1 }
    while index < count && hashes[index] == hash {
      if Key.isSame(entries[index].key, key) { return (index, true) }
      if Key.precedes(key, entries[index].key) { return (index, false) }
      index &+= 1
    }
    return (index, false)
  }

  /// A leaf of more entries than the limit holds one hash only: bisect by key.
  @inlinable @inline(never)
  func positionInLongLeaf(_ key: Key) -> (index: Int, isFound: Bool) {
    let entries = entries
    var low = 0
    var high = count
    while low < high {
      let middle = (low &+ high) &>> 1
      if Key.precedes(entries[middle].key, key) { low = middle &+ 1 } else { high = middle }
    }
    return (low, low < count && Key.isSame(entries[low].key, key))
  }

  @inlinable @inline(__always)
  func entryInLeaf(
    _ key: Key, _ hash: UInt64, rest: UInt64
  ) -> UnsafeMutablePointer<Entry>? {
    let (index, isFound) = position(key, hash, rest: rest)
    return isFound ? entries + index : nil
  }

  /// The entry of a key below this node; `rest` is the part of the hash that the levels above have
  /// not used. `hint` is where the entry probably is.
  @inlinable @inline(__always)
  func find(
    _ key: Key, _ hash: UInt64, rest: UInt64, hint: UnsafeMutablePointer<Entry>? = nil
  ) -> UnsafeMutablePointer<Entry>? {
    var node = self
    var rest = rest
    while !node.isLeaf {
      let digit = Int(truncatingIfNeeded: rest &>> 59)
      guard node.hasChild(digit) else { return nil }
      node = node.child(digit)
      rest &<<= 5
    }
    if let hint, node.isEntry(hint, key, hash) { return hint }
    return node.entryInLeaf(key, hash, rest: rest)
  }
}
