// The notify protocol is guaranteed to be stable and meant to be implemented without libsystemd
// (sd_notify(3), "Notes"): one datagram of lines VARIABLE=VALUE to the socket of $NOTIFY_SOCKET.
// The kernel tells the manager which process sent it. There is no answer.

internal import CLinux
internal import Glibc

/// A socket to the service manager that started this process.
///
/// Any thread may use it. A datagram is sent whole or not at all. While the manager's queue is
/// full, sending waits for room, for `patience` at most, and then throws `NotifyError.system` with
/// `EAGAIN`. With a patience of zero it tries once.
public final class NotifySocket: Sendable {
  /// The most bytes of a datagram; the manager ignores a longer one.
  public static let messageLimit = 4095
  /// The most descriptors of a datagram; the kernel accepts no more.
  public static let descriptorLimit = DatagramSocket.descriptorLimit
  /// The longest wait for a busy manager, by default.
  public static let patience: Duration = .milliseconds(100)

  private let socket: DatagramSocket

  /// A socket to the manager that `$NOTIFY_SOCKET` names; nil when the variable is unset or empty.
  ///
  /// Throws `environment` when the variable names no Unix socket: a name begins with `/` or `@` and
  /// has at most 107 bytes. Throws `system` when no socket can be made. Whether the manager exists
  /// shows only when something is sent.
  public init?(environment: Environment = .process) throws(NotifyError) {
    guard let text = environment["NOTIFY_SOCKET"] else { return nil }
    guard let address = DatagramAddress(text) else {
      throw .environment(
        EnvironmentError(
          variable: "NOTIFY_SOCKET", value: text,
          expected: "a path or, behind @, an abstract name, of at most "
            + "\(DatagramAddress.limit) bytes"))
    }
    do throws(SystemError) {
      socket = try DatagramSocket(to: address)
    } catch {
      throw .system(error)
    }
  }

  /// Send notifications in one datagram, with copies of descriptors; the caller keeps its own.
  ///
  /// Descriptors need an `fdStore` among the notifications, and an `fdStore` needs descriptors; at
  /// most one notification of a datagram is about named descriptors.
  public func send(
    _ notifications: [Notification], descriptors: [Int32] = [],
    patience: Duration = NotifySocket.patience
  ) throws(NotifyError) {
    let names = notifications.compactMap(\.descriptorName)
    if let name = names.first(where: { !DescriptorName.isValid($0) }) { throw .invalidName(name) }
    let stores = notifications.contains { if case .fdStore = $0 { true } else { false } }
    guard names.count <= 1, stores != descriptors.isEmpty else { throw .mismatchedDescriptors }
    try send(
      assignments: notifications.flatMap(\.assignments), descriptors: descriptors,
      patience: patience)
  }

  /// Send one notification.
  public func send(
    _ notification: Notification, descriptors: [Int32] = [],
    patience: Duration = NotifySocket.patience
  ) throws(NotifyError) {
    try send([notification], descriptors: descriptors, patience: patience)
  }

  /// Send raw assignments, for notifications that have no case in `Notification`.
  ///
  /// Each is one line `VARIABLE=VALUE`, without its newline. The caller keeps the descriptors.
  public func send(
    assignments: [String], descriptors: [Int32] = [],
    patience: Duration = NotifySocket.patience
  ) throws(NotifyError) {
    for assignment in assignments {
      let bytes = assignment.utf8
      guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals != bytes.startIndex,
        !bytes.contains(0), !bytes.contains(UInt8(ascii: "\n"))
      else { throw .invalidAssignment(assignment) }
    }
    let message = Array(assignments.joined(separator: "\n").utf8)
    guard message.count <= Self.messageLimit else { throw .tooLong(bytes: message.count) }
    guard descriptors.count <= Self.descriptorLimit else {
      throw .tooManyDescriptors(count: descriptors.count)
    }
    do throws(SystemError) {
      try socket.send(message, descriptors: descriptors, patience: patience)
    } catch {
      throw .system(error)
    }
  }

  /// Wait until the manager has read everything that was sent before.
  ///
  /// Blocks this thread for `timeout` at most, and then throws `barrierTimedOut`: the datagrams are
  /// still on their way then. Use it, for instance, before a process that handed descriptors over
  /// ends. A manager older than systemd 246 does not know the barrier, and closes its descriptor
  /// all the same.
  public func barrier(timeout: Duration) throws(NotifyError) {
    let deadline = Monotonic.now + max(timeout, .zero)
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC) == 0 else {
      throw .system(SystemError(code: errno, operation: "make a pipe for a barrier"))
    }
    let (reader, writer) = (ends[0], ends[1])
    defer { close(reader) }
    do throws(NotifyError) {
      try send(assignments: ["BARRIER=1"], descriptors: [writer], patience: timeout)
    } catch {
      close(writer)
      throw error
    }
    close(writer)
    // The manager holds the last writing end: when it has read that far, it closes it.
    var entry = pollfd(fd: reader, events: 0, revents: 0)
    while poll(&entry, 1, (deadline - Monotonic.now).pollMilliseconds) <= 0 {
      guard Monotonic.now < deadline else { throw .barrierTimedOut }
    }
  }
}
