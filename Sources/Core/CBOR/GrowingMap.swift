/// A map whose entries are counted while they are appended.
public struct GrowingMap {
  /// The number of entries so far; the caller increments it.
  public var count = 0
  private let start: Int

  /// Begin a map at the end of the encoder's bytes.
  public init(in encoder: inout CBOREncoder) {
    start = encoder.bytes.count
    encoder.map(0)
  }

  /// End the map. O(1) for fewer than 24 entries; for more, O(its bytes).
  public func finish(_ encoder: inout CBOREncoder) {
    if count < 24 {
      encoder.bytes[start] |= UInt8(truncatingIfNeeded: count)
    } else {
      encoder.bytes.remove(at: start)
      encoder.insertHead(.map, UInt64(count), at: start)
    }
  }
}
