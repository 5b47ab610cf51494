/// Reads CBOR items from a buffer, one after the other, without copying it.
///
/// Total: every input gives items or a `CBORError` with its offset. Never reads outside the buffer
/// and never reserves memory for more than the input can hold: every length is checked against the
/// bytes that are left before anything is allocated.
///
/// The decoder borrows the buffer; use it inside `CBORDecoder.read`. After an error its position is
/// unspecified, though still inside the buffer: report the error and drop the decoder.
@frozen
public struct CBORDecoder {
  @usableFromInline let base: UnsafeRawPointer
  @usableFromInline let end: Int
  /// Bytes read so far: the offset of the next item.
  @inlinable public var offset: Int { cursor }
  @usableFromInline var cursor: Int
  /// How many more levels of arrays, maps and tags may open.
  @usableFromInline var depthLeft: Int
  @usableFromInline let depthLimit: Int

  /// Deep enough for documents that people write, shallow enough for a small stack: a level of
  /// `CBORItem` was measured at half a kilobyte, 3 KB in a debug build. A caller that chooses
  /// another limit must weigh it against its own stack.
  public static let defaultDepth = 128

  /// Decode from a buffer that outlives the decoder.
  @inlinable
  public init(_ buffer: UnsafeRawBufferPointer, depth: Int = CBORDecoder.defaultDepth) {
    // An empty buffer may have no address; `end` is 0 then and `base` is never read.
    base = buffer.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    end = buffer.count
    cursor = 0
    depthLeft = depth
    depthLimit = depth
  }

