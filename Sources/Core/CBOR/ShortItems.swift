/// Items of a few bytes in all, which are made in place and then appended to an encoder in one piece: each
/// append to an array asks whether it is unique, has room, and is this long, which takes more than a
/// short item itself.
///
/// Items that do not fit are left out, and the whole is then of no use: `isWhole` is false.
@frozen
public struct ShortItems: ~Copyable {
  /// Memory of `capacity` bytes for as long as these items live, which only `CBOREncoder.append(short:)`
  /// makes. Each write is preceded by a comparison of what it takes with what is left.
  @usableFromInline let memory: UnsafeMutableRawPointer
  @usableFromInline var count = 0
  @usableFromInline var isWhole = true

  @usableFromInline static var capacity: Int { 64 }
  /// What a head takes at most.
  @usableFromInline static var longestHead: Int { 9 }

  @inlinable
  init(_ memory: UnsafeMutableRawPointer) { self.memory = memory }

  /// Something is left out, for these items are of no use.
  @inlinable @inline(__always)
  public mutating func leaveOut() { isWhole = false }

  /// Append an item's head in the fewest bytes. O(1).
  @inlinable @inline(__always)
  public mutating func head(_ major: MajorType, _ argument: UInt64) {
    guard count <= Self.capacity - Self.longestHead else {
      isWhole = false
      return
    }
    let top = major.rawValue << 5
    if argument < 24 {
      memory.storeBytes(
        of: top | UInt8(truncatingIfNeeded: argument), toByteOffset: count, as: UInt8.self)
      count += 1
    } else {
      longHead(top, argument)
    }
  }

  /// As `head`, which has seen that there is room.
  @inlinable @inline(__always)
  mutating func longHead(_ top: UInt8, _ argument: UInt64) {
    let width = argument <= 0xff ? 0 : argument <= 0xffff ? 1 : argument <= 0xffff_ffff ? 2 : 3
    memory.storeBytes(
      of: top | 24 | UInt8(truncatingIfNeeded: width), toByteOffset: count, as: UInt8.self)
    // The most significant byte first; those behind it are written over, or not taken.
    memory.storeBytes(
      of: (argument << UInt64(truncatingIfNeeded: 64 - (8 << width))).bigEndian,
      toByteOffset: count + 1, as: UInt64.self)
    count += 1 + (1 << width)
  }

  /// Leave room for a word of 32 bits, which `putLengthFirst` writes.
  @inlinable @inline(__always)
  public mutating func leaveRoomForWord() {
    guard count <= Self.capacity - 4 else {
      isWhole = false
      return
    }
    count += 4
  }

  /// Write the number of bytes behind the first four, and of so many that follow these items, as a word of
  /// 32 bits with the least significant byte first, into these four.
  @inlinable @inline(__always)
  public mutating func putLengthFirst(behind following: Int = 0) {
    guard isWhole, count >= 4, let length = UInt32(exactly: count - 4 + following) else {
      isWhole = false
      return
    }
    memory.storeBytes(of: length.littleEndian, as: UInt32.self)
  }

  @inlinable @inline(__always)
  public mutating func encodeNull() { head(.simple, 22) }

  @inlinable @inline(__always)
  public mutating func encode(_ value: Int64) {
    if value >= 0 {
      head(.unsigned, UInt64(bitPattern: value))
    } else {
      head(.negative, UInt64(bitPattern: ~value))
    }
  }

  @inlinable @inline(__always)
  public mutating func encode(_ value: Bool) { head(.simple, value ? 21 : 20) }

  /// Append a text string. O(n) in its UTF-8 length.
  @inlinable @inline(__always)
  public mutating func encode(_ text: borrowing String) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { encode(utf8: $0) }
    if isDone == nil { isWhole = false }
  }

  @inlinable @inline(__always)
  mutating func encode(utf8 text: UnsafeBufferPointer<UInt8>) {
    guard let start = text.baseAddress else { return head(.text, 0) }
    guard text.count <= Self.capacity - Self.longestHead - count else {
      isWhole = false
      return
    }
    head(.text, UInt64(text.count))
    (memory + count).copyMemory(from: start, byteCount: text.count)
    count += text.count
  }
}

extension CBOREncoder {
  /// Append the items that `body` makes. Returns false, and appends nothing, if they take more than 55 to
  /// 64 bytes, or a text is not there in one piece.
  @inlinable @inline(__always)
  public mutating func append(short body: (inout ShortItems) -> Void) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: ShortItems.capacity, alignment: 8) { memory in
      guard let start = memory.baseAddress else { return false }
      var items = ShortItems(start)
      body(&items)
      guard items.isWhole else { return false }
      bytes.append(
        contentsOf: UnsafeRawBufferPointer(start: start, count: items.count))
      return true
    }
  }
}
