import EventLoop
import Glibc
import Testing

@Suite struct SignalWatcherTests {
  @Test func `a signal becomes a call on the loop`() throws {
    var arrived: Set<Int32> = []
    try withLoop { loop in
      _ = try SignalWatcher([SIGUSR1, SIGUSR2], on: loop) { signal in
        #expect(loop.isOnLoop)
        arrived.insert(signal)
        if arrived.count == 2 { loop.stop() }
      }
      kill(getpid(), SIGUSR1)
      kill(getpid(), SIGUSR2)
    }
    #expect(arrived == [SIGUSR1, SIGUSR2])
  }

  @Test func `a signal that the thread had blocked arrives, if it came before, too`() throws {
    var arrived: [Int32] = []
    var blocked = sigset_t()
    var former = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, SIGUSR2)
    pthread_sigmask(SIG_BLOCK, &blocked, &former)
    defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
    pthread_kill(pthread_self(), SIGUSR2)
    try withLoop { loop in
      _ = try SignalWatcher([SIGUSR2], on: loop) { signal in
        arrived.append(signal)
        loop.stop()
      }
    }
    #expect(arrived == [SIGUSR2])
  }

  @Test func `a watcher may be closed by its own signal, and is freed`() throws {
    weak var forgotten: SignalWatcher?
    try withLoop { loop in
      var watcher: SignalWatcher?
      watcher = try SignalWatcher([SIGWINCH], on: loop) { _ in
        watcher?.close()
        watcher = nil
        loop.stop()
      }
      forgotten = watcher
      kill(getpid(), SIGWINCH)
    }
    #expect(forgotten == nil)
  }

  @Test func `the kill signal cannot be watched`() throws {
    try withLoop { loop in
      let error = #expect(throws: LoopError.self) {
        _ = try SignalWatcher([SIGTTIN, SIGKILL], on: loop) { _ in }
      }
      #expect(error?.name == "EINVAL")
      loop.stop()
    }
  }

  @Test func `with outlive, a signal after the end of a loop does not end the process`() async {
    await #expect(processExitsWith: .exitCode(7)) {
      try Signals.outlive([SIGTERM])
      try withLoop { loop in
        _ = try SignalWatcher([SIGTERM], on: loop) { _ in loop.stop() }
        kill(getpid(), SIGTERM)
      }
      for _ in 0..<10_000 { kill(getpid(), SIGTERM) }
      exit(7)
    }
  }
}
