public import CBOR
public import CPrefetch

extension TrieMap: Synchronizable {
  /// Whether both hold the same entries. O(1) where both share storage, O(what differs in storage)
  /// for maps of one lineage, else O(n).
  @inlinable
  public func isSame(as other: TrieMap) -> Bool {
    if isIdentical(to: other) { return true }
    if count != other.count { return false }
    return forEachDifference(from: other) { _, _, old, new in
      guard let old, let new else { return false }
      return new.inPlace.pointee.isSame(as: old.inPlace.pointee)
    }
  }

  @inlinable public func prefetchStorage() { prefetch_line(Ref(root).address) }

  /// Append a CBOR map with the entries in trie order. O(n).
  @inlinable
  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(count)
    guard encoder.hasRoom(for: SmallForm.bytes(ofEntries: count)) else { return }
    withExtendedLifetime(root) {
      _ = Ref(root).visit { _, entry in
        Ref.key(entry).inPlace.pointee.encode(into: &encoder)
        Ref.value(entry).inPlace.pointee.encode(into: &encoder)
        return !encoder.isOver
      }
    }
  }

  /// Decode a map whose keys come in any order; in trie order it is built in O(n).
  @inlinable
  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let count = try decoder.map()
    var builder = TrieBuilder<Key, Value>(expecting: count, seed: seed)
    for _ in 0..<count {
      let offset = decoder.offset
      let key = try Key(from: &decoder)
      let value = try Value(from: &decoder, seed: seed)
      if !builder.append(key, value) {
        throw CBORError(.notAllowed("duplicate key"), at: offset)
      }
    }
    decoder.close()
    self = builder.finish()
  }

  /// Append the patch that turns `old` into this map. O(changes · log n) for maps of one lineage,
  /// else O(n).
  @inlinable
  public func encodeDifference(from old: TrieMap, into encoder: inout CBOREncoder) -> Bool {
    if isIdentical(to: old) { return false }
    var map = PatchMap(in: &encoder)
    _ = forEachDifference(from: old) { key, _, old, new in
      let mark = map.open(encoder)
      key.encode(into: &encoder)
      let isChanged = Self.encodeChange(from: old, to: new, into: &encoder)
      map.close(mark, changed: isChanged, &encoder)
      return true
    }
    return map.finish(&encoder)
  }

  /// Append the patch of one entry.
  @inlinable @inline(__always)
  static func encodeChange(
    from old: UnsafeMutablePointer<Value>?, to new: UnsafeMutablePointer<Value>?,
    into encoder: inout CBOREncoder
  ) -> Bool {
    guard let new else {
      guard old != nil else { return false }
      encoder.encodeUndefined()
      return true
    }
    guard let old else {
      new.inPlace.pointee.encodeReplacement(into: &encoder)
      return true
    }
    return new.inPlace.pointee.encodeDifference(from: old.inPlace.pointee, into: &encoder)
  }

  /// Pass the entries that may differ to `body` (key, hash with this map's seed, old value, new
  /// value) until it returns false. Both values may be the same. Returns false if `body` did.
  @inlinable
  func forEachDifference(
    from old: TrieMap,
    _ body: (Key, UInt64, UnsafeMutablePointer<Value>?, UnsafeMutablePointer<Value>?) -> Bool
  ) -> Bool {
    let (oldRoot, newRoot) = (old.root, root)
    defer { withExtendedLifetime((oldRoot, newRoot)) {} }
    guard old.seed == seed else { return forEachLookup(from: old, body) }
    return TriePart.walk(TriePart(Ref(oldRoot)), TriePart(Ref(newRoot)), level: 0) {
      hash, old, new in
      // Invariant: the walk hands on at least one of the two.
      let key = (old ?? new).unsafelyUnwrapped
      return body(key.pointee.key, hash, old.map(Ref.value), new.map(Ref.value))
    }
  }

  /// The same for maps with different seeds: one look-up an entry.
  @inlinable @inline(never)
  func forEachLookup(
    from old: TrieMap,
    _ body: (Key, UInt64, UnsafeMutablePointer<Value>?, UnsafeMutablePointer<Value>?) -> Bool
  ) -> Bool {
    let hasKept = Ref(old.root).visit { _, entry in
      let hash = entry.pointee.key.hash(seed: seed)
      let new = find(entry.pointee.key, hash)
      return body(entry.pointee.key, hash, Ref.value(entry), new.map(Ref.value))
    }
    guard hasKept else { return false }
    return Ref(root).visit { hash, entry in
      let key = entry.pointee.key
      if old.contains(key) { return true }
      return body(key, hash, nil, Ref.value(entry))
    }
  }

  /// Apply the next item, a patch. O(log n) an entry. After an error, the entries before it have
  /// been changed.
  @inlinable
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let whole = try Self.replacement(from: &decoder, seed: seed) {
      self = whole
      return
    }
    adopt(seed: seed)
    for _ in 0..<(try Self.openPatch(&decoder)) {
      let offset = decoder.offset
      let key = try Key(from: &decoder)
      let hash = key.hash(seed: seed)
      if decoder.undefinedIfNext() {
        guard find(key, hash) != nil else { throw Self.absentRemoval(offset) }
        _ = remove(key, hash)
      } else if let entry = uniqueEntry(key, hash) {
        try Ref.value(entry).pointee.apply(patch: &decoder, seed: seed)
      } else {
        insert(key, hash, try Self.inserted(from: &decoder, seed: seed, keyOffset: offset))
      }
    }
    decoder.close()
  }

  /// Open the map of an edit that is not a replacement.
  @inlinable
  static func openPatch(_ decoder: inout CBORDecoder) throws(CBORError) -> Int {
    guard try decoder.peekMajor() == .map else {
      throw CBORError(.notAllowed("an edit of a map by an array"), at: decoder.offset)
    }
    return try decoder.map()
  }

  @inlinable
  static func inserted(
    from decoder: inout CBORDecoder, seed: HashSeed, keyOffset: Int
  ) throws(CBORError) -> Value {
    guard let value = try Value.replacement(from: &decoder, seed: seed) else {
      throw CBORError(.notAllowed("an edit of an absent key"), at: keyOffset)
    }
    return value
  }

  @inlinable
  static func absentRemoval(_ offset: Int) -> CBORError {
    CBORError(.notAllowed("removal of an absent key"), at: offset)
  }

  /// The digest of the map. With the map's own seed O(n) at first and then O(changes · log n); with
  /// any other O(n).
  @inlinable
  public func digest(seed: HashSeed) -> UInt64 {
    withExtendedLifetime(root) {
      if seed == self.seed { return Hashing.map(sum: Ref(root).digestSum(), count: count) }
      var sum: UInt64 = 0
      _ = Ref(root).visit { _, entry in
        sum &+= Hashing.entry(
          keyHash: entry.pointee.key.hash(seed: seed),
          digest: Ref.value(entry).inPlace.pointee.digest(seed: seed))
        return true
      }
      return Hashing.map(sum: sum, count: count)
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .map(key: Key.schemaKind, value: Value.schemaKind(in: &schema))
  }

  @inlinable
  public static func visit<V: PartVisitor>(
    _ new: TrieMap?, _ old: TrieMap?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    guard let key = Key(pathKey: path.keys[depth]) else { return visitor.visitAbsent() }
    Value.visit(new?[key], old?[key], at: path, from: depth + 1, &visitor)
  }

  /// Hash with `seed`. O(1) if the map already does: by the invariant, its values do too.
  /// Else O(n).
  @inlinable
  public mutating func adopt(seed: HashSeed) {
    if seed == self.seed { return }
    var rebuilt = TrieMap(seed: seed)
    forEachEntry { key, value in
      var value = value
      value.adopt(seed: seed)
      rebuilt.insert(key, key.hash(seed: seed), value)
    }
    self = rebuilt
  }
}
