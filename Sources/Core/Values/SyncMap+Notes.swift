/// The edit notes of a map: for each key touched in the transaction, its value at the start, or nil
/// if it was absent.
///
/// Written only while a single map refers to it. The memory is kept between transactions, up to
/// `keptCapacity` notes.
@usableFromInline
final class MapNotes<Key: SyncKey, Value: Synchronizable>:
  ManagedBuffer<MapNoteTable<Key, Value>, UInt64>
{
  @usableFromInline typealias Table = MapNoteTable<Key, Value>

  @inlinable
  static func make() -> MapNotes {
    unsafeDowncast(MapNotes.create(minimumCapacity: 0) { _ in Table() }, to: MapNotes.self)
  }

  /// The table, which lives as long as this object. The pointer saves the exclusivity check of a
  /// stored property.
  @inlinable @inline(__always)
  var table: UnsafeMutablePointer<Table> { withUnsafeMutablePointerToHeader { $0 } }

  @inlinable
  func copied() -> MapNotes {
    let copy = Self.make()
    let (from, to) = (table, copy.table)
    for position in 0..<from.pointee.count {
      let note = from.pointee.notes + position
      to.pointee.append(from.pointee.hashes[position], note.pointee.key, note.pointee.value)
    }
    return copy
  }

  @inlinable
  deinit { table.pointee.destroy() }
}

/// An array of notes in insertion order, with a hash index once there are many.
@frozen
@usableFromInline
struct MapNoteTable<Key: SyncKey, Value: Synchronizable> {
  @usableFromInline typealias Note = TrieEntry<Key, Value>

  @usableFromInline var count = 0
  @usableFromInline var capacity = 4
  /// Invariant: `hashes` and `notes` have room for `capacity`; the first `count` are initialized.
  @usableFromInline var hashes: UnsafeMutablePointer<UInt64>
  @usableFromInline var notes: UnsafeMutablePointer<Note>
  /// An open-addressing hash table of 2 × capacity slots. A slot holds the position of a note plus
  /// one, or 0 if it is free. Nil while the notes are few enough for a linear search.
  @usableFromInline var index: UnsafeMutablePointer<UInt32>?
  /// The factor by which the index multiplies hashes.
  @usableFromInline let secret = MapNoteSecret.value
  /// The address of the entry touched last, tried first when it settles. It may be stale: never
  /// dereferenced unchecked.
  @usableFromInline var hint: UnsafeMutablePointer<Note>?
  /// Holds the value of an absent key during an access through `SyncMap.subscript`.
  @usableFromInline let spare: UnsafeMutablePointer<Value?>

  @inlinable @inline(__always) static var scanLimit: Int { 16 }
  @inlinable @inline(__always) static var keptCapacity: Int { 4096 }

  @inlinable
  init() {
    hashes = .allocate(capacity: 4)
    notes = .allocate(capacity: 4)
    spare = .allocate(capacity: 1)
    spare.initialize(to: nil)
  }

  /// Whether the key has a note.
  @inlinable @inline(__always)
  func contains(_ hash: UInt64, _ key: Key) -> Bool {
    if index != nil { return isIndexed(hash, key) }
    var position = 0
    while position < count {
      if hashes[position] == hash && Key.isSame(notes[position].key, key) { return true }
      position &+= 1
    }
    return false
  }

  @inlinable @inline(never)
  func isIndexed(_ hash: UInt64, _ key: Key) -> Bool {
    let index = index.unsafelyUnwrapped
    let mask = 2 &* capacity &- 1
    var place = place(of: hash, mask)
    // At least half of the slots are free, so this loop ends.
    while index[place] != 0 {
      let position = Int(index[place]) &- 1
      if hashes[position] == hash && Key.isSame(notes[position].key, key) { return true }
      place = (place &+ 1) & mask
    }
    return false
  }

  /// The slot where the search for a hash begins. Every client knows the seed of the hashes, and
  /// could choose keys whose hashes end in the same bits: without the secret, n such keys would
  /// cost O(n²) in one action.
  @inlinable @inline(__always)
  func place(of hash: UInt64, _ mask: Int) -> Int {
    Int(truncatingIfNeeded: Hashing.mix(hash &* secret)) & mask
  }

  /// Note a key that has no note yet.
  @inlinable @inline(__always)
  mutating func append(_ hash: UInt64, _ key: Key, _ value: consuming Value?) {
    if count == capacity { grow() }
    hashes[count] = hash
    (notes + count).initialize(to: Note(key: key, value: value))
    if index != nil { enter(count) }
    count &+= 1
  }

  @inlinable @inline(never)
  mutating func grow() {
    let newHashes = UnsafeMutablePointer<UInt64>.allocate(capacity: 2 &* capacity)
    let newNotes = UnsafeMutablePointer<Note>.allocate(capacity: 2 &* capacity)
    newHashes.update(from: hashes, count: count)
    newNotes.moveInitialize(from: notes, count: count)
    hashes.deallocate()
    notes.deallocate()
    (hashes, notes, capacity) = (newHashes, newNotes, 2 &* capacity)
    guard capacity > Self.scanLimit else { return }
    index?.deallocate()
    index = .allocate(capacity: 2 &* capacity)
    index.unsafelyUnwrapped.initialize(repeating: 0, count: 2 &* capacity)
    for position in 0..<count { enter(position) }
  }

  @inlinable
  func enter(_ position: Int) {
    let index = index.unsafelyUnwrapped
    let mask = 2 &* capacity &- 1
    var place = place(of: hashes[position], mask)
    while index[place] != 0 { place = (place &+ 1) & mask }
    index[place] = UInt32(position &+ 1)
  }

  /// Forget all notes.
  @inlinable
  mutating func removeAll() {
    // One by one: the specialised destruction of an entry is inlined, that of an array is a call.
    for position in 0..<count { _ = (notes + position).move() }
    removeMoved()
  }

  /// Forget all notes, which have already been moved out.
  @inlinable @inline(__always)
  mutating func removeMoved() {
    if index != nil || capacity > Self.scanLimit { shrink() }
    count = 0
  }

  /// Keep a well-used table of at most `keptCapacity` notes and clear its index; replace any other
  /// by a small table without an index, to free memory.
  @inlinable @inline(never)
  mutating func shrink() {
    if capacity <= Self.keptCapacity && count > 0 && 8 &* count >= capacity {
      index?.initialize(repeating: 0, count: 2 &* capacity)
      return
    }
    index?.deallocate()
    index = nil
    hashes.deallocate()
    notes.deallocate()
    capacity = Self.scanLimit
    hashes = .allocate(capacity: capacity)
    notes = .allocate(capacity: capacity)
  }

  @inlinable
  mutating func destroy() {
    notes.deinitialize(count: count)
    notes.deallocate()
    hashes.deallocate()
    index?.deallocate()
    spare.deinitialize(count: 1)
    spare.deallocate()
  }
}

/// An odd number that no peer knows: Swift seeds its hashing at random in every process.
@usableFromInline
enum MapNoteSecret {
  @usableFromInline static let value = UInt64(bitPattern: Int64(Hasher().finalize())) | 1
}
