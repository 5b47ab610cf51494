import EventLoop
import Glibc
import Synchronization
import Testing

@Suite struct PipeTests {
  // MARK: - Bytes

  @Test(arguments: [1, 7, 64, 65_536])
  func `frames are echoed whole, however small the reads are`(readBufferSize: Int) throws {
    let frames = (0..<300).map { pattern($0 * 7 % 1000 + 1, seed: $0) }
    let sent = frames.flatMap { $0 }
    #expect(try echoed(frames.map { [$0] }, readBufferSize: readBufferSize) == sent)
    #expect(try echoed([frames], readBufferSize: readBufferSize) == sent)
  }

  @Test func `bytes are echoed when every write is one byte`() throws {
    let sent = pattern(5000)
    #expect(try echoed(sent.map { [[$0]] }) == sent)
  }

  @Test func `more buffers than the kernel takes at once are all written`() throws {
    let buffers = (0..<5000).map { pattern($0 % 200, seed: $0) }
    #expect(try echoed([buffers]) == buffers.flatMap { $0 })
  }

  @Test func `empty writes succeed at once`() throws {
    try withLoop { loop in
      let (one, _) = try pair(on: loop)
      #expect(one.write([] as [UInt8]) == .written)
      #expect(one.write([] as [[UInt8]]) == .written)
      #expect(one.write([[], [], []]) == .written)
      #expect(one.write([[], [1], [], [2], []]) == .written)
      loop.stop()
    }
  }

  /// The bytes that an echoing listener sends back when each element of `writes` is one write.
  private func echoed(
    _ writes: [[[UInt8]]], readBufferSize: Int = 65_536
  ) throws -> [UInt8] {
    let expected = writes.reduce(0) { $0 + $1.reduce(0) { $0 + $1.count } }
    var received: [UInt8] = []
    try withSocketPath { path in
      try withLoop(readBufferSize: readBufferSize) { loop in
        _ = try Listener.bind(path: path, mode: 0o600, on: loop) { pipe in
          pipe.startReading(
            onBytes: { pipe.write(Array($0)) },
            onEnd: {
              #expect($0 == nil)
              pipe.closeAfterWriting()
            })
        }
        Pipe.connect(path: path, on: loop) { result in
          guard case .success(let pipe) = result else {
            Issue.record("no connection")
            return
          }
          pipe.startReading(
            onBytes: {
              received += $0
              if received.count == expected { loop.stop() }
            }, onEnd: { _ in Issue.record("an early end") })
          for buffers in writes { pipe.write(buffers) }
        }
      }
    }
    return received
  }

  // MARK: - Pending writes

