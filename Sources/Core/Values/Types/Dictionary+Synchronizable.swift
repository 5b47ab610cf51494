public import CBOR

// A dictionary in a state, for a few entries, where a `SyncMap` would be too much: writing to a
// copy copies all entries, and a patch costs O(n).
//
// Keys are those of Swift's dictionary: texts that Swift considers equal ("é" in its composed and
// decomposed forms) are one key, but a change from one form to the other is a difference.

extension Dictionary: Synchronizable where Key: SyncKey, Value: Synchronizable {
  /// Whether both hold the same entries. O(n).
  public func isSame(as other: [Key: Value]) -> Bool {
    guard count == other.count else { return false }
    for (key, value) in self {
      guard let index = other.index(forKey: key), Key.isSame(other[index].key, key),
        value.isSame(as: other[index].value)
      else { return false }
    }
    return true
  }

  /// Append a map, its entries in the order of their encoded keys. O(n log n).
  public func encode(into encoder: inout CBOREncoder) {
    encoder.map(count)
    guard encoder.hasRoom(for: SmallForm.bytes(ofSorted: count)) else { return }
    guard let sorted = EncodedKey.sorted(indices, upTo: encoder.room, { self[$0].key }) else {
      return encoder.leaveOut()
    }
    for (bytes, index) in sorted {
      encoder.raw(bytes)
      self[index].value.encode(into: &encoder)
      if encoder.isOver { return }
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let count = try decoder.map()
    self.init()
    for _ in 0..<count {
      let start = decoder.offset
      let key = try Key(from: &decoder)
      let value = try Value(from: &decoder, seed: seed)
      guard updateValue(value, forKey: key) == nil else {
        throw CBORError(.notAllowed("duplicate key"), at: start)
      }
    }
    decoder.close()
  }

  /// Append the patch that turns `old` into this dictionary. O(n).
  public func encodeDifference(
    from old: [Key: Value], into encoder: inout CBOREncoder
  ) -> Bool {
    var patch = PatchMap(in: &encoder)
    for (key, value) in self {
      let mark = patch.open(encoder)
      key.encode(into: &encoder)
      var isChanged = true
      if let before = old.value(forSame: key) {
        isChanged = value.encodeDifference(from: before, into: &encoder)
      } else {
        value.encodeReplacement(into: &encoder)
      }
      patch.close(mark, changed: isChanged, &encoder)
    }
    for key in old.keys where value(forSame: key) == nil {
      let mark = patch.open(encoder)
      key.encode(into: &encoder)
      encoder.encodeUndefined()
      patch.close(mark, changed: true, &encoder)
    }
    return patch.finish(&encoder)
  }

  /// The value of a key, if the stored key has the same bytes.
  private func value(forSame key: Key) -> Value? {
    guard let index = index(forKey: key), Key.isSame(self[index].key, key) else { return nil }
    return self[index].value
  }

  /// Apply the next item, a patch. O(entries of the patch).
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if let value = try Self.replacement(from: &decoder, seed: seed) {
      self = value
      return
    }
    guard try decoder.peekMajor() == .map else {
      throw CBORError(.notAllowed("an edit of a map by an array"), at: decoder.offset)
    }
    // A key's old form must be removed before its new form is inserted, so insertions come last.
    var inserted: [(key: Key, value: Value, offset: Int)] = []
    for _ in 0..<(try decoder.map()) {
      let start = decoder.offset
      let key = try Key(from: &decoder)
      if let index = index(forKey: key), Key.isSame(self[index].key, key) {
        if decoder.undefinedIfNext() {
          remove(at: index)
        } else {
          try values[index].apply(patch: &decoder, seed: seed)
        }
      } else if decoder.undefinedIfNext() {
        throw CBORError(.notAllowed("removal of an absent key"), at: start)
      } else if let value = try Value.replacement(from: &decoder, seed: seed) {
        inserted.append((key, value, start))
      } else {
        throw CBORError(.notAllowed("an edit of an absent key"), at: start)
      }
    }
    decoder.close()
    for entry in inserted where updateValue(entry.value, forKey: entry.key) != nil {
      throw CBORError(.notAllowed("duplicate key"), at: entry.offset)
    }
  }

  /// The digest of a map. O(n).
  public func digest(seed: HashSeed) -> UInt64 {
    var sum: UInt64 = 0
    for (key, value) in self {
      sum &+= Hashing.entry(keyHash: key.hash(seed: seed), digest: value.digest(seed: seed))
    }
    return Hashing.map(sum: sum, count: count)
  }

  /// O(n) for values that may hold collections, else O(1).
  public mutating func adopt(seed: HashSeed) {
    guard Value.holdsCollections else { return }
    var index = startIndex
    while index != endIndex {
      values[index].adopt(seed: seed)
      formIndex(after: &index)
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    .map(key: Key.schemaKind, value: Value.schemaKind(in: &schema))
  }

  public static func visit<V: PartVisitor>(
    _ new: [Key: Value]?, _ old: [Key: Value]?, at path: Path, from depth: Int,
    _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    guard let key = Key(pathKey: path.keys[depth]) else { return visitor.visitAbsent() }
    Value.visit(
      new?.value(forSame: key), old?.value(forSame: key), at: path, from: depth + 1, &visitor)
  }
}

/// Sorts keys by their encoded form: an order that is the same in every process.
enum EncodedKey {
  /// The places with their encoded keys, in bytewise order of the keys. O(n log n).
  static func sorted<Key: SyncKey, Places: Collection>(
    _ places: Places, _ key: (Places.Element) -> Key
  ) -> [(bytes: [UInt8], place: Places.Element)] {
    sorted(places, upTo: .max, key) ?? []
  }

  /// The same; nil if the keys have more than so many bytes.
  static func sorted<Key: SyncKey, Places: Collection>(
    _ places: Places, upTo bytes: Int, _ key: (Places.Element) -> Key
  ) -> [(bytes: [UInt8], place: Places.Element)]? {
    var result: [(bytes: [UInt8], place: Places.Element)] = []
    result.reserveCapacity(places.count)
    var room = bytes
    for place in places {
      var encoder = CBOREncoder(upTo: room)
      key(place).encode(into: &encoder)
      if encoder.isOver { return nil }
      room -= encoder.bytes.count
      result.append((encoder.bytes, place))
    }
    result.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    return result
  }
}
