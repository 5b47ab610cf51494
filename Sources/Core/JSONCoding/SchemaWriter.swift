import CBOR
import Values

/// Encodes values from their JSON form, as a schema describes them.
struct SchemaWriter {
  let schema: Schema
  var encoder = CBOREncoder()
  /// The location of the writer in the JSON form.
  private var place: [String] = []

  init(schema: Schema) { self.schema = schema }

  mutating func write(_ value: Value, _ kind: Schema.Kind) throws(ActionJSONError) {
    switch (kind, value) {
    case (.value, _): value.encode(into: &encoder)
    case (.bool, .bool(let flag)): encoder.encode(flag)
    case (.integer, .integer(let number)): encoder.encode(number)
    case (.unsigned, .integer(let number)) where number >= 0: encoder.encode(number)
    case (.unsigned, .unsigned(let number)): encoder.encode(number)
    case (.double, .double(let number)): encoder.encode(number)
    case (.double, .integer(let number)): encoder.encode(Double(number))
    case (.double, .unsigned(let number)): encoder.encode(Double(number))
    case (.text, .text(let text)): encoder.encode(text)
    case (.bytes, .bytes(let bytes)): encoder.encode(bytes: bytes)
    case (.bytes, .text(let text)):
      guard let bytes = Base64.bytes(text) else { throw mismatch(value, kind) }
      encoder.encode(bytes: bytes)
    case (.path, .text(let pointer)):
      guard let path = Path(pointer: pointer) else {
        throw error(
          "\(value.summary) is no JSON Pointer: it is empty or begins with '/', and writes '~' "
            + "as ~0")
      }
      path.encode(into: &encoder)
    case (.path, .array(let keys)): try writePath(keys)
    case (.optional(let wrapped), .null) where !wrapped.hasNull: encoder.encodeUndefined()
    case (.optional(let wrapped), _): try write(value, wrapped)
    case (.array(let element), .array(let elements)):
      encoder.array(elements.count)
      for (index, item) in elements.enumerated() { try write(item, element, at: "\(index)") }
    case (.map(let key, let element), .object(let entries)):
      try write(entries, key, element)
    case (.type(let name), _):
      switch try schema.definition(name) {
      case .structure(let fields): try write(value, structure: name, fields)
      case .enumeration(let cases): try write(value, enumeration: cases)
      }
    case (.bool, _), (.integer, _), (.unsigned, _), (.double, _), (.text, _), (.bytes, _),
      (.path, _), (.array, _), (.map, _):
      throw mismatch(value, kind)
    }
  }

  private mutating func write(
    _ value: Value, _ kind: Schema.Kind, at step: String
  ) throws(ActionJSONError) {
    place.append(step)
    try write(value, kind)
    place.removeLast()
  }

  // MARK: Parts

  private mutating func writePath(_ keys: TreeArray<Value>) throws(ActionJSONError) {
    encoder.array(keys.count)
    for key in keys {
      switch key {
      case .text(let name): encoder.encode(name)
      case .integer(let index): encoder.encode(index)
      default: throw error("a key of a path is a string or an integer, not \(key.summary)")
      }
    }
  }

  private mutating func write(
    _ entries: TrieMap<String, Value>, _ key: Schema.Kind, _ element: Schema.Kind
  ) throws(ActionJSONError) {
    encoder.map(entries.count)
    for (name, value) in entries.sorted(by: { String.precedes($0.key, $1.key) }) {
      switch key {
      case .integer:
        guard let number = Int64(name) else { throw error("the key \"\(name)\" is no integer") }
        encoder.encode(number)
      case .unsigned:
        guard let number = UInt64(name) else { throw error("the key \"\(name)\" is no integer") }
        encoder.encode(number)
      default: encoder.encode(name)
      }
      try write(value, element, at: name)
    }
  }

  private mutating func write(
    _ value: Value, structure name: String, _ fields: [Schema.Field]
  ) throws(ActionJSONError) {
    guard case .object(let members) = value else { throw mismatch(value, .type(name)) }
    try checkNames(of: members, fields, "field")
    let present = fields.filter { members[$0.name] != nil || !$0.mayBeLeftOut }
    encoder.map(present.count)
    for field in present.sorted(by: { $0.id < $1.id }) {
      guard let member = members[field.name] else { throw missing(field) }
      encoder.encode(field.id)
      try write(member, field.kind, at: field.name)
    }
  }

