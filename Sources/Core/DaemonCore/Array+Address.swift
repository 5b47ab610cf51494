// For accessors that give out an element in its place. A coroutine (`_read`, `_modify`) instead copies
// a large element into its frame to forward it; and the compiler (Swift 6.3.1), when it passes large
// values by address, may read them from that frame after it is freed: the address sanitizer found it.
extension Array {
  /// The address of an element: valid while the array is neither changed nor freed. Traps when there is
  /// no such element.
  @inline(__always)
  func address(of index: Int) -> UnsafePointer<Element> {
    withUnsafeBufferPointer { elements in
      precondition(elements.indices.contains(index))
      return elements.baseAddress.unsafelyUnwrapped + index
    }
  }

  /// The same, for a change: the array refers to its elements alone now.
  @inline(__always)
  mutating func mutableAddress(of index: Int) -> UnsafeMutablePointer<Element> {
    withUnsafeMutableBufferPointer { elements in
      precondition(elements.indices.contains(index))
      return elements.baseAddress.unsafelyUnwrapped + index
    }
  }
}
