public import CBOR

/// Appends the changed entries of a map or struct to an encoder, drops those that turn out
/// unchanged, and makes one CBOR map of the rest, its keys in bytewise order (RFC 8949, 4.2.1). One
/// entry costs no allocation.
///
///     var map = PatchMap(in: &encoder)
///     let mark = map.open(encoder)
///     key.encode(into: &encoder)
///     map.close(mark, changed: value.encodeDifference(from: old, into: &encoder), &encoder)
///     return map.finish(&encoder)
///
/// A map that begins inside an entry of another must be finished inside that entry.
@frozen
public struct PatchMap {
  /// The offset of the map's head: one byte, which means "one entry" until `finish`.
  @usableFromInline let start: Int
  @usableFromInline var count = 0
  @usableFromInline var isOrdered = true
  /// The first byte of the entry before this one.
  @usableFromInline var previous = 0
  /// From the second entry on, the index of this map's first mark in the encoder. Its marks are the
  /// offsets of its entries.
  @usableFromInline var firstMark = 0

  @inlinable
  public init(in encoder: inout CBOREncoder) {
    start = encoder.bytes.count
    encoder.bytes.append(0xa1)
  }

  /// Begin an entry: encode its key and its patch next.
  @inlinable
  public func open(_ encoder: borrowing CBOREncoder) -> Int { encoder.bytes.count }

  /// End the entry that began at `mark`; forget it if its patch is empty.
  @inlinable
  public mutating func close(_ mark: Int, changed: Bool, _ encoder: inout CBOREncoder) {
    guard changed else {
      encoder.bytes.removeSubrange(mark...)
      return
    }
    if count > 0 { note(mark, &encoder) }
    previous = mark
    count += 1
  }

  @usableFromInline
  mutating func note(_ mark: Int, _ encoder: inout CBOREncoder) {
    if count == 1 {
      firstMark = encoder.marks.count
      encoder.marks.append(previous)
    }
    encoder.marks.append(mark)
    if isOrdered {
      isOrdered = encoder.bytes.withUnsafeBytes {
        Entry($0, previous..<mark).precedes(Entry($0, mark..<$0.count), $0)
      }
    }
  }

  /// End the map. Returns false, and removes what was appended, when no entry changed.
  /// O(bytes · log entries) when the entries did not come in order.
  @inlinable
  public mutating func finish(_ encoder: inout CBOREncoder) -> Bool {
    count == 1 || finishOther(&encoder)
  }

  /// End a map of no entry, or of several.
  @usableFromInline
  mutating func finishOther(_ encoder: inout CBOREncoder) -> Bool {
    if count == 0 {
      encoder.bytes.removeSubrange(start...)
      return false
    }
    precondition(
      encoder.marks.count == firstMark + count, "A patch map inside this one was not finished.")
    if !isOrdered { sort(&encoder) }
    encoder.marks.removeSubrange(firstMark...)
    if count < 24 {
      encoder.bytes[start] = 0xa0 | UInt8(truncatingIfNeeded: count)
    } else {
      encoder.bytes.remove(at: start)
      encoder.insertHead(.map, UInt64(count), at: start)
    }
    return true
  }

  private func sort(_ encoder: inout CBOREncoder) {
    let first = start + 1
    let unsorted = Array(encoder.bytes[first...])
    encoder.bytes.removeSubrange(first...)
    unsorted.withUnsafeBytes { bytes in
      var entries: [Entry] = []
      entries.reserveCapacity(count)
      var end = bytes.count
      for mark in encoder.marks[firstMark...].reversed() {
        entries.append(Entry(bytes, mark - first..<end))
        end = mark - first
      }
      entries.sort { $0.precedes($1, bytes) }
      for entry in entries { encoder.bytes.append(contentsOf: bytes[entry.range]) }
    }
  }
}

extension PatchMap {
  /// An encoded entry.
  private struct Entry {
    let range: Range<Int>
    /// Its first sixteen bytes as a number, for a quick comparison; zeros where it has fewer.
    let prefix: UInt128

    init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
      self.range = range
      if range.count >= 16 {
        prefix = UInt128(
          bigEndian: bytes.loadUnaligned(fromByteOffset: range.lowerBound, as: UInt128.self))
        return
      }
      var prefix: UInt128 = 0
      for byte in bytes[range] { prefix = prefix << 8 | UInt128(byte) }
      self.prefix = range.isEmpty ? 0 : prefix << UInt128(8 * (16 - range.count))
    }

    /// Encoded keys are prefix-free, so comparing whole entries compares their keys.
    func precedes(_ other: Entry, _ bytes: UnsafeRawBufferPointer) -> Bool {
      if prefix != other.prefix { return prefix < other.prefix }
      return bytes[range].lexicographicallyPrecedes(bytes[other.range])
    }
  }
}
