public import CBOR
public import Values

extension Document {
  /// Apply the next item, a patch, and note its changes, so that a failed patch can be rolled back.
  /// A mirror, which never settles, ends its transaction with `adopt(seed:)`.
  /// O(what changes · log n).
  public mutating func apply(
    patch decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    if seed != self.seed {
      // Old values hash with the old seed; one note of the whole keeps them apart.
      notes.note([], was: root)
      self.seed = seed
      root.adopt(seed: seed)
    }
    var keys: [PathKey] = []
    try root.apply(&decoder, &keys, &notes, seed: seed)
  }
}

extension Value {
  fileprivate mutating func apply(
    _ decoder: inout CBORDecoder, _ keys: inout [PathKey], _ notes: inout EditNotes,
    seed: HashSeed
  ) throws(CBORError) {
    if let replacement = try Value.replacement(from: &decoder, seed: seed) {
      notes.note(keys, was: self)
      self = replacement
      return
    }
    let isMap = try decoder.peekMajor() == .map
    switch self {
    case .object(var entries) where isMap:
      self = .null
      defer { self = .object(entries) }
      for _ in 0..<(try decoder.map()) {
        try entries.applyEntry(&decoder, &keys, &notes, seed: seed)
      }
      decoder.close()
    case .array(var elements) where !isMap:
      let isSpliced = try !Self.skipNoSplices(&decoder)
      if isSpliced && !notes.covers(keys[...]) { notes.note(keys, was: self) }
      self = .null
      defer { self = .array(elements) }
      if isSpliced { return try elements.apply(patch: &decoder, seed: seed) }
      for _ in 0..<(try decoder.map()) {
        try elements.applyEdit(&decoder, &keys, &notes, seed: seed)
      }
      decoder.close()
      decoder.close()
    default:
      let edit = isMap ? "members" : "elements"
      throw CBORError(.notAllowed("an edit of the \(edit) of a \(kind)"), at: decoder.offset)
    }
  }

  /// Read the head of a patch of an array up to its edits if it has no splices.
  private static func skipNoSplices(_ decoder: inout CBORDecoder) throws(CBORError) -> Bool {
    var ahead = decoder
    guard try ahead.array() == 2, try ahead.array() == 0 else { return false }
    ahead.close()
    decoder = ahead
    return true
  }
}

extension TrieMap<String, Value> {
  fileprivate mutating func applyEntry(
    _ decoder: inout CBORDecoder, _ keys: inout [PathKey], _ notes: inout EditNotes,
    seed: HashSeed
  ) throws(CBORError) {
    let start = decoder.offset
    let name = try decoder.text()
    keys.append(.text(name))
    defer { keys.removeLast() }
    if decoder.undefinedIfNext() {
      guard let old = removeValue(forKey: name) else {
        throw CBORError(.notAllowed("removal of an absent key"), at: start)
      }
      notes.note(keys, was: old)
      return
    }
    let done: Void? = try modifyValue(forKey: name) { (value) throws(CBORError) in
      try value.apply(&decoder, &keys, &notes, seed: seed)
    }
    if done != nil { return }
    guard let value = try Value.replacement(from: &decoder, seed: seed) else {
      throw CBORError(.notAllowed("an edit of an absent key"), at: start)
    }
    updateValue(value, forKey: name)
    notes.note(keys, was: nil)
  }
}

extension TreeArray<Value> {
  fileprivate mutating func applyEdit(
    _ decoder: inout CBORDecoder, _ keys: inout [PathKey], _ notes: inout EditNotes,
    seed: HashSeed
  ) throws(CBORError) {
    let start = decoder.offset
    let index = try decoder.unsigned(as: Int.self)
    guard index < count else {
      throw CBORError(.notAllowed("an edit behind the end of the array"), at: start)
    }
    keys.append(.integer(Int64(index)))
    defer { keys.removeLast() }
    try modifyElement(at: index) { (value) throws(CBORError) in
      try value.apply(&decoder, &keys, &notes, seed: seed)
    }
  }
}
