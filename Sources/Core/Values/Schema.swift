public import CBOR

/// The types of a feature's state and actions. With a schema, a peer that has never seen the types
/// can show them by name, write them as JSON, and send actions.
///
/// The number of a field or case is never reused for another name; peers match by name.
public struct Schema: Hashable, Sendable {
  /// The type of a value.
  public indirect enum Kind: Hashable, Sendable {
    case bool
    case integer
    case unsigned
    case double
    case text
    case bytes
    /// Anything a document can hold (`Value`).
    case value
    /// A path: an array of keys on the wire, a JSON Pointer for people.
    case path
    case optional(Kind)
    case array(Kind)
    case map(key: Kind, value: Kind)
    /// A type of `Schema.types`.
    case type(String)

    /// Whether a value may be absent.
    public var isOptional: Bool {
      guard case .optional = self else { return false }
      return true
    }

    /// The kind of a value that is not absent.
    public var present: Kind {
      if case .optional(let kind) = self { kind.present } else { self }
    }
  }

  /// A stored property of a struct, or a value that a case carries.
  public struct Field: Hashable, Sendable {
    public var id: Int
    public var name: String
    public var kind: Kind
    /// Whether a value that lacks the field decodes, with a default in its place. It is sent for the
    /// fields of actions, so that a sender may leave them out; `==` ignores it.
    public var hasDefault: Bool

    public init(_ id: Int, _ name: String, _ kind: Kind, hasDefault: Bool = false) {
      self.id = id
      self.name = name
      self.kind = kind
      self.hasDefault = hasDefault
    }

    /// Whether a sender may leave the field out.
    public var mayBeLeftOut: Bool { kind.isOptional || hasDefault }

    /// Whether the field is unnamed: its name is empty, or `_` and digits.
    public var isUnnamed: Bool {
      name.isEmpty
        || name.utf8.first == UInt8(ascii: "_") && name.utf8.count > 1
          && name.utf8.dropFirst().allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }

    public static func == (first: Self, second: Self) -> Bool {
      first.id == second.id && String.isSame(first.name, second.name)
        && first.kind == second.kind
    }

    public func hash(into hasher: inout Hasher) {
      hasher.combine(id)
      hasher.combine(name)
      hasher.combine(kind)
    }
  }

  /// A case of an enumeration. On the wire: its number, or an array of its number and fields.
  public struct Case: Hashable, Sendable {
    public var id: Int
    public var name: String
    public var fields: [Field]
    /// Whether unknown cases of a peer decode to this case (`@Fallback`). Only a process that has
    /// the type knows this: it is not sent, and `==` ignores it.
    public var isFallback: Bool

    public init(_ id: Int, _ name: String, _ fields: [Field] = [], isFallback: Bool = false) {
      self.id = id
      self.name = name
      self.fields = fields
      self.isFallback = isFallback
    }

    public static func == (first: Self, second: Self) -> Bool {
      first.id == second.id && String.isSame(first.name, second.name)
        && first.fields == second.fields
    }

    public func hash(into hasher: inout Hasher) {
      hasher.combine(id)
      hasher.combine(name)
      hasher.combine(fields)
    }
  }

  public enum Definition: Hashable, Sendable {
    /// On the wire: a map from field number to value.
    case structure([Field])
    case enumeration([Case])
  }

  public var state: Kind
  public var action: Kind
  public var types: [String: Definition]

  public init(state: Kind, action: Kind, types: [String: Definition] = [:]) {
    self.state = state
    self.action = action
    self.types = types
  }

  /// A hash of the encoded schema: equal for equal schemas.
  public var fingerprint: UInt64 {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes.withUnsafeBytes { Hashing.sip($0, seed: HashSeed(0)) }
  }
}

// MARK: Form

extension Schema {
  /// Append the schema as `{"state": kind, "types": {name: definition}, "action": kind}`, and
  /// `"defaults"` (`Schema+Defaults.swift`) if fields of actions have any.
  public func encode(into encoder: inout CBOREncoder) {
    let defaults = actionDefaults
    encoder.map(defaults.isEmpty ? 3 : 4)
    encoder.encode("state")
    state.encode(into: &encoder)
    encoder.encode("types")
    encoder.map(types.count)
    // Deterministic: as their encoded forms sort.
    for (name, definition) in types.sorted(by: { Self.precedes($0.key, $1.key) }) {
      encoder.encode(name)
      definition.encode(into: &encoder)
    }
    encoder.encode("action")
    action.encode(into: &encoder)
    if !defaults.isEmpty { Self.encode(defaults, into: &encoder) }
  }

