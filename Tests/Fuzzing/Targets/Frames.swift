import Wire

/// The same bytes give the same frames and the same error, however they are split. Input: the
/// choice of limit, the split sizes, the stream.
func fuzzFrames(_ given: Input) {
  var input = given
  let limits = [0, 1, 4, 16, 255, 4096, 16 << 20]
  let limit = limits[Int(input.byte()) % limits.count]
  let step = Int(input.byte())
  let stream = input.bytes
  let expected = Cut(reading: stream, limit: limit)

  require(Cut(stream, limit) { _ in stream.count } == expected, "frames that come whole")
  require(Cut(stream, limit) { _ in 1 } == expected, "frames that come byte by byte")
  var state = UInt32(step)
  let random = Cut(stream, limit) { _ in
    state = state &* 1_664_525 &+ 1_013_904_223
    return 1 + Int(state >> 16) % (1 + step)
  }
  require(random == expected, "frames that come in pieces")
}

/// The frames that a stream is cut into.
private struct Cut: Equatable {
  var items: [[UInt8]] = []
  var error: WireError?

  /// Cut by the decoder, which gets `size` bytes at a time.
  init(_ stream: [UInt8], _ limit: Int, _ size: (Int) -> Int) {
    var decoder = FrameDecoder(limit: limit)
    var offset = 0
    do throws(WireError) {
      while offset < stream.count {
        let end = min(stream.count, offset + max(1, size(offset)))
        let piece = Array(stream[offset..<end])
        let result: Result<Void, WireError> = piece.withUnsafeBytes { bytes in
          do throws(WireError) {
            return .success(try decoder.receiveAll(bytes) { self.items.append([UInt8]($0)) })
          } catch {
            return .failure(error)
          }
        }
        try result.get()
        offset = end
        require(decoder.buffered < limit + Frame.headLength, "no more than a frame is kept")
      }
    } catch {
      self.error = error
    }
  }

  /// By wire.md: four bytes of length, least significant first, and as many bytes.
  init(reading stream: [UInt8], limit: Int) {
    var rest = stream[...]
    while rest.count >= 4 {
      let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      if length > limit {
        error = WireError(
          .frameTooLarge, "a frame of \(length) bytes is over the limit of \(limit)",
          limit: LimitBreach("frameBytes", limit: limit, observed: length))
        return
      }
      guard rest.count >= 4 + length else { return }
      items.append(Array(rest.dropFirst(4).prefix(length)))
      rest = rest.dropFirst(4 + length)
    }
  }
}
