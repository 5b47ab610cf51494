import CBOR
public import Values

/// Converts actions of any feature from the JSON that people write to the payload that travels,
/// using only the feature's schema. A translation to names (`Schemas`) is the other direction.
///
///     {"increment": {"path": "/a/b", "by": 1}}     a case and its fields by name
///     "reset"                                      a case without fields
///     {"todos": {"add": "milk"}}                   a case with one unnamed field
///     {"resize": [640, 480]}                       a case with several unnamed fields
///
/// A path is a JSON Pointer or an array of keys, a `bytes` is base64, an absent optional is left
/// out or null (if null is not a value of its own). Structs are objects of their fields.
///
/// A field counts as unnamed when its name is empty or `_` and digits.
public enum ActionJSON {
  /// The payload of an action that is given as JSON.
  public static func payload(
    of action: Value, schema: Schema
  ) throws(ActionJSONError) -> [UInt8] {
    var writer = SchemaWriter(schema: schema)
    try writer.write(action, schema.action)
    return writer.encoder.bytes
  }

  /// The action of a name, with what it carries, in the form that `payload` takes. Cases inside of
  /// cases are joined by dots, from the outermost one on: `todos.add`. Where an outer case carries
  /// other values before the action, as a row's does its key, `content` is an array of these and
  /// of what the inner one carries, if anything: `beds.water` with `[3, {"seconds": 60}]`.
  public static func action(
    named name: String, carrying content: Value?, schema: Schema
  ) throws(ActionJSONError) -> Value {
    let names = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard names.count <= JSON.defaultDepth else {
      throw ActionJSONError("\(names.count) names inside each other are too many")
    }
    return try action(names[...], schema.action, content, schema)
  }

  private static func action(
    _ names: ArraySlice<String>, _ kind: Schema.Kind, _ content: Value?, _ schema: Schema
  ) throws(ActionJSONError) -> Value {
    // Never empty: a text splits into at least one part.
    guard let name = names.first else { return content ?? .null }
    guard case .type(let type) = kind.present,
      case .enumeration(let cases) = try schema.definition(type)
    else { throw ActionJSONError("\(kind.expected) has no cases, so there is no \"\(name)\"") }
    guard names.count > 1 else { return content.map { .object([name: $0]) } ?? .text(name) }
    guard let item = cases.first(where: { String.isSame($0.name, name) }) else {
      throw ActionJSONError(
        "there is no action \"\(name.truncated)\"; \(Schema.list(cases.map(\.name)))")
    }
    guard let last = item.fields.last else {
      throw ActionJSONError("\"\(name)\" carries 0 values, and no action")
    }
    if item.fields.count == 1 {
      let inner = try action(names.dropFirst(), last.kind, content, schema)
      return .object([name: last.isUnnamed ? inner : .object([last.name: inner])])
    }
    return .object([name: try row(item, names.dropFirst(), content, schema)])
  }

  /// What a case carries that has an action as its last value.
  private static func row(
    _ item: Schema.Case, _ names: ArraySlice<String>, _ content: Value?, _ schema: Schema
  ) throws(ActionJSONError) -> Value {
    let fields = item.fields
    guard case .type(let type) = fields[fields.count - 1].kind.present,
      case .enumeration = try schema.definition(type)
    else {
      throw ActionJSONError("\"\(item.name)\" carries \(fields.count) values, and no action")
    }
    guard case .array(let values)? = content,
      (fields.count - 1...fields.count).contains(values.count)
    else {
      throw ActionJSONError(
        "\"\(item.name)\" carries \(fields.count - 1) values before its action: give an array of "
          + "them, and what the action carries")
    }
    var given = Array(values.prefix(fields.count - 1))
    let inner = values.count == fields.count ? values[fields.count - 1] : nil
    given.append(try action(names, fields[fields.count - 1].kind, inner, schema))
    if fields.allSatisfy(\.isUnnamed) { return .array(TreeArray(given)) }
    var members = TrieMap<String, Value>()
    for (field, value) in zip(fields, given) { members.updateValue(value, forKey: field.name) }
    return .object(members)
  }
}

/// The reason why JSON is not an action of the schema.
public struct ActionJSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, naming the offending value and the alternatives.
  public var message: String
  /// The location in the JSON form: `increment.by`, empty for the whole.
  public var place: String

  public init(_ message: String, at place: String = "") {
    self.message = message
    self.place = place
  }

  public var description: String { place.isEmpty ? message : "\(place): \(message)" }
}

extension Schema {
  func definition(_ name: String) throws(ActionJSONError) -> Definition {
    guard let definition = types[name] else {
      throw ActionJSONError("the schema has no type \"\(name)\"")
    }
    return definition
  }

  /// Names for "there are: …", sorted.
  static func list(_ names: some Sequence<String>) -> String {
    let names = names.sorted { String.precedes($0, $1) }
    return names.isEmpty ? "there are none" : "there are: \(names.joined(separator: ", "))"
  }
}

extension Schema.Kind {
  /// The kind in words.
  var expected: String {
    switch self {
    case .bool: "a boolean"
    case .integer: "an integer of 64 bits"
    case .unsigned: "an integer from 0 to 2^64 - 1"
    case .double: "a number"
    case .text: "a string"
    case .bytes: "a string of base64"
    case .value: "a value"
    case .path: "a JSON Pointer"
    case .optional(let kind): "\(kind.expected) or null"
    case .array: "an array"
    case .map: "an object"
    case .type(let name): "a \(name)"
    }
  }

  /// Whether null is a value of this kind rather than the absence of one.
  var hasNull: Bool {
    switch self {
    case .value, .optional: true
    case .bool, .integer, .unsigned, .double, .text, .bytes, .path, .array, .map, .type: false
    }
  }

  var isOptional: Bool {
    guard case .optional = self else { return false }
    return true
  }
}
