// A process is watched through a descriptor of it (pidfd_open(2)), never by its number: the
// descriptor means the same process for as long as it is open, while a number is reused.

internal import CLibuv
public import Glibc

/// Reports the end of a process, a child or any other.
///
/// Use it on its loop's thread only. It stays alive until the process ends, `close`, or the end of
/// its loop.
public final class ProcessWatcher {
  /// The loop on which `onExit` is called.
  public let loop: Loop

  /// The polled descriptor; nil when the process had ended before one could be opened, and when the
  /// watcher is closed.
  private var descriptor: Int32?
  private let handle: UnsafeMutablePointer<uv_poll_t>?
  private var onExit: (() -> Void)?

  /// A watcher of the process that has this number now.
  ///
  /// `onExit` is called once, on the loop, never inside this call; the watcher is closed by then.
  /// A process ends when its last thread does, whether or not its parent has waited for it. Throws
  /// `ESRCH` when there is no such process.
  public convenience init(
    pid: Glibc.pid_t, on loop: Loop, onExit: @escaping () -> Void
  ) throws(LoopError) {
    let descriptor = clibuv_pidfd_open(pid)
    try check(descriptor >= 0 ? 0 : -errno, "watch the process \(pid)")
    do throws(LoopError) {
      try self.init(descriptor, on: loop, onExit: onExit)
    } catch {
      Glibc.close(descriptor)
      throw error
    }
  }

  /// A watcher of the process of a descriptor, such as `getsockopt` returns for `SO_PEERPIDFD`.
  ///
  /// The watcher takes ownership of the descriptor; if this throws, the caller keeps it. Throws
  /// `EBADF` when it is not the descriptor of a process. `onExit` is called as in `init`.
  public static func adopt(
    descriptor: Int32, on loop: Loop, onExit: @escaping () -> Void
  ) throws(LoopError) -> ProcessWatcher {
    if clibuv_pidfd_probe(descriptor) != 0, errno == EBADF {
      throw LoopError(code: -EBADF, operation: "watch the process of the descriptor \(descriptor)")
    }
    return try ProcessWatcher(descriptor, on: loop, onExit: onExit)
  }

  fileprivate init(
    _ descriptor: Int32, on loop: Loop, onExit: @escaping () -> Void
  ) throws(LoopError) {
    precondition(!loop.isClosed, "The loop of this process watcher has ended.")
    assert(loop.isOnLoop)
    let handle = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    let status = uv_poll_init(loop.raw, handle, descriptor)
    if status < 0 {
      handle.deallocate()
      throw LoopError(code: status, operation: "poll the descriptor \(descriptor) of a process")
    }
    self.loop = loop
    self.descriptor = descriptor
    self.handle = handle
    self.onExit = onExit
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    uv_poll_start(handle, Int32(UV_READABLE.rawValue)) { handle, _, _ in
      Unmanaged<ProcessWatcher>.fromOpaque(handle!.pointee.data)
        ._withUnsafeGuaranteedRef { $0.exited() }
    }
  }

  /// A watcher of a process that has already ended and has no descriptor.
  init(endedOn loop: Loop, onExit: @escaping () -> Void) {
    self.loop = loop
    self.onExit = onExit
    handle = nil
    loop.afterwards { self.exited() }
  }

  /// Whether the process is still running, asked now; false once the watcher is closed.
  ///
  /// It may say false before `onExit` was called.
  public var isAlive: Bool {
    guard let descriptor else { return false }
    return pollOnce(descriptor, Int16(POLLIN)) == 0
  }

  /// Stops watching; `onExit` is not called after this. Calling it again does nothing.
  public func close() {
    onExit = nil
    guard let descriptor, let handle else { return }
    assert(loop.isOnLoop)
    self.descriptor = nil
    uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) {
      let watcher = Unmanaged<ProcessWatcher>.fromOpaque($0!.pointee.data).takeRetainedValue()
      watcher.closed()
    }
    // The handle no longer uses the descriptor.
    Glibc.close(descriptor)
  }

  private func exited() {
    loop.worked = true
    let onExit = onExit
    close()
    onExit?()
  }

  private func closed() {
    loop.worked = true
    handle?.deallocate()
  }
}

