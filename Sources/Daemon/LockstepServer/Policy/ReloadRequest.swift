import DaemonCore
import EventLoop
import Glibc
import Lockstep
import SocketPaths
import Values
import Wire

/// Asks a daemon to reload its policy, and waits for the result: `--reload` does this, for the
/// service manager or for a person. A signal could not be answered.
final class ReloadRequest {
  private let path: String
  private let descriptor: Int32
  private var frames = FrameDecoder(limit: 16 << 20)
  private var received: [ServerMessage] = []

  /// Connect to a daemon. Each answer must come within `patience`; a directory service may be slow.
  init(socket path: String, patience: Duration = .seconds(60)) throws {
    self.path = path
    try SocketPath.check(path)
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var time = timeval(tv_sec: Int(patience.components.seconds), tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    guard SocketClaim.connect(descriptor, to: path) else {
      let reason = String(cString: strerror(errno))
      throw DaemonError("cannot connect to \(path): \(reason). Start the daemon, or give --socket.")
    }
  }

  deinit { close(descriptor) }

  /// Reload the policy. Returns the result as lines for people; throws when the policy was refused,
  /// or when the result is unknown.
  func perform() throws -> [String] {
    try send(.hello(.init(versions: ProtocolVersion.range, label: "lockstepd --reload")))
    try send(.query(number: 1, ReportName.reloadPolicy.rawValue))
    while let message = try receive() {
      switch message {
      case .report(number: 1, let report, hasMore: _): return try lines(of: report)
      case .goodbye(let goodbye): throw DaemonError("\(path): the daemon said goodbye: \(goodbye)")
      case .restarting: throw DaemonError("\(path): the daemon restarts, and reads its policy then")
      default: continue
      }
    }
    throw DaemonError("\(path): the daemon ended before it answered: see its log")
  }

  private func lines(of report: Value) throws(DaemonError) -> [String] {
    if let error = ReportError(report) { throw DaemonError(error.text) }
    guard case .object(let members) = report,
      case .text(let file)? = members["policy"], case .integer(let rules)? = members["rules"]
    else { throw strange(report) }
    var lines = ["\(file) is in force: \(rules) \(rules == 1 ? "rule" : "rules")"]
    if case .array(let notes)? = members["notes"] {
      for case .text(let note) in notes { lines.append(note) }
    }
    return lines
  }

  private func strange(_ report: Value) -> DaemonError {
    DaemonError("\(path): the daemon answered something else: \(report)")
  }

  // MARK: Frames

  private func send(_ message: ClientMessage) throws {
    var rest = Frame.encode { message.encode(into: &$0) }[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw failure }
      rest.removeFirst(count)
    }
  }

  /// The next message; nil when the daemon has closed the connection.
  private func receive() throws -> ServerMessage? {
    while received.isEmpty {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count < 0 && errno == EINTR { continue }
      if count == 0 { return nil }
      guard count > 0 else { throw failure }
      try bytes[..<count].withUnsafeBytes { bytes in
        try frames.receiveAll(bytes) { item throws(WireError) in
          received.append(try ServerMessage(item, seed: .unseeded))
        }
      }
    }
    return received.removeFirst()
  }

  private var failure: DaemonError {
    errno == EAGAIN
      ? DaemonError("\(path): the daemon does not answer: see its log")
      : DaemonError("\(path): \(String(cString: strerror(errno)))")
  }
}
