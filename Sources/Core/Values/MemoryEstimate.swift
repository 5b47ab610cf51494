public import CBOR

/// An estimate of the memory that encoded values take once they are decoded, in bytes: at least
/// what they really take, and at most `mostPerByte` for each encoded byte.
///
/// It reads the encoding and builds nothing, so it can be computed before anything is allocated. An
/// array of empty objects takes a hundred times its bytes; a long text takes little more than its
/// own.
public struct MemoryEstimate: Sendable {
  /// The sum so far.
  public private(set) var bytes = 0
  private let limit: Int

  /// The most memory that one encoded byte can need: a container, and its slot in another.
  public static let mostPerByte = container + slot
  /// A node with its header, in the size that the allocator uses for it.
  static let container = 128
  /// A value in an array.
  static let slot = 24
  /// A key and a value in a map, with the hash, when half of the capacity is free.
  @usableFromInline static let entry = 96
  /// The overhead of a text or byte string that does not fit its slot, besides its bytes.
  static let heap = 48

  /// An estimate that stops reading once it exceeds `limit` bytes.
  public init(limit: Int = .max) { self.limit = limit }

  public var isExceeded: Bool { bytes > limit }

  /// Read the next item, a value in value form, and add its memory. Once `isExceeded`, the rest is
  /// not read. O(its bytes).
  public mutating func addValue(_ decoder: inout CBORDecoder) throws(CBORError) {
    bytes += Self.slot
    try addContents(&decoder)
  }

  /// Add the memory of a value besides its slot.
  private mutating func addContents(_ decoder: inout CBORDecoder) throws(CBORError) {
    switch try decoder.peekMajor() {
    case .array:
      bytes += Self.container
      for _ in 0..<(try decoder.array()) where !isExceeded { try addValue(&decoder) }
      decoder.close()
    case .map:
      bytes += Self.container
      for _ in 0..<(try decoder.map()) where !isExceeded {
        try addKey(&decoder)
        try addContents(&decoder)
      }
      decoder.close()
    case .bytes, .text: try addString(&decoder)
    case .unsigned, .negative, .tag, .simple: try decoder.skip()
    }
  }

  private mutating func addKey(_ decoder: inout CBORDecoder) throws(CBORError) {
    bytes += Self.entry
    try addString(&decoder)
  }

  private mutating func addString(_ decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    try decoder.skip()
    bytes += Self.string(decoder.offset - start)
  }

  /// The memory of a string of `count` encoded bytes, besides its slot.
  static func string(_ count: Int) -> Int { count > 15 ? heap + count : 0 }

  /// Read the next item, a patch, and add the most that it can add to a state. O(its bytes).
  public mutating func addPatch(_ decoder: inout CBORDecoder) throws(CBORError) {
    switch try decoder.peekMajor() {
    case .map:
      for _ in 0..<(try decoder.map()) where !isExceeded {
        try addKey(&decoder)
        try addPatch(&decoder)
      }
      decoder.close()
    case .array:
      let count = try decoder.array()
      if count == 1 {
        try addContents(&decoder)
      } else if count == 2 {
        try addSplices(&decoder)
        try addPatch(&decoder)
      }
      decoder.close()
    case .bytes, .text: try addString(&decoder)
    case .unsigned, .negative, .tag, .simple: try decoder.skip()
    }
  }

  /// The bytes that `addPatch` adds for a patch that replaces one small value below objects with
  /// short keys, as most patches do; nil for any other patch, and for bytes that are not a patch.
  /// About ten instructions for each key.
  @inlinable
  public static func ofSmallReplacement(_ patch: UnsafeRawBufferPointer) -> Int? {
    var (sum, offset) = (0, 0)
    while offset < patch.count {
      let head = patch[offset]
      if head != 0xa1 && head != 0x81 { return isSmall(head) ? sum : nil }
      guard offset &+ 1 < patch.count else { return nil }
      let next = patch[offset &+ 1]
      if head == 0x81 { return isSmall(next) ? sum : nil }
      // The key: a number, or a text whose length is in its head.
      let length = next < 0x18 ? 0 : next >= 0x60 && next < 0x6f ? Int(next & 0x1f) : -1
      if length < 0 { return nil }
      sum &+= entry
      offset &+= 2 &+ length
    }
    return nil
  }

  /// Whether a head begins a number, a simple value, or a string that fits its slot.
  @inlinable
  static func isSmall(_ head: UInt8) -> Bool {
    head < 0x40 || head >= 0xe0 || head < 0x80 && head & 0x1f < 0x0f
  }

  private mutating func addSplices(_ decoder: inout CBORDecoder) throws(CBORError) {
    for _ in 0..<(try decoder.array() / 3) where !isExceeded {
      try decoder.skip()
      try decoder.skip()
      for _ in 0..<(try decoder.array()) where !isExceeded { try addValue(&decoder) }
      decoder.close()
    }
    decoder.close()
  }
}
