public import Values

/// A pattern for paths, written by a person: the keys of a path, where `*` matches any one key. It
/// covers every path that begins with matching keys: those paths, and all below them.
public struct PathPattern: Hashable, Sendable, CustomStringConvertible {
  /// One key of a pattern.
  public enum Step: Hashable, Sendable {
    case any
    case key(PathKey)
  }

  public var steps: [Step]

  /// The pattern of these steps; without steps it covers the whole state.
  public init(_ steps: [Step]) { self.steps = steps }

  /// A path, and all below it.
  public init(_ path: Path) { steps = path.keys.map(Step.key) }

  /// The whole state.
  public static let whole = PathPattern([])

  /// Whether the pattern covers the value at the path.
  public func covers(_ path: Path) -> Bool {
    guard steps.count <= path.keys.count else { return false }
    return zip(steps, path.keys).allSatisfy { step, key in step == .any || step == .key(key) }
  }

  /// The pattern as a JSON Pointer in which a token `*` is any key, and `~2` a literal star; `/`
  /// for the whole state.
  public var description: String {
    if steps.isEmpty { return "/" }
    return steps.map(\.description).joined()
  }
}

extension PathPattern.Step {
  /// The step as a part of a pattern's text.
  fileprivate var description: String {
    switch self {
    case .any: return "/*"
    case .key(let key):
      var bytes: [UInt8] = []
      for byte in Path([key]).pointer.utf8 {
        if byte == UInt8(ascii: "*") { bytes += "~2".utf8 } else { bytes.append(byte) }
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
}

/// A pattern for names of actions: all, one, or those of a part of a feature.
public struct ActionPattern: Hashable, Sendable, CustomStringConvertible {
  private enum Form: Hashable, Sendable {
    case all
    /// The name, and all names that begin with it and a dot.
    case name(String)
    /// Only the names that begin with it and a dot.
    case part(String)
  }

  private let form: Form

  private init(_ form: Form) { self.form = form }

  /// Every action.
  public static let all = ActionPattern(.all)

  /// An action, with the actions of the child that it may be for: `todos` also covers
  /// `todos.toggle`.
  public static func name(_ name: String) -> ActionPattern { ActionPattern(.name(name)) }

  /// Only the actions of a child: `todos` covers `todos.toggle`.
  public static func part(_ name: String) -> ActionPattern { ActionPattern(.part(name)) }

  /// A pattern as a person writes it: `*`, `todos.*`, or a name. Nil for any other use of a star,
  /// and for an empty name.
  public init?(_ text: String) {
    if text == "*" {
      self.init(.all)
      return
    }
    let isPart = text.hasSuffix(".*")
    let name = isPart ? String(text.dropLast(2)) : text
    guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "*")) else { return nil }
    self.init(isPart ? .part(name) : .name(name))
  }

  /// Whether the pattern covers the name.
  public func covers(_ name: String) -> Bool {
    switch form {
    case .all: true
    case .name(let own): String.isSame(own, name) || name.isBehind(own)
    case .part(let own): name.isBehind(own)
    }
  }

  /// The patterns that cover every name that this one covers, including itself. O(its words).
  var covering: [ActionPattern] {
    switch form {
    case .all: [.all]
    case .name(let name): [.all, self] + Self.above(name)
    case .part(let name): [.all, self, .name(name)] + Self.above(name)
    }
  }

  private static func above(_ name: String) -> [ActionPattern] {
    var patterns: [ActionPattern] = []
    for end in name.utf8.indices where name.utf8[end] == UInt8(ascii: ".") {
      let parent = String(name[..<end])
      patterns += [.name(parent), .part(parent)]
    }
    return patterns
  }

  public var description: String {
    switch form {
    case .all: "*"
    case .name(let name): name
    case .part(let name): "\(name).*"
    }
  }
}

extension String {
  /// Whether the name is that of an action inside a part of a feature.
  fileprivate func isBehind(_ part: String) -> Bool {
    utf8.starts(with: part.utf8) && utf8.dropFirst(part.utf8.count).first == UInt8(ascii: ".")
  }
}