  @Test func `ten megabytes wait for a peer that does not read, then drain`() throws {
    let bytes = pattern(10_000_000)
    var received: [UInt8] = []
    var drained = 0
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      guard case .pending(let rest) = one.write(bytes) else {
        Issue.record("ten megabytes do not fit into a socket")
        return
      }
      #expect(rest > 0 && rest < bytes.count)
      #expect(one.unsentBytes == rest)
      one.onDrained = {
        drained += 1
        #expect(one.unsentBytes == 0)
        one.closeAfterWriting()
      }
      Timer(on: loop) {
        #expect(drained == 0)
        other.startReading(
          onBytes: { received += $0 },
          onEnd: {
            #expect($0 == nil)
            loop.stop()
          })
      }.start(after: .milliseconds(5))
    }
    #expect(drained == 1)
    #expect(received == bytes)
  }

  /// The kernel takes any number of bytes in one call if the peer reads them meanwhile.
  @Test(arguments: [1, 7000])
  func `a peer that reads at once has many megabytes in many turns`(buffers: Int) throws {
    let pieces = (0..<buffers).map { pattern(21_000_000 / buffers, seed: $0) }
    let received = Mutex<[UInt8]>([])
    var turns = 0
    try withLoop { loop in
      let pipe = try pipe(on: loop) { bytes in received.withLock { $0 += bytes } }
      loop.onTurnEnd = { turns += 1 }
      pipe.onDrained = { pipe.closeAfterWriting() }
      guard case .pending(let rest) = pipe.write(pieces) else {
        Issue.record("all was written in one turn")
        return pipe.close()
      }
      #expect(rest >= 21_000_000 - 256 << 10 && pipe.unsentBytes >= 21_000_000 - 512 << 10)
    }
    #expect(received.withLock { $0 == pieces.flatMap { $0 } })
    #expect(turns >= 21_000_000 / (512 << 10))
  }

  /// Where the kernel takes little at once, and arrays end in all places.
  @Test(arguments: 0..<12 as Range<Int>)
  func `what is handed over is what the kernel did not get`(seed: Int) throws {
    let lengths = (0..<40).map { (seed * 7919 + $0 * 104_729) % 9 == 0 ? 0 : $0 * $0 * (seed + 1) }
    let pieces = lengths.enumerated().map { pattern($1 * 7, seed: $0 + seed) }
    let received = Mutex<[UInt8]>([])
    var unsent: [UInt8] = []
    try withLoop { loop in
      let pipe = try pipe(on: loop) { bytes in received.withLock { $0 += bytes } }
      pipe.write(Array(pieces[..<20]))
      pipe.write(pieces[20])
      pipe.write(Array(pieces[21...]))
      var turns = 0
      func end() {
        let handed = pipe.handOver()
        #expect(handed != nil)
        unsent = handed?.unsent ?? []
        pipe.close()
      }
      if seed % 4 == 0 { return end() }
      pipe.onDrained = { end() }
      loop.onTurnEnd = {
        turns += 1
        if turns == seed % 4, unsent.isEmpty, pipe.unsentBytes > 0 {
          pipe.onDrained = nil
          end()
        }
      }
      if pipe.unsentBytes == 0 { end() }
    }
    #expect(received.withLock { $0 + unsent == pieces.flatMap { $0 } })
  }

  /// A pipe to a thread that reads all that comes, as fast as it can, and then stops the loop.
  private func pipe(
    on loop: Loop, _ onBytes: @escaping @Sendable (ArraySlice<UInt8>) -> Void
  ) throws -> Pipe {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    let reader = ends[1]
    onThread {
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      while true {
        let count = read(reader, &buffer, buffer.count)
        if count <= 0 { break }
        onBytes(buffer[..<count])
      }
      close(reader)
      loop.execute { loop.stop() }
    }
    return try Pipe.adopt(descriptor: ends[0], on: loop)
  }

  @Test func `writes after a pending one keep their order`() throws {
    var sent: [UInt8] = []
    var received: [UInt8] = []
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      var unsent = 0
      for number in 0..<200 {
        let buffers = [pattern(number * 50, seed: number), pattern(3, seed: number), []]
        let count = buffers[0].count + 3
        sent += buffers.flatMap { $0 }
        switch number.isMultiple(of: 3) ? one.write(buffers.flatMap { $0 }) : one.write(buffers) {
        case .written: #expect(unsent == 0)
        case .pending(let rest):
          #expect(unsent == 0 ? rest <= count : rest == count)
          unsent += rest
        case .failed(let error): Issue.record(error)
        }
        #expect(one.unsentBytes == unsent)
      }
      #expect(unsent > 0)
      var laterWrites = 3
      one.onDrained = {
        // Writes from the callback keep the order too.
        if laterWrites == 0 { return one.closeAfterWriting() }
        laterWrites -= 1
        let more = pattern(600_000, seed: laterWrites)
        sent += more
        guard case .pending = one.write([more, [1, 2, 3]]) else { return one.closeAfterWriting() }
        sent += [1, 2, 3]
      }
      other.startReading(onBytes: { received += $0 }, onEnd: { _ in loop.stop() })
    }
    #expect(received.count > 1_000_000)
    #expect(received == sent)
  }

  @Test func `short writes that the socket does not take keep their order`() throws {
    var sent: [UInt8] = []
    var received: [UInt8] = []
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      var number = 0
      // Until one waits, and then some.
      while one.unsentBytes < 2000 {
        let buffers = [pattern(number % 700, seed: number), [], pattern(3, seed: number)]
        sent += buffers.flatMap { $0 }
        if case .failed(let error) = one.write(buffers) { Issue.record(error) }
        number += 1
      }
      one.closeAfterWriting()
      other.startReading(onBytes: { received += $0 }, onEnd: { _ in loop.stop() })
    }
    #expect(sent.count > 2000 && received == sent)
  }

  @Test func `two arrays are written as a list of them, also where the socket has no room`() throws
  {
    var sent: [UInt8] = []
    var received: [UInt8] = []
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      #expect(one.write([], []) == .written)
      var number = 0
      // Until one waits, and then some: short ones, and each seventh too long to be copied.
      while one.unsentBytes < 20_000 {
        let first = pattern(number % 7 == 0 ? 3_000 : number % 500, seed: number)
        let second = pattern(number % 3 == 0 ? 0 : 500 - number % 500, seed: -number)
        let both = first + second
        sent += both
        let before = one.unsentBytes
        switch one.write(first, second) {
        case .written: #expect(before == 0 && one.unsentBytes == 0)
        case .pending(let rest): #expect(before == 0 ? rest <= both.count : rest == both.count)
        case .failed(let error): Issue.record(error)
        }
        number += 1
      }
      one.closeAfterWriting()
      guard case .failed(let error) = one.write([1], [2]) else {
        Issue.record("a write after the last one")
        return
      }
      #expect(error.name == "ENOTCONN")
      other.startReading(onBytes: { received += $0 }, onEnd: { _ in loop.stop() })
    }
    #expect(sent.count > 20_000 && received == sent)
  }

  @Test func `closing after writing loses nothing and refuses further writes`() throws {
    let bytes = pattern(3_000_000)
    var received = 0
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      one.write(bytes)
      one.closeAfterWriting()
      guard case .failed(let error) = one.write([1]) else {
        Issue.record("a write after the last one")
        return
      }
      #expect(error.name == "ENOTCONN")
      other.startReading(onBytes: { received += $0.count }, onEnd: { _ in loop.stop() })
    }
    #expect(received == bytes.count)
  }

  @Test func `a write to a peer that has closed fails at once`() throws {
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      other.close {
        guard case .failed(let error) = one.write([1]) else {
          Issue.record("wrote to nobody")
          return
        }
        #expect(error.name == "EPIPE")
        #expect(one.write([[2], [3]]) == .failed(error))
        loop.stop()
      }
    }
  }

  /// One closure hears all of it, as long as no other is set for it.
  @Test func `what happens to a pipe comes as events, in order`() throws {
    var (events, received): ([String], Int) = ([], 0)
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      one.startReading { event in
        switch event {
        case .bytes(let bytes): events.append("\(bytes.count) bytes")
        case .drained:
          events.append("drained")
          // More than the socket takes, and nobody reads it.
          other.stopReading()
          guard case .pending = one.write(pattern(3_000_000)) else { return loop.stop() }
          other.write([1, 2, 3])
          other.closeAfterWriting()
        case .writeError(let error):
          #expect(["EPIPE", "ECONNRESET"].contains(error.name))
          #expect(one.write([1]) == .failed(error) && one.unsentBytes == 0)
          events.append("write error")
        case .end: events.append("end")
        }
        if events.contains("write error"), events.contains("end") { loop.stop() }
      }
      guard case .pending = one.write(pattern(3_000_000)) else { return loop.stop() }
      other.startReading(onBytes: { received += $0.count }, onEnd: { _ in })
    }
    #expect(received > 1_000_000)
    #expect(events.first == "drained" && events.count { $0 == "end" } == 1, "\(events)")
    #expect(events.contains("write error"), "\(events)")
  }

  @Test func `a peer that closes fails the pending writes`() throws {
    var errors: [LoopError] = []
    try withLoop { loop in
      let (one, other) = try pair(on: loop)
      guard case .pending = one.write(pattern(3_000_000)) else { return }
      one.write([1, 2, 3])
      one.onDrained = { Issue.record("drained into nothing") }
      one.onWriteError = { error in
        errors.append(error)
        #expect(one.unsentBytes == 0)
        #expect(one.write([1]) == .failed(error))
        loop.stop()
      }
      other.close()
    }
    #expect(errors.count == 1)
    #expect(["EPIPE", "ECONNRESET"].contains(errors.first?.name))
  }

  // MARK: - Reading

  @Test func `a stopped pipe delivers nothing until it is resumed`() throws {
    let bytes = pattern(500_000)
    var received: [UInt8] = []
    try withLoop(readBufferSize: 1000) { loop in
      let (one, other) = try pair(on: loop)
      var isStopped = false
      let resume = Timer(on: loop) {
        isStopped = false
        other.resumeReading()
        other.resumeReading()
      }
      other.startReading(
        onBytes: {
          #expect(!isStopped)
          received += $0
          if received.count.isMultiple(of: 50_000) {
            isStopped = true
            other.stopReading()
            resume.start(after: .milliseconds(1))
          }
        }, onEnd: { _ in loop.stop() })
      one.write(bytes)
      one.closeAfterWriting()
    }
    #expect(received == bytes)
  }

  @Test func `the end comes once, after all bytes, and writing stays possible`() throws {
    var ends = 0
    var received: [UInt8] = []
    try withLoop { loop in
      var descriptors: [Int32] = [-1, -1]
      try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
      let far = descriptors[1]
      let pipe = try Pipe.adopt(descriptor: descriptors[0], on: loop)
      let bytes: [UInt8] = [1, 2, 3]
      #expect(Glibc.write(far, bytes, 3) == 3)
      shutdown(far, Int32(SHUT_WR))
      pipe.startReading(
        onBytes: { received += $0 },
        onEnd: {
          #expect($0 == nil)
          ends += 1
          pipe.resumeReading()
          #expect(pipe.write([9]) == .written)
          var byte: UInt8 = 0
          #expect(Glibc.read(far, &byte, 1) == 1 && byte == 9)
          close(far)
          Timer(on: loop) { loop.stop() }.start(after: .milliseconds(5))
        })
    }
    #expect(received == [1, 2, 3])
    #expect(ends == 1)
  }

  @Test func `a descriptor that is not a socket cannot be adopted`() throws {
    try withLoop { loop in
      let error = #expect(throws: LoopError.self) { _ = try Pipe.adopt(descriptor: -1, on: loop) }
      #expect(error?.name == "EBADF")
      loop.stop()
    }
  }

  // MARK: - Closing

  private enum Moment: CaseIterable {
    case bytes, end, drained, writeError, turnEnd, completion, timer, connected
  }

  @Test(arguments: Moment.allCases)
  private func `a pipe may close itself and its peer at any moment`(moment: Moment) throws {
    var closed = 0
    weak var first: Pipe?
    weak var second: Pipe?
    try withSocketPath { path in
      try withLoop { loop in
        let (one, other) = try pair(on: loop)
        (first, second) = (one, other)
        func closeBoth() {
          for pipe in [one, other, one] {
            pipe.close {
              closed += 1
              if closed == 3 { loop.stop() }
            }
          }
          #expect(one.write([1]) != .written)
          #expect(one.unsentBytes == 0)
          one.stopReading()
          one.resumeReading()
          one.closeAfterWriting()
        }
        one.onDrained = { Issue.record("drained") }
        other.startReading(
          onBytes: { _ in Issue.record("bytes") }, onEnd: { _ in Issue.record("end") })
        switch moment {
        case .bytes:
          one.write(pattern(200_000))
          one.onDrained = nil
          other.startReading(
            onBytes: { _ in closeBoth() }, onEnd: { _ in Issue.record("end") })
        case .end:
          one.closeAfterWriting()
          other.startReading(onBytes: { _ in }, onEnd: { _ in closeBoth() })
        case .drained:
          other.startReading(onBytes: { _ in }, onEnd: { _ in Issue.record("end") })
          one.onDrained = { closeBoth() }
          one.write(pattern(2_000_000))
        case .writeError:
          one.write(pattern(2_000_000))
          one.onWriteError = { _ in closeBoth() }
          other.close()
        case .turnEnd:
          other.stopReading()
          one.write(pattern(2_000_000))
          loop.onTurnEnd = {
            loop.onTurnEnd = nil
            closeBoth()
          }
          Timer(on: loop) {}.start(after: .milliseconds(1))
        case .completion:
          other.stopReading()
          one.write(pattern(2_000_000))
          other.close { closeBoth() }
        case .timer:
          other.stopReading()
          one.write(pattern(2_000_000))
          Timer(on: loop) { closeBoth() }.start(after: .milliseconds(1))
        case .connected:
          other.stopReading()
          _ = try Listener.bind(path: path, mode: 0o600, on: loop) { $0.close() }
          Pipe.connect(path: path, on: loop) { result in
            if case .success(let pipe) = result { pipe.close() }
            closeBoth()
          }
        }
      }
    }
    #expect(closed == 3)
    #expect(first == nil)
    #expect(second == nil)
  }

  @Test func `a connection attempt that the end of the loop interrupts is cancelled`() throws {
    try withSocketPath { path in
      // Safe: the loop runs on this thread.
      nonisolated(unsafe) var errors: [String] = []
      try withLoop { loop in
        _ = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
        // The loop does not turn again after this, and an attempt takes a turn.
        loop.stop()
        loop.execute {
          for _ in 0..<3 {
            Pipe.connect(path: path, on: loop) { result in
              if case .failure(let error) = result { errors.append(error.name) }
            }
          }
        }
      }
      #expect(errors == ["ECANCELED", "ECANCELED", "ECANCELED"])
    }
  }
}