extension ProcessWatcher: HandleOwner {
  func closeForLoop() { close() }
}

extension Pipe {
  /// Watches the process at the other end: in the listener the one that connected, in the client
  /// the one that listens. Passing the socket on does not change it: a child that inherits the
  /// socket can keep talking after the process has ended.
  ///
  /// A process that has already ended is reported as any other: the watcher's `isAlive` is false,
  /// and `onExit` is called soon. Throws when the kernel does not say which process it was, or when
  /// there are no descriptors left.
  ///
  /// The kernel returns a descriptor of the process that it recorded (Linux 6.5). An older kernel
  /// returns only the number; we open that, and then check that the other end of the socket is
  /// still open. That is enough: a number is reused only after its process has ended, and a process
  /// that ends closes its sockets; so an end that is open now belongs to a process that existed
  /// when we opened its number. The exception is a process that passed the socket on and ended, and
  /// whose number was reused in the meantime: then the wrong process is watched. So the end of the
  /// process does not by itself mean that the other end is closed; the end of the pipe does.
  public func watchPeer(onExit: @escaping () -> Void) throws(LoopError) -> ProcessWatcher {
    try watchPeer(byNumber: false, onExit: onExit)
  }

  /// As `watchPeer`; with `byNumber`, the kernel is asked for the number only.
  package func watchPeer(
    byNumber: Bool, onExit: @escaping () -> Void
  ) throws(LoopError) -> ProcessWatcher {
    assert(loop.isOnLoop)
    guard let socket = descriptor else {
      throw LoopError(code: -EBADF, operation: "watch the peer of a closed pipe")
    }
    let process: PeerProcess
    if !byNumber, let noted = try PeerProcess.noted(for: socket) {
      process = noted
    } else {
      process = try .numbered(peer?.pid ?? 0, for: socket)
    }
    switch process {
    case .ended: return ProcessWatcher(endedOn: loop, onExit: onExit)
    case .open(let descriptor):
      do throws(LoopError) {
        return try ProcessWatcher(descriptor, on: loop, onExit: onExit)
      } catch {
        Glibc.close(descriptor)
        throw error
      }
    }
  }
}

/// The process at the other end of a socket.
private enum PeerProcess {
  /// A descriptor of the process, without an owner yet. The process may have ended too.
  case open(Int32)
  case ended

  /// The process that the kernel recorded when the peer connected; nil if the kernel is too old.
  static func noted(for socket: Int32) throws(LoopError) -> PeerProcess? {
    let peerProcess: Int32 = 77  // SO_PEERPIDFD, which Glibc's headers here do not know.
    var descriptor: Int32 = -1
    var size = socklen_t(MemoryLayout<Int32>.size)
    if getsockopt(socket, SOL_SOCKET, peerProcess, &descriptor, &size) == 0 {
      return .open(descriptor)
    }
    switch errno {
    case ENOPROTOOPT: return nil
    // Kernels before 6.16 have no descriptor of a process that its parent has waited for.
    case ESRCH, EINVAL: return .ended
    case let code: throw LoopError(code: -code, operation: "ask for the process of a peer")
    }
  }

  /// The process with the peer's number, if it is certain to be the peer.
  static func numbered(_ pid: pid_t, for socket: Int32) throws(LoopError) -> PeerProcess {
    let operation = "open the process \(pid) of a peer"
    // The number is zero when another namespace hides the process.
    try check(pid > 0 ? 0 : -ENODATA, operation)
    let descriptor = clibuv_pidfd_open(pid)
    if descriptor < 0 {
      try check(errno == ESRCH ? 0 : -errno, operation)
      return .ended
    }
    if pollOnce(socket, 0) == 0 { return .open(descriptor) }
    Glibc.close(descriptor)
    throw LoopError(code: -ENOTCONN, operation: operation)
  }
}

/// Those of `events` that hold for a descriptor now; an error or a hang-up is always included.
private func pollOnce(_ descriptor: Int32, _ events: Int16) -> Int16 {
  var question = pollfd(fd: descriptor, events: events, revents: 0)
  while poll(&question, 1, 0) < 0 && errno == EINTR {}
  return question.revents
}
