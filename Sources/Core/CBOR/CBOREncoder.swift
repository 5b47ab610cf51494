/// Appends CBOR items (RFC 8949) to a growing buffer, each in its shortest form ("preferred
/// serialization", 4.1). The caller is responsible for the order of map keys.
@frozen
public struct CBOREncoder: Sendable {
  /// What has been encoded so far. A caller may take it, truncate it, or splice into it.
  public var bytes: [UInt8]
  /// A stack of offsets where parts of an item begin, for a caller that must find those parts
  /// again. It is stored here so that one allocation serves every such caller.
  @usableFromInline package var marks: [Int]
  /// The most bytes that are of use; -1 once something was left out.
  @usableFromInline var most = Int.max

  @inlinable
  public init(reservingCapacity capacity: Int = 0) {
    bytes = []
    marks = []
    if capacity > 0 { bytes.reserveCapacity(capacity) }
  }

  /// For a value that is only of use if it takes at most so many bytes: of one that takes more, texts and
  /// the elements of collections are left out, and the encoder is then `isOver`. For values and not for
  /// patches, which look for what they have appended.
  package init(upTo bytes: Int) {
    self.init()
    most = bytes
  }

  /// Whether what has been encoded is longer than is of use, or not whole. A collection asks after each
  /// element, and leaves the others out. Always false but for a value that is to be small.
  @inlinable public var isOver: Bool { bytes.count > most }

  /// Whether so many bytes more may be of use; if not, the encoder `isOver`. A collection asks before its
  /// elements, and what is long before it is appended. Always true but for a value that is to be small.
  @inlinable
  public mutating func hasRoom(for count: Int) -> Bool {
    if count <= most - bytes.count { return true }
    most = -1
    return false
  }

  /// How many bytes more may be of use.
  package var room: Int { most - bytes.count }

  /// Something is left out, because there is no room for it.
  package mutating func leaveOut() { most = -1 }

  /// Append an item's head: the major type and its argument in the fewest bytes. O(1).
  @inlinable
  public mutating func head(_ major: MajorType, _ argument: UInt64) {
    let top = major.rawValue << 5
    if argument < 24 {
      bytes.append(top | UInt8(truncatingIfNeeded: argument))
    } else {
      longHead(top, argument)
    }
  }

  @usableFromInline
  mutating func longHead(_ top: UInt8, _ argument: UInt64) {
    if argument <= 0xff {
      bytes.append(top | 24)
      bytes.append(UInt8(truncatingIfNeeded: argument))
    } else if argument <= 0xffff {
      bytes.append(top | 25)
      append(UInt16(truncatingIfNeeded: argument))
    } else if argument <= 0xffff_ffff {
      bytes.append(top | 26)
      append(UInt32(truncatingIfNeeded: argument))
    } else {
      bytes.append(top | 27)
      append(argument)
    }
  }

  // The most significant byte first. For consecutive plain appends, without a loop, the optimizer
  // makes fewer checks that the array is unique. Three bytes take 55 instructions this way; in a
  // loop 88, as an `OutputSpan` or a sequence about 115, as a buffer 150.

  @inline(__always)
  private mutating func append(_ value: UInt16) {
    bytes.append(UInt8(truncatingIfNeeded: value >> 8))
    bytes.append(UInt8(truncatingIfNeeded: value))
  }

  @inline(__always)
  private mutating func append(_ value: UInt32) {
    append(UInt16(truncatingIfNeeded: value >> 16))
    append(UInt16(truncatingIfNeeded: value))
  }

  @inline(__always)
  private mutating func append(_ value: UInt64) {
    append(UInt32(truncatingIfNeeded: value >> 32))
    append(UInt32(truncatingIfNeeded: value))
  }

  @inlinable
  public mutating func encode(_ value: UInt64) { head(.unsigned, value) }

  @inlinable
  public mutating func encode(_ value: Int64) {
    if value >= 0 {
      head(.unsigned, UInt64(bitPattern: value))
    } else {
      head(.negative, UInt64(bitPattern: ~value))
    }
  }

  @inlinable
  public mutating func encode(_ value: Int) { encode(Int64(value)) }

  @inlinable
  public mutating func encode(_ value: Bool) { bytes.append(value ? 0xf5 : 0xf4) }

  @inlinable
  public mutating func encodeNull() { bytes.append(0xf6) }

  @inlinable
  public mutating func encodeUndefined() { bytes.append(0xf7) }

