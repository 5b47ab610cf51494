/// A part of a YAML file, with the line on which it begins.
struct YAMLNode: Equatable, Sendable {
  enum Content: Equatable, Sendable {
    /// What type a scalar has is for whoever reads it to say: here all are text.
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
  /// From 1 on.
  let line: Int
}

/// What is wrong with a file, and on which line.
struct YAMLError: Error, Equatable, Sendable {
  let line: Int
  let message: String
}
