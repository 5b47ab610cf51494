public import CBOR

/// An array that patches change: each kind of array has its own operations, but the form of the
/// patches is the same.
@usableFromInline
protocol PatchableArray {
  var count: Int { get }

  /// Replace the elements of a range, which is within the array, by those of the next item.
  mutating func splice(
    _ range: Range<Int>, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError)

  /// Apply the next item, a patch, to the element at `index`, which is within the array.
  mutating func edit(
    at index: Int, by decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError)
}

extension PatchableArray {
  /// Apply the next item, `[splices, edits]`.
  @inlinable
  mutating func applyParts(_ decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.peekMajor() == .array else {
      throw CBORError(.notAllowed("an edit of keys inside an array"), at: start)
    }
    guard try decoder.array() == 2 else {
      throw CBORError(
        .notAllowed("a patch of an array has one item or two: splices and edits"), at: start)
    }
    try applySplices(&decoder, seed: seed)
    try applyEdits(&decoder, seed: seed)
    decoder.close()
  }

  @inlinable
  mutating func applySplices(
    _ decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    let start = decoder.offset
    let items = try decoder.array()
    guard items % 3 == 0 else {
      throw CBORError(.notAllowed("splices come in threes: at, removed, inserted"), at: start)
    }
    for _ in 0..<items / 3 {
      let place = decoder.offset
      let at = try decoder.unsigned(as: Int.self)
      guard at <= count else {
        throw CBORError(.notAllowed("a splice behind the end of the array"), at: place)
      }
      let length = decoder.offset
      let removed = try decoder.unsigned(as: Int.self)
      guard removed <= count - at else {
        throw CBORError(.notAllowed("a splice of more elements than there are"), at: length)
      }
      try splice(at..<at + removed, from: &decoder, seed: seed)
    }
    decoder.close()
  }

  @inlinable
  mutating func applyEdits(_ decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    for _ in 0..<(try decoder.map()) {
      let start = decoder.offset
      let index = try decoder.unsigned(as: Int.self)
      guard index < count else {
        throw CBORError(.notAllowed("an edit behind the end of the array"), at: start)
      }
      try edit(at: index, by: &decoder, seed: seed)
    }
    decoder.close()
  }
}
