extension Value {
  /// The nesting depth of a patch of the value: an object is one level, an array two, because a
  /// patch of an array is an array of maps. O(its size) at first, then O(what changed): collections
  /// cache theirs.
  public var patchLevels: Int {
    switch self {
    case .object(let entries):
      withExtendedLifetime(entries.root) { 1 + TrieRef(entries.root).deepest(\.patchLevels) }
    case .array(let elements): 2 + (elements.root?.deepest(\.patchLevels) ?? 0)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes: 0
    }
  }
}
