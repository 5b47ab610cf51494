// Theory of operation.
//
// A sleep is one timer on a loop that all clocks of the process share. The sleeping task makes a
// `Sleep`, and hands it to the loop twice: to begin, and, if it is cancelled, to end. What happens
// to it happens on the loop's thread, in that order or the other; the first to come decides.

/// The standard clock of daemons and stores: `ContinuousClock`, with sleeps that libuv times.
///
/// It tells the time of `ContinuousClock`, so instants of the two compare. Sleeps differ: behind
/// `Task.sleep` is one timer descriptor of libdispatch for the whole process, and on Linux (Swift
/// 6.3) it has been seen to fire without being watched again, so that no sleep of the process ever
/// ended. A daemon whose effects wait must not depend on it.
///
/// The first sleep (of a daemon, its start) begins a thread, "clock", which all clocks share for as
/// long as the process lives. A sleep costs O(log n) of the n that sleep.
public struct LoopClock: Clock {
  public typealias Instant = ContinuousClock.Instant

  private static let loop = try? Loop.startThread(name: "clock", readBufferSize: 1)

  /// libuv counts time in which the machine is awake. Whoever sleeps longer than this looks at the
  /// clock again, so after a suspension nobody is later than that.
  private let longestTimer: Duration

  /// Begin the thread now, and not at the first sleep: there may be no descriptors then.
  package static func prepare() { _ = loop }

  public init() { longestTimer = .seconds(60) }

  package init(longestTimer: Duration) { self.longestTimer = longestTimer }

  public var now: Instant { ContinuousClock.now }

  /// A millisecond: sleeps end on the first whole one at or after their deadline.
  public var minimumResolution: Duration { .milliseconds(1) }

  /// Waits until `deadline`; never less, and after a suspension of the machine up to a minute more.
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
