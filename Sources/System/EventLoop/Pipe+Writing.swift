// A write first tries to leave at once. What the socket does not take is given to libuv as one
// request, which refers to the arrays that the caller gave; later writes wait behind it and become
// the next request. So the order is kept and no byte is copied.
//
// libuv gets pointers into arrays after the closure that lent them has returned. That is sound
// because the pipe holds those arrays until the request is over, shared storage is never changed
// in place, and the storage of a native array does not move.

internal import CLibuv
internal import Glibc

/// The result of a write.
public enum WriteOutcome: Equatable, Sendable {
  /// The kernel has taken everything.
  case written
  /// This many bytes are queued and are written without another call; see `Pipe.onDrained`.
  case pending(Int)
  /// The bytes, or part of them, will never be written, and later writes fail too.
  case failed(LoopError)
}

extension Pipe {
  /// Writes `bytes` after everything already written; with nothing pending this is one system call.
  ///
  /// Bytes that the socket does not accept at once are queued without a copy. Fails with `ENOTCONN`
  /// once the pipe is closing.
  @discardableResult
  public func write(_ bytes: [UInt8]) -> WriteOutcome {
    assert(loop.isOnLoop)
    guard isReadyToWrite else { return later([bytes]) }
    if bytes.isEmpty { return .written }
    var sent = bytes.withUnsafeBytes { bytes in
      var buffer = uv_buf_t(bytes, from: 0)
      return Int(uv_try_write(stream, &buffer, 1))
    }
    if sent == bytes.count { return .written }
    if sent < 0 {
      guard Int32(sent) == UV_EAGAIN.rawValue else { return failed(Int32(sent)) }
      sent = 0
    }
    return send([bytes], from: Position(index: 0, offset: sent), count: bytes.count - sent)
  }

  /// Writes all of `buffers` in order, after everything already written, gathered by the kernel.
  ///
  /// Like `write` of one array; it needs one system call for every 1024 buffers.
  @discardableResult
  public func write(_ buffers: [[UInt8]]) -> WriteOutcome {
    if buffers.count == 1 { return write(buffers[0]) }
    assert(loop.isOnLoop)
    guard isReadyToWrite else { return later(buffers) }
    var rest = buffers.reduce(0) { $0 + $1.count }
    if rest == 0 { return .written }
    var position = Position()
    while rest > 0 {
      let (sent, offered) = withBuffers(buffers, from: position, limit: longestVector) { vector in
        let sent = uv_try_write(stream, vector.baseAddress, UInt32(vector.count))
        return (Int(sent), vector.reduce(0) { $0 + $1.len })
      }
      if sent < 0 {
        if Int32(sent) == UV_EAGAIN.rawValue { break }
        return failed(Int32(sent))
      }
      position.advance(by: sent, in: buffers)
      rest -= sent
      if sent < offered { break }
    }
    return rest == 0 ? .written : send(buffers, from: position, count: rest)
  }

  /// The number of bytes that were given to the pipe and not yet to the kernel.
  public var unsentBytes: Int {
    isClosing ? 0 : waitingBytes + uv_stream_get_write_queue_size(stream)
  }

  /// Stop reading and writing for good, and return what another process needs to continue: the
  /// descriptor, which the pipe owns until `close`, and the bytes that have not been given to the
  /// kernel. Nil when the connection is no longer usable.
  ///
  /// Close the pipe before the loop's next turn; otherwise both processes write the same bytes.
  public func handOver() -> (descriptor: Int32, unsent: [UInt8])? {
    assert(loop.isOnLoop)
    var descriptor: uv_os_fd_t = -1
    let raw = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
    guard !isClosing, !closesWhenDrained, writeError == nil, uv_fileno(raw, &descriptor) == 0
    else { return nil }
    stopReading()
    // libuv has written a prefix of its buffers; its queue size is the length of the rest.
    let rest = uv_stream_get_write_queue_size(stream)
    let given = Array(inFlight.joined())
    guard rest <= given.count else { return nil }
    return (descriptor, Array(given.suffix(rest)) + waiting.joined())
  }