  /// Run `body` with a decoder over `bytes`, and require that it reads all of them.
  @inlinable
  public static func read<R, E: Error>(
    _ bytes: [UInt8], depth: Int = CBORDecoder.defaultDepth,
    mapError: (CBORError) -> E,
    _ body: (inout CBORDecoder) throws(E) -> R
  ) throws(E) -> R {
    let result: Result<R, E> = bytes.withUnsafeBytes { buffer in
      var decoder = CBORDecoder(buffer, depth: depth)
      do throws(E) {
        let value = try body(&decoder)
        if decoder.offset < decoder.end {
          let rest = decoder.end - decoder.offset
          return .failure(mapError(CBORError(.trailingBytes(rest), at: decoder.offset)))
        }
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  @inlinable
  public static func read<R>(
    _ bytes: [UInt8], depth: Int = CBORDecoder.defaultDepth,
    _ body: (inout CBORDecoder) throws(CBORError) -> R
  ) throws(CBORError) -> R {
    try read(bytes, depth: depth, mapError: { $0 }, body)
  }

  @inlinable public var isAtEnd: Bool { offset >= end }
  @inlinable public var remaining: Int { end - offset }

  // MARK: Heads

  @inlinable @inline(__always)
  func byte(_ index: Int) -> UInt8 { base.load(fromByteOffset: index, as: UInt8.self) }

  /// The next item's first byte, without reading it.
  @inlinable
  public func peek() throws(CBORError) -> UInt8 {
    guard offset < end else { throw CBORError(.truncated, at: offset) }
    return byte(offset)
  }

  /// Whether the next item is an array of one item, however long its head is. Reads nothing.
  @inlinable
  public func isArrayOfOneNext() throws(CBORError) -> Bool {
    let first = try peek()
    if first == 0x81 { return true }
    return first >= 0x98 && first <= 0x9b && holdsOne(first)
  }

  @usableFromInline @inline(never)
  func holdsOne(_ first: UInt8) -> Bool {
    var ahead = self
    return (try? ahead.longArgument(first & 0x1f)) == 1
  }

  /// The next item's major type, without reading it.
  @inlinable
  public func peekMajor() throws(CBORError) -> MajorType {
    MajorType(initialByte: try peek())
  }

  /// Read a definite-length head: the argument of an item of the given major type.
  @inlinable
  public mutating func head(_ major: MajorType) throws(CBORError) -> UInt64 {
    if offset < end {
      // Below 24 only if the major type is the right one and the argument is in the first byte.
      let information = byte(offset) &- major.rawValue << 5
      if information < 24 {
        cursor += 1
        return UInt64(information)
      }
    }
    return try longHead(major)
  }

  @usableFromInline
  mutating func longHead(_ major: MajorType) throws(CBORError) -> UInt64 {
    let initial = try peek()
    guard MajorType(initialByte: initial) == major else { throw mismatch(expected: major) }
    return try longArgument(initial & 0x1f)
  }

  mutating func longArgument(_ information: UInt8) throws(CBORError) -> UInt64 {
    guard information <= 27 else { throw noArgument(information) }
    let width = 1 << Int(information - 24)
    // Invariant: the initial byte was read, so `end - offset` is at least 1.
    guard end - offset > width else { throw CBORError(.truncated, at: offset) }
    let at = offset + 1
    cursor = at + width
    switch information {
    case 24: return UInt64(byte(at))
    case 25: return UInt64(bigEndian(UInt16.self, at))
    case 26: return UInt64(bigEndian(UInt32.self, at))
    default: return bigEndian(UInt64.self, at)
    }
  }

  @inline(__always)
  func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type, _ index: Int) -> T {
    T(bigEndian: base.loadUnaligned(fromByteOffset: index, as: T.self))
  }

  /// Why the next head has no argument: its additional information is 28 to 31.
  @inline(never)
  func noArgument(_ information: UInt8) -> CBORError {
    guard information == 31 else { return CBORError(.malformed, at: offset) }
    switch byte(offset) {
    case 0x5f, 0x7f, 0x9f, 0xbf:
      return CBORError(.notAllowed("an indefinite length is not allowed here"), at: offset)
    case 0xff: return CBORError(.unexpectedBreak, at: offset)
    default: return CBORError(.malformed, at: offset)
    }
  }

  func mismatch(expected: MajorType) -> CBORError {
    CBORError(.mismatch(expected: Self.name(expected), found: nextName()), at: offset)
  }

  /// What the next item is, in words.
  public func nextName() -> String {
    guard offset < end else { return "the end" }
    let initial = byte(offset)
    let major = MajorType(initialByte: initial)
    if major != .simple { return Self.name(major) }
    switch initial {
    case 0xf4, 0xf5: return "a boolean"
    case 0xf6: return "null"
    case 0xf7: return "undefined"
    case 0xf9...0xfb: return "a floating-point number"
    case 0xff: return "a break"
    default: return "a simple value"
    }
  }

  static func name(_ major: MajorType) -> String {
    switch major {
    case .unsigned: "an unsigned integer"
    case .negative: "a negative integer"
    case .bytes: "a byte string"
    case .text: "a text string"
    case .array: "an array"
    case .map: "a map"
    case .tag: "a tag"
    case .simple: "a simple value"
    }
  }

  // MARK: Scalars

  @inlinable
  public mutating func unsigned() throws(CBORError) -> UInt64 { try head(.unsigned) }

  /// Read an unsigned integer that must fit `T`.
  @inlinable
  public mutating func unsigned<T: FixedWidthInteger>(
    as type: T.Type
  ) throws(CBORError) -> T {
    let start = offset
    guard let value = T(exactly: try head(.unsigned)) else {
      throw CBORError(.numberOutOfRange, at: start)
    }
    return value
  }

  /// Read an integer of either sign that must fit 64 bits signed.
  @inlinable
  public mutating func integer() throws(CBORError) -> Int64 {
    let start = offset
    let isNegative: Bool
    switch try peekMajor() {
    case .unsigned: isNegative = false
    case .negative: isNegative = true
    case .bytes, .text, .array, .map, .tag, .simple:
      throw CBORError(.mismatch(expected: "an integer", found: nextName()), at: start)
    }
    let argument = try head(isNegative ? .negative : .unsigned)
    guard let magnitude = Int64(exactly: argument) else {
      throw CBORError(.numberOutOfRange, at: start)
    }
    return isNegative ? ~magnitude : magnitude
  }

  public mutating func bool() throws(CBORError) -> Bool {
    switch try peek() {
    case 0xf4:
      cursor += 1
      return false
    case 0xf5:
      cursor += 1
      return true
    default:
      throw CBORError(.mismatch(expected: "a boolean", found: nextName()), at: offset)
    }
  }

  /// Read `null` if it is next. Returns whether it was.
  @inlinable
  public mutating func nullIfNext() -> Bool { consume(0xf6) }

  /// Read `undefined` if it is next. Returns whether it was.
  @inlinable
  public mutating func undefinedIfNext() -> Bool { consume(0xf7) }

  @inlinable
  mutating func consume(_ expected: UInt8) -> Bool {
    guard offset < end, byte(offset) == expected else { return false }
    cursor += 1
    return true
  }

  /// Read a floating-point number of any width.
  public mutating func double() throws(CBORError) -> Double {
    let start = offset
    let initial = try peek()
    guard initial >= 0xf9 && initial <= 0xfb else {
      throw CBORError(.mismatch(expected: "a floating-point number", found: nextName()), at: start)
    }
    let bits = try longArgument(initial & 0x1f)
    switch initial {
    case 0xf9: return HalfFloat.value(UInt16(truncatingIfNeeded: bits))
    case 0xfa: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
    default: return Double(bitPattern: bits)
    }
  }

  // MARK: Strings

  @inlinable
  mutating func stringRange(_ major: MajorType) throws(CBORError) -> UnsafeRawBufferPointer {
    let start = offset
    let length = try head(major)
    guard length <= UInt64(end - offset) else {
      throw CBORError(.lengthBeyondInput(length), at: start)
    }
    let range = UnsafeRawBufferPointer(start: base + offset, count: Int(length))
    cursor += Int(length)
    return range
  }

  /// Read a text string of definite length. O(n).
  @inlinable
  public mutating func text() throws(CBORError) -> String {
    let start = offset
    let range = try stringRange(.text)
    if let text = ShortText.string(range) { return text }
    guard UTF8Validation.isValid(range) else { throw CBORError(.invalidText, at: start) }
    return String(decoding: range, as: UTF8.self)
  }

  /// Read the next item if it is this text, of at most 23 bytes; else read nothing and return false. A third
  /// of what it takes to read a text and compare it.
  @inlinable @inline(__always)
  package mutating func textIfNext(_ text: borrowing String) -> Bool {
    let (base, cursor, left) = (base, cursor, end - cursor)
    let length = text.utf8.withContiguousStorageIfAvailable { known in
      let count = known.count
      guard count < 24, count < left,
        base.load(fromByteOffset: cursor, as: UInt8.self) == 0x60
          | UInt8(truncatingIfNeeded: count),
        ShortText.isSame(UnsafeRawBufferPointer(known), base + (cursor + 1))
      else { return 0 }
      return count + 1
    }
    guard let length, length > 0 else { return false }
    self.cursor += length
    return true
  }

  @usableFromInline
  mutating func utf8Range() throws(CBORError) -> UnsafeRawBufferPointer {
    let start = offset
    let range = try stringRange(.text)
    guard UTF8Validation.isValid(range) else { throw CBORError(.invalidText, at: start) }
    return range
  }

  /// Read a byte string of definite length. O(n).
  @inlinable
  public mutating func byteString() throws(CBORError) -> [UInt8] {
    [UInt8](try stringRange(.bytes))
  }

  // MARK: Containers

  /// Open an array of definite length. Every element takes at least one byte, so the count is at
  /// most what is left of the input. Balance with `close`.
  @inlinable
  public mutating func array() throws(CBORError) -> Int { try open(.array, bytesPerItem: 1) }

  /// Open a map of definite length and return the number of its pairs. Balance with `close`.
  @inlinable
  public mutating func map() throws(CBORError) -> Int { try open(.map, bytesPerItem: 2) }

  @inlinable @inline(__always)
  mutating func open(_ major: MajorType, bytesPerItem: Int) throws(CBORError) -> Int {
    // Most counts are in the first byte.
    if offset < end, depthLeft > 0 {
      let count = Int(byte(offset) &- major.rawValue << 5)
      if count < 24, count &* bytesPerItem < end &- offset {
        cursor &+= 1
        depthLeft &-= 1
        return count
      }
    }
    return try openSlowly(major, bytesPerItem: bytesPerItem)
  }

  @usableFromInline
  mutating func openSlowly(
    _ major: MajorType, bytesPerItem: Int
  ) throws(CBORError) -> Int {
    let start = offset
    let count = try head(major)
    guard count <= UInt64((end - offset) / bytesPerItem) else {
      throw CBORError(.lengthBeyondInput(count), at: start)
    }
    try descend(from: start)
    return Int(count)
  }

  /// Read a tag's number; its content follows. Balance with `close` after the content.
  @inlinable
  public mutating func tag() throws(CBORError) -> UInt64 {
    let start = offset
    let number = try head(.tag)
    try descend(from: start)
    return number
  }

  @inlinable
  mutating func descend(from start: Int) throws(CBORError) {
    guard depthLeft > 0 else { throw CBORError(.nestingTooDeep(limit: depthLimit), at: start) }
    depthLeft -= 1
  }

  /// Leave the array, map or tag that was opened last.
  @inlinable
  public mutating func close() { depthLeft += 1 }

  // MARK: Whole items

  /// Skip one well-formed item, of definite or indefinite length. O(its bytes), no allocation, and
  /// stack only for the levels it nests. Fails exactly where decoding a `CBORItem` would.
  @inlinable
  public mutating func skip() throws(CBORError) {
    // Most items in a message are small integers.
    if offset < end {
      let initial = byte(offset)
      if initial < 0x40 && initial & 0x1f < 24 {
        cursor += 1
        return
      }
    }
    try skipSlowly()
  }

  @usableFromInline
  mutating func skipSlowly() throws(CBORError) {
    let start = offset
    let information = try peek() & 0x1f
    let major = try peekMajor()
    switch major {
    case .unsigned, .negative: _ = try longOrShort(information)
    case .bytes where information < 31: _ = try stringRange(.bytes)
    case .text where information < 31: _ = try utf8Range()
    case .bytes, .text: try chunks(of: major) { _ throws(CBORError) in }
    case .array where information < 31:
      for _ in 0..<(try array()) { try skip() }
      close()
    case .map where information < 31:
      for _ in 0..<(try map()) {
        try skip()
        try skip()
      }
      close()
    case .array, .map:
      try openIndefinite(from: start)
      while try !breakIfNext() {
        try skip()
        if major == .map { try skip() }
      }
      close()
    case .tag:
      _ = try tag()
      try skip()
      close()
    case .simple: _ = try simpleArgument(information)
    }
  }

  mutating func openIndefinite(from start: Int) throws(CBORError) {
    try descend(from: start)
    cursor += 1
  }

  mutating func longOrShort(_ information: UInt8) throws(CBORError) -> UInt64 {
    if information < 24 {
      cursor += 1
      return UInt64(information)
    }
    return try longArgument(information)
  }

  mutating func simpleArgument(_ information: UInt8) throws(CBORError) -> UInt64 {
    let start = offset
    let argument = try longOrShort(information)
    if information == 24 && argument < 32 { throw CBORError(.malformed, at: start) }
    return argument
  }

  /// Read a `break` if it is next. Returns whether it was.
  mutating func breakIfNext() throws(CBORError) -> Bool {
    guard offset < end else { throw CBORError(.truncated, at: offset) }
    return consume(0xff)
  }

  /// Read the chunks of an indefinite-length string, each of which must be valid by itself.
  mutating func chunks(
    of major: MajorType, _ body: (UnsafeRawBufferPointer) throws(CBORError) -> Void
  ) throws(CBORError) {
    cursor += 1
    while try !breakIfNext() {
      guard try peekMajor() == major, byte(offset) & 0x1f != 31 else {
        throw CBORError(.malformed, at: offset)
      }
      try body(major == .text ? utf8Range() : stringRange(.bytes))
    }
  }

  /// Skip one item and hand out its bytes, which live as long as the buffer.
  @inlinable
  public mutating func rawItem() throws(CBORError) -> UnsafeRawBufferPointer {
    let start = offset
    try skip()
    return UnsafeRawBufferPointer(start: base + start, count: offset - start)
  }

  /// The bytes from `start` up to the next item, which live as long as the buffer.
  @inlinable
  public func consumed(since start: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base + start, count: offset - start)
  }
}

extension CBORDecoder {
  /// The bytes of the shortest head with this argument.
  @inlinable
  public static func headLength(_ argument: UInt64) -> Int {
    switch argument {
    case 0..<24: 1
    case ...0xff: 2
    case ...0xffff: 3
    case ...0xffff_ffff: 5
    default: 9
    }
  }
}
