import CBOR
public import Values

extension ViewFilter {
  /// The visible part of a value in value form: `undefined` if nothing is visible.
  public func shown(_ value: [UInt8]) -> [UInt8] {
    var encoder = CBOREncoder(reservingCapacity: value.count)
    let isSeen = value.withUnsafeBytes { filter(value: $0, into: &encoder) }
    if !isSeen { encoder.encodeUndefined() }
    return encoder.bytes
  }

  /// Bytes that are equal for equal filters and differ for others, in every process.
  public var signature: [UInt8] {
    var encoder = CBOREncoder()
    node.encode(into: &encoder)
    return encoder.bytes
  }

  /// Whether a struct may be shown without one of its fields. A client that has its type fills in
  /// the field's default, or cannot decode the struct: either way, its value is not the one that
  /// was sent.
  public func hidesFields(of kind: Schema.Kind?, in schema: Schema) -> Bool {
    node.hidesFields(of: kind, in: schema)
  }
}

extension ViewNode {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .nothing: encoder.encode(false)
    case .everything: encoder.encode(true)
    case .part(let part):
      let entries = part.entries.map { key, node in (key: key.bytes, node: node) }
      encoder.array(3 + 2 * entries.count)
      encoder.encode(part.isPermitted)
      encoder.encode(UInt64(part.forms.rawValue))
      part.others.encode(into: &encoder)
      for entry in entries.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        encoder.raw(entry.key)
        entry.node.encode(into: &encoder)
      }
    }
  }

  fileprivate func hidesFields(of kind: Schema.Kind?, in schema: Schema) -> Bool {
    guard case .part(let part) = self else { return false }
    switch kind?.present {
    case .map(_, let value)?:
      return ([part.others] + part.entries.values).contains {
        $0.hidesFields(of: value, in: schema)
      }
    case .type(let name)?:
      guard case .structure(let fields)? = schema.types[name] else { return false }
      return fields.contains { field in
        let node = part.child(.integer(Int64(field.id)))
        let isSeen = node != .nothing || field.kind.isOptional
        return !isSeen || node.hidesFields(of: field.kind, in: schema)
      }
    case .bool?, .integer?, .unsigned?, .double?, .text?, .bytes?, .value?, .path?, .array?,
      .optional?, nil:
      return false
    }
  }
}

extension PathKey {
  fileprivate var bytes: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }
}
