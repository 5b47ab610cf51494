import EventLoop
import Glibc
import Testing

@Suite struct LoopTests {
  @Test func `all work from eight threads runs, in the order of each thread`() throws {
    let loop = try Loop.startThread(name: "many-threads")
    let seen = Shared([[Int]](repeating: [], count: 8))
    let finished = Shared(0)
    for thread in 0..<8 {
      onThread {
        for number in 0..<10_000 {
          loop.execute {
            if number == 0 { #expect(loop.isOnLoop) }
            seen.update { $0[thread].append(number) }
          }
        }
        loop.execute {
          finished.update { $0 += 1 }
          if finished.value == 8 { loop.stop() }
        }
      }
    }
    loop.waitUntilEnded()
    for numbers in seen.value { #expect(numbers == Array(0..<10_000)) }
  }

  @Test func `work given on the loop runs later, in order, and before the loop blocks`() throws {
    let seen = Shared<[Int]>([])
    try withLoop { loop in
      loop.execute {
        for number in 1...200 {
          loop.execute {
            seen.update { $0.append(number) }
            if number == 200 { loop.execute { loop.stop() } }
          }
        }
        seen.update { $0.append(0) }
      }
    }
    #expect(seen.value == Array(0...200))
  }

  /// Tells when it is released.
  private final class Given: Sendable {
    let isReleased: Shared<Bool>
    init(_ isReleased: Shared<Bool>) { self.isReleased = isReleased }
    deinit { isReleased.update { $0 = true } }
  }

  @Test func `what work was given is released before the next work runs`() throws {
    let (first, second) = (Shared(false), Shared(false))
    try withLoop { loop in
      loop.execute {
        for isReleased in [first, second] {
          let given = Given(isReleased)
          loop.execute { #expect(!given.isReleased.value) }
        }
        loop.execute {
          #expect(first.value && second.value)
          loop.stop()
        }
      }
    }
  }

  @Test func `work that always adds more work does not starve reading`() throws {
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      let ended = Shared(false)
      @Sendable func again() {
        if !ended.value { loop.execute { again() } }
      }
      again()
      other.startReading(
        onBytes: { _ in
          ended.update { $0 = true }
          loop.stop()
        }, onEnd: { _ in })
      one.write([1])
    }
  }

  @Test func `stop from another thread ends a loop that waits`() throws {
    let loop = try Loop.startThread(name: "a name that is longer than a thread's may be")
    #expect(!loop.isOnLoop)
    onThread { loop.stop() }
    loop.waitUntilEnded()
    loop.stop()
    loop.execute { Issue.record("ran after the end") }
  }

  @Test func `work queued before a stop runs, even when the stop precedes the run`() throws {
    let ran = Shared(false)
    try withLoop { loop in
      loop.execute { ran.update { $0 = true } }
      loop.stop()
    }
    #expect(ran.value)
  }

  @Test func `the end of the loop closes everything on it`() throws {
    weak var listener: Listener?
    weak var timer: Timer?
    weak var loopAfterwards: Loop?
    var pipes: [() -> Pipe?] = []
    var closed = 0
    try withSocketPath { path in
      try withLoop { loop in
        loopAfterwards = loop
        let sleeping = Timer(on: loop) {}
        sleeping.start(after: .seconds(1000))
        timer = sleeping
        listener = try Listener.bind(path: path, mode: 0o600, on: loop) { pipe in
          pipes.append { [weak pipe] in pipe }
          pipe.write(pattern(1_000_000))
          loop.stop()
        }
        Pipe.connect(path: path, on: loop) { result in
          guard case .success(let pipe) = result else { return }
          pipes.append { [weak pipe] in pipe }
          pipe.startReading(onBytes: { _ in pipe.stopReading() }, onEnd: { _ in })
        }
        let (one, other) = try pair(on: loop)
        for pipe in [one, other] { pipes.append { [weak pipe] in pipe } }
        one.onTurnEndClose(counting: { closed += 1 })
      }
    }
    #expect(listener == nil)
    #expect(timer == nil)
    #expect(pipes.count == 4)
    for pipe in pipes { #expect(pipe() == nil) }
    #expect(closed == 1)
    #expect(loopAfterwards == nil)
  }

  @Test func `a loop that never runs is freed too`() throws {
    weak var forgotten: Loop?
    do {
      let loop = try Loop()
      #expect(loop.isOnLoop)
      loop.execute { Issue.record("ran without a loop") }
      forgotten = loop
    }
    #expect(forgotten == nil)
  }

  // MARK: - Turns

  @Test func `the turn ends before the loop blocks when a timer did something`() throws {
    var flag = false
    var seen: [Bool] = []
    try withLoop { loop in
      loop.onTurnEnd = {
        seen.append(flag)
        loop.stop()
      }
      Timer(on: loop) { flag = true }.start(after: .milliseconds(2))
    }
    #expect(seen.first == true)
  }

  @Test func `the turn ends before the loop blocks when a close callback did something`() throws {
    var flag = false
    var seen: [Bool] = []
    try withLoop { loop in
      let (one, _) = try pair(on: loop)
      one.close { flag = true }
      loop.onTurnEnd = {
        seen.append(flag)
        if flag { loop.stop() }
      }
    }
    #expect(seen.first == true)
  }

  @Test func `a burst of work is one turn`() throws {
    let ran = Shared(0)
    var turns: [Int] = []
    try withLoop { loop in
      loop.onTurnEnd = { turns.append(ran.value) }
      for _ in 0..<100 { loop.execute { ran.update { $0 += 1 } } }
      Timer(on: loop) { loop.stop() }.start(after: .milliseconds(20))
    }
    #expect(turns.first == 100)
    // The timer is the second turn; its stop and the end of the loop may be turns too.
    #expect(turns.dropFirst().allSatisfy { $0 == 100 })
  }

  @Test func `a burst of reads on many pipes is one turn`() throws {
    var reads = 0
    var turns: [Int] = []
    try withLoop { loop in
      for _ in 0..<20 {
        let (one, other) = try pair(on: loop)
        other.startReading(onBytes: { _ in reads += 1 }, onEnd: { _ in })
        #expect(one.write([1, 2, 3]) == .written)
      }
      loop.onTurnEnd = {
        turns.append(reads)
        loop.stop()
      }
    }
    #expect(turns.first == 20)
  }

  @Test func `no turn reads more than 256 KB of one pipe, and nothing is lost`() throws {
    let count = 3 << 20
    var (inTurn, inAll, most) = (0, 0, 0)
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      // What another thread writes as fast as it is read.
      let descriptor = try #require(one.handOver()).descriptor
      let writing = dup(descriptor)
      one.close()
      onThread {
        _ = fcntl(writing, F_SETFL, fcntl(writing, F_GETFL) & ~O_NONBLOCK)
        let bytes = [UInt8](repeating: 7, count: count)
        var written = 0
        while written < count {
          let more = bytes.withUnsafeBytes {
            write(writing, $0.baseAddress! + written, count - written)
          }
          if more <= 0 { break }
          written += more
        }
        close(writing)
      }
      other.startReading(
        onBytes: {
          inTurn += $0.count
          inAll += $0.count
        }, onEnd: { _ in loop.stop() })
      loop.onTurnEnd = { (most, inTurn) = (max(most, inTurn), 0) }
    }
    #expect(inAll == count)
    #expect(most <= 320 << 10)
  }

  @Test func `another turn comes after what is ready, and waits for nothing`() throws {
    var reads = 0
    var readsByTurn: [Int] = []
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      other.startReading(onBytes: { _ in reads += 1 }, onEnd: { _ in })
      one.write([1])
      loop.onTurnEnd = {
        // What comes before the first read is not of this.
        if reads == 0 { return }
        readsByTurn.append(reads)
        switch readsByTurn.count {
        case 1:
          one.write([2])
          loop.turnAgain()
        case 2...4: loop.turnAgain()
        default: loop.stop()
        }
      }
    }
    #expect(readsByTurn.prefix(5) == [1, 2, 2, 2, 2])
  }

  @Test func `writes and work from the end of a turn need no further event`() throws {
    var received = 0
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      let queued = Shared(false)
      var written = false
      loop.onTurnEnd = {
        if written { return }
        written = true
        one.write([7])
        loop.execute { queued.update { $0 = true } }
      }
      other.startReading(
        onBytes: { bytes in
          received += bytes.count
          // The loop polls once before the work queued at the end of the turn.
          loop.execute { if queued.value { loop.stop() } }
        }, onEnd: { _ in })
      Timer(on: loop) {}.start(after: .milliseconds(1))
    }
    #expect(received == 1)
  }

  @Test func `an idle loop has no turns`() throws {
    var turns = 0
    try withLoop { loop in
      loop.onTurnEnd = { turns += 1 }
      Timer(on: loop) { loop.stop() }.start(after: .milliseconds(50))
    }
    #expect((1...3).contains(turns), "the timer, its stop, and the closing of handles")
  }

  @Test func `time advances, and the loop has the monotonic clock`() throws {
    try withLoop { loop in
      let before = loop.now
      Timer(on: loop) {
        #expect(loop.now >= before + 4_000_000)
        let difference = Int64(Loop.monotonicNanoseconds()) - Int64(loop.now)
        #expect(difference >= 0)
        loop.stop()
      }.start(after: .milliseconds(5))
    }
  }
}

extension Pipe {
  /// Closes the pipe at the end of the next turn, and calls `note` when it is closed.
  fileprivate func onTurnEndClose(counting note: @escaping () -> Void) {
    let pipe = self
    loop.onTurnEnd = {
      pipe.loop.onTurnEnd = nil
      pipe.close(note)
    }
  }
}
