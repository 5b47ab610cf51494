// Arrays whose contents the reader knows, and optional values.

extension CBOREncoder {
  /// Append `null` or the value.
  @inlinable
  package mutating func encodeOptional<T>(
    _ value: T?, _ encode: (inout CBOREncoder, T) -> Void
  ) {
    guard let value else { return encodeNull() }
    encode(&self, value)
  }
}

extension CBORDecoder {
  /// Begin an array of `count` items. `what` names it in the error.
  package mutating func expectArray(_ count: Int, _ what: String) throws(CBORError) {
    let start = offset
    let found = try array()
    guard found == count else {
      throw CBORError(.notAllowed("\(what) has \(count) items, not \(found)"), at: start)
    }
  }

  /// Read an array whose items come in groups. Memory grows only with what is read.
  package mutating func groups<T>(
    of size: Int, _ read: (inout CBORDecoder) throws(CBORError) -> T
  ) throws(CBORError) -> [T] {
    let start = offset
    let count = try array()
    guard count % size == 0 else {
      throw CBORError(.notAllowed("\(count) items are not groups of \(size)"), at: start)
    }
    var list: [T] = []
    for _ in 0..<(count / size) { list.append(try read(&self)) }
    close()
    return list
  }

  package mutating func list<T>(
    _ read: (inout CBORDecoder) throws(CBORError) -> T
  ) throws(CBORError) -> [T] { try groups(of: 1, read) }

  package mutating func pairs<T>(
    _ read: (inout CBORDecoder) throws(CBORError) -> T
  ) throws(CBORError) -> [T] { try groups(of: 2, read) }
}
