import EventLoop
import Glibc
import Synchronization

/// What comes from a terminal: keys, and the signals that concern its picture.
enum TerminalEvent: Sendable {
  case keys([TopKey])
  /// Its size is another.
  case resized
  /// Ctrl-Z, or the like: the process is to stop for a while.
  case stop
  /// The process goes on, and the terminal may have been used by others.
  case continued
  /// By this signal the process is to end.
  case end(Int32)
  /// Nothing can be typed any more.
  case closed
}

/// Reads what comes from the terminal of the process, on a thread of its own, for ever.
///
/// A signal's handler only writes its number to this thread. When the process has been told to end, and
/// is still there a second later, this thread ends it: a picture may be stuck in a terminal that
/// takes no more.
enum TerminalEvents {
  private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH]
  private static let reader = Atomic<Int32>(-1)
  private static let writer = Atomic<Int32>(-1)
  private static let receiver = Mutex<(@Sendable (TerminalEvent) -> Void)?>(nil)

  /// Begin to read. Signals that the process ignores stay ignored.
  static func start(_ receive: @escaping @Sendable (TerminalEvent) -> Void) throws(Failure) {
    var ends: [Int32] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    guard socketpair(AF_UNIX, Int32(kind), 0, &ends) == 0 else {
      throw Failure(.unwritten, "cannot draw: \(String(cString: strerror(errno))).")
    }
    reader.store(ends[0], ordering: .relaxed)
    writer.store(ends[1], ordering: .releasing)
    receiver.withLock { $0 = receive }
    for number in signals where !Signals.isIgnored(number) { handle(number) }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        TerminalEvents.read()
        return nil
      }, nil)
  }

  private static func handle(_ number: Int32) {
    signal(number) { number in
      let before = errno
      var byte = UInt8(truncatingIfNeeded: number)
      _ = write(TerminalEvents.writer.load(ordering: .acquiring), &byte, 1)
      errno = before
    }
  }

  private static func read() {
    var keys = TopKeys()
    var input = isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : -1
    var ending: Int32?
    var buffer = [UInt8](repeating: 0, count: 256)
    while true {
      var polled = [
        pollfd(fd: reader.load(ordering: .relaxed), events: Int16(POLLIN), revents: 0),
        pollfd(fd: input, events: Int16(POLLIN), revents: 0),
      ]
      // A sequence comes in one piece, or nearly.
      let count = poll(&polled, 2, ending != nil ? 1000 : keys.isPending ? 50 : -1)
      if count == 0, let ending {
        FullScreen.leave()
        Interruption.end(by: ending)
      } else if count == 0 {
        tell(.keys(keys.flush()))
      }
      if count < 1 { continue }
      if polled[0].revents != 0 {
        let count = Glibc.read(polled[0].fd, &buffer, buffer.count)
        for byte in buffer.prefix(max(0, count)) {
          let event = event(Int32(byte))
          if case .end(let number) = event { ending = number }
          tell(event)
        }
      }
      if polled[1].revents != 0 {
        let count = Glibc.read(input, &buffer, buffer.count)
        if count > 0 {
          tell(.keys(keys.take(buffer.prefix(count))))
        } else if count == 0 || errno != EINTR && errno != EAGAIN {
          input = -1
          tell(.closed)
        }
      }
    }
  }

  private static func event(_ number: Int32) -> TerminalEvent {
    switch number {
    case SIGWINCH: .resized
    case SIGCONT: .continued
    case SIGTSTP: .stop
    default: .end(number)
    }
  }

  private static func tell(_ event: TerminalEvent) { receiver.withLock { $0 }?(event) }
}
