public import CBOR

/// An estimate of the memory that encoded values take once they are decoded, or have grown at their
/// ends, in bytes: at least what is allocated for them, and at most `mostPerByte` for each encoded
/// byte. A container that shrank, or an array that grew within, may take twice as much, for its leaves
/// are less than half full.
///
/// It reads the encoding and builds nothing, so it can be computed before anything is allocated. An
/// array of empty objects takes two hundred times its bytes; a long text takes little more than its
/// own.
public struct MemoryEstimate: Sendable {
  /// The sum so far.
  public private(set) var bytes = 0
  private let limit: Int

  /// The most memory that one encoded byte can need: a container, and its slot in another, whose
  /// capacity may be twice its count.
  public static let mostPerByte = container + 2 * slot
  /// A root and an empty node, in the sizes that the allocator uses for them: jemalloc's, which are
  /// up to a quarter more than was asked for.
  static let container = 144
  /// A value in an array, with its share of the nodes: 24 bytes by itself.
  static let slot = 32
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
      let count = try decoder.array()
      bytes += Self.container + Self.slots(count)
      for _ in 0..<count where !isExceeded { try addContents(&decoder) }
      decoder.close()
    case .map:
      let count = try decoder.map()
      bytes += Self.container + Self.branches(count)
      for _ in 0..<count where !isExceeded {
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
    let isText = try decoder.peekMajor() != .bytes
    try decoder.skip()
    bytes += Self.string(decoder.offset - start, isText: isText)
  }

  /// The memory of a string of `count` encoded bytes, besides its slot, into which short texts fit.
  static func string(_ count: Int, isText: Bool) -> Int {
    // From 14 KB on jemalloc adds a page.
    count > (isText ? 15 : 1) ? heap + count + count / 4 + (count > 14_000 ? 4096 : 0) : 0
  }

  /// The memory of an array's slots. A leaf grows twofold up to 32 elements, and each of several
  /// leaves has room for as many, below a branch for each level. O(log n).
  static func slots(_ count: Int) -> Int {
    if count < 2 { return count * slot }
    if count <= 32 { return slot << (Int.bitWidth - (count - 1).leadingZeroBitCount) }
    var (bytes, nodes) = ((count + 31) / 32 * 32 * slot, count)
    while nodes > 32 {
      bytes += container
      nodes = (nodes + 31) / 32
    }
    return bytes
  }

  /// What a map may take besides its entries, by the hashes of its keys. Of 33 most are in leaves of their
  /// own, which takes up to 350 bytes more than one leaf would, and less the more there are: nothing from
  /// 60 on. Of 1,300 each of 32 branches has about 40, which takes up to 2 % more.
  static func branches(_ count: Int) -> Int {
    switch count {
    case ...32: 0
    case ..<1024: max(0, 816 - 12 * count)
    default: 2 * count
    }
  }

  /// Read the next item, a patch, and add what it can add to a state, but for leaves that it fills or
  /// splits. O(its bytes).
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
    head <= 0x40 || head >= 0xe0 || head >= 0x60 && head < 0x6f
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