  private var refusal: LoopError? {
    if isClosing || closesWhenDrained { return writing(UV_ENOTCONN.rawValue) }
    return writeError
  }

  private func writing(_ status: Int32) -> LoopError {
    LoopError(code: status, operation: "write")
  }

  private func failed(_ status: Int32) -> WriteOutcome {
    let error = writing(status)
    writeError = error
    return .failed(error)
  }

  /// Write after what is being written, if anything may be written at all.
  private func later(_ buffers: [[UInt8]]) -> WriteOutcome {
    if let refusal { return .failed(refusal) }
    let count = buffers.reduce(0) { $0 + $1.count }
    if count == 0 { return .written }
    waiting += buffers
    waitingBytes += count
    return .pending(count)
  }

  private func send(_ buffers: [[UInt8]], from start: Position, count: Int) -> WriteOutcome {
    let status = sendInFlight(buffers, from: start)
    return status < 0 ? failed(status) : .pending(count)
  }

  private func sendInFlight(_ buffers: [[UInt8]], from start: Position) -> Int32 {
    let request = self.request ?? .allocate(capacity: 1)
    self.request = request
    inFlight = buffers
    isWriting = true
    request.pointee.data = handle.pointee.data
    // libuv copies the vector, and splits it into pieces that the kernel accepts.
    let status = withBuffers(buffers, from: start, limit: .max) { vector in
      uv_write(request, stream, vector.baseAddress, UInt32(vector.count)) { request, status in
        Unmanaged<Pipe>.fromOpaque(request!.pointee.data)
          ._withUnsafeGuaranteedRef { $0.sent(status) }
      }
    }
    if status < 0 {
      isWriting = false
      inFlight = []
    }
    return status
  }

  private func sent(_ status: Int32) {
    loop.worked = true
    isWriting = false
    inFlight = []
    if isClosing { return }
    if status < 0 { return writingFailed(status) }
    if waiting.isEmpty { return drained() }
    let next = waiting
    waiting = []
    waitingBytes = 0
    let status = sendInFlight(next, from: Position())
    if status < 0 { writingFailed(status) }
  }

  private func drained() {
    onDrained?()
    if closesWhenDrained && !isWriting { close() }
  }

  private func writingFailed(_ status: Int32) {
    let error = writing(status)
    writeError = error
    waiting = []
    waitingBytes = 0
    onWriteError?(error)
    if closesWhenDrained { close() }
  }
}

/// IOV_MAX: the kernel refuses more buffers than this.
private let longestVector = 1024

/// A position in a list of buffers.
private struct Position {
  var index = 0
  var offset = 0

  mutating func advance(by count: Int, in buffers: [[UInt8]]) {
    offset += count
    while index < buffers.count && offset >= buffers[index].count {
      offset -= buffers[index].count
      index += 1
    }
  }
}

private func withBuffers<Result>(
  _ buffers: [[UInt8]], from start: Position, limit: Int,
  _ body: (UnsafeMutableBufferPointer<uv_buf_t>) -> Result
) -> Result {
  let count = min(buffers.count - start.index, limit)
  return withUnsafeTemporaryAllocation(of: uv_buf_t.self, capacity: count) { vector in
    for slot in 0..<count {
      let offset = slot == 0 ? start.offset : 0
      let buffer = buffers[start.index + slot].withUnsafeBytes { uv_buf_t($0, from: offset) }
      vector.initializeElement(at: slot, to: buffer)
    }
    return withExtendedLifetime(buffers) { body(vector) }
  }
}

extension uv_buf_t {
  /// A buffer that libuv only reads from, although its type is mutable.
  fileprivate init(_ bytes: UnsafeRawBufferPointer, from offset: Int) {
    let base = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0) + offset }
    self.init(base: base?.assumingMemoryBound(to: CChar.self), len: bytes.count - offset)
  }
}
