/// A persistent map that notes its edits, so that the patch of a transaction costs what was
/// touched: a `TrieMap` with edit notes.
///
/// Theory: the first touch of a key in a transaction notes the value it had at the start, or that
/// it was absent; `settle` compares the notes with the present values, `rollBack` restores the
/// noted ones. A copy of the map carries its own notes, so `var b = a; b[k] = x; a = b` settles
/// correctly.
///
/// Assigning a whole other map carries over the *other's* notes, which say nothing about the
/// replaced map. The owner of a map that may be assigned must settle by difference, or assign with
/// `replaceContents(with:)`, which notes what changes.
@frozen
public struct SyncMap<Key: SyncKey, Value: Synchronizable>: @unchecked Sendable {
  @usableFromInline typealias Ref = TrieRef<Key, Value>
  @usableFromInline typealias Notes = MapNotes<Key, Value>

  @usableFromInline var map: TrieMap<Key, Value>
  /// Sendable: written only while this map alone refers to them.
  @usableFromInline var notes: MapNotes<Key, Value>?

  /// A map with these entries, at the start of a transaction. O(1).
  @inlinable
  public init(_ trie: TrieMap<Key, Value>) { map = trie }

  /// An empty map that hashes with `seed`.
  @inlinable
  public init(seed: HashSeed = .unseeded) { map = TrieMap(seed: seed) }

  /// A map of these entries, at the start of a transaction; keys must differ. O(n).
  @inlinable
  public init(
    seed: HashSeed = .unseeded, uniqueKeysWithValues entries: some Sequence<(Key, Value)>
  ) {
    map = TrieMap(seed: seed, uniqueKeysWithValues: entries)
  }

  // MARK: Reading

  /// The contents, without the notes. O(1).
  @inlinable public var trie: TrieMap<Key, Value> { map }

  /// The number of entries. O(1).
  @inlinable public var count: Int { map.count }

  /// Whether the map has no entries. O(1).
  @inlinable public var isEmpty: Bool { map.isEmpty }

  /// The seed that the keys are hashed with. O(1).
  @inlinable public var seed: HashSeed { map.seed }

  /// Whether both share the storage of their contents. O(1).
  @inlinable
  public func isIdentical(to other: SyncMap) -> Bool { map.isIdentical(to: other.map) }

  /// Whether the key has a value. O(log n).
  @inlinable
  public func contains(_ key: Key) -> Bool { map.contains(key) }

  /// Hand every entry to `body`, in trie order. O(n), and faster than an iterator.
  @inlinable
  public func forEachEntry<E: Error>(_ body: (Key, Value) throws(E) -> Void) throws(E) {
    try map.forEachEntry(body)
  }

  /// The keys, in trie order.
  @inlinable public var keys: LazyMapSequence<TrieMap<Key, Value>, Key> { map.keys }

  /// The values, in trie order.
  @inlinable public var values: LazyMapSequence<TrieMap<Key, Value>, Value> { map.values }

  // MARK: Changing

  /// The notes, uniquely referenced, so that they can be written.
  @inlinable @inline(__always)
  mutating func ownNotes() -> UnsafeMutablePointer<MapNoteTable<Key, Value>> {
    if !isKnownUniquelyReferenced(&notes) { renewNotes() }
    return notes.unsafelyUnwrapped.table
  }

  @inlinable @inline(never)
  mutating func renewNotes() { notes = notes?.copied() ?? .make() }

  /// Note a key's present value, unless the key has a note.
  @inlinable @inline(__always)
  mutating func note(_ hash: UInt64, _ key: Key, _ value: @autoclosure () -> Value?) {
    let table = ownNotes()
    if !table.pointee.contains(hash, key) { table.pointee.append(hash, key, value()) }
  }

  /// The value of a key, or nil when it is absent. Changing it through the subscript, as in
  /// `map[key]?.field = x`, changes it in place; assigning nil removes it. O(log n).
  @inlinable
  public subscript(key: Key) -> Value? {
    get { map[key] }
    set {
      if let newValue { set(newValue, forKey: key) } else { removeValue(forKey: key) }
    }
    // Yields the stored slot, or the notes' spare slot if the key is absent. The frame is kept
    // within four words (key, self, slot); a larger one would be allocated at every access.
    _modify {
      let slot = openSlot(key)
      defer { closeSlot(slot, key) }
      yield &slot.pointee
    }
  }

  @inlinable @inline(__always)
  mutating func openSlot(_ key: Key) -> UnsafeMutablePointer<Value?> {
    let hash = key.hash(seed: map.seed)
    let table = ownNotes()
    guard let entry = map.uniqueEntry(key, hash) else { return table.pointee.spare }
    table.pointee.hint = entry
    let slot = Ref.slot(entry)
    if !table.pointee.contains(hash, key) { table.pointee.append(hash, key, slot.pointee) }
    return slot
  }

