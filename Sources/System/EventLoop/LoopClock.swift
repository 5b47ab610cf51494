// Theory of operation.
//
// A sleep is one timer on a loop that all clocks of the process share. The sleeping task makes a
// `Sleep`, and hands it to the loop twice: to begin it, and, if the task is cancelled, to end it.
// Both run on the loop's thread, in either order; the first one decides.

/// The standard clock of daemons and stores: `ContinuousClock`, with sleeps that libuv times.
///
/// It tells the time of `ContinuousClock`, so instants of the two compare. Sleeps differ:
/// `Task.sleep` depends on one timer descriptor of libdispatch for the whole process, and on Linux
/// (Swift 6.3) libdispatch has been seen to stop watching it after it fired, so that no sleep of
/// the process ever ended. A daemon whose effects wait must not depend on it.
///
/// The first sleep (in a daemon, its start) creates a thread, "clock", which all clocks share until
/// the process ends. A sleep costs O(log n) for n concurrent sleeps.
public struct LoopClock: Clock {
  public typealias Instant = ContinuousClock.Instant

  private static let loop = try? Loop.startThread(name: "clock", readBufferSize: 1)

  /// libuv counts only the time in which the machine is awake. A sleep longer than this checks the
  /// clock again at this interval, so after a suspension no sleep is late by more than this.
  private let longestTimer: Duration

  /// Create the thread now rather than at the first sleep, when there may be no descriptors left.
  package static func prepare() { _ = loop }

  public init() { longestTimer = .seconds(60) }

  package init(longestTimer: Duration) { self.longestTimer = longestTimer }

  public var now: Instant { ContinuousClock.now }

  /// A millisecond: a sleep ends at the first whole millisecond at or after its deadline.
  public var minimumResolution: Duration { .milliseconds(1) }

  /// Sleeps until `deadline`: never less, and up to a minute more after a suspension of the
  /// machine.
  ///
  /// Throws `CancellationError` as soon as the task is cancelled. Without a thread or descriptors
  /// for a loop (at the first sleep of the process) it sleeps as `ContinuousClock` does.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    guard let loop = Self.loop else {
      return try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
    }
    try Task.checkCancellation()
    if deadline <= now { return }
    let sleep = Sleep(until: deadline, longest: longestTimer)
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        loop.execute { sleep.begin(on: loop, continuation) }
      }
    } onCancel: {
      loop.execute { sleep.cancel() }
    }
  }
}

/// One task that sleeps.
///
/// Unchecked: made by the task and handed over once; from then on it is touched on the loop only.
private final class Sleep: @unchecked Sendable {
  private let deadline: ContinuousClock.Instant
  private let longest: Duration
  private var timer: Timer?
  private var continuation: CheckedContinuation<Void, any Error>?
  private var isCancelled = false

  init(until deadline: ContinuousClock.Instant, longest: Duration) {
    self.deadline = deadline
    self.longest = longest
  }

  func begin(on loop: Loop, _ continuation: CheckedContinuation<Void, any Error>) {
    if isCancelled { return continuation.resume(throwing: CancellationError()) }
    self.continuation = continuation
    timer = Timer(on: loop) { self.look() }
    look()
  }

  func cancel() {
    isCancelled = true
    end(throwing: CancellationError())
  }

  /// Wake the task, or go on waiting.
  private func look() {
    let rest = ContinuousClock.now.duration(to: deadline)
    if rest <= .zero { return end() }
    timer?.start(after: min(rest, longest))
  }

  private func end(throwing error: (any Error)? = nil) {
    guard let continuation else { return }
    self.continuation = nil
    timer?.close()
    timer = nil
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
  }
}
