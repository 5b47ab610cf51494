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
    var division = Division(isPatch: false)
    try CBORDecoder.read(value) { (decoder) throws(CBORError) in
      try divide(start, &decoder, &division)
    }
    return division.hasRest ? division.rest.bytes : nil
  }

  /// Divide such a patch into what the target has, by its schema, and what it does not have either, by
  /// the source's; each nil if it is nothing. Of what the target has and cannot represent only the
  /// names are returned. O(the patch's bytes).
  @_optimize(size)
  public func divide(
    leftOut patch: [UInt8]
  ) throws(CBORError) -> (known: [UInt8]?, rest: [UInt8]?, lost: [String]) {
    var division = Division(isPatch: true)
    try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      try divide(start, &decoder, &division)
    }
    return (
      division.hasKnown ? division.known.bytes : nil, division.hasRest ? division.rest.bytes : nil,
      division.lost
    )
  }

  /// The two parts of what was left out, as they grow.
  private struct Division {
    /// Whether a patch is divided, and not a value.
    let isPatch: Bool
    var known = CBOREncoder()
    var rest = CBOREncoder()
    /// Whether anything was appended to them since this was set to false.
    var hasKnown = false
    var hasRest = false
    var lost: [String] = []
  }

  /// Divide the next item. What is appended to a part of which `has…` is false then is meaningless.
  @_optimize(size)
  private func divide(
    _ node: Int, _ decoder: inout CBORDecoder, _ division: inout Division
  ) throws(CBORError) {
    (division.hasKnown, division.hasRest) = (false, false)
    if decoder.undefinedIfNext() { return }
    if !division.isPatch {
      if nodes[node].isLossless { return try decoder.skip() }
    } else if try decoder.isArrayOfOneNext() {
      return try divideWhole(node, &decoder, &division)
    }
    switch nodes[node].form {
    case .optional(let wrapped): try divide(wrapped, &decoder, &division)
    case .map(_, let element):
      try divideEntries(&decoder, &division) { _ in (nil, element) }
    case .structure(let fields):
      try divideEntries(&decoder, &division) { key in
        let field = fields.first { key == .integer(Int64($0.id)) }
        return field.map { ($0.target, $0.target == nil ? nil : $0.node) } ?? (nil, nil)
      }
    case .copy, .pointer, .array, .enumeration: try decoder.skip()
    }
  }

  /// Divide a replacement, which the target has: its translation, and what that leaves out.
  @_optimize(size)
  private func divideWhole(
    _ node: Int, _ decoder: inout CBORDecoder, _ division: inout Division
  ) throws(CBORError) {
    let item = [UInt8](try decoder.rawItem())
    do throws(CBORError) {
      try CBORDecoder.read(item) { (decoder) throws(CBORError) in
        _ = try decoder.array()
        var known = CBOREncoder()
        known.array(1)
        try value(node, &decoder, &known)
        decoder.close()
        division.known.raw(known.bytes)
        division.hasKnown = true
      }
    } catch {
      guard case .unknownCase(let number) = error.kind else { throw error }
      division.lost += names(ofCase: number).isEmpty ? ["case \(number)"] : names(ofCase: number)
    }
    var inner = Division(isPatch: false)
    try CBORDecoder.read(item) { (decoder) throws(CBORError) in
      _ = try decoder.array()
      try divide(node, &decoder, &inner)
      decoder.close()
    }
    division.rest.raw(inner.rest.bytes)
    division.hasRest = inner.hasRest
  }

  /// Divide the entries of the next item, a map. `plan` gives the key of an entry in the target, if it is
  /// another one, and the node of its value; no node for one that the target does not have.
  @_optimize(size)
  private func divideEntries(
    _ decoder: inout CBORDecoder, _ division: inout Division,
    _ plan: (PathKey) -> (key: PathKey?, node: Int?)
  ) throws(CBORError) {
    let count = try decoder.map()
    var (known, rest) = (GrowingMap(in: &division.known), GrowingMap(in: &division.rest))
    for _ in 0..<count {
      let marks = (division.known.bytes.count, division.rest.bytes.count)
      let key = try PathKey(from: &decoder)
      let (other, node) = plan(key)
      (other ?? key).encode(into: &division.known)
      key.encode(into: &division.rest)
      if let node {
        try divide(node, &decoder, &division)
      } else if decoder.undefinedIfNext() {
        (division.hasKnown, division.hasRest) = (false, false)
      } else {
        if !division.isPatch { division.rest.array(1) }
        division.rest.raw(try decoder.rawItem())
        (division.hasKnown, division.hasRest) = (false, true)
      }
      if division.hasKnown {
        known.count += 1
      } else {
        division.known.bytes.removeSubrange(marks.0...)
      }
      if division.hasRest {
        rest.count += 1
      } else {
        division.rest.bytes.removeSubrange(marks.1...)
      }
    }
    decoder.close()
    known.finish(&division.known)
    rest.finish(&division.rest)
    (division.hasKnown, division.hasRest) = (known.count > 0, rest.count > 0)
  }
}
