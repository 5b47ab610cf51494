import EventLoop
import Testing

@Suite struct TimerTests {
  @Test func `timers fire in the order of their deadlines, then of their starts`() throws {
    var fired: [Int] = []
    try withLoop { loop in
      let delays = [20, 5, 10, 10, 1]
      let timers = delays.indices.map { number in
        Timer(on: loop) {
          fired.append(number)
          if fired.count == delays.count { loop.stop() }
        }
      }
      // Each counts from its start: if that of the last came late, they are started again.
      let now = Loop.monotonicNanoseconds
      var first: UInt64
      repeat {
        first = now()
        for (timer, delay) in zip(timers, delays) { timer.start(after: .milliseconds(delay)) }
      } while now() - first > 1_000_000
    }
    #expect(fired == [4, 1, 2, 3, 0])
  }

  @Test func `a repeating timer repeats until it is stopped`() throws {
    var count = 0
    try withLoop { loop in
      let last = Timer(on: loop) { loop.stop() }
      var repeating: Timer?
      repeating = Timer(on: loop) {
        count += 1
        if count < 5 { return }
        repeating?.stop()
        repeating = nil
        last.start(after: .milliseconds(20))
      }
      repeating?.start(after: .milliseconds(1), repeating: .milliseconds(1))
    }
    #expect(count == 5)
  }

  @Test(arguments: [Duration.nanoseconds(1), .zero, .seconds(-1), .milliseconds(3)])
  func `a timer never fires early, and never at once`(delay: Duration) throws {
    var passed: UInt64 = 0
    var isStarting = false
    var firedAtOnce = true
    try withLoop { loop in
      var start: UInt64 = 0
      let timer = Timer(on: loop) {
        passed = Loop.monotonicNanoseconds() - start
        firedAtOnce = isStarting
        loop.stop()
      }
      start = Loop.monotonicNanoseconds()
      isStarting = true
      timer.start(after: delay)
      isStarting = false
    }
    #expect(Duration.nanoseconds(Int64(passed)) >= delay)
    #expect(!firedAtOnce)
  }

  @Test func `a timer that restarts itself does not starve reading`() throws {
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      var timer: Timer?
      timer = Timer(on: loop) { timer?.start(after: .zero) }
      timer?.start(after: .zero)
      other.startReading(
        onBytes: { _ in
          timer = nil
          loop.stop()
        }, onEnd: { _ in })
      one.write([1])
    }
  }

  @Test func `a closed timer does not fire, and is freed`() throws {
    weak var forgotten: Timer?
    try withLoop { loop in
      let timer = Timer(on: loop) { Issue.record("fired") }
      forgotten = timer
      timer.start(after: .milliseconds(1))
      timer.close()
      timer.close()
      timer.start(after: .milliseconds(1))
      Timer(on: loop) { loop.stop() }.start(after: .milliseconds(10))
    }
    #expect(forgotten == nil)
  }
}
