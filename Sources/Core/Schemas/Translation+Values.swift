public import CBOR
import Values

extension Translation {
  /// Append the translation of the next item, the value at a place or `undefined`. Throws
  /// `unknownCase` for a case that the other side lacks and has no fallback for.
  /// O(the item's bytes).
  public func value(
    at place: Place, from decoder: inout CBORDecoder, into encoder: inout CBOREncoder
  ) throws(CBORError) {
    if decoder.undefinedIfNext() { return encoder.encodeUndefined() }
    try value(place.node, &decoder, &encoder)
  }

  /// Append the translation of the next item, a value of the root's kind. O(its bytes).
  public func value(
    from decoder: inout CBORDecoder, into encoder: inout CBOREncoder
  ) throws(CBORError) {
    try value(start, &decoder, &encoder)
  }

  func value(
    _ node: Int, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) {
    if nodes[node].isIdentity { return encoder.raw(try decoder.rawItem()) }
    switch nodes[node].form {
    case .copy: encoder.raw(try decoder.rawItem())
    case .pointer: encoder.encode(try Path(from: &decoder).pointer)
    case .optional(let wrapped):
      if !decoder.undefinedIfNext() { return try value(wrapped, &decoder, &encoder) }
      if isNamed { encoder.encodeNull() } else { encoder.encodeUndefined() }
    case .array(let element):
      let count = try decoder.array()
      encoder.array(count)
      for _ in 0..<count { try value(element, &decoder, &encoder) }
      decoder.close()
    case .map(let keys, let element):
      let count = try decoder.map()
      encoder.map(count)
      for _ in 0..<count {
        try key(keys, &decoder, &encoder)
        try value(element, &decoder, &encoder)
      }
      decoder.close()
    case .structure(let fields): try structure(fields, &decoder, &encoder)
    case .enumeration(let cases): try enumeration(cases, &decoder, &encoder)
    }
  }

  func key(
    _ keys: MapKeys, _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) {
    switch keys {
    case .copied: encoder.raw(try decoder.rawItem())
    case .decimal: encoder.encode(try PathKey(from: &decoder).description)
    }
  }

  private func structure(
    _ fields: [FieldPlan], _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) {
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
      if decoder.undefinedIfNext() { continue }
      map.count += 1
      target.encode(into: &encoder)
      try value(field.node, &decoder, &encoder)
    }
    decoder.close()
    map.finish(&encoder)
  }

  // MARK: Cases

  private func enumeration(
    _ cases: [CasePlan], _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) {
    let start = decoder.offset
    let isAlone = try decoder.peekMajor() == .unsigned
    let items = isAlone ? 1 : try decoder.array()
    guard items > 0 else { throw CBORError(.notAllowed("a case without a number"), at: start) }
    let number = try decoder.unsigned()
    guard let plan = cases.first(where: { $0.id == number }) else {
      throw CBORError(.unknownCase(number), at: start)
    }
    let left = try content(of: plan, items - 1, at: start, &decoder, &encoder)
    for _ in 0..<left { try decoder.skip() }
    if !isAlone { decoder.close() }
  }

  /// Append a case. Returns the number of its values that are still to be skipped.
  private func content(
    of plan: CasePlan, _ count: Int, at start: Int,
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Int {
    switch plan.form {
    case .unknown: throw CBORError(.unknownCase(plan.id), at: start)
    case .constant(let bytes):
      encoder.raw(bytes)
      return count
    case .numbered(let id, let slots):
      return try numbered(plan, id, slots, count, &decoder, &encoder)
    case .single(let name):
      encoder.map(1)
      encoder.encode(name)
      return try contents(plan, 1, count, &decoder, &encoder)
    case .list(let name):
      encoder.map(1)
      encoder.encode(name)
      encoder.array(plan.fields.count)
      return try contents(plan, plan.fields.count, count, &decoder, &encoder)
    case .object(let name, let fields):
      encoder.map(1)
      encoder.encode(name)
      return try object(plan, fields, count, &decoder, &encoder)
    }
  }

  /// Append `wanted` values of a case one after the other, with null for omitted ones.
  private func contents(
    _ plan: CasePlan, _ wanted: Int, _ count: Int,
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Int {
    for index in 0..<wanted {
      if index < count, let node = plan.fields[index] {
        try value(node, &decoder, &encoder)
      } else {
        encoder.encodeNull()
      }
    }
    return Swift.max(0, count - wanted)
  }

  private func object(
    _ plan: CasePlan, _ names: [String], _ count: Int,
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Int {
    var map = GrowingMap(in: &encoder)
    for (name, node) in zip(names, plan.fields).prefix(count) {
      if decoder.undefinedIfNext() { continue }
      map.count += 1
      encoder.encode(name)
      if let node { try value(node, &decoder, &encoder) }
    }
    map.finish(&encoder)
    return Swift.max(0, count - names.count)
  }

  /// Append `[id, …]`, each value at its position on the other side.
  private func numbered(
    _ plan: CasePlan, _ id: Int, _ slots: [Int?], _ count: Int,
    _ decoder: inout CBORDecoder, _ encoder: inout CBOREncoder
  ) throws(CBORError) -> Int {
    // Slots after the last present value are left out.
    let used = slots.prefix((slots.lastIndex { $0.map { $0 < count } ?? false } ?? -1) + 1)
    encoder.array(1 + used.count)
    encoder.encode(id)
    let start = encoder.bytes.count
    let read = Swift.min(count, plan.fields.count)
    var parts: [Range<Int>] = []
    for node in plan.fields.prefix(read) {
      let first = encoder.bytes.count
      if let node { try value(node, &decoder, &encoder) } else { try decoder.skip() }
      parts.append(first..<encoder.bytes.count)
    }
    if !used.elementsEqual((0..<read).map(Optional.some)) {
      arrange(used, parts, from: start, &encoder)
    }
    return count - read
  }

  /// Reorder the parts that were appended from `start` on to the order of the slots.
  private func arrange(
    _ slots: ArraySlice<Int?>, _ parts: [Range<Int>], from start: Int,
    _ encoder: inout CBOREncoder
  ) {
    let bytes = Array(encoder.bytes[start...])
    encoder.bytes.removeSubrange(start...)
    for slot in slots {
      if let slot, slot < parts.count {
        let part = parts[slot]
        encoder.raw(bytes[(part.lowerBound - start)..<(part.upperBound - start)])
      } else {
        encoder.encodeUndefined()
      }
    }
  }
}
