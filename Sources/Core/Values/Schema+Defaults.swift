import CBOR

// Which fields of actions have a default, so that a client that has never seen the types may leave
// them out. On the wire, behind the other keys of the schema:
//
//     "defaults": {type name: [field number or [case number, field number], …], …}
//
// Readers of an earlier version ignore the key.

extension Schema {
  /// A field of a type: of a struct, or of a case.
  struct Member: Hashable, Sendable {
    var item: Int?
    var field: Int
  }

  /// The fields with a default, of the types that actions are made of, by type.
  var actionDefaults: [String: [Member]] {
    var (found, waiting): ([String: [Member]], [Kind]) = ([:], [action])
    var seen: Set<String> = []
    while let kind = waiting.popLast() {
      switch kind {
      case .optional(let kind), .array(let kind): waiting.append(kind)
      case .map(let key, let value): waiting += [key, value]
      case .type(let name):
        guard seen.insert(name).inserted, let definition = types[name] else { continue }
        waiting += definition.fields.map(\.field.kind)
        let members = definition.fields.filter(\.field.hasDefault).map(\.member)
        if !members.isEmpty { found[name] = members }
      case .bool, .integer, .unsigned, .double, .text, .bytes, .value, .path: break
      }
    }
    return found
  }

  static func encode(_ defaults: [String: [Member]], into encoder: inout CBOREncoder) {
    encoder.encode("defaults")
    encoder.map(defaults.count)
    for (name, members) in defaults.sorted(by: { precedes($0.key, $1.key) }) {
      encoder.encode(name)
      encoder.array(members.count)
      for member in members {
        if let item = member.item {
          encoder.array(2)
          encoder.encode(item)
        }
        encoder.encode(member.field)
      }
    }
  }

  static func defaults(
    from decoder: inout CBORDecoder
  ) throws(CBORError) -> [String: [Member]] {
    var defaults: [String: [Member]] = [:]
    for _ in 0..<(try decoder.map()) {
      let name = try decoder.text()
      var members: [Member] = []
      for _ in 0..<(try decoder.array()) { members.append(try member(from: &decoder)) }
      decoder.close()
      defaults[name] = members
    }
    decoder.close()
    return defaults
  }

  private static func member(from decoder: inout CBORDecoder) throws(CBORError) -> Member {
    guard try decoder.peekMajor() == .array else {
      return Member(field: try decoder.unsigned(as: Int.self))
    }
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("a field of a case is [case, field]"), at: start)
    }
    let item = try decoder.unsigned(as: Int.self)
    let member = Member(item: item, field: try decoder.unsigned(as: Int.self))
    decoder.close()
    return member
  }

  /// Note which fields have a default. Fields that do not exist are ignored.
  mutating func note(_ defaults: [String: [Member]]) {
    for (name, members) in defaults {
      guard let definition = types[name] else { continue }
      types[name] = definition.withDefaults(Set(members))
    }
  }
}

extension Schema.Definition {
  /// The fields of the struct, or of all cases.
  fileprivate var fields: [(member: Schema.Member, field: Schema.Field)] {
    switch self {
    case .structure(let fields): fields.map { (.init(field: $0.id), $0) }
    case .enumeration(let cases):
      cases.flatMap { item in item.fields.map { (.init(item: item.id, field: $0.id), $0) } }
    }
  }

  fileprivate func withDefaults(_ members: Set<Schema.Member>) -> Self {
    switch self {
    case .structure(let fields):
      return .structure(fields.map { $0.withDefault(members.contains(.init(field: $0.id))) })
    case .enumeration(let cases):
      return .enumeration(
        cases.map { item in
          var item = item
          item.fields = item.fields.map {
            $0.withDefault(members.contains(.init(item: item.id, field: $0.id)))
          }
          return item
        })
    }
  }
}

extension Schema.Field {
  fileprivate func withDefault(_ hasDefault: Bool) -> Self {
    var field = self
    field.hasDefault = field.hasDefault || hasDefault
    return field
  }
}
