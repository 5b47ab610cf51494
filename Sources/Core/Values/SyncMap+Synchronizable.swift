public import CBOR

extension SyncMap: Journaled {
  /// Whether both hold the same entries, whatever their notes. Costs as `TrieMap.isSame`.
  @inlinable
  public func isSame(as other: SyncMap) -> Bool { map.isSame(as: other.map) }

  @inlinable public func prefetchStorage() { map.prefetchStorage() }

  /// Append a CBOR map with the entries in trie order. O(n).
  @inlinable
  public func encode(into encoder: inout CBOREncoder) { map.encode(into: &encoder) }

  /// Decode a map, at the start of a transaction. O(n) from trie order.
  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    self.init(try TrieMap(from: &decoder, seed: seed))
  }

  /// Append the patch that turns `old` into this map, from the contents and not the notes.
  /// O(changes · log n) for maps of one lineage, else O(n).
  @inlinable
  public func encodeDifference(from old: SyncMap, into encoder: inout CBOREncoder) -> Bool {
    map.encodeDifference(from: old.map, into: &encoder)
  }

  /// Apply the next item, a patch, and note its changes: a failed patch can be rolled back. A
  /// mirror, which never settles, ends its transaction with `adopt(seed:)`. O(log n) an entry.
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if seed != map.seed { rehash(seed: seed) }
    if let whole = try TrieMap<Key, Value>.replacement(from: &decoder, seed: seed) {
      replaceContents(with: whole)
      return
    }
    for _ in 0..<(try TrieMap<Key, Value>.openPatch(&decoder)) {
      _ = try applyEntry(&decoder, seed: seed)
    }
    decoder.close()
  }

  /// Apply the next two items, a key and its patch, and note the change. Returns the key. The map
  /// hashes with `seed`.
  @inlinable @inline(__always)
  mutating func applyEntry(
    _ decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> Key {
    let offset = decoder.offset
    let key = try Key(from: &decoder)
    let hash = key.hash(seed: seed)
    if decoder.undefinedIfNext() {
      guard map.find(key, hash) != nil else {
        throw TrieMap<Key, Value>.absentRemoval(offset)
      }
      let old = map.remove(key, hash)
      note(hash, key, old)
    } else if let entry = map.uniqueEntry(key, hash) {
      note(hash, key, entry.pointee.value)
      try Ref.value(entry).pointee.apply(patch: &decoder, seed: seed)
    } else {
      let value = try TrieMap<Key, Value>.inserted(
        from: &decoder, seed: seed, keyOffset: offset)
      note(hash, key, nil)
      map.insert(key, hash, value)
    }
    return key
  }

  /// Rehash with another seed in the middle of a transaction. O(n).
  @inlinable @inline(never)
  mutating func rehash(seed: HashSeed) {
    map.adopt(seed: seed)
    guard let old = notes else { return }
    notes = nil
    let table = old.table
    for position in 0..<table.pointee.count {
      let note = table.pointee.notes + position
      let key = note.pointee.key
      self.note(key.hash(seed: seed), key, note.pointee.value)
    }
    withExtendedLifetime(old) {}
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    TrieMap<Key, Value>.schemaKind(in: &schema)
  }

  @inlinable
  public static func visit<V: PartVisitor>(
    _ new: SyncMap?, _ old: SyncMap?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    TrieMap.visit(new?.map, old?.map, at: path, from: depth, &visitor)
  }

  /// The digest of the map. Costs as `TrieMap.digest`.
  @inlinable
  public func digest(seed: HashSeed) -> UInt64 { map.digest(seed: seed) }

  /// Make the map, with its present contents, part of a state that hashes with `seed`. This begins
  /// a transaction and forgets the notes of the previous one. O(what was touched) if the map
  /// already hashes with `seed`, else O(n).
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    if seed != map.seed {
      map.adopt(seed: seed)
    } else if Value.holdsCollections, let table = notes?.table {
      // Invariant: values without a note were adopted before.
      for position in 0..<table.pointee.count {
        let entry = map.uniqueEntry(
          table.pointee.notes[position].key, table.pointee.hashes[position])
        if let entry { Ref.value(entry).pointee.adopt(seed: seed) }
      }
    }
    forgetNotes()
  }

  @inlinable @inline(__always)
  mutating func forgetNotes() {
    guard notes != nil else { return }
    if isKnownUniquelyReferenced(&notes) {
      notes.unsafelyUnwrapped.table.pointee.removeAll()
    } else {
      // A copy of the map still uses them.
      notes = nil
    }
  }

  /// End the transaction: append the patch from its start to now. O(what was touched · log n).
  @inlinable
  public mutating func settle(into encoder: inout CBOREncoder) -> Bool {
    guard let table = notes?.table, table.pointee.count > 0 else { return false }
    return settle(ownNotes(), into: &encoder)
  }

  /// Settle the notes of a table that only this map refers to, so that they can be moved out of it.
  @inlinable @inline(__always)
  mutating func settle(
    _ table: UnsafeMutablePointer<MapNoteTable<Key, Value>>, into encoder: inout CBOREncoder
  ) -> Bool {
    var patch = PatchMap(in: &encoder)
    for position in 0..<table.pointee.count {
      let note = table.pointee.notes + position
      let entry = settledEntry(
        note.pointee.key, table.pointee.hashes[position], table.pointee.hint)
      let mark = patch.open(encoder)
      Ref.key(note).inPlace.pointee.encode(into: &encoder)
      let isChanged = Self.encodeChange(from: note, to: entry, into: &encoder)
      _ = note.move()
      patch.close(mark, changed: isChanged, &encoder)
    }
    table.pointee.removeMoved()
    return patch.finish(&encoder)
  }

  /// The entry of a key, after its value has adopted the map's seed.
  @inlinable @inline(__always)
  mutating func settledEntry(
    _ key: Key, _ hash: UInt64, _ hint: TrieMap<Key, Value>.Slot?
  ) -> TrieMap<Key, Value>.Slot? {
    // A value without collections adopts nothing: nothing is written, and a shared path stays
    // shared.
    guard Value.holdsCollections else { return map.find(key, hash, hint: hint) }
    let entry = map.uniqueEntry(key, hash, hint: hint)
    if let entry { Ref.value(entry).pointee.adopt(seed: map.seed) }
    return entry
  }

  /// Append the patch of one entry, and move the value out of its note.
  @inlinable @inline(__always)
  static func encodeChange(
    from note: TrieMap<Key, Value>.Slot, to entry: TrieMap<Key, Value>.Slot?,
    into encoder: inout CBOREncoder
  ) -> Bool {
    guard let entry else {
      guard note.pointee.value != nil else { return false }
      encoder.encodeUndefined()
      return true
    }
    guard note.pointee.value != nil else {
      Ref.value(entry).inPlace.pointee.encodeReplacement(into: &encoder)
      return true
    }
    // Moved out of the note: a copy would be retained and released.
    let old = Ref.value(note).move()
    Ref.slot(note).initialize(to: nil)
    return Ref.value(entry).pointee.encodeDifference(from: old, into: &encoder)
  }

  /// End the transaction and restore the map that it began with. O(what was touched · log n).
  @inlinable
  public mutating func rollBack() {
    guard let table = notes?.table else { return }
    for position in 0..<table.pointee.count {
      let note = table.pointee.notes + position
      let hash = table.pointee.hashes[position]
      if let old = note.pointee.value {
        if let entry = map.uniqueEntry(note.pointee.key, hash) {
          entry.pointee.value = old
        } else {
          map.insert(note.pointee.key, hash, old)
        }
      } else if map.find(note.pointee.key, hash) != nil {
        _ = map.remove(note.pointee.key, hash)
      }
    }
    forgetNotes()
  }
}
