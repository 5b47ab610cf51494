/// A persistent map: a copy is O(1), and a write after a copy copies one path of the trie.
///
/// Theory: a radix trie on `key.hash(seed:)`, five bits a level from the most significant down. A
/// hash range with at most 32 entries is one leaf, sorted by hash and then by `Key.precedes`; one
/// with more is a branch with up to 32 children. Keys that share all 64 bits of hash share one long
/// leaf. So the shape and the order of iteration (ascending hash, then `precedes`) follow from the
/// contents and the seed, and never from history: equal maps look alike in every process.
///
/// **Invariant:** the values of a map with seed s have adopted s. The map does not adopt a value
/// that is put into it, because that would slow down every update: its owner does, such as
/// `SyncMap.settle` (`Synchronizable.adopt`).
///
/// Copies may be used by different threads at once: a node is written only while one map alone
/// reaches it, and the digests and nesting depths that nodes cache are atomic.
///
/// Releasing the last copy is O(n), about 50 ns an entry: release a huge map off the loop.
@frozen
public struct TrieMap<Key: SyncKey, Value: Synchronizable>: @unchecked Sendable {
  @usableFromInline typealias Node = TrieNode<Key, Value>
  @usableFromInline typealias Ref = TrieRef<Key, Value>
  @usableFromInline typealias Slot = UnsafeMutablePointer<TrieEntry<Key, Value>>

  /// Never absent: an empty map's node holds its seed.
  @usableFromInline var root: TrieNode<Key, Value>

  @inlinable
  init(root: TrieNode<Key, Value>) { self.root = root }

  /// An empty map that hashes with `seed`. O(1), one small allocation.
  @inlinable
  public init(seed: HashSeed = .unseeded) { root = Ref.leaf(capacity: 1, seed: seed) }

  /// A map of these entries; keys must differ. O(n).
  @inlinable
  public init(
    seed: HashSeed = .unseeded, uniqueKeysWithValues entries: some Sequence<(Key, Value)>
  ) {
    self.init(seed: seed)
    for (key, value) in entries {
      let isNew = updateValue(value, forKey: key) == nil
      precondition(isNew, "The keys of a map must differ.")
    }
  }

  // MARK: Reading

  /// The number of entries. O(1).
  @inlinable public var count: Int { Ref(root).count }

  /// Whether the map has no entries. O(1).
  @inlinable public var isEmpty: Bool { count == 0 }

  /// The seed that the keys are hashed with. O(1).
  @inlinable public var seed: HashSeed { Ref(root).seed }

  /// Whether both share their storage. If so they are the same; maps that are the same need not
  /// share it. O(1).
  @inlinable
  public func isIdentical(to other: TrieMap) -> Bool { root === other.root }

  @inlinable @inline(__always)
  func find(_ key: Key, _ hash: UInt64, hint: Slot? = nil) -> Slot? {
    Ref(root).find(key, hash, rest: hash, hint: hint)
  }

  /// The value of a key, or nil. O(log n).
  @inlinable
  public subscript(key: Key) -> Value? {
    withExtendedLifetime(root) {
      guard let entry = find(key, key.hash(seed: seed)) else { return nil }
      return entry.pointee.value
    }
  }

  /// Whether the key has a value. O(log n).
  @inlinable
  public func contains(_ key: Key) -> Bool {
    withExtendedLifetime(root) { find(key, key.hash(seed: seed)) != nil }
  }

  /// Hand every entry to `body`, in trie order. O(n), and faster than an iterator.
  @inlinable
  public func forEachEntry<E: Error>(
    _ body: (Key, Value) throws(E) -> Void
  ) throws(E) {
    // The copy keeps the nodes alive, whatever `body` does to the variable that held the map.
    let root = root
    defer { withExtendedLifetime(root) {} }
    _ = try Ref(root).visit { (_, entry) throws(E) in
      try body(entry.pointee.key, Ref.value(entry).pointee)
      return true
    }
  }

  /// The keys, in trie order.
  @inlinable public var keys: LazyMapSequence<TrieMap, Key> { lazy.map { $0.key } }

