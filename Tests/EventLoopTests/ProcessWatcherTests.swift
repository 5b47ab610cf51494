import EventLoop
import Glibc
import Testing

/// Serialised, because the tests count this process's pidfds.
@Suite(.serialized) struct ProcessWatcherTests {
  // MARK: - Any process

  @Test func `the end of a process becomes a call on the loop`() throws {
    let child = try Child("/bin/sleep", "1000")
    var calls = 0
    try withLoop { loop in
      let watcher = try ProcessWatcher(pid: child.pid, on: loop) {
        #expect(loop.isOnLoop)
        calls += 1
        loop.stop()
      }
      #expect(watcher.isAlive)
      let timer = Timer(on: loop) {
        #expect(watcher.isAlive && calls == 0)
        kill(child.pid, SIGKILL)
      }
      timer.start(after: .milliseconds(30))
    }
    #expect(calls == 1)
    #expect(openProcesses() == 0)
    child.wait()
  }

  @Test func `a process that is not yet reaped has ended all the same`() throws {
    let child = try Child("/bin/sleep", "1000")
    try withLoop { loop in
      let watcher = try ProcessWatcher(pid: child.pid, on: loop) { loop.stop() }
      kill(child.pid, SIGKILL)
      child.awaitEnd()
      #expect(!watcher.isAlive)
    }
    child.wait()
  }

