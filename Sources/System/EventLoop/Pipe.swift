internal import CLibuv
internal import Glibc

/// A connected stream socket.
///
/// Use it on its loop's thread only. It stays alive until `close`, or the end of its loop, even if
/// nothing refers to it; closing releases all its callbacks. Every callback may close this pipe or
/// any other.
///
/// A process may have ten thousand that are idle: what only some need is in memory of its own, and one
/// closure gets what happens.
public final class Pipe {
  /// What happens to a pipe that reads.
  public enum Event {
    /// Bytes have come. They are in a buffer that all pipes of the loop share: the pointer is valid during
    /// the call only.
    case bytes(UnsafeRawBufferPointer)
    /// The peer has ended its side, or there is an error. Comes once, after all bytes.
    case end(LoopError?)
    /// All pending bytes have been written.
    case drained
    /// Pending bytes could not be written, for example because the peer has gone: they are dropped, and
    /// every later write fails. The pipe stays open, unless `closeAfterWriting` was called.
    case writeError(LoopError)
  }

  /// The loop that the pipe is on.
  public let loop: Loop
  /// Called in place of `Event.drained`.
  public var onDrained: (() -> Void)?
  /// Called in place of `Event.writeError`.
  public var onWriteError: ((LoopError) -> Void)?

  let handle = UnsafeMutablePointer<uv_pipe_t>.allocate(capacity: 1)
  /// Set and taken at an instant, and released when it has been replaced: no two accesses can overlap.
  @exclusivity(unchecked) private var onEvent: ((Event) -> Void)?
  /// What has been read since a poll, and the last digits of its number.
  private var readInTurn: UInt32 = 0
  private var pollOfRead: UInt32 = 0
  /// What is to be written, if something waits.
  var outgoing: Outgoing?
  private var connecting: Connecting?
  private var closeCompletions: [() -> Void] = []

  var isClosing = false { didSet { noteReadiness() } }
  private var isClosed = false
  private var isReading = false
  private var hasEnded = false
  var isWriting = false { didSet { noteReadiness() } }
  var closesWhenDrained = false { didSet { noteReadiness() } }
  /// Whether a write may go to the socket at once. Kept, because a write is the most frequent call,
  /// and each look at one of the four costs as much as a small copy: exclusive access is checked.
  private(set) var isReadyToWrite = true
  /// The error for which no more can be written; 0 if there is none.
  var writeStatus: Int32 = 0 { didSet { noteReadiness() } }

  /// What the socket has not accepted.
  final class Outgoing {
    /// At most one write is with libuv at a time, so one request is enough.
    let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
    /// What libuv is writing.
    var inFlight = StreamBytes()
    /// What to write after it.
    var waiting = StreamBytes()

    deinit { request.deallocate() }
  }

  private final class Connecting {
    let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
    let path: String
    let completion: (Result<Pipe, LoopError>) -> Void

    init(_ path: String, _ completion: @escaping (Result<Pipe, LoopError>) -> Void) {
      (self.path, self.completion) = (path, completion)
    }

    deinit { request.deallocate() }
  }

  private init(on loop: Loop) {
    precondition(!loop.isClosed, "The loop of this pipe has ended.")
    assert(loop.isOnLoop)
    self.loop = loop
    uv_pipe_init(loop.raw, handle, 0)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  private func noteReadiness() {
    isReadyToWrite = !isWriting && !isClosing && !closesWhenDrained && writeStatus == 0
  }

  var stream: UnsafeMutablePointer<uv_stream_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
  }

  // MARK: - Opening

  /// Connects to the socket at `path` and gives `completion` the pipe, which does not read yet.
  ///
  /// `completion` is called once, on the loop, never inside this call. It fails with `ENAMETOOLONG`
  /// when the path is longer than a socket's path may be (107 bytes), with `EAGAIN` when the
  /// listener's backlog is full, with `ECANCELED` when the loop ends.
  public static func connect(
    path: String, on loop: Loop, completion: @escaping (Result<Pipe, LoopError>) -> Void
  ) {
    do throws(LoopError) {
      _ = try SocketAddress(path: path, operation: "connect to \(path)")
    } catch {
      return loop.afterwards { completion(.failure(error)) }
    }
    let pipe = Pipe(on: loop)
    let connecting = Connecting(path, completion)
    pipe.connecting = connecting
    let request = connecting.request
    request.pointee.data = pipe.handle.pointee.data
    uv_pipe_connect(request, pipe.handle, path) { request, status in
      Unmanaged<Pipe>.fromOpaque(request!.pointee.data)
        ._withUnsafeGuaranteedRef { $0.connected(status) }
    }
  }

  /// A pipe over a stream socket that is connected already; it does not read yet.
  ///
  /// The pipe takes ownership of the descriptor and makes it non-blocking; if this throws, the
  /// caller keeps it.
  public static func adopt(descriptor: Int32, on loop: Loop) throws(LoopError) -> Pipe {
    let pipe = Pipe(on: loop)
    let status = uv_pipe_open(pipe.handle, descriptor)
    if status < 0 {
      pipe.close()
      throw LoopError(code: status, operation: "adopt the descriptor \(descriptor)")
    }
    return pipe
  }

  private func connected(_ status: Int32) {
    loop.worked = true
    guard let connecting else { return }
    self.connecting = nil
    if status == 0 { return connecting.completion(.success(self)) }
    close()
    let error = LoopError(code: status, operation: "connect to \(connecting.path)")
    connecting.completion(.failure(error))
  }

