public import CBOR
import Values

// What a translation leaves out is not lost where it can be found again: a field of a struct that
// is part of the state, of an optional value, or of an entry of a map. Nothing says which element of
// an array, or which value of a case, a field was of, once another version has changed them.
extension Translation {
  /// A patch by the source's schema, of the fields of this value that the target does not have. It
  /// puts them back into a value that lacks them. Nil if there are none. O(the value's bytes).
  @_optimize(size)
  public func leftOut(of value: [UInt8]) throws(CBORError) -> [UInt8]? {
    try leftOut(value, isPatch: false)
  }

  /// The part of such a patch that the target does not have either; nil if it has all of it.
  /// O(the patch's bytes).
  @_optimize(size)
  public func leftOut(ofPatch patch: [UInt8]) throws(CBORError) -> [UInt8]? {
    try leftOut(patch, isPatch: true)
  }

  @_optimize(size)
  private func leftOut(_ bytes: [UInt8], isPatch: Bool) throws(CBORError) -> [UInt8]? {
    try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      var encoder = CBOREncoder()
      let hasAny = try leftOut(start, isPatch, &decoder, &encoder)
      return hasAny ? encoder.bytes : nil
    }
  }

  /// Append what the next item leaves out. Returns false if that is nothing: then the appended bytes
  /// are meaningless.
  @_optimize(size)
  private func leftOut(
    _ node: Int, _ isPatch: Bool, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    if decoder.undefinedIfNext() { return false }
    if nodes[node].isLossless {
      try decoder.skip()
      return false
    }
    if isPatch, try decoder.isArrayOfOneNext() {
      _ = try decoder.array()
      defer { decoder.close() }
      return try leftOut(node, false, &decoder, &encoder)
    }
    switch nodes[node].form {
    case .optional(let wrapped): return try leftOut(wrapped, isPatch, &decoder, &encoder)
    case .map(_, let element):
      return try entries(&decoder, &encoder) { (_, decoder, encoder) throws(CBORError) in
        try leftOut(element, isPatch, &decoder, &encoder)
      }
    case .structure(let fields):
      return try entries(&decoder, &encoder) { (key, decoder, encoder) throws(CBORError) in
        guard let field = fields.first(where: { key == .integer(Int64($0.id)) }) else {
          try decoder.skip()
          return false
        }
        if field.target != nil {
          return try leftOut(field.node, isPatch, &decoder, &encoder)
        }
        if decoder.undefinedIfNext() { return false }
        if !isPatch { encoder.array(1) }
        encoder.raw(try decoder.rawItem())
        return true
      }
    case .copy, .pointer, .array, .enumeration:
      try decoder.skip()
      return false
    }
  }

  /// Append a map of those entries of the next item, a map, for which `body` appends anything.
  /// Returns whether there are any.
  @_optimize(size)
  private func entries(
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder,
    _ body: (PathKey, inout CBORDecoder, inout CBOREncoder) throws(CBORError) -> Bool
  ) throws(CBORError) -> Bool {
    let count = try decoder.map()
    var map = GrowingMap(in: &encoder)
    for _ in 0..<count {
      let mark = encoder.bytes.count
      let key = try PathKey(from: &decoder)
      key.encode(into: &encoder)
      if try body(key, &decoder, &encoder) {
        map.count += 1
      } else {
        encoder.bytes.removeSubrange(mark...)
      }
    }
    decoder.close()
    map.finish(&encoder)
    return map.count > 0
  }
}
