import Values

// Fields travel as numbers, and a map may have integer keys; people and programs that know no types
// name both by text. A nil kind is anything a document can hold.
extension Schema {
  /// The path by which the value that people call `path` travels; nil if there can be none.
  func wirePath(of path: Path) -> Path? {
    var kind: Kind? = state
    var keys: [PathKey] = []
    for key in path.keys {
      guard let step = wireKey(of: key.description, in: kind) else { return nil }
      keys.append(step.key)
      kind = step.kind
    }
    return Path(keys)
  }

  private func wireKey(of name: String, in kind: Kind?) -> (key: PathKey, kind: Kind?)? {
    switch kind?.present {
    case nil, .value?: return (.text(name), .value)
    case .map(.text, let value)?: return (.text(name), value)
    case .map(_, let value)?: return Int64(name).map { (.integer($0), value) }
    case .type?:
      let field = fields(of: kind)?.first { String.isSame($0.name, name) }
      return field.map { (.integer(Int64($0.id)), $0.kind) }
    case .bool?, .integer?, .unsigned?, .double?, .text?, .bytes?, .path?, .optional?, .array?:
      return nil
    }
  }

  /// What people call the part of a value of some kind that travels by this key, and its kind.
  func name(of key: PathKey, in kind: Kind?) -> (name: PathKey, kind: Kind?) {
    switch kind?.present {
    case .map(_, let value)?: return (key, value)
    case .type?:
      let field = fields(of: kind)?.first { key == .integer(Int64($0.id)) }
      return field.map { (.text($0.name), $0.kind) } ?? (key, nil)
    default: return (key, nil)
    }
  }

  /// The fields of a struct; nil if the kind is none.
  private func fields(of kind: Kind?) -> [Field]? {
    guard case .type(let name)? = kind?.present, case .structure(let fields)? = types[name] else {
      return nil
    }
    return fields
  }

  /// What people call values of this kind, given how they travel.
  func word(for kind: Kind?, travelsAs value: UInt8) -> String {
    switch kind?.present {
    case .map?: return "map"
    case .type(let name)?:
      if case .enumeration? = types[name] { return "case" }
      return "struct"
    case .path?: return "path"
    default: break
    }
    switch value >> 5 {
    case 0, 1: return "number"
    case 2: return "bytes"
    case 3: return "string"
    case 4: return "array"
    case 5: return "object"
    default:
      switch value {
      case 0xf4, 0xf5: return "boolean"
      case 0xf6: return "null"
      default: return "number"
      }
    }
  }
}
