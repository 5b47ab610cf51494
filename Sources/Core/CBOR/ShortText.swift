/// Texts that a `String` holds without memory of its own: most names and keys.
@usableFromInline
enum ShortText {
  /// The text of up to 15 bytes of ASCII; nil for any other. ASCII needs no further validation.
  @usableFromInline
  static func string(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard isASCII(bytes) else { return nil }
    return String(unsafeUninitializedCapacity: bytes.count) { text in
      UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
      return bytes.count
    }
  }

  /// Whether there are at most 15 bytes, and all are ASCII. Words that overlap are read, and no byte
  /// outside.
  @inline(__always)
  private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let count = bytes.count
    guard count <= 15 else { return false }
    if count >= 8 {
      let (first, last) = (word(bytes, 0, UInt64.self), word(bytes, count - 8, UInt64.self))
      return (first | last) & 0x8080_8080_8080_8080 == 0
    }
    if count >= 4 {
      let (first, last) = (word(bytes, 0, UInt32.self), word(bytes, count - 4, UInt32.self))
      return (first | last) & 0x8080_8080 == 0
    }
    var seen: UInt8 = 0
    for byte in bytes { seen |= byte }
    return seen < 0x80
  }

  /// Whether as many bytes as `bytes` has follow at `other`, which are there. Words that overlap are
  /// compared.
  @inlinable @inline(__always)
  static func isSame(_ bytes: UnsafeRawBufferPointer, _ other: UnsafeRawPointer) -> Bool {
    let count = bytes.count
    let others = UnsafeRawBufferPointer(start: other, count: count)
    if count >= 8 {
      var offset = 0
      while offset < count - 8 {
        if word(bytes, offset, UInt64.self) != word(others, offset, UInt64.self) { return false }
        offset += 8
      }
      return word(bytes, count - 8, UInt64.self) == word(others, count - 8, UInt64.self)
    }
    if count >= 4 {
      return word(bytes, 0, UInt32.self) == word(others, 0, UInt32.self)
        && word(bytes, count - 4, UInt32.self) == word(others, count - 4, UInt32.self)
    }
    for offset in 0..<count where bytes[offset] != others[offset] { return false }
    return true
  }

  @inlinable @inline(__always)
  static func word<T: BitwiseCopyable>(
    _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ type: T.Type
  ) -> T {
    bytes.loadUnaligned(fromByteOffset: offset, as: type)
  }
}