  @Test func `a pid without a process is ESRCH, a descriptor that is no pidfd EBADF`() throws {
    let child = try Child("/bin/true")
    child.wait()
    try withLoop { loop in
      let error = #expect(throws: LoopError.self) {
        _ = try ProcessWatcher(pid: child.pid, on: loop) {}
      }
      #expect(error?.name == "ESRCH")
      let other = open("/dev/null", O_RDONLY | O_CLOEXEC)
      let refusal = #expect(throws: LoopError.self) {
        _ = try ProcessWatcher.adopt(descriptor: other, on: loop) {}
      }
      #expect(refusal?.name == "EBADF")
      #expect(close(other) == 0)
      loop.stop()
    }
  }

  @Test func `a closed watcher does not call, and is freed`() throws {
    let child = try Child("/bin/sleep", "1000")
    weak var forgotten: ProcessWatcher?
    try withLoop { loop in
      let watcher = try ProcessWatcher(pid: child.pid, on: loop) { Issue.record("called") }
      #expect(openProcesses() == 1)
      watcher.close()
      watcher.close()
      #expect(!watcher.isAlive && openProcesses() == 0)
      forgotten = watcher
      child.end()
      let timer = Timer(on: loop) { loop.stop() }
      timer.start(after: .milliseconds(30))
    }
    #expect(forgotten == nil)
  }

  @Test func `the end of the loop closes a watcher`() throws {
    let child = try Child("/bin/sleep", "1000")
    try withLoop { loop in
      _ = try ProcessWatcher(pid: child.pid, on: loop) { Issue.record("called") }
      loop.stop()
    }
    #expect(openProcesses() == 0)
    child.end()
  }

  // MARK: - Peers

  @Test(arguments: [false, true])
  func `the end of a killed peer is reported, by pidfd and by pid`(byNumber: Bool) throws {
    var isOver = false
    try withClient("sleep 1000") { child, pipe, loop in
      #expect(pipe.peer?.pid == child.pid)
      let watcher = try pipe.watchPeer(byNumber: byNumber) {
        isOver = true
        loop.stop()
      }
      #expect(watcher.isAlive)
      kill(child.pid, SIGKILL)
    }
    #expect(isOver)
    #expect(openProcesses() == 0)
  }

  @Test func `a peer that closes its socket is still alive`() throws {
    try withClient("close S; sleep 1000") { child, pipe, loop in
      let watcher = try pipe.watchPeer { Issue.record("called") }
      pipe.startReading(
        onBytes: { _ in },
        onEnd: { _ in
          #expect(watcher.isAlive)
          // Without a connection the pid may belong to another process.
          let error = #expect(throws: LoopError.self) {
            _ = try pipe.watchPeer(byNumber: true) {}
          }
          #expect(error?.name == "ENOTCONN")
          #expect(openProcesses() == 1)
          loop.stop()
        })
    }
    #expect(openProcesses() == 0)
  }

  @Test func `the end of the connecting process is reported while its child keeps the socket`()
    throws
  {
    // The child sends its pid. The parent ends when its standard input is closed.
    let program = """
      if (fork == 0) { syswrite S, "child $$\\n"; sysread S, $_, 1; syswrite S, "again"; exit }
      sysread STDIN, $_, 1
      """
    var events: [String] = []
    try withClient(program) { child, pipe, loop in
      _ = try pipe.watchPeer {
        events.append("exit")
        pipe.write([1] as [UInt8])
      }
      pipe.startReading(
        onBytes: {
          let text = String(decoding: $0, as: UTF8.self)
          events.append(String(text.prefix(5)))
          guard text.hasPrefix("child") else { return }
          #expect(text != "child \(child.pid)\n")
          #expect(pipe.peer?.pid == child.pid)
          child.closeInput()
        },
        onEnd: { _ in
          events.append("end")
          loop.stop()
        })
    }
    #expect(events == ["child", "exit", "again", "end"])
  }

  @Test(arguments: [false, true])
  func `the end of a peer before the watch began is reported`(byNumber: Bool) throws {
    var isOver = false
    // Its child keeps the connection.
    let program = "if (fork == 0) { sysread S, $_, 1; exit } syswrite S, 'x'; exit"
    try withClient(program) { child, pipe, loop in
      child.wait()
      let watcher = try pipe.watchPeer(byNumber: byNumber) {
        isOver = true
        loop.stop()
      }
      #expect(!watcher.isAlive && !isOver)
    }
    #expect(isOver)
  }

  @Test func `a watcher of a peer that has ended may be closed before it calls`() throws {
    try withClient("exit") { child, pipe, loop in
      child.wait()
      try pipe.watchPeer { Issue.record("called") }.close()
      let timer = Timer(on: loop) { loop.stop() }
      timer.start(after: .milliseconds(30))
    }
  }

  @Test func `a closed pipe has no peer to watch`() throws {
    try withLoop { loop in
      let (one, _) = try pair(on: loop)
      let watcher = try one.watchPeer { Issue.record("called") }
      #expect(watcher.isAlive)  // This process made the pair.
      one.close()
      #expect(throws: LoopError.self) { try one.watchPeer {} }
      loop.stop()
    }
  }

  // MARK: - Helpers

  /// Runs a loop on which a child connects and then runs this Perl program, with `S` as its socket.
  private func withClient(
    _ program: String, _ body: @escaping (Child, Pipe, Loop) throws -> Void
  ) throws {
    try withSocketPath { path in
      var child: Child?
      var failure: (any Error)?
      try withLoop { loop in
        _ = try Listener.bind(path: path, mode: 0o600, on: loop) { pipe in
          guard let child else { return }
          do { try body(child, pipe, loop) } catch {
            failure = error
            loop.stop()
          }
        }
        child = try Child(
          "/usr/bin/perl", "-MSocket", "-e",
          "socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un(shift)) or die; \(program)",
          path)
      }
      child?.end()
      if let failure { throw failure }
    }
  }

  /// The number of pidfds that this process has open.
  private func openProcesses() -> Int {
    (0..<4096).count { descriptor in
      var target = [CChar](repeating: 0, count: 64)
      guard readlink("/proc/self/fd/\(descriptor)", &target, target.count - 1) > 0 else {
        return false
      }
      return String(cString: &target).contains("pidfd")
    }
  }
}

/// A program that runs concurrently with the test.
private final class Child {
  let pid: pid_t
  private var input: Int32
  private var hasEnded = false

  init(_ words: String...) throws {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
    input = ends[1]
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
    // The program must not keep descriptors of concurrent tests open.
    for descriptor in 3..<512 { posix_spawn_file_actions_addclose(&actions, Int32(descriptor)) }
    defer {
      posix_spawn_file_actions_destroy(&actions)
      close(ends[0])
    }
    var arguments = words.map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    arguments.append(nil)
    var pid = pid_t()
    try #require(posix_spawn(&pid, words[0], &actions, nil, arguments, environ) == 0)
    self.pid = pid
  }

  deinit { end() }

  func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// Returns when the program has ended, without reaping it.
  func awaitEnd() {
    var information = siginfo_t()
    waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT)
  }

  /// Returns when the program has ended and is reaped, so that its pid is free.
  func wait() {
    guard !hasEnded else { return }
    hasEnded = true
    waitpid(pid, nil, 0)
  }

  func end() {
    closeInput()
    guard !hasEnded else { return }
    kill(pid, SIGKILL)
    wait()
  }
}