  @inlinable @inline(__always)
  mutating func closeSlot(_ slot: UnsafeMutablePointer<Value?>, _ key: Key) {
    // The access was exclusive, so notes and path are as `openSlot` left them.
    let isSpare = slot == notes.unsafelyUnwrapped.table.pointee.spare
    if isSpare || slot.pointee == nil { closeUnusualSlot(slot, key, isSpare: isSpare) }
  }

  @inlinable @inline(never)
  mutating func closeUnusualSlot(
    _ slot: UnsafeMutablePointer<Value?>, _ key: Key, isSpare: Bool
  ) {
    let hash = key.hash(seed: map.seed)
    if !isSpare {
      _ = map.remove(key, hash)
    } else if let value = slot.pointee {
      slot.pointee = nil
      note(hash, key, nil)
      map.insert(key, hash, value)
    }
  }

  /// The value of a key, or `defaultValue` when it is absent; changing it inserts it first.
  /// O(log n).
  @inlinable
  public subscript(
    key: Key, default defaultValue: @autoclosure () -> Value
  ) -> Value {
    get { map[key] ?? defaultValue() }
    _modify {
      let slot = slotInserting(key, defaultValue)
      yield &slot.pointee
    }
  }

  @inlinable
  mutating func slotInserting(
    _ key: Key, _ defaultValue: () -> Value
  ) -> UnsafeMutablePointer<Value> {
    let hash = key.hash(seed: map.seed)
    if let entry = map.uniqueEntry(key, hash) {
      note(hash, key, entry.pointee.value)
      return Ref.value(entry)
    }
    note(hash, key, nil)
    map.insert(key, hash, defaultValue())
    // Invariant: the key has just been inserted.
    return Ref.value(map.uniqueEntry(key, hash).unsafelyUnwrapped)
  }

  @inlinable
  mutating func set(_ value: consuming Value, forKey key: Key) {
    let hash = key.hash(seed: map.seed)
    if let entry = map.uniqueEntry(key, hash) {
      let slot = Ref.slot(entry)
      note(hash, key, slot.pointee)
      slot.pointee = value
    } else {
      note(hash, key, nil)
      map.insert(key, hash, value)
    }
  }

  /// Set the value of a key, and return the previous one. O(log n).
  @inlinable
  @discardableResult
  public mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
    let hash = key.hash(seed: map.seed)
    guard let entry = map.uniqueEntry(key, hash) else {
      note(hash, key, nil)
      map.insert(key, hash, value)
      return nil
    }
    let slot = Ref.slot(entry)
    let old = slot.move()
    slot.initialize(to: value)
    note(hash, key, old)
    return old
  }

  /// Remove a key, and return its value. O(log n); touches nothing when the key is absent.
  @inlinable
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    let hash = key.hash(seed: map.seed)
    guard map.find(key, hash) != nil else { return nil }
    let old = map.remove(key, hash)
    note(hash, key, old)
    return old
  }

  /// Change the value of a key in place. Returns the result of `body`, or nil, without calling it
  /// or touching anything, when the key is absent. O(log n).
  @inlinable
  public mutating func modifyValue<R, E: Error>(
    forKey key: Key, _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R? {
    let hash = key.hash(seed: map.seed)
    guard let entry = map.uniqueEntry(key, hash) else { return nil }
    let table = ownNotes()
    table.pointee.hint = entry
    if !table.pointee.contains(hash, key) {
      table.pointee.append(hash, key, entry.pointee.value)
    }
    return try body(&Ref.value(entry).pointee)
  }

  /// Replace the contents by those of `trie`, noting the changes. O(changes · log n) if both are of
  /// one lineage, else O(n). This map keeps its seed.
  @inlinable
  public mutating func replaceContents(with trie: TrieMap<Key, Value>) {
    if map.isIdentical(to: trie) { return }
    var new = trie
    new.adopt(seed: map.seed)
    let old = map
    _ = new.forEachDifference(from: old) { key, hash, old, new in
      if let old, let new, new.pointee.isSame(as: old.pointee) { return true }
      note(hash, key, old?.pointee)
      return true
    }
    map = new
  }

  /// Remove all entries, noting each. O(n).
  @inlinable
  public mutating func removeAll() { replaceContents(with: TrieMap(seed: map.seed)) }
}

extension SyncMap: Sequence {
  public typealias Element = (key: Key, value: Value)

  /// Iterates in trie order over the map as it was when the iterator was made.
  @inlinable
  public func makeIterator() -> TrieMap<Key, Value>.Iterator { map.makeIterator() }

  @inlinable public var underestimatedCount: Int { count }
}

extension SyncMap: Equatable {
  /// Whether both encode to the same entries: `isSame(as:)`.
  @inlinable
  public static func == (first: SyncMap, second: SyncMap) -> Bool { first.isSame(as: second) }
}

extension SyncMap: ExpressibleByDictionaryLiteral {
  /// An unseeded map of these entries; keys must differ.
  @inlinable
  public init(dictionaryLiteral elements: (Key, Value)...) {
    map = TrieMap(uniqueKeysWithValues: elements)
  }
}
