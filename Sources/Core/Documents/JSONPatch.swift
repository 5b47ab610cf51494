public import Values

/// RFC 6902 documents as actions.
public enum JSONPatch {
  /// The transaction of the operations of a JSON Patch: all of them, or none.
  public static func actions(from patch: Value) throws(JSONPatchError) -> DocumentAction {
    guard case .array(let operations) = patch else {
      throw JSONPatchError(
        "a JSON Patch is an array of operations, not \(JSONPatchError.article(patch.kind))")
    }
    var actions: [DocumentAction] = []
    actions.reserveCapacity(operations.count)
    for (index, operation) in operations.enumerated() {
      actions.append(try Operation(operation, index).action())
    }
    return .transaction(actions)
  }

  private struct Operation {
    let members: TrieMap<String, Value>
    let index: Int

    init(_ value: Value, _ index: Int) throws(JSONPatchError) {
      guard case .object(let members) = value else {
        throw JSONPatchError(
          "an operation is an object, not \(JSONPatchError.article(value.kind))", at: index)
      }
      self.members = members
      self.index = index
    }

    func action() throws(JSONPatchError) -> DocumentAction {
      switch try text("op") {
      case "add": return .insert(try path("path"), try value())
      case "remove": return .remove(try path("path"))
      case "replace": return .replace(try path("path"), try value())
      case "move": return .move(from: try path("from"), to: try path("path"))
      case "copy": return .copy(from: try path("from"), to: try path("path"))
      case "test": return .test(try path("path"), try value())
      case let other:
        throw error(
          "there is no operation \"\(other.truncated)\"; there are: add, copy, move, "
            + "remove, replace, test")
      }
    }

    func value() throws(JSONPatchError) -> Value {
      guard let value = members["value"] else { throw error("the member \"value\" is missing") }
      return value
    }

    func path(_ name: String) throws(JSONPatchError) -> Path {
      let pointer = try text(name)
      guard let path = Path(pointer: pointer) else {
        throw error(
          "\"\(name)\" is \"\(pointer.truncated)\", which is no JSON Pointer: it is "
            + "empty or begins with '/', and writes '~' as ~0")
      }
      return path
    }

    func text(_ name: String) throws(JSONPatchError) -> String {
      switch members[name] {
      case .text(let text)?: return text
      case nil: throw error("the member \"\(name)\" is missing")
      case let value?:
        throw error("\"\(name)\" is a string, not \(JSONPatchError.article(value.kind))")
      }
    }

    func error(_ message: String) -> JSONPatchError { JSONPatchError(message, at: index) }
  }
}

/// Why a value is not a JSON Patch.
public struct JSONPatchError: Error, Hashable, Sendable, CustomStringConvertible {
  public var message: String
  /// The index of the wrong operation, from 0; nil when the patch as a whole is wrong.
  public var index: Int?

  public init(_ message: String, at index: Int? = nil) {
    self.message = message
    self.index = index
  }

  public var description: String { index.map { "operation \($0): \(message)" } ?? message }

  /// A kind of value with its article.
  static func article(_ kind: String) -> String {
    switch kind {
    case "array", "object": "an \(kind)"
    case "null", "bytes": kind
    default: "a \(kind)"
    }
  }
}
