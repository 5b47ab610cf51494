import Glibc

/// A service of a few hundred lines that tries `Systemd` under a real service manager; see
/// Scripts/systemd/tests. It counts: a client that sends a line `add` gets the next number.
///
///     SystemdProbe serve [silent]          under a manager; silent never says READY
///     SystemdProbe clients PATH COUNT SECONDS
///                                          COUNT clients, which add as fast as they get answers
@main
struct SystemdProbe {
  static func main() throws {
    signal(SIGPIPE, SIG_IGN)
    let arguments = CommandLine.arguments.dropFirst()
    switch arguments.first {
    case "serve":
      try ProbeService(isSilent: arguments.contains("silent")).run()
    case "clients" where arguments.count == 4:
      let words = Array(arguments)
      guard let count = Int(words[2]), let seconds = Int(words[3]) else { fallthrough }
      try ProbeClients(path: words[1], count: count).run(seconds: seconds)
    default:
      say("usage: SystemdProbe serve [silent] | clients PATH COUNT SECONDS")
      exit(2)
    }
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Writes a line to standard error at once.
func say(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Microseconds of the monotonic clock.
func monotonicMicroseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
}

/// Reassembles lines from pieces.
struct LineBuffer {
  private(set) var rest: [UInt8] = []

  mutating func append(_ bytes: some Sequence<UInt8>) { rest += bytes }

  /// The next whole line, without its end.
  mutating func next() -> String? {
    guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { rest.removeSubrange(...end) }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// Appends the available bytes of a non-blocking socket; false when the peer has closed it.
  mutating func fill(from descriptor: Int32) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count > 0 {
        append(buffer.prefix(count))
      } else if count < 0 && errno == EINTR {
        continue
      } else {
        return count < 0 && errno == EAGAIN
      }
    }
  }
}
