// The nodes of `TrieMap`.
//
// A node is one allocation: the object's header, a `TrieHeader`, and a tail.
//
//     leaf     hashes (capacity × 8 bytes, ascending) · entries (capacity × TrieEntry)
//     branch   32 child references; the digits that have one are set in `bitmap`
//
// A walk holds the address of a node instead of a reference and so costs no reference counting.
// That is safe because whoever walks has the root alive (it is borrowed, or inout) and every node
// keeps its children alive. A node is written only after `isKnownUniquelyReferenced` held for every
// slot from the root down to it: then no other map reaches it. The one exception is `digest`, a
// cache that any thread may fill; every access to it is atomic.

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
  /// How many entries a leaf has room for.
  @usableFromInline var capacity: UInt32
  /// The entries of the subtree.
  @usableFromInline var count: Int
  @usableFromInline var seed: HashSeed
  /// The digest sum of the subtree, or 0. Touched through `TrieRef.digest` only.
  @usableFromInline var digest: UInt64 = 0

  @inlinable
  init(capacity: Int, count: Int, seed: HashSeed) {
    self.capacity = UInt32(capacity)
    self.count = count
    self.seed = seed
  }
}

/// A key and its value. The value is an Optional so that `SyncMap.subscript` can yield it in place;
/// it is nil only during such an access.
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

/// Written only while a single reference exists, except for the atomic digest.
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

  /// `Atomic<UInt64>` has the layout of the UInt64 it stands in, and all accesses go through it.
  @inlinable @inline(__always)
  var digest: UnsafeMutablePointer<Atomic<UInt64>> {
    (address + (Self.headerOffset &+ 24)).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  @inlinable @inline(__always)
  func forgetDigest() { digest.pointee.store(0, ordering: .relaxed) }

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

  /// Where an entry keeps its value.
  @inlinable @inline(__always)
  static func slot(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Value?> {
    withUnsafeMutablePointer(to: &entry.pointee.value) { $0 }
  }

  /// The value of an entry, not copied. An Optional's payload stands at its start with the bytes it
  /// has alone, so the address of a `.some` is the address of its value.
  @inlinable @inline(__always)
  static func value(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Value> {
    UnsafeMutableRawPointer(slot(entry)).assumingMemoryBound(to: Value.self)
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

  /// A branch without children; give it one before anybody sees it.
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

  /// Give a branch the child it lacks.
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

  /// Where a key stands in a leaf, or would. `rest` is the hash without the bits above the leaf.
  @inlinable @inline(__always)
  func position(_ key: Key, _ hash: UInt64, rest: UInt64) -> (index: Int, isFound: Bool) {
    let count = count
    if count > TrieShape.leafLimit { return positionInLongLeaf(key) }
    let hashes = hashes
    // Hashes are uniform, so the remaining bits say about where the entry stands.
    let guess = Int(truncatingIfNeeded: ((rest &>> 32) &* UInt64(truncatingIfNeeded: count)) &>> 32)
    // Counting the smaller ones around it takes no branch that could be mispredicted.
    let width = Swift.min(count, 12)
    let start = Swift.max(0, Swift.min(guess &- 6, count &- width))
    var index = start
    for offset in 0..<width where hashes[start &+ offset] < hash { index &+= 1 }
    if index < count && hashes[index] == hash && Key.isSame(entries[index].key, key) {
      return (index, true)
    }
    return exactPosition(key, hash, from: index)
  }

  /// The same from any place to begin.
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

  /// More entries than a leaf takes have one and the same hash: bisect by key.
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

  /// The entry of a key below this node, whose level used up all but `rest` of the hash. `hint` is
  /// where it may well be.
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

  // MARK: Changing

  @inlinable @inline(__always)
  static func makeUnique(_ slot: UnsafeMutablePointer<Node>) {
    if !isKnownUniquelyReferenced(&slot.pointee) {
      let node = TrieRef(in: slot)
      slot.pointee = node.copied(capacity: node.capacity)
    }
  }

  /// Whether a pointer, which may be to anything, is to the entry of this key in this leaf. It is
  /// only compared, until it is known to be.
  @inlinable @inline(__always)
  func isEntry(_ pointer: UnsafeMutablePointer<Entry>, _ key: Key, _ hash: UInt64) -> Bool {
    let index = pointer - entries
    return index >= 0 && index < count && entries + index == pointer && hashes[index] == hash
      && Key.isSame(entries[index].key, key)
  }

  /// The entry of a key, with nothing shared from the root to it; nil, and nothing copied, when
  /// the key is absent. `hint` is where it may well be.
  @inlinable @inline(__always)
  static func uniqueEntry(
    _ root: UnsafeMutablePointer<Node>, _ key: Key, _ hash: UInt64,
    hint: UnsafeMutablePointer<Entry>? = nil
  ) -> UnsafeMutablePointer<Entry>? {
    var slot = root
    var rest = hash
    while isKnownUniquelyReferenced(&slot.pointee) {
      let node = TrieRef(in: slot)
      node.forgetDigest()
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
      node.forgetDigest()
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

  /// Make the full leaf in a slot, which is unique, a branch of smaller leaves.
  @inlinable @inline(never)
  static func split(_ slot: UnsafeMutablePointer<Node>, level: Int) {
    let node = TrieRef(in: slot)
    let branch = branch(
      moving: node.hashes, node.entries, count: node.count, level: level, seed: node.seed)
    // The entries have moved: the leaf must not destroy them.
    node.header.pointee.count = 0
    slot.pointee = branch
  }

  /// Move the leaf in a slot, which is unique, to one with another capacity.
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
      node.forgetDigest()
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

  /// Make the branch in a slot, which has one entry too many for a leaf, a leaf without a key that
  /// is present.
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

  /// One leaf with all entries of the subtree, but for one.
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

  // MARK: Walking

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
    var rest = bitmap
    while rest != 0 {
      if try !child(rest.trailingZeroBitCount).visit(body) { return false }
      rest &= rest &- 1
    }
    return true
  }

  /// The leaf that follows the one where `hash` stands, below this root; nil at the end.
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

  /// The sum of the entries' digests, remembered in every node.
  @inlinable
  func digestSum() -> UInt64 {
    let known = digest.pointee.load(ordering: .relaxed)
    if known != 0 { return known }
    var sum: UInt64 = 0
    if isLeaf {
      for index in 0..<count {
        let value = Self.value(entries + index).pointee.digest(seed: seed)
        sum &+= Hashing.entry(keyHash: hashes[index], digest: value)
      }
    } else {
      withDigits { sum &+= child($0).digestSum() }
    }
    digest.pointee.store(sum, ordering: .relaxed)
    return sum
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
