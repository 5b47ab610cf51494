import Foundation

/// A program at a terminal of its own, and the picture that a person sees there. The program is
/// killed when the last reference is gone.
///
/// The terminal is read while a test waits for something on it.
///
/// Unchecked: everything that changes is behind `lock`.
final class PseudoTerminal: @unchecked Sendable {
  let pid: pid_t
  /// The end of the keyboard and the screen.
  private let master: Int32
  /// The program's end, kept open so that its attributes can be looked at when the program is gone.
  private let slave: Int32
  /// The attributes of the terminal before the program began.
  let firstAttributes: String
  private let lock = NSLock()
  private var current: TerminalPicture
  private var ending: ChildProcess.Ending?

  init(
    _ program: String, _ arguments: [String], environment: [String: String] = [:],
    columns: Int = 80, rows: Int = 24
  ) throws {
    current = TerminalPicture(columns: columns, rows: rows)
    // As posix_openpt, unlockpt and ptsname do, which Glibc's module map leaves out.
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (isLocked, number): (Int32, Int32) = (0, 0)
    guard master >= 0, ioctl(master, UInt(0x4004_5431), &isLocked) == 0,
      ioctl(master, UInt(0x8004_5430), &number) == 0
    else { throw ChildProcess.Failure(description: "no pseudo-terminal") }
    let name = "/dev/pts/\(number)"
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard slave >= 0 else { throw ChildProcess.Failure(description: "no end of the terminal") }
    Self.setSize(of: master, columns, rows)
    firstAttributes = Self.attributes(of: slave)
    // The leader of a session gets the first terminal that it opens as its own.
    pid = try ChildProcess.spawn(
      program, arguments, ["TERM": "xterm"].merging(environment) { $1 }, asSessionLeader: true
    ) { actions in
      posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, 0, 1)
      posix_spawn_file_actions_adddup2(&actions, 0, 2)
    }
  }

  deinit {
    if ending == nil {
      kill(pid, SIGKILL)
      waitpid(pid, nil, 0)
    }
    close(slave)
    close(master)
  }

  // MARK: What a person does

  /// Type keys.
  func press(_ keys: String) {
    let bytes = Array(keys.utf8)
    _ = write(master, bytes, bytes.count)
  }

  /// Send a signal, unless the program is known to have ended.
  func signal(_ number: Int32) { lock.withLock { if ending == nil { kill(pid, number) } } }

  /// Make the window another size.
  func resize(columns: Int, rows: Int) {
    lock.withLock { current = TerminalPicture(columns: columns, rows: rows, like: current) }
    Self.setSize(of: master, columns, rows)
  }

  private static func setSize(of terminal: Int32, _ columns: Int, _ rows: Int) {
    var size = winsize()
    (size.ws_col, size.ws_row) = (UInt16(columns), UInt16(rows))
    _ = ioctl(terminal, UInt(TIOCSWINSZ), &size)
  }

  // MARK: What a person sees

  /// The attributes of the terminal, as text that is equal if they are.
  var attributes: String { Self.attributes(of: slave) }

  /// Whether a key that sends a signal throws away nothing that was written.
  var keepsOutput: Bool {
    var attributes = termios()
    return tcgetattr(slave, &attributes) == 0 && attributes.c_lflag & tcflag_t(NOFLSH) != 0
  }

  private static func attributes(of terminal: Int32) -> String {
    var attributes = termios()
    tcgetattr(terminal, &attributes)
    return withUnsafeBytes(of: attributes.c_cc) { keys in
      "\(attributes.c_iflag) \(attributes.c_oflag) \(attributes.c_cflag) \(attributes.c_lflag) "
        + "\(Array(keys))"
    }
  }

  /// Wait until the picture is as it should be. Returns it.
  @discardableResult
  func picture(
    _ what: String, _ isRight: @escaping @Sendable (TerminalPicture) -> Bool
  ) async throws -> TerminalPicture {
    try await blocking { [self] in
      let deadline = Date(timeIntervalSinceNow: 60)
      while true {
        let picture = read()
        if isRight(picture) { return picture }
        guard Date() < deadline, hasEnded == nil else {
          let seen = picture.lines.joined(separator: "\n")
          throw ChildProcess.Failure(description: "the screen never showed \(what), but:\n\(seen)")
        }
      }
    }
  }

  /// Wait until the program has ended. Returns how, and what is on the screen then.
  func end() async throws -> (ending: ChildProcess.Ending, picture: TerminalPicture) {
    try await blocking { [self] in
      let deadline = Date(timeIntervalSinceNow: 60)
      while Date() < deadline {
        let picture = read()
        // What it wrote last is read behind its end.
        if let ending = hasEnded { return (ending, read(for: 0)) }
        if Date() >= deadline {
          let seen = picture.lines.joined(separator: "\n")
          throw ChildProcess.Failure(description: "it does not end:\n\(seen)")
        }
      }
      throw ChildProcess.Failure(description: "it does not end")
    }
  }

  /// How the program has ended; nil while it runs.
  private var hasEnded: ChildProcess.Ending? {
    lock.withLock {
      var status: Int32 = 0
      if ending == nil, waitpid(pid, &status, WNOHANG) == pid { ending = .init(status) }
      return ending
    }
  }

  /// Read what comes within a moment, and all that is there. Returns the picture.
  private func read(for milliseconds: Int32 = 20) -> TerminalPicture {
    var request = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    var wait = milliseconds
    while poll(&request, 1, wait) == 1 {
      let count = Foundation.read(master, &buffer, buffer.count)
      if count <= 0 { break }
      lock.withLock { current.show(buffer[..<count]) }
      wait = 0
    }
    return lock.withLock { current }
  }
}
