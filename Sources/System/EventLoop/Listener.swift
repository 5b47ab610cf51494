// libuv's own listening is not used: when descriptors run out it either drops clients silently or
// spins inside its accept loop, and closing it always removes the socket's file. We poll the
// descriptor and accept ourselves, which needs no more system calls.

internal import CLibuv
internal import Glibc

/// A Unix socket that accepts connections.
///
/// Use it on its loop's thread only. It stays alive until `close`, or the end of its loop.
public final class Listener {
  /// The loop on which connections arrive.
  public let loop: Loop
  /// The path of the socket's file; nil for an adopted descriptor.
  public let path: String?
  /// Called when a connection could not be accepted.
  ///
  /// When the process is out of descriptors or memory, accepting pauses for a tenth of a second;
  /// clients wait in the backlog meanwhile, and none is dropped.
  public var onAcceptError: ((LoopError) -> Void)?

  private let descriptor: Int32
  private let handle = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
  private var onConnection: ((Pipe) -> Void)?
  private var retry: Timer?
  private var file = stat()
  private var isClosing = false

  init(
    _ descriptor: Int32, path: String?, on loop: Loop, onConnection: @escaping (Pipe) -> Void
  ) throws(LoopError) {
    precondition(!loop.isClosed, "The loop of this listener has ended.")
    assert(loop.isOnLoop)
    self.loop = loop
    self.path = path
    self.descriptor = descriptor
    self.onConnection = onConnection
    if let path { _ = lstat(path, &file) }
    let status = uv_poll_init(loop.raw, handle, descriptor)
    if status < 0 {
      handle.deallocate()
      throw LoopError(code: status, operation: "poll the listening descriptor \(descriptor)")
    }
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    poll()
  }

  /// Stops listening; connections that were accepted go on. Calling it again does nothing.
  ///
  /// With `unlink`, removes the socket's file, unless another file has taken its place. Without,
  /// the file stays behind and refuses connections.
  public func close(unlink: Bool) {
    if isClosing { return }
    assert(loop.isOnLoop)
    isClosing = true
    if unlink { removeFile() }
    retry?.close()
    uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) {
      let listener = Unmanaged<Listener>.fromOpaque($0!.pointee.data).takeRetainedValue()
      listener.closed()
    }
    // The handle no longer uses the descriptor.
    Glibc.close(descriptor)
  }

  private func closed() {
    loop.worked = true
    onConnection = nil
    onAcceptError = nil
    retry = nil
    handle.deallocate()
  }

  private func removeFile() {
    guard let path else { return }
    var found = stat()
    guard lstat(path, &found) == 0 else { return }
    if found.st_ino == file.st_ino && found.st_dev == file.st_dev { Glibc.unlink(path) }
  }

  // MARK: - Accepting

  private func poll() {
    if isClosing { return }
    uv_poll_start(handle, Int32(UV_READABLE.rawValue)) { handle, _, _ in
      Unmanaged<Listener>.fromOpaque(handle!.pointee.data)
        ._withUnsafeGuaranteedRef { $0.acceptConnections() }
    }
  }

  /// Accepts pending connections, up to a limit, so that connected clients get their turn too.
  private func acceptConnections() {
    loop.worked = true
    for _ in 0..<64 {
      if isClosing { return }
      let connection = clibuv_accept(descriptor)
      if connection >= 0 {
        accepted(connection)
        continue
      }
      switch errno {
      case EAGAIN: return
      case EINTR, ECONNABORTED: continue
      case let code: return pause(LoopError(code: -code, operation: "accept a connection"))
      }
    }
  }

  private func accepted(_ connection: Int32) {
    do throws(LoopError) {
      onConnection?(try Pipe.adopt(descriptor: connection, on: loop))
    } catch {
      Glibc.close(connection)
      onAcceptError?(error)
    }
  }

  /// The descriptor stays readable for as long as we cannot accept, so polling it would spin.
  private func pause(_ error: LoopError) {
    uv_poll_stop(handle)
    let retry = self.retry ?? Timer(on: loop) { [unowned self] in poll() }
    self.retry = retry
    retry.start(after: .milliseconds(100))
    onAcceptError?(error)
  }
}

extension Listener: HandleOwner {
  func closeForLoop() { close(unlink: false) }
}