  /// Whether a name comes before another in an encoding: shorter ones first.
  static func precedes(_ first: String, _ second: String) -> Bool {
    first.utf8.count != second.utf8.count
      ? first.utf8.count < second.utf8.count : first.utf8.lexicographicallyPrecedes(second.utf8)
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    var state: Kind?
    var action: Kind?
    var types: [String: Definition] = [:]
    var defaults: [String: [Member]] = [:]
    for _ in 0..<(try decoder.map()) {
      switch try decoder.text() {
      case "state": state = try Kind(from: &decoder)
      case "action": action = try Kind(from: &decoder)
      case "types":
        for _ in 0..<(try decoder.map()) {
          let name = try decoder.text()
          types[name] = try Definition(from: &decoder)
        }
        decoder.close()
      case "defaults": defaults = try Self.defaults(from: &decoder)
      default: try decoder.skip()
      }
    }
    decoder.close()
    guard let state, let action else {
      throw CBORError(.notAllowed("a schema without \"state\" and \"action\""), at: start)
    }
    self.init(state: state, action: action, types: types)
    note(defaults)
  }
}

extension Schema.Kind {
  func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .bool: encoder.encode("bool")
    case .integer: encoder.encode("int")
    case .unsigned: encoder.encode("uint")
    case .double: encoder.encode("double")
    case .text: encoder.encode("text")
    case .bytes: encoder.encode("bytes")
    case .value: encoder.encode("value")
    case .path: encoder.encode("path")
    case .optional(let kind):
      encoder.array(2)
      encoder.encode("optional")
      kind.encode(into: &encoder)
    case .array(let kind):
      encoder.array(2)
      encoder.encode("array")
      kind.encode(into: &encoder)
    case .map(let key, let value):
      encoder.array(3)
      encoder.encode("map")
      key.encode(into: &encoder)
      value.encode(into: &encoder)
    case .type(let name):
      encoder.array(2)
      encoder.encode("type")
      encoder.encode(name)
    }
  }

  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.peekMajor() == .array else {
      switch try decoder.text() {
      case "bool": self = .bool
      case "int": self = .integer
      case "uint": self = .unsigned
      case "double": self = .double
      case "text": self = .text
      case "bytes": self = .bytes
      case "value": self = .value
      case "path": self = .path
      case let other: throw CBORError(.notAllowed("unknown kind \"\(other)\""), at: start)
      }
      return
    }
    let count = try decoder.array()
    switch (try decoder.text(), count) {
    case ("optional", 2): self = .optional(try Self(from: &decoder))
    case ("array", 2): self = .array(try Self(from: &decoder))
    case ("map", 3): self = .map(key: try Self(from: &decoder), value: try Self(from: &decoder))
    case ("type", 2): self = .type(try decoder.text())
    case (let other, _): throw CBORError(.notAllowed("unknown kind \"\(other)\""), at: start)
    }
    decoder.close()
  }
}

extension Schema.Definition {
  func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    switch self {
    case .structure(let fields):
      encoder.encode("struct")
      Schema.encode(fields, into: &encoder)
    case .enumeration(let cases):
      encoder.encode("enum")
      encoder.array(cases.count)
      for item in cases {
        encoder.array(3)
        encoder.encode(item.id)
        encoder.encode(item.name)
        Schema.encode(item.fields, into: &encoder)
      }
    }
  }

  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("a type is [\"struct\" or \"enum\", members]"), at: start)
    }
    switch try decoder.text() {
    case "struct": self = .structure(try Schema.fields(from: &decoder))
    case "enum":
      var cases: [Schema.Case] = []
      for _ in 0..<(try decoder.array()) {
        let position = decoder.offset
        guard try decoder.array() == 3 else {
          throw CBORError(.notAllowed("a case is [number, name, fields]"), at: position)
        }
        let id = try decoder.unsigned(as: Int.self)
        cases.append(.init(id, try decoder.text(), try Schema.fields(from: &decoder)))
        decoder.close()
      }
      decoder.close()
      self = .enumeration(cases)
    case let other: throw CBORError(.notAllowed("unknown type form \"\(other)\""), at: start)
    }
    decoder.close()
  }
}

extension Schema {
  fileprivate static func encode(_ fields: [Field], into encoder: inout CBOREncoder) {
    encoder.array(fields.count)
    for field in fields {
      encoder.array(3)
      encoder.encode(field.id)
      encoder.encode(field.name)
      field.kind.encode(into: &encoder)
    }
  }

  fileprivate static func fields(from decoder: inout CBORDecoder) throws(CBORError) -> [Field] {
    var fields: [Field] = []
    for _ in 0..<(try decoder.array()) {
      let start = decoder.offset
      guard try decoder.array() == 3 else {
        throw CBORError(.notAllowed("a field is [number, name, kind]"), at: start)
      }
      let id = try decoder.unsigned(as: Int.self)
      fields.append(.init(id, try decoder.text(), try Kind(from: &decoder)))
      decoder.close()
    }
    decoder.close()
    return fields
  }
}
