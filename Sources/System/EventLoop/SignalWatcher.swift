internal import CLibuv
internal import Glibc

/// Turns signals into calls on a loop.
///
/// While it is open, the signals that it watches do not have their usual effect on the process. They are
/// unblocked on the loop's thread: a process inherits what the thread that started it has blocked, and
/// some libraries' threads block everything.
/// Use it on its loop's thread only. It stays alive until `close`, or the end of its loop.
public final class SignalWatcher {
  /// The loop on which `onSignal` is called.
  public let loop: Loop

  private var handles: [UnsafeMutablePointer<uv_signal_t>] = []
  private var onSignal: ((Int32) -> Void)?
  private var isClosing = false

  /// A watcher of `signals` that calls `onSignal` with the number of each that arrives.
  ///
  /// Signals of one kind that arrive faster than the loop turns count as one. Throws `EINVAL` for
  /// a signal that cannot be watched.
  public init(
    _ signals: [Int32], on loop: Loop, onSignal: @escaping (Int32) -> Void
  ) throws(LoopError) {
    precondition(!loop.isClosed, "The loop of this signal watcher has ended.")
    assert(loop.isOnLoop)
    self.loop = loop
    self.onSignal = onSignal
    for signal in signals {
      let status = watch(signal)
      if status < 0 {
        close()
        throw LoopError(code: status, operation: "watch signal \(signal)")
      }
    }
  }

  /// Gives the signals back their usual effect. Calling it again does nothing.
  public func close() {
    if isClosing { return }
    assert(loop.isOnLoop)
    isClosing = true
    for handle in handles {
      uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) {
        let watcher = Unmanaged<SignalWatcher>.fromOpaque($0!.pointee.data).takeRetainedValue()
        watcher.closed(UnsafeMutableRawPointer($0!))
      }
    }
  }

  private func watch(_ signal: Int32) -> Int32 {
    let handle = UnsafeMutablePointer<uv_signal_t>.allocate(capacity: 1)
    let status = uv_signal_init(loop.raw, handle)
    if status < 0 {
      handle.deallocate()
      return status
    }
    handles.append(handle)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    let started = uv_signal_start(
      handle,
      { handle, signal in
        Unmanaged<SignalWatcher>.fromOpaque(handle!.pointee.data)
          ._withUnsafeGuaranteedRef { $0.arrived(signal) }
      }, signal)
    if started == 0 {
      // One that has waited arrives here, and this handle is told of it.
      var unblocked = sigset_t()
      sigemptyset(&unblocked)
      sigaddset(&unblocked, signal)
      pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }
    return started
  }

  private func arrived(_ signal: Int32) {
    loop.worked = true
    onSignal?(signal)
  }

  private func closed(_ handle: UnsafeMutableRawPointer) {
    loop.worked = true
    onSignal = nil
    handle.deallocate()
  }
}

extension SignalWatcher: HandleOwner {
  func closeForLoop() { close() }
}

/// Signal settings of the whole process, made once.
public enum Signals {
  /// Makes a write to a closed connection an error instead of the end of the process.
  ///
  /// Everything that uses a `Pipe` needs it, clients too.
  public static func ignoreBrokenPipe() {
    signal(SIGPIPE, SIG_IGN)
  }

  /// Keeps these signals from ending the process when no watcher of them is open any more, so that
  /// the work after a loop's end is done.
  ///
  /// libuv restores a signal's usual effect when the last handle for it closes. This opens one more
  /// handle, on a loop that never runs, and keeps both for ever. Call it once, before the watchers
  /// are made. Throws when the process has no descriptors left.
  public static func outlive(_ signals: [Int32]) throws(LoopError) {
    let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    let status = uv_loop_init(loop)
    if status < 0 {
      loop.deallocate()
      throw LoopError(code: status, operation: "outlive signals")
    }
    for signal in signals {
      let handle = UnsafeMutablePointer<uv_signal_t>.allocate(capacity: 1)
      uv_signal_init(loop, handle)
      let status = uv_signal_start(handle, { _, _ in }, signal)
      if status < 0 { throw LoopError(code: status, operation: "outlive signal \(signal)") }
    }
  }

  /// Whether the process ignores a signal, as its parent may have arranged.
  public static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(signal, nil, &action) == 0 else { return false }
    let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
    return handler == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
