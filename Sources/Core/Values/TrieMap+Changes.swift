extension TrieMap {
  /// Pass each entry that differs from the one in `old` to `body`: its key, and both values, nil where
  /// there is none. O(changes · log n) for maps of one lineage, else O(n).
  @inlinable
  public func forEachChange(from old: TrieMap, _ body: (Key, _ old: Value?, _ new: Value?) -> Void)
  {
    if isIdentical(to: old) { return }
    _ = forEachDifference(from: old) { key, _, old, new in
      // Neighbours of what has changed are passed, too.
      if let old, let new, new.pointee.isSame(as: old.pointee) { return true }
      body(key, old?.pointee, new?.pointee)
      return true
    }
  }

  /// The same until `body` returns false; and it is passed the neighbours of what has changed, too, whose
  /// values are the same.
  @inlinable
  public func forEachCandidate(
    from old: TrieMap, _ body: (Key, _ old: Value?, _ new: Value?) -> Bool
  ) {
    if isIdentical(to: old) { return }
    _ = forEachDifference(from: old) { key, _, old, new in body(key, old?.pointee, new?.pointee) }
  }
}
