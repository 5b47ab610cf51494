import ArgumentParser
import Values

/// A path that a person wrote as a JSON Pointer.
struct PathArgument: Equatable, Sendable {
  let path: Path
  /// The number of keys that a subscription can follow, if a schema says it.
  private let scopeCount: Int?

  init(_ path: Path, scopeCount: Int? = nil) {
    self.path = path
    self.scopeCount = scopeCount
  }

  init(_ argument: String) throws {
    let text = ArgumentOrder.unmarked(argument)
    if let path = Path(pointer: text) {
      self.init(path)
    } else if text.hasPrefix("/") {
      throw ValidationError(
        "in a key '~' is written ~0, and '/' ~1; try '\(Self.escapingTildes(text))'.")
    } else {
      throw ValidationError(
        "a path is empty (the whole) or begins with '/'; try '\(Self.suggestion(text))'.")
    }
  }

  static let help: ArgumentHelp = "Where: a JSON Pointer; '' is the whole."

  /// The pointer that was probably meant by a path in the manner of jq, JSONPath, or a URI.
  private static func suggestion(_ text: String) -> String {
    var rest = Substring(text)
    if rest.hasPrefix("#") || rest.hasPrefix("$") { rest.removeFirst() }
    var keys = rest
    if !keys.contains("/") {
      keys = Substring(keys.split { $0 == "." || $0 == "[" || $0 == "]" }.joined(separator: "/"))
    }
    let suggestion = keys.hasPrefix("/") ? String(keys) : "/" + keys
    return Path(pointer: suggestion) == nil ? escapingTildes(suggestion) : suggestion
  }

  private static func escapingTildes(_ text: String) -> String {
    var result = ""
    var characters = text.unicodeScalars[...]
    while let character = characters.popFirst() {
      result.unicodeScalars.append(character)
      if character == "~", characters.first != "0" && characters.first != "1" { result += "0" }
    }
    return result
  }

  // MARK: Scope and rest

  /// The part that a subscription can follow: up to the first key that may be an array's index. An
  /// object may have such keys too, so the rest is looked up in the value itself.
  var scope: Path {
    if let scopeCount { return Path(Array(path.keys.prefix(scopeCount))) }
    return Path(Array(path.keys.prefix { !$0.mayBeIndex }))
  }

  /// The keys after the scope.
  var rest: Path { Path(Array(path.keys[scope.keys.count...])) }
}

extension PathKey {
  var mayBeIndex: Bool {
    guard case .text(let text) = self else { return true }
    return text == "-"
      || !text.isEmpty
        && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
  }
}
