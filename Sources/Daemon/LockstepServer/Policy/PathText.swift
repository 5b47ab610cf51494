import Access
import Values

/// A path of a policy, as a person writes it: a JSON Pointer with stars, by the schema's names.
struct PathText {
  struct Failure: Error {
    let message: String
  }

  /// The patterns that the path means. There may be several: a star among the fields of a struct,
  /// with keys after it, means each field that has such keys.
  let patterns: [PathPattern]

  init(_ text: String, _ schema: Schema) throws(Failure) {
    let walk = Walk(schema: schema)
    patterns = try walk.steps(Self.tokens(of: text)[...], schema.state, behind: "").map {
      PathPattern($0)
    }
  }

  private enum Token {
    case any
    case key(String)

    var step: PathPattern.Step {
      switch self {
      case .any: .any
      case .key(let key): .key(.text(key))
      }
    }

    /// The token as it is written in a path.
    var text: String {
      switch self {
      case .any: "/*"
      case .key(let key): Path([.text(key)]).pointer
      }
    }
  }

  private static func tokens(of text: String) throws(Failure) -> [Token] {
    guard text.utf8.first == UInt8(ascii: "/") else {
      throw Failure(message: "\(text.quoted) is no path: a path begins with /")
    }
    if text == "/" { return [] }
    var tokens: [Token] = []
    for token in text.utf8.dropFirst().split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    {
      guard !token.isEmpty else {
        throw Failure(message: "\(text.quoted) has an empty key: one / too many")
      }
      tokens.append(try self.token(token, in: text))
    }
    return tokens
  }

  private static func token(
    _ token: Substring.UTF8View, in text: String
  ) throws(Failure) -> Token {
    let star = UInt8(ascii: "*")
    if token.elementsEqual([star]) { return .any }
    var key: [UInt8] = []
    var isEscaped = false
    for byte in token {
      switch (isEscaped, byte) {
      case (false, UInt8(ascii: "~")): isEscaped = true
      case (false, star):
        throw Failure(
          message: "in \(text.quoted), a star stands beside other characters: it is a whole key, "
            + "or written ~2 where a star is meant")
      case (false, _): key.append(byte)
      case (true, UInt8(ascii: "0")): key.append(UInt8(ascii: "~"))
      case (true, UInt8(ascii: "1")): key.append(UInt8(ascii: "/"))
      case (true, UInt8(ascii: "2")): key.append(star)
      case (true, _): throw badEscape(text)
      }
      if byte != UInt8(ascii: "~") { isEscaped = false }
    }
    if isEscaped { throw badEscape(text) }
    return .key(String(decoding: key, as: UTF8.self))
  }

  private static func badEscape(_ text: String) -> Failure {
    Failure(message: "in \(text.quoted), ~ must be written ~0 (and / is ~1, * is ~2)")
  }

  // MARK: Names

  /// A walk along a path through the kinds of a schema.
  private struct Walk {
    let schema: Schema

    /// The steps of the rest of a path, at a node of this kind. `place` is the path to the node.
    func steps(
      _ tokens: ArraySlice<Token>, _ kind: Schema.Kind, behind place: String
    ) throws(Failure) -> [[PathPattern.Step]] {
      guard let token = tokens.first else { return [[]] }
      let rest = tokens.dropFirst()
      switch kind {
      case .optional(let wrapped): return try steps(tokens, wrapped, behind: place)
      case .value: return [tokens.map(\.step)]
      case .map(let keys, let value):
        let step = try step(token, in: keys, at: place)
        return try steps(rest, value, behind: place + token.text).map { [step] + $0 }
      case .type(let name):
        switch schema.types[name] {
        case .structure(let fields):
          return try steps(token, rest, among: fields, behind: place)
        case .enumeration: throw end(place, "an enumeration")
        case nil: return [tokens.map(\.step)]
        }
      case .array: throw end(place, "an array")
      case .bool, .integer, .unsigned, .double, .text, .bytes, .path:
        throw Failure(message: "\(named(place)) has no parts, so there is no \(place)\(token.text)")
      }
    }

    /// The key of a map.
    private func step(
      _ token: Token, in keys: Schema.Kind, at place: String
    ) throws(Failure) -> PathPattern.Step {
      guard case .key(let key) = token else { return .any }
      if keys == .text { return .key(.text(key)) }
      guard let number = Int64(key), String(number) == key else {
        throw Failure(
          message: "the keys of \(named(place)) are integers, and \(key.quoted) is none")
      }
      return .key(.integer(number))
    }

    private func steps(
      _ token: Token, _ rest: ArraySlice<Token>, among fields: [Schema.Field],
      behind place: String
    ) throws(Failure) -> [[PathPattern.Step]] {
      switch token {
      case .any where rest.isEmpty: return [[.any]]
      case .any:
        var found: [[PathPattern.Step]] = []
        for field in fields {
          let next = try? steps(rest, field.kind, behind: "\(place)/\(field.name)")
          found += (next ?? []).map { [.key(.integer(Int64(field.id)))] + $0 }
        }
        guard !found.isEmpty else {
          let path = rest.map(\.text).joined()
          throw Failure(message: "no field of \(named(place)) has anything at \(path)")
        }
        return found
      case .key(let name):
        guard let field = fields.first(where: { String.isSame($0.name, name) }) else {
          let names = fields.map(\.name)
          throw Failure(
            message: "\(named(place)) has no field \(name.quoted); there are: \(names.sentence)"
              + name.near(names))
        }
        return try steps(rest, field.kind, behind: place + token.text).map {
          [.key(.integer(Int64(field.id)))] + $0
        }
      }
    }

    private func end(_ place: String, _ what: String) -> Failure {
      Failure(
        message: "\(named(place)) is \(what), which is seen whole or not at all: end the path "
          + "there")
    }

    private func named(_ place: String) -> String { place.isEmpty ? "the state" : place }
  }
}
