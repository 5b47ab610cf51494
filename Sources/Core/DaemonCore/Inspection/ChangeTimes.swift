import Access
import CBOR
import Values

/// The revisions at which a value, and the parts of it down to some depth, changed last.
struct ChangeTimes {
  /// The newest patch that touched the value.
  private(set) var changed: UInt64 = 0
  /// The newest patch that replaced the value as a whole, and so everything in it.
  private var replaced: UInt64 = 0
  private var parts: [PathKey: ChangeTimes] = [:]

  /// The times of a part, given those of the whole.
  subscript(key: PathKey) -> ChangeTimes {
    var times = parts[key] ?? ChangeTimes()
    times.replaced = max(times.replaced, replaced)
    times.changed = max(times.changed, times.replaced)
    return times
  }

  /// Note that the value was replaced, or removed.
  mutating func noteReplacement(at revision: UInt64) { (changed, replaced) = (revision, revision) }

  /// Note the part of a patch that a filter passes; nil passes all. The patch made `revision`, newer
  /// than those before. Parts more than `depth` levels below are not told apart. O(its bytes), times
  /// the depth where the filter cannot say what was seen before.
  mutating func note(
    _ patch: UnsafeRawBufferPointer, seenBy filter: ViewFilter?, at revision: UInt64, depth: Int
  ) throws(CBORError) {
    var decoder = CBORDecoder(patch)
    guard let filter else { return try note(&decoder, at: revision, depth: depth) }
    var seen = CBOREncoder()
    switch filter.filter(patch: patch, into: &seen) {
    case .untouched: return
    case .absent: noteReplacement(at: revision)
    case .patch:
      try CBORDecoder.read(seen.bytes) { (decoder) throws(CBORError) in
        try note(&decoder, at: revision, depth: depth)
      }
    case .resync:
      // Some of the parts say themselves what has been seen to change.
      guard depth > 0, try decoder.peekMajor() == .map else {
        return noteReplacement(at: revision)
      }
      changed = revision
      for _ in 0..<(try decoder.map()) {
        let key = try PathKey(from: &decoder)
        try parts[key, default: ChangeTimes()].note(
          try decoder.rawItem(), seenBy: filter.entry(key), at: revision, depth: depth - 1)
      }
    }
  }

  /// Note a patch of the value, the next item.
  private mutating func note(
    _ decoder: inout CBORDecoder, at revision: UInt64, depth: Int
  ) throws(CBORError) {
    // Anything but a map of patches puts another value, or edits an array, which has no parts here.
    guard try decoder.peekMajor() == .map else {
      noteReplacement(at: revision)
      return try decoder.skip()
    }
    changed = revision
    if depth == 0 { return try decoder.skip() }
    for _ in 0..<(try decoder.map()) {
      let key = try PathKey(from: &decoder)
      try parts[key, default: ChangeTimes()].note(&decoder, at: revision, depth: depth - 1)
    }
    decoder.close()
  }
}
