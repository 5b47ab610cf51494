import CBOR
import Values

/// Decodes values into their JSON form, as a schema describes them.
struct SchemaReader {
  let schema: Schema
  var decoder: CBORDecoder

  mutating func read(_ kind: Schema.Kind) throws(ActionJSONError) -> Value {
    switch kind {
    case .value:
      return try read { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    case .bool: return .bool(try read { (decoder) throws(CBORError) in try decoder.bool() })
    case .integer:
      return .integer(try read { (decoder) throws(CBORError) in try decoder.integer() })
    case .unsigned:
      return Value(try read { (decoder) throws(CBORError) in try decoder.unsigned() })
    case .double:
      return .double(try read { (decoder) throws(CBORError) in try decoder.double() })
    case .text: return .text(try read { (decoder) throws(CBORError) in try decoder.text() })
    case .bytes:
      let bytes = try read { (decoder) throws(CBORError) in try decoder.byteString() }
      return .text(Base64.text(bytes))
    case .path:
      return .text(
        try read { (decoder) throws(CBORError) in try Path(from: &decoder) }.pointer)
    case .optional(let wrapped): return decoder.undefinedIfNext() ? .null : try read(wrapped)
    case .array(let element):
      let count = try read { (decoder) throws(CBORError) in try decoder.array() }
      var elements: [Value] = []
      for _ in 0..<count { elements.append(try read(element)) }
      decoder.close()
      return .array(TreeArray(elements))
    case .map(let key, let element): return try readMap(key, element)
    case .type(let name):
      switch try schema.definition(name) {
      case .structure(let fields): return try readStructure(fields)
      case .enumeration(let cases): return try readCase(cases)
      }
    }
  }

  private mutating func read<R>(
    _ body: (inout CBORDecoder) throws(CBORError) -> R
  ) throws(ActionJSONError) -> R {
    do throws(CBORError) { return try body(&decoder) } catch { throw ActionJSONError("\(error)") }
  }

  private mutating func readMap(
    _ key: Schema.Kind, _ element: Schema.Kind
  ) throws(ActionJSONError) -> Value {
    let count = try read { (decoder) throws(CBORError) in try decoder.map() }
    var entries = TrieMap<String, Value>()
    for _ in 0..<count {
      let start = decoder.offset
      let name: String
      switch try read(key) {
      case .text(let text): name = text
      case .integer(let number): name = "\(number)"
      case .unsigned(let number): name = "\(number)"
      default: throw ActionJSONError("\(key.expected) cannot be a key in JSON, at byte \(start)")
      }
      entries.updateValue(try read(element), forKey: name)
    }
    decoder.close()
    return .object(entries)
  }

  private mutating func readStructure(
    _ fields: [Schema.Field]
  ) throws(ActionJSONError) -> Value {
    let count = try read { (decoder) throws(CBORError) in try decoder.map() }
    var entries = TrieMap<String, Value>()
    for _ in 0..<count {
      let id = try read { (decoder) throws(CBORError) in try decoder.unsigned() }
      if let field = fields.first(where: { UInt64(exactly: $0.id) == id }) {
        entries.updateValue(try read(field.kind), forKey: field.name)
      } else {
        try read { (decoder) throws(CBORError) in try decoder.skip() }
      }
    }
    decoder.close()
    return .object(entries)
  }

  /// Read a case: its number, or an array of its number and fields.
  private mutating func readCase(_ cases: [Schema.Case]) throws(ActionJSONError) -> Value {
    let start = decoder.offset
    let isAlone = try read { (decoder) throws(CBORError) in
      try decoder.peekMajor() == .unsigned
    }
    let items = isAlone ? 1 : try read { (decoder) throws(CBORError) in try decoder.array() }
    guard items > 0 else { throw ActionJSONError("an action without a number, at byte \(start)") }
    let number = try read { (decoder) throws(CBORError) in try decoder.unsigned() }
    guard let item = cases.first(where: { UInt64(exactly: $0.id) == number }) else {
      let known = cases.map { "\($0.id) (\($0.name))" }
      throw ActionJSONError("there is no action number \(number); \(Schema.list(known))")
    }
    let values = try readFields(of: item, count: items - 1)
    if !isAlone {
      for _ in values.count..<Swift.max(values.count, items - 1) {
        try read { (decoder) throws(CBORError) in try decoder.skip() }
      }
      decoder.close()
    }
    return Self.form(item, values)
  }

  /// The fields of a case, nil for an absent one. Optionals at the end may be left out.
  private mutating func readFields(
    of item: Schema.Case, count: Int
  ) throws(ActionJSONError) -> [Value?] {
    var values: [Value?] = []
    for (index, field) in item.fields.enumerated() {
      if index >= count {
        guard field.kind.isOptional else {
          throw ActionJSONError("\(item.name) lacks its field \"\(field.name)\"")
        }
      } else if field.kind.isOptional && decoder.undefinedIfNext() {
        values.append(nil)
      } else {
        values.append(try read(field.kind))
      }
    }
    return values
  }

  private static func form(_ item: Schema.Case, _ values: [Value?]) -> Value {
    if item.fields.isEmpty { return .text(item.name) }
    let content: Value
    if item.fields.count == 1 && item.fields[0].isUnnamed {
      content = (values.first ?? nil) ?? .null
    } else if item.fields.allSatisfy(\.isUnnamed) {
      let missing = repeatElement(Value.null, count: item.fields.count - values.count)
      content = .array(TreeArray(values.map { $0 ?? .null } + missing))
    } else {
      var entries = TrieMap<String, Value>()
      for (field, value) in zip(item.fields, values) {
        if let value { entries.updateValue(value, forKey: field.name) }
      }
      content = .object(entries)
    }
    return .object([item.name: content])
  }
}
