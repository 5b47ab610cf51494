/// Validates UTF-8 without making a `String`, which would allocate.
@usableFromInline
enum UTF8Validation {
  /// Whether the bytes are UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above
  /// U+10FFFF.
  @usableFromInline
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    while index + 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      guard word & 0x8080_8080_8080_8080 == 0 else { return isValid(bytes, from: index) }
      index += 8
    }
    var seen: UInt8 = 0
    for position in index..<bytes.count { seen |= bytes[position] }
    return seen < 0x80 || isValid(bytes, from: index)
  }

  private static func isValid(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Bool {
    var index = start
    while index < bytes.count {
      let lead = bytes[index]
      if lead < 0x80 {
        index += 1
        continue
      }
      guard let length = sequenceLength(lead), index + length <= bytes.count,
        secondByte(after: lead).contains(bytes[index + 1])
      else { return false }
      for position in index + 2..<index + length where bytes[position] & 0xc0 != 0x80 {
        return false
      }
      index += length
    }
    return true
  }

  private static func sequenceLength(_ lead: UInt8) -> Int? {
    switch lead {
    case 0xc2...0xdf: 2
    case 0xe0...0xef: 3
    case 0xf0...0xf4: 4
    default: nil
    }
  }

  /// The valid second bytes after this lead byte, by RFC 3629, section 4.
  private static func secondByte(after lead: UInt8) -> ClosedRange<UInt8> {
    switch lead {
    case 0xe0: 0xa0...0xbf
    case 0xed: 0x80...0x9f
    case 0xf0: 0x90...0xbf
    case 0xf4: 0x80...0x8f
    default: 0x80...0xbf
    }
  }
}
