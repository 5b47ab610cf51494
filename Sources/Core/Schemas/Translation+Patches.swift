public import CBOR
import Values

extension Translation {
  /// Append the translation of the next item, a patch of the value at a place. Returns false when
  /// no patch can express the change: a value becomes absent where the other side has a default.
  /// Then only the whole value can be translated, and the appended bytes and the decoder's position
  /// are meaningless.
  public func patch(
    at place: Place, from decoder: inout CBORDecoder, into encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    if decoder.undefinedIfNext() {
      encoder.encodeUndefined()
      return true
    }
    return try patch(place.node, &decoder, &encoder)
  }

  private func patch(
    _ node: Int, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    if nodes[node].isIdentity {
      encoder.raw(try decoder.rawItem())
      return true
    }
    if case .optional(let wrapped) = nodes[node].form {
      if !decoder.undefinedIfNext() { return try patch(wrapped, &decoder, &encoder) }
      encoder.encodeUndefined()
      return true
    }
    if try decoder.isArrayOfOneNext() {
      _ = try decoder.array()
      encoder.array(1)
      try value(node, &decoder, &encoder)
      decoder.close()
      return true
    }
    switch nodes[node].form {
    case .copy:
      encoder.raw(try decoder.rawItem())
      return true
    case .pointer, .enumeration:
      guard try decoder.peekMajor() == .unsigned else { throw notAnEdit(decoder) }
      // A number may become a name with fields, or the reverse: both may be wrapped.
      encoder.array(1)
      try value(node, &decoder, &encoder)
      return true
    case .array(let element): return try arrayPatch(element, &decoder, &encoder)
    case .map(let keys, let element): return try mapPatch(keys, element, &decoder, &encoder)
    case .structure(let fields): return try structurePatch(fields, &decoder, &encoder)
    case .optional: return true
    }
  }

  private func notAnEdit(_ decoder: CBORDecoder) -> CBORError {
    CBORError(.notAllowed("an edit of a value without parts"), at: decoder.offset)
  }

  private func mapPatch(
    _ keys: MapKeys, _ element: Int, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    let count = try decoder.map()
    encoder.map(count)
    for _ in 0..<count {
      try key(keys, &decoder, &encoder)
      if decoder.undefinedIfNext() {
        encoder.encodeUndefined()
      } else if try !patch(element, &decoder, &encoder) {
        return false
      }
    }
    decoder.close()
    return true
  }

  private func structurePatch(
    _ fields: [FieldPlan], _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    let count = try decoder.map()
    var map = GrowingMap(in: &encoder)
    for _ in 0..<count {
      let id = try decoder.unsigned()
      guard let field = fields.first(where: { UInt64(exactly: $0.id) == id }),
        let target = field.target
      else {
        try decoder.skip()
        continue
      }
      map.count += 1
      target.encode(into: &encoder)
      if decoder.undefinedIfNext() {
        if field.becomesDefault { return false }
        encoder.encodeUndefined()
      } else if try !patch(field.node, &decoder, &encoder) {
        return false
      }
    }
    decoder.close()
    map.finish(&encoder)
    return true
  }

  private func arrayPatch(
    _ element: Int, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("a patch of an array has two parts"), at: start)
    }
    encoder.array(2)
    let splices = try decoder.array()
    guard splices.isMultiple(of: 3) else {
      throw CBORError(.notAllowed("splices are triples"), at: start)
    }
    encoder.array(splices)
    for _ in 0..<splices / 3 {
      encoder.encode(try decoder.unsigned())
      encoder.encode(try decoder.unsigned())
      let count = try decoder.array()
      encoder.array(count)
      for _ in 0..<count { try value(element, &decoder, &encoder) }
      decoder.close()
    }
    decoder.close()
    let isWhole = try edits(element, &decoder, &encoder)
    decoder.close()
    return isWhole
  }

  private func edits(
    _ element: Int, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Bool {
    let count = try decoder.map()
    encoder.map(count)
    for _ in 0..<count {
      encoder.encode(try decoder.unsigned())
      if decoder.undefinedIfNext() {
        // An element is never removed by an edit: it is an optional that becomes nil.
        if isNamed { encoder.encodeNull() } else { encoder.encodeUndefined() }
      } else if try !patch(element, &decoder, &encoder) {
        return false
      }
    }
    decoder.close()
    return true
  }
}