  private mutating func write(
    _ value: Value, enumeration cases: [Schema.Case]
  ) throws(ActionJSONError) {
    switch value {
    case .text(let name):
      let item = try find(name, in: cases)
      guard item.fields.allSatisfy(\.mayBeLeftOut) else {
        let fields = item.fields.map(\.name).joined(separator: ", ")
        throw error("\"\(name)\" needs its fields: {\"\(name)\": …} with \(fields)")
      }
      if item.fields.isEmpty { return encoder.encode(item.id) }
      try write([Value?](repeating: nil, count: item.fields.count), of: item)
    case .object(let members):
      guard members.count == 1, let (name, fields) = members.first(where: { _ in true }) else {
        throw error("an action is one name with its fields, not \(value.summary)")
      }
      let item = try find(name, in: cases)
      place.append(name)
      try write(fields, of: item)
      place.removeLast()
    default: throw error("an action is \"name\" or {\"name\": fields}, not \(value.summary)")
    }
  }

  private func find(_ name: String, in cases: [Schema.Case]) throws(ActionJSONError) -> Schema.Case
  {
    if let item = cases.first(where: { String.isSame($0.name, name) }) { return item }
    throw error("there is no action \"\(name.truncated)\"; \(Schema.list(cases.map(\.name)))")
  }

  private mutating func write(
    _ value: Value, of item: Schema.Case
  ) throws(ActionJSONError) {
    let fields = item.fields
    if fields.isEmpty {
      switch value {
      case .null: break
      case .object(let members) where members.isEmpty: break
      default: throw error("the action has no fields, but got \(value.summary)")
      }
      encoder.encode(item.id)
      return
    }
    try write(try values(value, of: fields), of: item)
  }

  /// The values of the fields of a case; nil for those left out.
  private func values(
    _ value: Value, of fields: [Schema.Field]
  ) throws(ActionJSONError) -> [Value?] {
    if fields.count == 1 && fields[0].isUnnamed { return [given(value, fields[0])] }
    if fields.allSatisfy(\.isUnnamed) {
      guard case .array(let values) = value, values.count <= fields.count,
        fields[values.count...].allSatisfy(\.hasDefault)
      else {
        throw error("expected an array of \(fields.count) values, got \(value.summary)")
      }
      let left = [Value?](repeating: nil, count: fields.count - values.count)
      return zip(values, fields).map(given) + left
    }
    guard case .object(let members) = value else {
      let names = Schema.list(fields.map(\.name))
      throw error("expected an object of fields (\(names)), got \(value.summary)")
    }
    try checkNames(of: members, fields, "field")
    return fields.map { members[$0.name] }
  }

  /// The value of an unnamed field; nil where null means that a field with a default is left out.
  private func given(_ value: Value, _ field: Schema.Field) -> Value? {
    // `nil` alone would be the value null.
    value == .null && field.hasDefault && !field.kind.hasNull ? Value?.none : value
  }

  /// Append a case with these values. Those with a default are left out at the end, and
  /// `undefined` before.
  private mutating func write(
    _ values: [Value?], of item: Schema.Case
  ) throws(ActionJSONError) {
    let fields = item.fields
    let end =
      fields.indices.last { values[$0] != nil || !fields[$0].hasDefault }.map { $0 + 1 } ?? 0
    encoder.array(end + 1)
    encoder.encode(item.id)
    for (field, value) in zip(fields, values).prefix(end) {
      if let value {
        try write(value, field, of: item)
      } else if field.mayBeLeftOut {
        encoder.encodeUndefined()
      } else {
        throw missing(field)
      }
    }
  }

  private mutating func write(
    _ value: Value, _ field: Schema.Field, of item: Schema.Case
  ) throws(ActionJSONError) {
    guard field.isUnnamed else { return try write(value, field.kind, at: field.name) }
    if item.fields.count == 1 { return try write(value, field.kind) }
    guard item.fields.allSatisfy(\.isUnnamed),
      let index = item.fields.firstIndex(where: { $0.id == field.id })
    else { return try write(value, field.kind, at: field.name) }
    try write(value, field.kind, at: "\(index)")
  }

  // MARK: Errors

  private func checkNames(
    of members: TrieMap<String, Value>, _ fields: [Schema.Field], _ what: String
  ) throws(ActionJSONError) {
    for (name, _) in members where !fields.contains(where: { String.isSame($0.name, name) }) {
      throw error("there is no \(what) \"\(name.truncated)\"; \(Schema.list(fields.map(\.name)))")
    }
  }

  private func missing(_ field: Schema.Field) -> ActionJSONError {
    error("the field \"\(field.name)\", \(field.kind.expected), is missing")
  }

  private func mismatch(_ value: Value, _ kind: Schema.Kind) -> ActionJSONError {
    error("expected \(kind.expected), got \(value.summary)")
  }

  private func error(_ message: String) -> ActionJSONError {
    ActionJSONError(message, at: place.joined(separator: "."))
  }
}
