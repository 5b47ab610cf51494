import Lockstep
import Values

// The walk from the root of a document to a place in it. Every container on the way is moved out of
// its enum while it changes, so that it stays uniquely referenced and is changed in place. The keys
// are converted to those of `EditNotes` on the way: an index of an array becomes a number.

extension Value {
  /// Pass the value at the first `end` keys, from the one at `depth` on, to `body`.
  mutating func descend<R>(
    _ keys: inout [PathKey], _ notes: inout EditNotes, from depth: Int = 0, to end: Int,
    _ body: (inout Value, inout [PathKey], inout EditNotes) throws(Rejection) -> R
  ) throws(Rejection) -> R {
    if depth == end { return try body(&self, &keys, &notes) }
    let result = try modifyChild(&keys, &notes, at: depth) {
      (child, keys, notes) throws(Rejection) in
      try child.descend(&keys, &notes, from: depth + 1, to: end, body)
    }
    guard let result else { throw .missing(keys, depth) }
    return result
  }

  /// Change the member or element that the key at `depth` names. Returns nil, without calling
  /// `body`, when an object has no such member; an array must have the element.
  mutating func modifyChild<R>(
    _ keys: inout [PathKey], _ notes: inout EditNotes, at depth: Int,
    _ body: (inout Value, inout [PathKey], inout EditNotes) throws(Rejection) -> R
  ) throws(Rejection) -> R? {
    switch self {
    case .object:
      let name = try Rejection.memberName(keys, depth)
      // Moved out, so that it has one owner: that is cheaper than to copy it and to drop the first.
      var container = Value.null
      swap(&container, &self)
      guard case .object(var entries) = consume container else { return nil }
      defer { self = .object(entries) }
      return try entries.modifyValue(forKey: name) { (child) throws(Rejection) in
        try body(&child, &keys, &notes)
      }
    case .array(var elements):
      let index = try Self.resolveIndex(&keys, depth, count: elements.count)
      guard index < elements.count else {
        throw .outside(keys, depth, count: elements.count)
      }
      self = .null
      defer { self = .array(elements) }
      return try elements.modifyElement(at: index) { (child) throws(Rejection) in
        try body(&child, &keys, &notes)
      }
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      throw .noMembers(self, keys, depth)
    }
  }

  /// The index that a key names in an array of `count` elements: at most `count`, which `-` names
  /// (RFC 6901, 4; RFC 6902, 4.1). The key becomes that number.
  static func resolveIndex(
    _ keys: inout [PathKey], _ depth: Int, count: Int
  ) throws(Rejection) -> Int {
    let index: Int
    if case .text("-") = keys[depth] {
      index = count
    } else if let number = keys[depth].arrayIndex {
      index = number
    } else {
      throw .badIndex(keys, depth)
    }
    guard index <= count else { throw .outside(keys, depth, count: count) }
    if case .text = keys[depth], index < count { keys[depth] = .integer(Int64(index)) }
    return index
  }
}

extension Value {
  /// The path with every index of an array as a number, as far as it exists, and the number of
  /// patch levels that the containers on it take (`Value.patchLevels`).
  func resolve(_ path: Path) -> (path: Path, levels: Int) {
    var keys = path.keys
    var levels = 0
    var current: Value? = self
    for depth in keys.indices {
      switch current {
      case .object?: levels += 1
      case .array?:
        levels += 2
        if let index = keys[depth].arrayIndex { keys[depth] = .integer(Int64(index)) }
      default: return (Path(keys), levels)
      }
      current = current?.child(keys[depth])
    }
    return (Path(keys), levels)
  }

  /// The approximate size of the value form in bytes, or `limit` if it is larger.
  /// O(the lesser of both).
  func size(upTo limit: Int) -> Int {
    var size = 9
    switch self {
    case .null, .bool, .integer, .unsigned, .double: break
    case .text(let text): size += text.utf8.count
    case .bytes(let bytes): size += bytes.count
    case .array(let elements):
      for value in elements where size < limit { size += value.size(upTo: limit - size) }
    case .object(let entries):
      entries.forEachEntry { key, value in
        if size < limit { size += 9 + key.utf8.count + value.size(upTo: limit - size) }
      }
    }
    return Swift.min(size, limit)
  }
}
