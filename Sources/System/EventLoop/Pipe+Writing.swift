// A write first tries to leave at once. What the socket does not take is given to libuv as one
// request, which refers to the arrays that the caller gave; what is left, and later writes, wait behind
// it and become the next request. So the order is kept, and nothing long is copied.
//
// A peer that reads as fast as we write makes the kernel take any number of bytes in one call, so no
// call is given more than `mostAtOnce`, and no turn of the loop twice as much for a peer: 20 MB in one
// call would be 12 ms, during which no other client is served.
//
// Several short arrays, as an acknowledgement and a patch, are copied together: for the kernel, a vector
// is more work than so many bytes.
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
  /// This many bytes are queued and are written without another call; see `Pipe.Event.drained`.
  case pending(Int)
  /// The bytes, or part of them, will never be written, and later writes fail too.
  case failed(LoopError)
}

extension Pipe {
  /// Writes `bytes` after everything already written; with nothing pending this is one system call, for
  /// up to 256 KB.
  ///
  /// Bytes that the socket does not accept at once, and those beyond, are queued without a copy. Fails
  /// with `ENOTCONN` once the pipe is closing.
  @discardableResult
  public func write(_ bytes: [UInt8]) -> WriteOutcome {
    assert(loop.isOnLoop)
    guard isReadyToWrite else { return later([bytes]) }
    if bytes.isEmpty { return .written }
    var sent = bytes.withUnsafeBytes { bytes in
      var buffer = uv_buf_t(bytes, from: 0)
      buffer.len = min(buffer.len, mostAtOnce)
      return Int(uv_try_write(stream, &buffer, 1))
    }
    if sent == bytes.count { return .written }
    if sent < 0 {
      guard Int32(sent) == UV_EAGAIN.rawValue else { return failed(Int32(sent)) }
      sent = 0
    }
    return send([bytes], from: Position(index: 0, offset: sent), count: bytes.count - sent)
  }

  /// Writes all of `buffers` in order, after everything already written: gathered by the kernel, or
  /// here if they are short.
  ///
  /// Like `write` of one array; it needs one system call for every 1024 buffers, or 256 KB.
  @discardableResult
  public func write(_ buffers: [[UInt8]]) -> WriteOutcome {
    if buffers.count == 1 { return write(buffers[0]) }
    assert(loop.isOnLoop)
    guard isReadyToWrite else { return later(buffers) }
    var rest = buffers.reduce(0) { $0 + $1.count }
    if rest == 0 { return .written }
    var position = Position()
    var left = mostAtOnce
    if rest <= mostTogether { return writeTogether(count: rest, buffers) }
    while rest > 0, left > 0 {
      let (sent, offered) = withBuffers(
        buffers, from: position, limit: longestVector, most: left
      ) { vector, bytes in
        (Int(uv_try_write(stream, vector.baseAddress, UInt32(vector.count))), bytes)
      }
      if sent < 0 {
        if Int32(sent) == UV_EAGAIN.rawValue { break }
        return failed(Int32(sent))
      }
      position.advance(by: sent, in: buffers)
      rest -= sent
      left -= sent
      if sent < offered { break }
    }
    return rest == 0 ? .written : send(buffers, from: position, count: rest)
  }

