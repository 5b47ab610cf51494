internal import CLibuv
internal import Glibc

/// A connected stream socket.
///
/// Use it on its loop's thread only. It stays alive until `close`, or the end of its loop, even if
/// nothing refers to it; closing releases all its callbacks. Every callback may close this pipe or
/// any other.
public final class Pipe {
  /// The loop that the pipe is on.
  public let loop: Loop
  /// Called when all pending bytes have been written.
  public var onDrained: (() -> Void)?
  /// Called when pending bytes could not be written, for example because the peer has gone.
  ///
  /// The pending bytes are dropped and every later write fails. The pipe stays open, unless
  /// `closeAfterWriting` was called.
  public var onWriteError: ((LoopError) -> Void)?

  let handle = UnsafeMutablePointer<uv_pipe_t>.allocate(capacity: 1)
  var isClosing = false { didSet { noteReadiness() } }
  private var isClosed = false

  private var onBytes: ((UnsafeRawBufferPointer) -> Void)?
  private var onEnd: ((LoopError?) -> Void)?
  private var isReading = false
  /// What has been read since a poll, and which.
  private var readInTurn = 0
  private var pollOfRead: UInt64 = 0
  private var hasEnded = false

  /// At most one write is with libuv at a time, so one request is enough; made when first needed.
  var request: UnsafeMutablePointer<uv_write_t>?
  /// What libuv is writing.
  var inFlight = StreamBytes()
  var isWriting = false { didSet { noteReadiness() } }
  /// What to write after `inFlight`.
  var waiting = StreamBytes()
  var writeError: LoopError? { didSet { noteReadiness() } }
  var closesWhenDrained = false { didSet { noteReadiness() } }
  /// Whether a write may go to the socket at once. Kept, because a write is the most frequent call,
  /// and each look at one of the four costs as much as a small copy: exclusive access is checked.
  private(set) var isReadyToWrite = true

  private var knownPeer: PeerIdentity?
  private var closeCompletions: [() -> Void] = []
  private var connecting: Connecting?

  private struct Connecting {
    let request: UnsafeMutablePointer<uv_connect_t>
    let path: String
    let completion: (Result<Pipe, LoopError>) -> Void
  }

  private init(on loop: Loop) {
    precondition(!loop.isClosed, "The loop of this pipe has ended.")
    assert(loop.isOnLoop)
    self.loop = loop
    uv_pipe_init(loop.raw, handle, 0)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  private func noteReadiness() {
    isReadyToWrite = !isWriting && !isClosing && !closesWhenDrained && writeError == nil
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
    let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
    pipe.connecting = Connecting(request: request, path: path, completion: completion)
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
    connecting.request.deallocate()
    if status == 0 { return connecting.completion(.success(self)) }
    close()
    let error = LoopError(code: status, operation: "connect to \(connecting.path)")
    connecting.completion(.failure(error))
  }

  /// The credentials of the peer; nil if the kernel does not know them.
  ///
  /// The first use asks the kernel and caches the answer. A closed pipe returns only a cached
  /// answer.
  public var peer: PeerIdentity? {
    if let knownPeer { return knownPeer }
    if isClosing { return nil }
    assert(loop.isOnLoop)
    knownPeer = descriptor.flatMap { PeerIdentity(descriptor: $0) }
    return knownPeer
  }

  /// The socket; nil once the pipe is closed.
  var descriptor: Int32? {
    var descriptor: uv_os_fd_t = -1
    let raw = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
    guard !isClosing, uv_fileno(raw, &descriptor) == 0 else { return nil }
    return descriptor
  }

  // MARK: - Reading

  /// Starts reading: `onBytes` gets the bytes in order, and `onEnd` is called once, after them.
  ///
  /// The pointer is into a buffer that all pipes of the loop share: it is valid during the call
  /// only. `onEnd` gets nil when the peer has ended its side, or the error that ended it. Neither
  /// closes the pipe, and neither is called after `close`. Calling this again replaces both.
  public func startReading(
    onBytes: @escaping (UnsafeRawBufferPointer) -> Void,
    onEnd: @escaping (LoopError?) -> Void
  ) {
    if isClosing { return }
    self.onBytes = onBytes
    self.onEnd = onEnd
    resumeReading()
  }

  /// Stops the calls of `onBytes` at once, even between two reads of one turn.
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
    if isClosing || isReading || hasEnded || onBytes == nil { return }
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
    if pollOfRead != loop.polls { (pollOfRead, readInTurn) = (loop.polls, 0) }
    return readInTurn >= mostReadInTurn
  }

  private func received(_ count: Int) {
    loop.worked = true
    // Without a buffer libuv stops, and goes on in the next turn.
    if count == Int(UV_ENOBUFS.rawValue) { return }
    if count > 0 {
      readInTurn += count
      onBytes?(UnsafeRawBufferPointer(rebasing: loop.readBuffer[..<count]))
    } else if count < 0 {
      ended(Int32(count))
    }
  }

  private func ended(_ status: Int32) {
    if isClosing || hasEnded { return }
    uv_read_stop(stream)
    isReading = false
    hasEnded = true
    onEnd?(status == UV_EOF.rawValue ? nil : LoopError(code: status, operation: "read"))
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
    onBytes = nil
    onEnd = nil
    onDrained = nil
    onWriteError = nil
    inFlight = StreamBytes()
    waiting = StreamBytes()
    request?.deallocate()
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
private let mostReadInTurn = 256 << 10