  /// The credentials of the peer: the kernel is asked each time. Nil if it does not know them, or the pipe is
  /// closed.
  public var peer: PeerIdentity? {
    assert(loop.isOnLoop)
    return descriptor.flatMap { PeerIdentity(descriptor: $0) }
  }

  /// The socket; nil once the pipe is closed.
  var descriptor: Int32? {
    var descriptor: uv_os_fd_t = -1
    let raw = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
    guard !isClosing, uv_fileno(raw, &descriptor) == 0 else { return nil }
    return descriptor
  }

  // MARK: - Reading

  /// Starts reading: `onEvent` gets the bytes in order, and whatever else happens.
  ///
  /// No event closes the pipe, and none comes after `close`. Calling this again replaces the closure.
  public func startReading(_ onEvent: @escaping (Event) -> Void) {
    if isClosing { return }
    self.onEvent = onEvent
    resumeReading()
  }

  /// As `startReading(_:)`, for a caller that needs the bytes and the end only.
  public func startReading(
    onBytes: @escaping (UnsafeRawBufferPointer) -> Void,
    onEnd: @escaping (LoopError?) -> Void
  ) {
    startReading { event in
      switch event {
      case .bytes(let bytes): onBytes(bytes)
      case .end(let error): onEnd(error)
      case .drained, .writeError: break
      }
    }
  }

  /// Tell of an event.
  func tell(_ event: Event) { onEvent?(event) }

  /// Stops the events of bytes at once, even between two reads of one turn.
  ///
  /// The socket's buffer then fills, and the peer can write no more: this is the back-pressure. The
  /// peer's end is not noticed either.
  public func stopReading() {
    if isClosing || !isReading { return }
    assert(loop.isOnLoop)
    isReading = false
    uv_read_stop(stream)
  }

  /// Resumes reading after `stopReading`. Does nothing if the pipe is reading already, never
  /// started, or has reached the end.
  public func resumeReading() {
    if isClosing || isReading || hasEnded || onEvent == nil { return }
    assert(loop.isOnLoop)
    isReading = true
    let status = uv_read_start(
      stream,
      { handle, _, buffer in
        Unmanaged<Pipe>.fromOpaque(handle!.pointee.data)._withUnsafeGuaranteedRef { pipe in
          let memory = pipe.loop.readBuffer
          buffer!.pointee.base = memory.baseAddress!.assumingMemoryBound(to: CChar.self)
          buffer!.pointee.len =
            pipe.hasReadEnough ? 0 : min(memory.count, max(1, pipe.loop.readLength))
        }
      },
      { stream, count, _ in
        Unmanaged<Pipe>.fromOpaque(stream!.pointee.data)
          ._withUnsafeGuaranteedRef { $0.received(count) }
      })
    if status < 0 { loop.afterwards { self.ended(status) } }
  }

  /// Whether so much has been read in this turn that others come first. libuv would read 32 times.
  private var hasReadEnough: Bool {
    let poll = UInt32(truncatingIfNeeded: loop.polls)
    if pollOfRead != poll { (pollOfRead, readInTurn) = (poll, 0) }
    return readInTurn >= mostReadInTurn
  }

  private func received(_ count: Int) {
    loop.worked = true
    // Without a buffer libuv stops, and goes on in the next turn.
    if count == Int(UV_ENOBUFS.rawValue) { return }
    if count > 0 {
      // Less than a buffer at a time, until there is enough.
      readInTurn &+= UInt32(truncatingIfNeeded: count)
      tell(.bytes(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count])))
    } else if count < 0 {
      ended(Int32(count))
    }
  }

  private func ended(_ status: Int32) {
    if isClosing || hasEnded { return }
    uv_read_stop(stream)
    isReading = false
    hasEnded = true
    tell(.end(status == UV_EOF.rawValue ? nil : LoopError(code: status, operation: "read")))
  }

  // MARK: - Closing

  /// Closes the socket now, drops pending bytes, and calls `completion` once everything is
  /// released.
  ///
  /// No other callback of this pipe is called after this. Calling it again only adds its
  /// completion, which runs at once if the pipe is closed already.
  public func close(_ completion: (() -> Void)? = nil) {
    if isClosed {
      completion?()
      return
    }
    assert(loop.isOnLoop)
    if let completion { closeCompletions.append(completion) }
    if isClosing { return }
    isClosing = true
    uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) {
      let pipe = Unmanaged<Pipe>.fromOpaque($0!.pointee.data).takeRetainedValue()
      pipe.closed()
    }
  }

  /// Closes once all pending bytes have been written, or cannot be.
  ///
  /// Later writes fail. Reading goes on meanwhile. A peer that never reads delays the close for
  /// ever, so keep a timer.
  public func closeAfterWriting() {
    if isClosing { return }
    assert(loop.isOnLoop)
    closesWhenDrained = true
    if !isWriting { close() }
  }

  private func closed() {
    loop.worked = true
    isClosed = true
    onEvent = nil
    onDrained = nil
    onWriteError = nil
    outgoing = nil
    handle.deallocate()
    let completions = closeCompletions
    closeCompletions = []
    for completion in completions { completion() }
  }
}

extension Pipe: HandleOwner {
  func closeForLoop() { close() }
}

/// The bytes after which a pipe waits for the next turn: to read as many more is no faster.
private let mostReadInTurn: UInt32 = 256 << 10
