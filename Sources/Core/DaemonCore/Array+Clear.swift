extension Array {
  /// Remove all elements, and keep the memory.
  ///
  /// For lists that each turn empties, of which most have one element or none: the library's
  /// `removeAll(keepingCapacity:)` replaces a range by an empty collection, which takes 70 instructions
  /// for those as well.
  @inline(__always)
  mutating func clear() {
    if isEmpty { return }
    if count == 1 { removeLast() } else { removeAll(keepingCapacity: true) }
  }
}
