/// The layout of SQLite's write-ahead log: a head of 32 bytes, then frames of one page each
/// (<https://sqlite.org/fileformat2.html#walformat>). All pages of a journal have the same size.
enum LogFormat {
  static let headBytes = 32
  static let frameHeadBytes = 24
  static let pageBytes = 4096
  static let frameBytes = frameHeadBytes + pageBytes

  typealias Checksum = (UInt32, UInt32)

  /// The byte offset of a frame. Frames are counted from 1.
  static func offset(of frame: Int) -> Int { headBytes + (frame - 1) * frameBytes }

  /// Whether the bytes are the head of a log, unchanged.
  static func isHead(_ head: UnsafeRawBufferPointer) -> Bool {
    word(head, 0) & ~1 == magic
      && checksum(head[..<24], isBigEndian: isBigEndian(head), after: (0, 0))
        == (word(head, 24), word(head, 28))
  }

  /// Whether the log's checksums read words as big-endian.
  static func isBigEndian(_ head: UnsafeRawBufferPointer) -> Bool { word(head, 0) & 1 == 1 }

  /// A head for frames of this salt.
  static func head(salt: UInt64, isBigEndian: Bool) -> [UInt8] {
    var head = [UInt8](repeating: 0, count: headBytes)
    head.withUnsafeMutableBytes { head in
      store(magic | (isBigEndian ? 1 : 0), head, 0)
      store(version, head, 4)
      store(UInt32(pageBytes), head, 8)
      head.storeBytes(of: salt, toByteOffset: 16, as: UInt64.self)
      let sum = checksum(
        UnsafeRawBufferPointer(head)[..<24], isBigEndian: isBigEndian, after: (0, 0))
      store(sum.0, head, 24)
      store(sum.1, head, 28)
    }
    return head
  }

  /// The salt: the words that the frames of one generation and its head have in common.
  static func salt(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// The checksum that a frame should have, given the checksum of the one before.
  static func checksum(
    ofFrame frame: UnsafeRawBufferPointer, isBigEndian: Bool, after former: Checksum
  ) -> Checksum {
    let head = checksum(frame[..<8], isBigEndian: isBigEndian, after: former)
    return checksum(frame[frameHeadBytes...], isBigEndian: isBigEndian, after: head)
  }

  /// The checksum stored in a frame.
  static func checksum(in frame: UnsafeRawBufferPointer) -> Checksum {
    (word(frame, 16), word(frame, 20))
  }

  /// Whether the frame is the last of a commit.
  static func isCommit(_ frame: UnsafeRawBufferPointer) -> Bool { word(frame, 4) != 0 }

  static func store(_ word: UInt32, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int) {
    bytes.storeBytes(of: word.bigEndian, toByteOffset: offset, as: UInt32.self)
  }

  private static let magic: UInt32 = 0x377f_0682
  private static let version: UInt32 = 3_007_000

  static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  private static func checksum(
    _ slice: Slice<UnsafeRawBufferPointer>, isBigEndian: Bool, after former: Checksum
  ) -> Checksum {
    let bytes = UnsafeRawBufferPointer(rebasing: slice)
    var (first, second) = former
    for offset in stride(from: 0, to: bytes.count, by: 8) {
      let a = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      let b = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
      first &+= (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ second
      second &+= (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ first
    }
    return (first, second)
  }
}
