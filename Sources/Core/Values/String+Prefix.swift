extension String {
  /// The text if it fits so many bytes, at least three; else what fits of its beginning, with an
  /// ellipsis. O(the limit).
  package func prefix(bytes limit: Int) -> String {
    guard utf8.count > limit else { return self }
    let end = utf8.index(utf8.startIndex, offsetBy: max(0, limit - 3))
    // A slice that ends inside a scalar ends before it.
    return String(unicodeScalars[..<end]) + "…"
  }
}
