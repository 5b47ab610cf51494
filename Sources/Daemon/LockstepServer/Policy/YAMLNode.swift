/// A part of a YAML file, with the line on which it begins.
struct YAMLNode: Equatable, Sendable {
  enum Content: Equatable, Sendable {
    /// A scalar as text: its reader decides on the type.
    case scalar(String)
    case sequence([YAMLNode])
    /// In the order of the file; no key comes twice.
    case mapping([Member])
  }

  struct Member: Equatable, Sendable {
    let key: String
    /// The line of the key.
    let line: Int
    let value: YAMLNode
  }

  let content: Content
  /// Counted from 1.
  let line: Int
}

/// A fault in a file, with its line.
struct YAMLError: Error, Equatable, Sendable {
  let line: Int
  let message: String
}
