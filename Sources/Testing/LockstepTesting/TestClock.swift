import Synchronization

/// A clock whose time advances only when a test says so.
///
/// Sleepers wake in the order of their deadlines, and with equal deadlines in the order in which
/// they began to sleep; each runs as far as it can before the next wakes. A cancelled sleeper
/// throws `CancellationError` at once.
public final class TestClock: Clock, Sendable {
  /// A point in the time of a test clock, counted from the clock's creation.
  public struct Instant: InstantProtocol, Hashable {
    public var offset: Duration

    public init(offset: Duration = .zero) { self.offset = offset }

    public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

    public func duration(to other: Instant) -> Duration { other.offset - offset }

    public static func < (first: Instant, second: Instant) -> Bool { first.offset < second.offset }
  }

  private struct Sleeper {
    let number: UInt64
    let deadline: Instant
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct Storage {
    var now: Instant
    var next: UInt64 = 0
    /// Ordered by deadline, then by number.
    var sleepers: [Sleeper] = []
    /// Sleepers that were cancelled before they slept.
    var cancelled: Set<UInt64> = []
    /// Sleepers that were woken and do not run yet.
    var woken: Set<UInt64> = []
    /// Returns when every woken sleeper has run as far as it can.
    var settle: (@Sendable () async -> Void)?
  }

  private let storage: Mutex<Storage>

  public init(now: Instant = Instant()) { storage = Mutex(Storage(now: now)) }

  public var now: Instant { storage.withLock { $0.now } }

  public var minimumResolution: Duration { .zero }

  /// The number of sleeping tasks, for which tests may wait.
  public var sleepers: Int { storage.withLock { $0.sleepers.count } }

  // MARK: Sleeping

  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    let number = storage.withLock { storage in
      storage.next += 1
      return storage.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        fallAsleep(Sleeper(number: number, deadline: deadline, continuation: continuation))
      }
    } onCancel: {
      cancel(number)
    }
    storage.withLock { _ = $0.woken.remove(number) }
  }

  private func fallAsleep(_ sleeper: Sleeper) {
    let outcome: Result<Void, any Error>? = storage.withLock { storage in
      if storage.cancelled.remove(sleeper.number) != nil { return .failure(CancellationError()) }
      if sleeper.deadline <= storage.now { return .success(()) }
      let place = storage.sleepers.firstIndex { $0.deadline > sleeper.deadline }
      storage.sleepers.insert(sleeper, at: place ?? storage.sleepers.endIndex)
      return nil
    }
    if let outcome { sleeper.continuation.resume(with: outcome) }
  }

  private func cancel(_ number: UInt64) {
    let sleeper: Sleeper? = storage.withLock { storage in
      guard let place = storage.sleepers.firstIndex(where: { $0.number == number }) else {
        storage.cancelled.insert(number)
        return nil
      }
      return storage.sleepers.remove(at: place)
    }
    sleeper?.continuation.resume(throwing: CancellationError())
  }

  // MARK: Moving

  /// Let time pass, and wake every sleeper whose deadline it reaches.
  public func advance(by duration: Duration = .zero) async {
    await advance(to: now.advanced(by: duration))
  }

  /// Advance to a point in time, and wake every sleeper on the way. Time never goes back.
  public func advance(to instant: Instant) async {
    await settle()
    while let sleeper = wake(until: instant) {
      sleeper.resume()
      await settle()
    }
    storage.withLock { $0.now = max($0.now, instant) }
    await settle()
  }

  /// Advance from deadline to deadline until no task sleeps. It never returns while a timer runs.
  public func run() async {
    await settle()
    while let sleeper = wake(until: nil) {
      sleeper.resume()
      await settle()
    }
  }

  /// Remove the sleeper with the earliest deadline, and advance to that deadline.
  private func wake(until limit: Instant?) -> CheckedContinuation<Void, any Error>? {
    storage.withLock { storage in
      guard let first = storage.sleepers.first else { return nil }
      if let limit, first.deadline > limit { return nil }
      storage.now = max(storage.now, first.deadline)
      storage.woken.insert(first.number)
      return storage.sleepers.removeFirst().continuation
    }
  }

  /// Call `settle` to wait until woken sleepers have run as far as they can.
  func onSettle(_ settle: @escaping @Sendable () async -> Void) {
    storage.withLock { $0.settle = settle }
  }

  private func settle() async {
    while storage.withLock({ !$0.woken.isEmpty }) { await Task.yield() }
    await Self.yield()
    if let settle = storage.withLock({ $0.settle }) { await settle() }
  }

  /// Let other tasks run first. The detached tasks queue behind every task that is ready to run.
  static func yield() async {
    for _ in 0..<20 {
      await Task<Void, Never>.detached(priority: .background) { await Task.yield() }.value
    }
  }
}
