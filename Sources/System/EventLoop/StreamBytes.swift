/// Bytes of a stream in the arrays in which they were given, so that none is copied.
struct StreamBytes {
  /// The first array may begin before the bytes, and the last end behind them.
  private(set) var arrays: [[UInt8]] = []
  /// Where the bytes begin in the first array.
  private(set) var start = 0
  private(set) var count = 0

  init() {}

  /// The bytes of arrays from an offset in the first of them on.
  init(_ arrays: [[UInt8]], from start: Int, count: Int) {
    (self.arrays, self.start, self.count) = (arrays, start, count)
  }

  var isEmpty: Bool { count == 0 }

  mutating func append(_ more: [[UInt8]], count: Int) {
    arrays += more
    self.count += count
  }

  /// Remove and return the first bytes, so many or all. O(their arrays, and those that are left).
  mutating func removeFirst(_ most: Int) -> StreamBytes {
    if count <= most {
      defer { self = StreamBytes() }
      return self
    }
    var (index, offset) = (0, start + most)
    while offset >= arrays[index].count {
      offset -= arrays[index].count
      index += 1
    }
    let first = StreamBytes(
      Array(arrays[..<(offset == 0 ? index : index + 1)]), from: start, count: most)
    arrays.removeFirst(index)
    (start, count) = (offset, count - most)
    return first
  }

  /// The last of the bytes, so many, in one array. O(they, and the arrays).
  func suffix(_ last: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(last)
    // From where they begin, counted from the beginning of the first array.
    var (from, end) = (start + count - last, start + count)
    for array in arrays where end > 0 {
      if from < array.count { bytes += array[max(0, from)..<min(end, array.count)] }
      from -= array.count
      end -= array.count
    }
    return bytes
  }
}
