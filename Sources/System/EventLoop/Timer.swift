internal import CLibuv

/// A timer on a loop; it can be started and stopped any number of times.
///
/// Use it on its loop's thread only. It stays alive until `close`, or the end of its loop, even if
/// nothing refers to it.
public final class Timer {
  /// The loop that the timer is on.
  public let loop: Loop

  private let handle = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
  private var onFire: (() -> Void)?
  private var isClosing = false

  /// A timer that is not started. `onFire` runs on the loop, and is released at `close`.
  public init(on loop: Loop, onFire: @escaping () -> Void) {
    precondition(!loop.isClosed, "The loop of this timer has ended.")
    assert(loop.isOnLoop)
    self.loop = loop
    self.onFire = onFire
    uv_timer_init(loop.raw, handle)
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  /// Fires once `delay` from now, and then every `interval` if there is one; replaces an earlier
  /// start.
  ///
  /// It never fires early. Both are rounded up to whole milliseconds, and are at least one. Timers
  /// that are due together fire in the order in which they were started.
  public func start(after delay: Duration, repeating interval: Duration? = nil) {
    if isClosing { return }
    assert(loop.isOnLoop)
    // The loop's own clock does not advance during a turn, so we count from the precise one.
    let due = (uv_hrtime() + delay.clampedNanoseconds + 999_999) / 1_000_000
    let cached = uv_now(loop.raw)
    let period = interval.map { max(1, ($0.clampedNanoseconds + 999_999) / 1_000_000) }
    uv_timer_start(
      handle,
      { Unmanaged<Timer>.fromOpaque($0!.pointee.data)._withUnsafeGuaranteedRef { $0.fire() } },
      due > cached ? due - cached : 1, period ?? 0)
  }

  /// Stops it; `onFire` is not called until the next `start`.
  public func stop() {
    if isClosing { return }
    assert(loop.isOnLoop)
    uv_timer_stop(handle)
  }

  /// Stops the timer for good and releases it. Calling it again does nothing.
  public func close() {
    if isClosing { return }
    assert(loop.isOnLoop)
    isClosing = true
    uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) {
      let timer = Unmanaged<Timer>.fromOpaque($0!.pointee.data).takeRetainedValue()
      timer.closed()
    }
  }

  private func fire() {
    loop.worked = true
    onFire?()
  }

  private func closed() {
    loop.worked = true
    onFire = nil
    handle.deallocate()
  }
}

extension Timer: HandleOwner {
  func closeForLoop() { close() }
}

extension Duration {
  /// Nanoseconds, rounded up and clamped to between 0 and about 31 years.
  fileprivate var clampedNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    if seconds < 0 || attoseconds < 0 { return 0 }
    return UInt64(min(seconds, 1_000_000_000)) * 1_000_000_000
      + UInt64((attoseconds + 999_999_999) / 1_000_000_000)
  }
}
