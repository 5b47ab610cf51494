import CBOR
import Values

extension EditNotes.Notes {
  /// Append the patch from the start of the transaction to `root`. Returns false, and appends
  /// nothing, when they are the same. O(what was touched · log n).
  ///
  /// Consumes the notes: to copy what they have, and to drop the copies, takes 100 instructions.
  consuming func encodePatch(to root: borrowing Value, into encoder: inout CBOREncoder) -> Bool {
    switch consume self {
    case .none: return false
    case .one(let keys, let old, let new):
      if let new, let isChanged = Self.encodeShort(keys, old, to: new, into: &encoder) {
        return isChanged
      }
      if new != nil { return Self.encode(keys, old, to: new, into: &encoder) }
      return Self.encode(keys, old, to: root.noted(keys), into: &encoder)
    case .many(let node): return node.encodePatch(to: copy root, into: &encoder)
    }
  }

  /// As `encode`, for an integer or a boolean at a short path of names; nil if it is none.
  @inline(__always)
  private static func encodeShort(
    _ keys: [PathKey], _ old: Value?, to new: Value,
    into encoder: inout CBOREncoder
  ) -> Bool? {
    switch (old, new) {
    case (.integer(let old)?, .integer(let new)) where old == new: return false
    case (.bool(let old)?, .bool(let new)) where old == new: return false
    default: break
    }
    let isWhole = encoder.append { items in
      for key in keys {
        guard case .text(let name) = key else { return items.leaveOut() }
        items.head(.map, 1)
        items.encode(name)
      }
      switch new {
      case .integer(let value): items.encode(value)
      case .bool(let value): items.encode(value)
      case .null, .unsigned, .double, .text, .bytes, .array, .object: items.leaveOut()
      }
    }
    return isWhole ? true : nil
  }

  /// The patch of one place, from `old` to `new`: a chain of maps with one entry each.
  private static func encode(
    _ keys: [PathKey], _ old: Value?, to new: Value?, into encoder: inout CBOREncoder
  ) -> Bool {
    let start = encoder.bytes.count
    for key in keys {
      switch key {
      case .text: encoder.map(1)
      case .integer:
        encoder.array(2)
        encoder.array(0)
        encoder.map(1)
      }
      key.encode(into: &encoder)
    }
    if new.encodeDifference(from: old, into: &encoder) { return true }
    encoder.bytes.removeSubrange(start...)
    return false
  }
}

extension EditNotes.Node {
  fileprivate func encodePatch(to value: Value?, into encoder: inout CBOREncoder) -> Bool {
    switch self {
    case .whole(let old): return value.encodeDifference(from: old, into: &encoder)
    case .inside(let children):
      switch value {
      case .array(let elements)?:
        return Self.encodeEdits(children, of: elements, into: &encoder)
      case .object(let entries)?:
        var map = PatchMap(in: &encoder)
        for (key, child) in children {
          guard case .text(let name) = key else { continue }
          let mark = map.open(encoder)
          encoder.encode(name)
          let isChanged = child.encodePatch(to: entries[name], into: &encoder)
          map.close(mark, changed: isChanged, &encoder)
        }
        return map.finish(&encoder)
      default: preconditionFailure("A note names a place that the value does not have.")
      }
    }
  }

  /// Append the edits of elements. For two or more, the difference of arrays may make a splice, so
  /// it encodes them all: `O(edits · log n)`.
  private static func encodeEdits(
    _ children: [PathKey: EditNotes.Node], of elements: TreeArray<Value>,
    into encoder: inout CBOREncoder
  ) -> Bool {
    if children.count == 1, let (key, child) = children.first, case .integer(let index) = key {
      let start = encoder.bytes.count
      encoder.array(2)
      encoder.array(0)
      encoder.map(1)
      encoder.encode(index)
      if child.encodePatch(to: elements[Int(index)], into: &encoder) { return true }
      encoder.bytes.removeSubrange(start...)
      return false
    }
    var old = Value.array(elements)
    undo(children, on: &old)
    return Value.array(elements).encodeDifference(from: old, into: &encoder)
  }
}

extension Value {
  /// The present value at a noted place; nil if nothing is there.
  func noted(_ keys: [PathKey]) -> Value? {
    var place: Value? = self
    for key in keys { place = place?.noted(key) }
    return place
  }

  /// The present value at a noted place of this container.
  fileprivate func noted(_ key: PathKey) -> Value? {
    switch (self, key) {
    case (.object(let entries), .text(let name)): entries[name]
    case (.array(let elements), .integer(let index)): elements[Int(index)]
    default: nil
    }
  }
}
