import EventLoop
import Testing

@Suite struct LoopClockTests {
  private let clock = LoopClock()

  @Test(arguments: [Duration.nanoseconds(1), .microseconds(1500), .milliseconds(20)])
  func `a sleep never ends early, by the standard clock either`(duration: Duration) async throws {
    let deadline = clock.now.advanced(by: duration)
    let standard = ContinuousClock.now.advanced(by: duration)
    try await clock.sleep(until: deadline)
    #expect(clock.now >= deadline && ContinuousClock.now >= standard)
    try await clock.sleep(for: duration)
  }

  @Test func `a deadline in the past does not sleep`() async throws {
    try await clock.sleep(until: clock.now)
    try await clock.sleep(until: clock.now.advanced(by: .seconds(-600)))
  }

  @Test func `a sleep longer than the longest timer is several timers`() async throws {
    let clock = LoopClock(longestTimer: .milliseconds(2))
    let deadline = clock.now.advanced(by: .milliseconds(15))
    try await clock.sleep(until: deadline)
    #expect(clock.now >= deadline)
  }

  @Test func `ten thousand tasks sleep at once, and each wakes`() async throws {
    let awake = Locked(0)
    let start = clock.now
    await withDiscardingTaskGroup { group in
      for number in 0..<10_000 {
        group.addTask {
          let deadline = start.advanced(by: .microseconds(10 * number))
          try? await clock.sleep(until: deadline)
          if clock.now >= deadline { awake.withLock { $0 += 1 } }
        }
      }
    }
    #expect(awake.withLock { $0 } == 10_000)
  }

  @Test func `a cancelled task wakes at once, with the error`() async throws {
    for wait in [false, true] {
      let begun = Locked(false)
      let task = Task {
        begun.withLock { $0 = true }
        try await clock.sleep(for: .seconds(3600))
      }
      // Once before the sleep begins, most of the time, and once when it may have begun.
      while wait && !begun.withLock({ $0 }) { await Task.yield() }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test func `a cancelled task does not begin to sleep, whatever the deadline`() async throws {
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await clock.sleep(until: clock.now.advanced(by: .seconds(-1)))
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `cancellation and the deadline may coincide`() async throws {
    for number in 0..<500 {
      let task = Task { try await clock.sleep(for: .microseconds(10 * number)) }
      Task.detached { task.cancel() }
      do { try await task.value } catch is CancellationError {}
    }
  }
}
