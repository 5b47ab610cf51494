import Values

// Fields travel as numbers; people and programs that know no types name them by text. A nil kind is
// anything that a document can hold.
extension Schema {
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
