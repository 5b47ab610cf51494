import LockstepTesting
import Testing

@Suite("TestClock")
struct TestClockTests {
  /// Sleepers that record their actions in order when they wake.
  actor Sleepers {
    let clock: TestClock
    private(set) var notes: [String] = []

    init(_ clock: TestClock) { self.clock = clock }

    func sleep(_ name: String, seconds: Int, times: Int = 1) async throws {
      for _ in 0..<times {
        try await clock.sleep(until: clock.now.advanced(by: .seconds(seconds)))
        notes.append(name)
      }
    }
  }

  /// Waits, in real time, until a condition holds.
  func until(_ condition: () -> Bool) async { while !condition() { await Task.yield() } }

  @Test func `time advances only when the test says so`() async {
    let clock = TestClock()
    #expect(clock.now.offset == .zero)
    await clock.advance(by: .seconds(3))
    #expect(clock.now.offset == .seconds(3))
    await clock.advance(to: TestClock.Instant(offset: .seconds(5)))
    await clock.advance(to: TestClock.Instant(offset: .seconds(1)))
    #expect(clock.now.offset == .seconds(5))
  }

  @Test func `sleepers wake by deadline, then in the order in which they began to sleep`() async {
    let clock = TestClock()
    let sleepers = Sleepers(clock)
    for (index, (name, seconds)) in [("a", 2), ("b", 1), ("c", 2), ("d", 9)].enumerated() {
      Task { try await sleepers.sleep(name, seconds: seconds) }
      await until { clock.sleepers == index + 1 }
    }
    await clock.advance(by: .seconds(3))
    #expect(await sleepers.notes == ["b", "a", "c"])
    #expect(clock.sleepers == 1 && clock.now.offset == .seconds(3))
    await clock.run()
    #expect(await sleepers.notes == ["b", "a", "c", "d"] && clock.now.offset == .seconds(9))
  }

  @Test func `a sleeper that sleeps again is woken again`() async {
    let clock = TestClock()
    let sleepers = Sleepers(clock)
    let task = Task { try await sleepers.sleep("a", seconds: 1, times: 5) }
    for count in 1...3 {
      await until { clock.sleepers == 1 }
      await clock.advance(by: .seconds(1))
      #expect(await sleepers.notes.count == count)
    }
    task.cancel()
  }

  @Test func `a cancelled sleeper throws at once`() async {
    let clock = TestClock()
    let task = Task { try await clock.sleep(until: TestClock.Instant(offset: .seconds(1))) }
    await until { clock.sleepers == 1 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleepers == 0)
  }

  @Test func `a cancelled task does not begin to sleep`() async {
    let clock = TestClock()
    let task = Task {
      await until { Task.isCancelled }
      try await clock.sleep(until: TestClock.Instant(offset: .seconds(1)))
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `a deadline that has passed does not sleep`() async throws {
    let clock = TestClock(now: TestClock.Instant(offset: .seconds(2)))
    try await clock.sleep(until: TestClock.Instant(offset: .seconds(2)))
    try await clock.sleep(until: TestClock.Instant(offset: .seconds(1)))
    #expect(clock.sleepers == 0)
  }
}