  /// The values, in trie order.
  @inlinable public var values: LazyMapSequence<TrieMap, Value> { lazy.map { $0.value } }

  /// How many nodes the trie has: for tests of its shape. O(n).
  package var nodeCount: Int { withExtendedLifetime(root) { Ref(root).nodeCount } }

  // MARK: Changing

  /// The entry of a key, ready to be changed; nil, with nothing copied, when the key is absent. The
  /// pointer is valid until the map is next changed or copied.
  @inlinable @inline(__always)
  mutating func uniqueEntry(_ key: Key, _ hash: UInt64, hint: Slot? = nil) -> Slot? {
    withUnsafeMutablePointer(to: &root) { Ref.uniqueEntry($0, key, hash, hint: hint) }
  }

  @inlinable
  mutating func insert(_ key: Key, _ hash: UInt64, _ value: Value) {
    withUnsafeMutablePointer(to: &root) { Ref.insert($0, hash, key, value) }
  }

  /// Remove the entry of a key that is present.
  @inlinable
  mutating func remove(_ key: Key, _ hash: UInt64) -> Value? {
    withUnsafeMutablePointer(to: &root) { Ref.remove($0, key, hash) }
  }

  /// Set the value of a key, and return the previous one. O(log n).
  @inlinable
  @discardableResult
  public mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
    let hash = key.hash(seed: seed)
    if let entry = uniqueEntry(key, hash) {
      let slot = Ref.slot(entry)
      let old = slot.move()
      slot.initialize(to: value)
      return old
    }
    insert(key, hash, value)
    return nil
  }

  /// Remove a key, and return its value. O(log n); copies nothing when the key is absent.
  @inlinable
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    let hash = key.hash(seed: seed)
    guard find(key, hash) != nil else { return nil }
    return remove(key, hash)
  }

  /// Remove all entries; the seed stays. O(1) while a copy exists.
  @inlinable
  public mutating func removeAll() { self = TrieMap(seed: seed) }

  /// Change the value of a key in place. Returns the result of `body`, or nil, without calling it
  /// or copying anything, when the key is absent. O(log n).
  @inlinable
  public mutating func modifyValue<R, E: Error>(
    forKey key: Key, _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R? {
    guard let entry = uniqueEntry(key, key.hash(seed: seed)) else { return nil }
    return try body(&Ref.value(entry).pointee)
  }
}

extension TrieMap: Sequence {
  public typealias Element = (key: Key, value: Value)

  /// Iterates in trie order over the map as it was when the iterator was made.
  @frozen
  public struct Iterator: IteratorProtocol {
    /// Keeps all nodes alive.
    @usableFromInline let root: TrieNode<Key, Value>
    @usableFromInline var leaf: TrieRef<Key, Value>
    @usableFromInline var index = 0

    @inlinable
    init(_ root: TrieNode<Key, Value>) {
      self.root = root
      leaf = Ref(root).firstLeaf
    }

    /// The next entry, or nil at the end. O(1) amortised.
    @inlinable
    public mutating func next() -> Element? {
      if index == leaf.count {
        // Only the root can be an empty leaf; the last hash of any other leaf gives its position.
        guard index > 0, let next = Ref(root).leaf(after: leaf.hashes[index &- 1]) else {
          return nil
        }
        leaf = next
        index = 0
      }
      let entry = leaf.entries + index
      index &+= 1
      return (entry.pointee.key, Ref.value(entry).pointee)
    }
  }

  @inlinable
  public func makeIterator() -> Iterator { Iterator(root) }

  @inlinable public var underestimatedCount: Int { count }
}

extension TrieMap: Equatable {
  /// Whether both encode to the same entries: `isSame(as:)`.
  @inlinable
  public static func == (first: TrieMap, second: TrieMap) -> Bool { first.isSame(as: second) }
}

extension TrieMap: ExpressibleByDictionaryLiteral {
  /// An unseeded map of these entries; keys must differ.
  @inlinable
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self.init(uniqueKeysWithValues: elements)
  }
}
