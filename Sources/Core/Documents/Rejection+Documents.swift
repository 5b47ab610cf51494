import Lockstep
import Values

// The messages with which a document rejects an edit.

extension Rejection {
  /// The member of an object that a key names.
  static func memberName(_ keys: [PathKey], _ depth: Int) throws(Rejection) -> String {
    switch keys[depth] {
    case .text(let name): return name
    case .integer(let number):
      throw bad(
        keys, depth,
        "\(place("object", keys, depth)) has members with names; the number \(number) is none")
    }
  }

  static func missing(_ keys: [PathKey], _ depth: Int) -> Rejection {
    bad(
      keys, depth, "\(place("object", keys, depth)) has no member \(quoted(keys[depth]))")
  }

  static func outside(_ keys: [PathKey], _ depth: Int, count: Int) -> Rejection {
    let array = place("array", keys, depth)
    let elements = count == 1 ? "1 element" : "\(count) elements"
    if case .text("-") = keys[depth] {
      return bad(keys, depth, "\(array) has \(elements), and \"-\" is the place behind the last")
    }
    return bad(keys, depth, "\(array) has \(elements); there is no index \(keys[depth])")
  }

  static func badIndex(_ keys: [PathKey], _ depth: Int) -> Rejection {
    bad(
      keys, depth,
      "\(quoted(keys[depth])) is no index of \(place("array", keys, depth)): "
        + "write digits without a leading zero, or \"-\" for the end")
  }

  /// Its path is that of the value: a client that may see only places below it is not told what the
  /// value is.
  static func noMembers(_ value: Value, _ keys: [PathKey], _ depth: Int) -> Rejection {
    Rejection(
      .badPath,
      "\(place(value.kind, keys, depth)) is no container, so it has no \(quoted(keys[depth]))",
      at: Path(Array(keys[..<depth])))
  }

  static func notNumber(_ value: Value, at keys: [PathKey]) -> Rejection {
    Rejection(
      .wrongType, "\(place(value.kind, keys, keys.count)) is no number to add to: \(value.summary)",
      at: Path(keys))
  }

  static func notArray(_ value: Value, at keys: [PathKey]) -> Rejection {
    Rejection(
      .wrongType, "\(place(value.kind, keys, keys.count)) is no array to append to", at: Path(keys))
  }

  private static func bad(_ keys: [PathKey], _ depth: Int, _ message: String) -> Rejection {
    Rejection(.badPath, message, at: Path(keys))
  }

  /// The container of the key at `depth`, in words.
  private static func place(_ kind: String, _ keys: [PathKey], _ depth: Int) -> String {
    if depth == 0 { return "the \(kind) at the root" }
    return "the \(kind) at \(Path(Array(keys[..<depth])).pointer.truncated)"
  }

  static func quoted(_ key: PathKey) -> String {
    switch key {
    case .text(let text): "\"\(text.truncated)\""
    case .integer(let number): "\(number)"
    }
  }
}
