public import CBOR

/// A frame on the wire: four bytes of length, least significant first, then one CBOR item.
public enum Frame {
  /// The bytes of the length.
  public static let headLength = 4

  /// The frame around one item.
  @inlinable
  public static func encode(_ item: (inout CBOREncoder) -> Void) -> [UInt8] {
    var encoder = CBOREncoder()
    append(to: &encoder, item)
    return encoder.bytes
  }

  /// Append the frame around one item to what `encoder` holds.
  @inlinable
  public static func append(to encoder: inout CBOREncoder, _ item: (inout CBOREncoder) -> Void) {
    let start = encoder.bytes.count
    encoder.bytes.append(contentsOf: [0, 0, 0, 0])
    item(&encoder)
    writeLength(encoder.bytes.count - start - headLength, into: &encoder.bytes, at: start)
  }

  /// Write a frame's length over the four bytes at `start`.
  @inlinable
  public static func writeLength(_ length: Int, into bytes: inout [UInt8], at start: Int) {
    let length = UInt32(length)
    for index in 0..<4 {
      bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index)))
    }
  }
}

/// Cuts a stream of bytes into frames, however the bytes arrive.
///
/// What arrives whole is handed on without a copy. Memory grows with the bytes that have arrived of
/// one frame, never with the length that it claims.
public struct FrameDecoder: Sendable {
  /// The most bytes an item may have.
  public var limit: Int
  /// The beginning of a frame whose end has not arrived.
  private var partial: [UInt8] = []

  public init(limit: Int) { self.limit = limit }

  /// The bytes that wait for the rest of their frame.
  public var unparsed: [UInt8] { partial }

  /// A decoder that goes on behind what another has not parsed.
  public init(limit: Int, unparsed: [UInt8]) {
    self.limit = limit
    partial = unparsed
  }

  /// How many bytes wait for the rest of their frame.
  public var buffered: Int { partial.count }

  /// Take bytes off the stream and hand each item that is now whole to `body`, in order. Stops and
  /// rethrows at the first error; the decoder is of no use afterwards.
  @inlinable
  public mutating func receive(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Void
  ) throws(WireError) {
    let rest = try resume(bytes, body)
    let used = try cut(rest, body)
    keep(UnsafeRawBufferPointer(rebasing: rest[used...]))
  }

  /// Complete the frame that an earlier call began. Returns the bytes behind it.
  @usableFromInline
  mutating func resume(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Void
  ) throws(WireError) -> UnsafeRawBufferPointer {
    if partial.isEmpty { return bytes }
    var taken = 0
    if partial.count < Frame.headLength {
      taken = min(Frame.headLength - partial.count, bytes.count)
      partial.append(contentsOf: bytes[..<taken])
      if partial.count < Frame.headLength {
        return UnsafeRawBufferPointer(rebasing: bytes[taken...])
      }
    }
    let head = partial[..<Frame.headLength].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    let length = try checked(head)
    let more = min(Frame.headLength + length - partial.count, bytes.count - taken)
    partial.append(contentsOf: bytes[taken..<(taken + more)])
    if partial.count == Frame.headLength + length {
      let frame = partial
      partial = []
      // `withUnsafeBytes` has no typed throws, hence the detour.
      let result: Result<Void, WireError> = frame.withUnsafeBytes { whole in
        do throws(WireError) {
          return .success(try body(UnsafeRawBufferPointer(rebasing: whole[Frame.headLength...])))
        } catch {
          return .failure(error)
        }
      }
      try result.get()
    }
    return UnsafeRawBufferPointer(rebasing: bytes[(taken + more)...])
  }

  /// Hand on every frame that is whole in `bytes`. Returns how many bytes they had.
  @usableFromInline
  func cut(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Void
  ) throws(WireError) -> Int {
    var offset = 0
    while bytes.count - offset >= Frame.headLength {
      let length = try frameLength(bytes, offset)
      let start = offset + Frame.headLength
      guard bytes.count - start >= length else { break }
      try body(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)]))
      offset = start + length
    }
    return offset
  }

  @usableFromInline
  mutating func keep(_ rest: UnsafeRawBufferPointer) {
    if !rest.isEmpty { partial.append(contentsOf: rest) }
  }

  func frameLength(_ bytes: UnsafeRawBufferPointer, _ offset: Int) throws(WireError) -> Int {
    try checked(
      UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
  }

  private func checked(_ head: UInt32) throws(WireError) -> Int {
    let length = Int(head)
    guard length <= limit else {
      throw WireError(
        .frameTooLarge, "a frame of \(length) bytes is over the limit of \(limit)",
        limit: LimitBreach("frameBytes", limit: limit, observed: length))
    }
    return length
  }
}
