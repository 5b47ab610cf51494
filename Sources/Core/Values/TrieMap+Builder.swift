/// Builds a map from entries in any order: linear, without a walk per entry, as long as they come
/// in trie order.
///
/// Entries with the same first digit are collected, and become a subtree when the next digit
/// begins, so the buffer holds a 32nd of the map. It grows with the entries that arrive, never with
/// their announced number.
@frozen
@usableFromInline
struct TrieBuilder<Key: SyncKey, Value: Synchronizable>: ~Copyable {
  @usableFromInline typealias Ref = TrieRef<Key, Value>
  @usableFromInline typealias Entry = TrieEntry<Key, Value>

  @usableFromInline let seed: HashSeed
  /// Whether the root will be a branch.
  @usableFromInline let isLarge: Bool
  @usableFromInline var hashes: UnsafeMutablePointer<UInt64>
  @usableFromInline var entries: UnsafeMutablePointer<Entry>
  @usableFromInline var count = 0
  @usableFromInline var capacity: Int
  /// The root so far, from the second digit on.
  @usableFromInline var branch: TrieNode<Key, Value>?
  /// The map so far, once an entry has come out of order; all later entries are inserted into it.
  @usableFromInline var unordered: TrieMap<Key, Value>?

  @inlinable
  init(expecting total: Int, seed: HashSeed) {
    self.seed = seed
    isLarge = total > TrieShape.leafLimit
    capacity = Swift.max(1, Swift.min(total, TrieShape.leafLimit))
    hashes = .allocate(capacity: capacity)
    entries = .allocate(capacity: capacity)
  }

  @inlinable
  deinit {
    entries.deinitialize(count: count)
    entries.deallocate()
    hashes.deallocate()
  }

  /// Add an entry. Returns false if the key is present already.
  @inlinable
  mutating func append(_ key: Key, _ value: consuming Value) -> Bool {
    let hash = key.hash(seed: seed)
    if unordered != nil { return insert(key, hash, value) }
    if count > 0 {
      let last = hashes[count &- 1]
      if hash <= last && !(hash == last && Key.precedes(entries[count &- 1].key, key)) {
        if hash == last && Key.isSame(entries[count &- 1].key, key) { return false }
        unordered = finish()
        return insert(key, hash, value)
      }
      if isLarge && hash &>> 59 != last &>> 59 { flush() }
    } else if let branch, hash &>> 59 <= UInt64(Self.lastDigit(branch)) {
      unordered = finish()
      return insert(key, hash, value)
    }
    if count == capacity { grow() }
    hashes[count] = hash
    (entries + count).initialize(to: Entry(key: key, value: value))
    count &+= 1
    return true
  }

  @inlinable
  static func lastDigit(_ branch: TrieNode<Key, Value>) -> Int {
    31 &- Ref(branch).bitmap.leadingZeroBitCount
  }

  @inlinable
  mutating func insert(_ key: Key, _ hash: UInt64, _ value: consuming Value) -> Bool {
    if unordered.unsafelyUnwrapped.find(key, hash) != nil { return false }
    unordered!.insert(key, hash, value)
    return true
  }

  @inlinable @inline(never)
  mutating func grow() {
    let newHashes = UnsafeMutablePointer<UInt64>.allocate(capacity: 2 &* capacity)
    let newEntries = UnsafeMutablePointer<Entry>.allocate(capacity: 2 &* capacity)
    newHashes.update(from: hashes, count: count)
    newEntries.moveInitialize(from: entries, count: count)
    hashes.deallocate()
    entries.deallocate()
    (hashes, entries, capacity) = (newHashes, newEntries, 2 &* capacity)
  }

  /// Make the collected entries, which share their first digit, a child of the root.
  @inlinable @inline(never)
  mutating func flush() {
    if count == 0 { return }
    let root = branch ?? Ref.branch(count: 0, seed: seed)
    let digit = TrieShape.digit(hashes[0], level: 0)
    let child = Ref.subtree(moving: hashes, entries, count: count, level: 1, seed: seed)
    Ref(root).attach(child, digit: digit)
    Ref(root).header.pointee.count &+= count
    count = 0
    branch = root
  }

  /// The map of all entries; leaves the builder empty.
  @inlinable
  mutating func finish() -> TrieMap<Key, Value> {
    if let map = unordered {
      unordered = nil
      return map
    }
    if !isLarge {
      let leaf = Ref.subtree(moving: hashes, entries, count: count, level: 0, seed: seed)
      count = 0
      return TrieMap(root: leaf)
    }
    flush()
    guard let root = branch else { return TrieMap(seed: seed) }
    branch = nil
    // An entry out of order may end the building before there are enough entries for a branch.
    if Ref(root).count <= TrieShape.leafLimit {
      return TrieMap(root: Ref(root).flattened(without: nil))
    }
    return TrieMap(root: root)
  }
}