  /// Writes two arrays in order, as `write` of a list of them, which is not made.
  @discardableResult
  public func write(_ first: [UInt8], _ second: [UInt8]) -> WriteOutcome {
    assert(loop.isOnLoop)
    let count = first.count + second.count
    guard isReadyToWrite, count <= mostTogether, count > 0 else { return write([first, second]) }
    let sent = withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { bytes in
      first.withUnsafeBytes { bytes.copyMemory(from: $0) }
      second.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: bytes[first.count...]).copyMemory(from: $0)
      }
      return tryWriting(bytes)
    }
    return sent == count ? .written : goOn(with: [first, second], from: sent, count: count)
  }

  /// Copy buffers of so many bytes in all, so that each fits behind those before it, and write them.
  private func writeTogether(count: Int, _ buffers: [[UInt8]]) -> WriteOutcome {
    let sent = withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { bytes in
      var end = 0
      for buffer in buffers {
        buffer.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: bytes[end...]).copyMemory(from: $0)
        }
        end += buffer.count
      }
      return tryWriting(bytes)
    }
    return sent == count ? .written : goOn(with: buffers, from: sent, count: count)
  }

  /// Returns the bytes that the kernel took, or libuv's error. libuv keeps no pointer to them.
  private func tryWriting(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
    var all = uv_buf_t(UnsafeRawBufferPointer(bytes), from: 0)
    return Int(uv_try_write(stream, &all, 1))
  }

  /// Write the rest of buffers of which the kernel took so many bytes, or refused them with an error.
  private func goOn(with buffers: [[UInt8]], from sent: Int, count: Int) -> WriteOutcome {
    if sent < 0, Int32(sent) != UV_EAGAIN.rawValue { return failed(Int32(sent)) }
    var position = Position()
    position.advance(by: max(0, sent), in: buffers)
    return send(buffers, from: position, count: count - max(0, sent))
  }

  /// The number of bytes that were given to the pipe and not yet to the kernel.
  public var unsentBytes: Int {
    isClosing ? 0 : (outgoing?.waiting.count ?? 0) + uv_stream_get_write_queue_size(stream)
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
    guard !isClosing, !closesWhenDrained, writeStatus == 0, uv_fileno(raw, &descriptor) == 0
    else { return nil }
    stopReading()
    // libuv has written a prefix of its buffers; its queue size is the length of the rest.
    let rest = uv_stream_get_write_queue_size(stream)
    let inFlight = outgoing?.inFlight ?? StreamBytes()
    let waiting = outgoing?.waiting ?? StreamBytes()
    guard rest <= inFlight.count else { return nil }
    return (descriptor, inFlight.suffix(rest) + waiting.suffix(waiting.count))
  }

  private var refusal: LoopError? {
    if isClosing || closesWhenDrained { return writing(UV_ENOTCONN.rawValue) }
    return writeStatus == 0 ? nil : writing(writeStatus)
  }

  private func writing(_ status: Int32) -> LoopError {
    LoopError(code: status, operation: "write")
  }

  private func failed(_ status: Int32) -> WriteOutcome {
    writeStatus = status
    return .failed(writing(status))
  }

  /// Write after what is being written, if anything may be written at all.
  private func later(_ buffers: [[UInt8]]) -> WriteOutcome {
    if let refusal { return .failed(refusal) }
    let count = buffers.reduce(0) { $0 + $1.count }
    if count == 0 { return .written }
    // There is one while a request is with libuv, and else it could be written at once.
    let outgoing = self.outgoing ?? Outgoing()
    self.outgoing = outgoing
    outgoing.waiting.append(buffers, count: count)
    return .pending(count)
  }

  private func send(_ buffers: [[UInt8]], from start: Position, count: Int) -> WriteOutcome {
    let outgoing = Outgoing()
    outgoing.waiting = StreamBytes(
      start.index == 0 ? buffers : Array(buffers[start.index...]), from: start.offset, count: count)
    self.outgoing = outgoing
    let status = sendWaiting(of: outgoing)
    if status < 0 {
      self.outgoing = nil
      return failed(status)
    }
    return .pending(count)
  }

  /// Give libuv the first of what waits.
  private func sendWaiting(of outgoing: Outgoing) -> Int32 {
    let request = outgoing.request
    let next = outgoing.waiting.removeFirst(mostInRequest)
    outgoing.inFlight = next
    isWriting = true
    request.pointee.data = handle.pointee.data
    // libuv copies the vector, and splits it into pieces that the kernel accepts.
    let start = Position(index: 0, offset: next.start)
    let status = withBuffers(next.arrays, from: start, limit: .max, most: next.count) { vector, _ in
      uv_write(request, stream, vector.baseAddress, UInt32(vector.count)) { request, status in
        Unmanaged<Pipe>.fromOpaque(request!.pointee.data)
          ._withUnsafeGuaranteedRef { $0.sent(status) }
      }
    }
    if status < 0 {
      isWriting = false
      outgoing.inFlight = StreamBytes()
    }
    return status
  }

  private func sent(_ status: Int32) {
    loop.worked = true
    isWriting = false
    // The request is ours again, so all of it may be released.
    guard let outgoing else { return }
    outgoing.inFlight = StreamBytes()
    if isClosing { return }
    if status < 0 { return writingFailed(status) }
    if outgoing.waiting.isEmpty { return drained() }
    let status = sendWaiting(of: outgoing)
    if status < 0 { writingFailed(status) }
  }

  private func drained() {
    outgoing = nil
    if let onDrained { onDrained() } else { tell(.drained) }
    if closesWhenDrained && !isWriting { close() }
  }

  private func writingFailed(_ status: Int32) {
    writeStatus = status
    outgoing = nil
    let error = writing(status)
    if let onWriteError { onWriteError(error) } else { tell(.writeError(error)) }
    if closesWhenDrained { close() }
  }
}

/// IOV_MAX: the kernel refuses more buffers than this.
private let longestVector = 1024

/// The most bytes that are copied, to be one buffer. They fit the stack.
private let mostTogether = 1024

/// The most bytes of a first call: about 0.1 ms.
private let mostAtOnce = 256 << 10

/// The most bytes of a request, of which libuv makes up to nine in a turn, one after the other.
private let mostInRequest = 32 << 10

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

/// Call `body` with the buffers from a position on, no more than `limit` and no more bytes than `most`,
/// and with the number of these bytes.
private func withBuffers<Result>(
  _ buffers: [[UInt8]], from start: Position, limit: Int, most: Int,
  _ body: (UnsafeMutableBufferPointer<uv_buf_t>, Int) -> Result
) -> Result {
  let capacity = min(buffers.count - start.index, limit)
  return withUnsafeTemporaryAllocation(of: uv_buf_t.self, capacity: capacity) { vector in
    var (count, bytes) = (0, 0)
    while count < capacity, bytes < most {
      let offset = count == 0 ? start.offset : 0
      var buffer = buffers[start.index + count].withUnsafeBytes { uv_buf_t($0, from: offset) }
      buffer.len = min(buffer.len, most - bytes)
      vector.initializeElement(at: count, to: buffer)
      bytes += buffer.len
      count += 1
    }
    return withExtendedLifetime(buffers) { body(.init(rebasing: vector[..<count]), bytes) }
  }
}

extension uv_buf_t {
  /// A buffer that libuv only reads from, although its type is mutable.
  fileprivate init(_ bytes: UnsafeRawBufferPointer, from offset: Int) {
    let base = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0) + offset }
    self.init(base: base?.assumingMemoryBound(to: CChar.self), len: bytes.count - offset)
  }
}
