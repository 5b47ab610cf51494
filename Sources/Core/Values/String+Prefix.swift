extension String {
  /// The text if it fits `limit` bytes; else as much of its beginning as fits, with an ellipsis.
  /// The limit is at least three. O(limit).
  package func prefix(bytes limit: Int) -> String {
    guard utf8.count > limit else { return self }
    let end = utf8.index(utf8.startIndex, offsetBy: max(0, limit - 3))
    // A slice that would end inside a scalar ends before that scalar.
    return String(unicodeScalars[..<end]) + "…"
  }

  /// The text if it has at most `limit` bytes; else its first `count` code points, with an ellipsis.
  /// For messages, in which part of a long text is enough.
  package func prefix(scalars count: Int, ifOverBytes limit: Int) -> String {
    utf8.count <= limit ? self : String(unicodeScalars.prefix(count)) + "…"
  }
}
