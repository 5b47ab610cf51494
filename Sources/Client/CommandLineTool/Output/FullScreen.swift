import EventLoop
import Glibc
import Synchronization

/// The terminal while a command has it to itself: its second screen, without cursor and echo.
///
/// Every way out of the process, apart from SIGKILL, leaves it before.
enum FullScreen {
  private struct State: Sendable {
    /// The attributes of standard input from before; nil if it is no terminal.
    var saved: termios?
    var isShown = false
    /// Whether the process ends: nothing more is drawn.
    var isOver = false
    var frame = ""
  }

  private static let state = Mutex(State())

  private static let beginning = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J"
  // A terminal that has no second screen goes on below the picture.
  private static let end = "\u{1b}[999;1H\u{1b}[0m\u{1b}[K\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l"

  /// Take the terminal, or take it again.
  static func enter() throws(Failure) {
    let error = state.withLock { state -> Failure? in
      if state.isOver { return nil }
      var now = termios()
      if tcgetattr(STDIN_FILENO, &now) == 0 {
        if !state.isShown { state.saved = now }
        var raw = now
        cfmakeraw(&raw)
        // Keys one by one, without echo. But Ctrl-C is still a signal. It throws away nothing that is
        // written: a thread that waits for room in a pseudo-terminal would then never be woken.
        raw.c_lflag |= tcflag_t(ISIG | NOFLSH)
        (raw.c_oflag, raw.c_cflag) = (now.c_oflag, now.c_cflag)
        tcsetattr(STDIN_FILENO, TCSANOW, &raw)
      }
      state.isShown = true
      state.frame = ""
      return write(beginning)
    }
    if let error { throw error }
  }

  /// Draw a picture in one piece, unless it is there already.
  static func draw(_ lines: [String]) throws(Failure) {
    let frame = "\u{1b}[H" + lines.joined(separator: "\r\n")
    let error = state.withLock { state -> Failure? in
      guard state.isShown, frame != state.frame else { return nil }
      state.frame = frame
      return write(frame)
    }
    if let error { throw error }
  }

  /// Give the terminal back as it was, for a while: `enter` takes it again.
  static func suspend() { state.withLock { restore(&$0) } }

  /// Give the terminal back as it was. Nothing is drawn any more.
  ///
  /// Where it cannot be written to, because it is stopped, only its attributes are restored.
  static func leave() {
    for _ in 0..<100 {
      let isDone = state.withLockIfAvailable { state in
        state.isOver = true
        restore(&state)
        return true
      }
      if isDone == true { return }
      usleep(5000)
    }
  }

  private static func restore(_ state: inout State) {
    guard state.isShown else { return }
    state.isShown = false
    var request = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
    if poll(&request, 1, 100) == 1 { _ = write(end) }
    if var saved = state.saved { tcsetattr(STDIN_FILENO, TCSANOW, &saved) }
  }

  private static func write(_ text: String) -> Failure? {
    do throws(Failure) {
      try StandardOutput.write(Array(text.utf8))
      return nil
    } catch {
      return error
    }
  }
}
