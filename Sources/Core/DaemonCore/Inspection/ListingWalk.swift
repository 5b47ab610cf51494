import CBOR
import Values

/// Lists the parts of a value from its value form, in order: a part comes before those below it,
/// and siblings by their keys, numbers before texts, texts by their bytes. The order does not
/// depend on what else there is, so a listing that goes on after a part goes on rightly whatever
/// has changed since.
struct ListingWalk {
  let schema: Schema
  let limit: Int
  /// No more bytes of rows than this, and one row.
  let mostBytes: Int
  /// The most bytes of a path that a client can name. Longer ones are not listed.
  let mostPathBytes: Int
  /// The rows as CBOR.
  private(set) var rows = CBOREncoder()
  private(set) var count = 0
  /// Whether there is more than the rows list.
  private(set) var hasMore = false

  /// A value with all that is known of it.
  struct Part {
    /// Its value form.
    let bytes: UnsafeRawBufferPointer
    let kind: Schema.Kind?
    let times: ChangeTimes
  }

  init(schema: Schema, limit: Int, mostBytes: Int, mostPathBytes: Int) {
    self.schema = schema
    self.limit = limit
    self.mostBytes = mostBytes
    self.mostPathBytes = mostPathBytes
  }

  /// Append the members that describe a value; `path` is its JSON Pointer.
  func describe(
    _ part: Part, at path: String, into encoder: inout CBOREncoder
  ) throws(CBORError) {
    var decoder = CBORDecoder(part.bytes)
    let first = try decoder.peek()
    encoder.map(5)
    encoder.encode("path")
    encoder.encode(path)
    encoder.encode("kind")
    let word = schema.word(for: part.kind, travelsAs: first)
    encoder.encode(word)
    encoder.encode("count")
    switch try decoder.peekMajor() {
    case .map: encoder.encode(try decoder.map())
    // A path is one value; a case travels with its number before its fields.
    case .array where word == "path": encoder.encodeNull()
    case .array: encoder.encode(max(0, try decoder.array() - (word == "case" ? 1 : 0)))
    case .unsigned, .negative, .bytes, .text, .tag, .simple: encoder.encodeNull()
    }
    encoder.encode("bytes")
    encoder.encode(part.bytes.count)
    encoder.encode("changed")
    if part.times.changed == 0 { encoder.encodeNull() } else { encoder.encode(part.times.changed) }
  }

  /// Append a row for each part of a value, down to `depth` levels, from the first one after
  /// `after`. O(the bytes of the value), times the levels and the logarithm of the rows.
  mutating func list(
    _ whole: Part, at path: String, depth: Int, after: ArraySlice<PathKey>
  ) throws(CBORError) {
    var decoder = CBORDecoder(whole.bytes)
    guard try decoder.peekMajor() == .map else { return }
    for entry in try entries(
      of: &decoder, from: after.first, room: mostPathBytes - path.utf8.count)
    {
      let (name, kind) = schema.name(of: entry.key, in: whole.kind)
      let part = Part(
        bytes: UnsafeRawBufferPointer(rebasing: whole.bytes[entry.range]), kind: kind,
        times: whole.times[entry.key])
      let path = path + Path([name]).pointer
      let isKnown = entry.key == after.first
      if !isKnown {
        guard count < limit, rows.bytes.count < mostBytes else {
          hasMore = true
          return
        }
        try describe(part, at: path, into: &rows)
        count += 1
      }
      if depth > 1 {
        try list(part, at: path, depth: depth - 1, after: isKnown ? after.dropFirst() : [])
        if hasMore { return }
      }
    }
  }

  private struct Entry {
    let key: PathKey
    let range: Range<Int>
  }

  /// The entries of a map that may be listed, in order: from a key on, and no more than rows are
  /// missing, with the one at `first` and one that shows that there is more. Those whose names take
  /// more than `room` bytes of a path are left out.
  private func entries(
    of decoder: inout CBORDecoder, from first: PathKey?, room: Int
  ) throws(CBORError) -> [Entry] {
    let most = limit - count + 2
    var entries: [Entry] = []
    // Behind the last one of so many, nothing is listed.
    var last: PathKey?
    func keepFirst() {
      entries.sort { $0.key.precedes($1.key) }
      if entries.count < most { return }
      entries.removeSubrange(most...)
      last = entries[most - 1].key
    }
    for _ in 0..<(try decoder.map()) {
      let key = try PathKey(from: &decoder)
      let start = decoder.offset
      try decoder.skip()
      if let first, key.precedes(first) { continue }
      if let last, last.precedes(key) { continue }
      if !key.fits(room) { continue }
      entries.append(Entry(key: key, range: start..<decoder.offset))
      // So many at a time cost O(log most) each.
      if entries.count >= 2 * most { keepFirst() }
    }
    decoder.close()
    keepFirst()
    return entries
  }
}

extension PathKey {
  /// Whether the key's token of a JSON Pointer has at most this many bytes.
  fileprivate func fits(_ room: Int) -> Bool {
    switch self {
    case .integer: room >= 21 || Path([self]).pointer.utf8.count <= room
    case .text(let text):
      2 * text.utf8.count < room || Path([self]).pointer.utf8.count <= room
    }
  }

  fileprivate func precedes(_ other: PathKey) -> Bool {
    switch (self, other) {
    case (.integer(let first), .integer(let second)): first < second
    case (.text(let first), .text(let second)): String.precedes(first, second)
    case (.integer, .text): true
    case (.text, .integer): false
    }
  }
}
