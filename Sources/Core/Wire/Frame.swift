public import CBOR

/// A frame on the wire: four bytes of length, least significant first, then one CBOR item.
public enum Frame {
  /// The size of the length, in bytes.
  public static let headLength = 4
  /// The maximum size of one frame's item in bytes, unless a daemon sets another: a JSON file of
  /// some megabytes must fit one `set`; a peer can make us buffer this much.
  public static let defaultLimit = 16 << 20

  /// The frame around one item, of which this many bytes are expected: with more, the memory grows.
  @inlinable
  public static func encode(
    expecting count: Int = 60, _ item: (inout CBOREncoder) -> Void
  ) -> [UInt8] {
    var encoder = CBOREncoder(reservingCapacity: headLength + count)
    append(to: &encoder, item)
    return encoder.bytes
  }

  /// Append the frame around one item to the encoder's bytes.
  @inlinable
  public static func append(to encoder: inout CBOREncoder, _ item: (inout CBOREncoder) -> Void) {
    let start = encoder.bytes.count
    for _ in 0..<headLength { encoder.bytes.append(0) }
    item(&encoder)
    writeLength(encoder.bytes.count - start - headLength, into: &encoder.bytes, at: start)
  }

  /// The length that a frame's first four bytes say; 0 if they are not there.
  package static func length(of bytes: [UInt8]) -> Int {
    guard bytes.count >= headLength else { return 0 }
    return bytes.prefix(headLength).reversed().reduce(0) { $0 << 8 | Int($1) }
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
/// What arrives whole is handed on without a copy. Memory is reserved for no more than four times the
/// bytes that have arrived of one frame, and used for these, whatever length it claims. Its reader may
/// stop before or behind any frame: the bytes from there on are held until it goes on.
public struct FrameDecoder: Sendable {
  /// What a reader does after it has seen an item.
  public enum Step: Sendable {
    case goOn
    /// Hold the bytes behind the item's frame.
    case stopBehind
    /// The same, if there are any.
    case rest
    /// Hold the frame, too: its item has not been read, and is the first when reading goes on.
    case stopBefore
    /// The same for a short frame: what is held does not count as unfinished.
    case postpone
  }

  /// The maximum size of an item in bytes.
  public var limit: Int
  /// The beginning of an incomplete frame; while held, whole frames too.
  private var partial: [UInt8] = []
  /// The bytes of memory that were reserved for the incomplete frame; 0 if only as many as have come.
  private var reserved = 0
  /// Whether the reader has stopped; the held bytes may contain whole frames.
  public private(set) var isHeld = false
  /// Whether the reader has stopped before a frame that may be large, the first of the held bytes.
  public private(set) var isBeforeFrame = false

  public init(limit: Int, isHeld: Bool = false) {
    self.limit = limit
    self.isHeld = isHeld
  }

  /// The bytes that have arrived but have not been parsed.
  public var unparsed: [UInt8] { partial }

  /// A decoder that holds the bytes that another has not parsed; `release` continues with them.
  public init(limit: Int, unparsed: [UInt8]) {
    self.limit = limit
    partial = unparsed
    isHeld = !unparsed.isEmpty
  }

  /// The number of bytes that have arrived but have not been parsed.
  public var buffered: Int { partial.count }

  /// The number of these that belong to an incomplete frame, with the memory that is reserved for the
  /// rest of it, or to one that the reader has stopped before: 0 while only what is behind a frame is
  /// held, which is as much as one read at most.
  public var unfinished: Int { isHeld && !isBeforeFrame ? 0 : max(partial.count, reserved) }

  /// The frame that the reader has stopped before, as the range of its item in `unparsed`; nil if it
  /// has not.
  public var heldItem: Range<Int>? {
    guard isBeforeFrame, partial.count >= Frame.headLength else { return nil }
    let length = partial[..<Frame.headLength].reversed().reduce(0) { $0 << 8 | Int($1) }
    guard length <= partial.count - Frame.headLength else { return nil }
    return Frame.headLength..<(Frame.headLength + length)
  }

  /// Take bytes off the stream and pass each complete item to `body`, in order, until it stops. Stops
  /// and rethrows at the first error; the decoder must not be used afterwards.
  @inlinable
  public mutating func receive(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Step
  ) throws(WireError) {
    let rest = try resume(bytes, body)
    if isHeld { return keep(rest) }
    let used = try cut(rest, body)
    keep(UnsafeRawBufferPointer(rebasing: rest[used...]))
  }

  /// As `receive`, for a reader that never stops.
  @inlinable
  public mutating func receiveAll(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Void
  ) throws(WireError) {
    try receive(bytes) { (item) throws(WireError) in
      try body(item)
      return .goOn
    }
  }

  /// Continue where the reader stopped, as `receive`.
  public mutating func release(
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Step
  ) throws(WireError) {
    isHeld = false
    isBeforeFrame = false
    reserved = 0
    var held: [UInt8] = []
    swap(&held, &partial)
    // `withUnsafeBytes` has no typed throws, hence the `Result`.
    let result: Result<Int, WireError> = held.withUnsafeBytes { bytes in
      do throws(WireError) {
        return .success(try cut(bytes, body))
      } catch {
        return .failure(error)
      }
    }
    let used = try result.get()
    // What nothing was read of is not copied: it may be a large frame.
    if used == 0 { partial = held } else { partial = Array(held[used...]) }
  }

  /// Complete the frame that an earlier call began. Returns the bytes after it.
  @usableFromInline
  mutating func resume(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Step
  ) throws(WireError) -> UnsafeRawBufferPointer {
    if partial.isEmpty || isHeld { return bytes }
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
    let needed = partial.count + more
    if needed > reserved, needed > Self.worthReserving {
      // No more than a quarter of a large frame is ever copied at once.
      reserved = min(Frame.headLength + length, 4 * needed)
      partial.reserveCapacity(reserved)
    }
    partial.append(contentsOf: bytes[taken..<(taken + more)])
    if partial.count == Frame.headLength + length {
      let frame = partial
      (partial, reserved) = ([], 0)
      // `withUnsafeBytes` has no typed throws, hence the `Result`.
      let result: Result<Step, WireError> = frame.withUnsafeBytes { whole in
        do throws(WireError) {
          return .success(try body(UnsafeRawBufferPointer(rebasing: whole[Frame.headLength...])))
        } catch {
          return .failure(error)
        }
      }
      let step = try result.get()
      switch step {
      case .goOn: break
      case .stopBehind: isHeld = true
      case .rest: isHeld = taken + more < bytes.count
      case .stopBefore, .postpone:
        (isHeld, isBeforeFrame) = (true, step == .stopBefore)
        partial = frame
      }
    }
    return UnsafeRawBufferPointer(rebasing: bytes[(taken + more)...])
  }

  /// From this many bytes on, copying what has come takes longer than a read.
  private static let worthReserving = 64 << 10

  /// Pass the complete frames in `bytes` to `body`. Returns the number of bytes parsed.
  @usableFromInline
  mutating func cut(
    _ bytes: UnsafeRawBufferPointer,
    _ body: (UnsafeRawBufferPointer) throws(WireError) -> Step
  ) throws(WireError) -> Int {
    var offset = 0
    while bytes.count - offset >= Frame.headLength {
      let length = try frameLength(bytes, offset)
      let start = offset + Frame.headLength
      guard bytes.count - start >= length else { break }
      let step = try body(UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)]))
      if step == .stopBefore || step == .postpone {
        (isHeld, isBeforeFrame) = (true, step == .stopBefore)
        break
      }
      offset = start + length
      if step == .stopBehind || step == .rest && offset < bytes.count {
        isHeld = true
        break
      }
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