  /// Append a floating-point number in the shortest of the three widths that keeps its value;
  /// every NaN becomes the one quiet NaN, `f9 7e00`.
  public mutating func encode(_ value: Double) {
    if value.isNaN {
      bytes.append(0xf9)
      append(UInt16(0x7e00))
      return
    }
    let single = Float(value)
    guard Double(single).bitPattern == value.bitPattern else {
      bytes.append(0xfb)
      append(value.bitPattern)
      return
    }
    if let half = HalfFloat.bits(exactly: single) {
      bytes.append(0xf9)
      append(half)
    } else {
      bytes.append(0xfa)
      append(single.bitPattern)
    }
  }

  /// Append a text string. O(n) in its UTF-8 length.
  @inlinable
  public mutating func encode(_ text: String) {
    // `withUTF8` by itself needs a copy of the text, which counts a reference.
    if text.utf8.withContiguousStorageIfAvailable({ encode(utf8: $0) }) != nil { return }
    var text = text
    text.withUTF8 { encode(utf8: $0) }
  }

  @inlinable @inline(__always)
  mutating func encode(utf8 text: UnsafeBufferPointer<UInt8>) {
    guard hasRoom(for: text.count) else { return }
    head(.text, UInt64(text.count))
    bytes.append(contentsOf: text)
  }

  /// Append a byte string.
  @inlinable
  public mutating func encode(bytes value: [UInt8]) {
    guard hasRoom(for: value.count) else { return }
    head(.bytes, UInt64(value.count))
    bytes.append(contentsOf: value)
  }

  /// Append the head of an array; `count` items must follow.
  @inlinable
  public mutating func array(_ count: Int) { head(.array, UInt64(count)) }

  /// Append the head of a map; `count` keys, each followed by its value, must follow.
  @inlinable
  public mutating func map(_ count: Int) { head(.map, UInt64(count)) }

  /// Append items that are encoded already.
  @inlinable
  public mutating func raw(_ encoded: some Collection<UInt8>) { bytes.append(contentsOf: encoded) }

  /// Put a head in front of what was encoded since `start`. O(bytes since `start`).
  @inlinable
  public mutating func insertHead(_ major: MajorType, _ argument: UInt64, at start: Int) {
    let top = major.rawValue << 5
    if argument < 24 {
      bytes.insert(top | UInt8(truncatingIfNeeded: argument), at: start)
    } else {
      insertLongHead(top, argument, at: start)
    }
  }

  @usableFromInline
  mutating func insertLongHead(_ top: UInt8, _ argument: UInt64, at start: Int) {
    let width = CBORDecoder.headLength(argument) - 1
    bytes.insert(contentsOf: repeatElement(0, count: 1 + width), at: start)
    // Invariant: the width is 1, 2, 4 or 8, and its logarithm tells which.
    bytes[start] = top | UInt8(truncatingIfNeeded: 24 + width.trailingZeroBitCount)
    for place in 0..<width {
      bytes[start + width - place] = UInt8(truncatingIfNeeded: argument >> (8 * place))
    }
  }
}

/// IEEE 754 binary16, which RFC 8949 has and x86-64 Swift does not.
package enum HalfFloat {
  /// The half-precision bits of a number, or nil when it is not exactly one.
  package static func bits(exactly value: Float) -> UInt16? {
    let bits = value.bitPattern
    let sign = UInt16(truncatingIfNeeded: bits >> 16) & 0x8000
    let exponent = Int((bits >> 23) & 0xff)
    let fraction = bits & 0x7f_ffff
    if exponent == 0xff { return fraction == 0 ? sign | 0x7c00 : nil }
    if exponent == 0 { return fraction == 0 ? sign : nil }
    let unbiased = exponent - 127
    if unbiased >= -14 && unbiased <= 15 {
      guard fraction & 0x1fff == 0 else { return nil }
      return sign | UInt16(unbiased + 15) << 10 | UInt16(fraction >> 13)
    }
    // Subnormal halves: 2^-24 to 2^-15.
    guard unbiased >= -24 && unbiased < -14 else { return nil }
    let significand = fraction | 0x80_0000
    let shift = UInt32(-unbiased - 1)
    guard significand & ((1 << shift) - 1) == 0 else { return nil }
    return sign | UInt16(significand >> shift)
  }

  package static func value(_ bits: UInt16) -> Double {
    let negative = bits & 0x8000 != 0
    let exponent = UInt64(bits >> 10) & 0x1f
    let fraction = UInt64(bits) & 0x3ff
    let magnitude: Double
    switch exponent {
    case 0: magnitude = Double(fraction) * 0x1p-24
    case 31: magnitude = fraction == 0 ? .infinity : .nan
    default: magnitude = Double(bitPattern: (exponent + 1023 - 15) << 52 | fraction << 42)
    }
    return negative ? -magnitude : magnitude
  }
}
