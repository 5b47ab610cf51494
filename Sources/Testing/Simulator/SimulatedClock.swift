import Lockstep
import Synchronization

/// The clock of a simulation's effects: it shows the simulation's time.
final class SimulatedClock: Clock, Sendable {
  struct Instant: InstantProtocol, Hashable {
    var offset: Duration

    func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

    func duration(to other: Instant) -> Duration { other.offset - offset }

    static func < (first: Instant, second: Instant) -> Bool { first.offset < second.offset }
  }

  /// An effect of one of the daemon's runs.
  struct Owner: Hashable, Sendable {
    let run: Int
    let effect: UInt64
  }

  /// The running effect, for its own tasks: tasks that it detaches are unknown.
  @TaskLocal static var owner: Owner?

  private struct Sleeper: Sendable {
    let number: UInt64
    let owner: Owner?
    let deadline: Instant
    let continuation: UnsafeContinuation<Void, any Error>
  }

  private struct Storage: Sendable {
    var now = Instant(offset: .zero)
    var next: UInt64 = 0
    /// Ordered by deadline, then by number.
    var sleepers: [Sleeper] = []
    /// The daemon's run. Effects of another run never wake.
    var run = 0
  }

  private let storage = Mutex(Storage())

  var now: Instant { storage.withLock { $0.now } }
  var minimumResolution: Duration { .zero }

  /// The time as a wall-clock time: simulations happen in 1970.
  var timestamp: Timestamp { Timestamp(nanoseconds: 0) + now.offset }

  /// The earliest deadline of a sleeper.
  var nextDeadline: Instant? { storage.withLock { $0.sleepers.first?.deadline } }

  /// The sleeping effects.
  var sleepingEffects: Set<UInt64> {
    storage.withLock { Set($0.sleepers.compactMap { $0.owner?.effect }) }
  }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    let number = storage.withLock { storage in
      storage.next += 1
      return storage.next
    }
    if !isDead { try Task.checkCancellation() }
    try await withTaskCancellationHandler {
      try await withUnsafeThrowingContinuation { continuation in
        let sleeper = Sleeper(
          number: number, owner: Self.owner, deadline: deadline, continuation: continuation)
        fallAsleep(sleeper)
        if Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
  }

  /// Whether the caller is an effect of a former run.
  private var isDead: Bool {
    guard let owner = Self.owner else { return false }
    return storage.withLock { $0.run != owner.run }
  }

  private func fallAsleep(_ sleeper: Sleeper) {
    if isDead { return }
    let isOver = storage.withLock { storage in
      if sleeper.deadline <= storage.now { return true }
      let place = storage.sleepers.firstIndex { $0.deadline > sleeper.deadline }
      storage.sleepers.insert(sleeper, at: place ?? storage.sleepers.endIndex)
      return false
    }
    if isOver { sleeper.continuation.resume() }
  }

  private func cancel(_ number: UInt64) {
    let sleeper: Sleeper? = storage.withLock { storage in
      let place = storage.sleepers.firstIndex { $0.number == number }
      return place.map { storage.sleepers.remove(at: $0) }
    }
    sleeper?.continuation.resume(throwing: CancellationError())
  }

  /// Advance to a time, and wake every sleeper whose deadline has come, in the order of deadlines.
  func move(to instant: Instant) {
    let woken = storage.withLock { storage in
      storage.now = instant
      let count = storage.sleepers.prefix { $0.deadline <= instant }.count
      defer { storage.sleepers.removeFirst(count) }
      return Array(storage.sleepers.prefix(count))
    }
    for sleeper in woken { sleeper.continuation.resume() }
  }

  /// Drop every sleeper: another run of the daemon begins.
  func begin(run: Int) {
    storage.withLock { storage in
      storage.sleepers = []
      storage.run = run
    }
  }
}
