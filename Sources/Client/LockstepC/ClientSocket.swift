import CLinux
import CLockstep
import Glibc
import Wire

// Theory of operation
//
// Callers watch one descriptor for the life of a connection. That is an epoll descriptor, which is
// ready when the socket in it is: the socket may be replaced without the caller's knowledge, and
// nothing is called on it to read, because a read from the socket itself makes it unready again.
//
// Bytes to be sent wait for the next dispatch, so that many actions take one write. Meanwhile the
// socket is watched for writing, which makes the caller's descriptor ready at once.

/// The socket of a connection: at most one is open at a time, and one that was released may still be
/// writing.
struct ClientSocket: ~Copyable {
  /// The descriptor that callers watch.
  let poller: Int32
  private var descriptor: Int32 = -1
  /// The bytes to be sent, from `sent` on.
  private var outbox: [UInt8] = []
  private var sent = 0
  private var isWatchedForWriting = false
  /// The socket was released with bytes to be sent: they go out until this time.
  private var released: (descriptor: Int32, outbox: [UInt8], sent: Int, deadline: Instant)?
  private let buffer: UnsafeMutableRawBufferPointer

  /// So many bytes waiting are written at once.
  private static let enough = 1 << 16
  private static let readBytes = 1 << 16
  /// How long a goodbye may wait for a daemon that does not read.
  private static let grace: Duration = .seconds(5)

  init() throws(Failure) {
    poller = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard poller >= 0 else { throw Failure(LOCKSTEP_ERROR_SYSTEM) }
    buffer = .allocate(byteCount: Self.readBytes, alignment: 16)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if let released { close(released.descriptor) }
    close(poller)
    buffer.deallocate()
  }

  var isOpen: Bool { descriptor >= 0 }
  /// Whether everything has been written.
  var isFlushed: Bool { sent == outbox.count && released == nil }
  /// When a released socket is abandoned.
  var deadline: Instant? { released?.deadline }

  // MARK: Opening

  /// Connect to a path, which fits an address. Returns 0 or the error of the system.
  mutating func open(_ path: String) -> Int32 {
    let new = socket(
      AF_UNIX,
      Int32(
        SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue
          | SOCK_CLOEXEC.rawValue), 0)
    guard new >= 0 else { return errno }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(new, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data(fd: new))
    guard result == 0, epoll_ctl(poller, EPOLL_CTL_ADD, new, &event) == 0 else {
      let error = errno
      close(new)
      return error
    }
    descriptor = new
    isWatchedForWriting = false
    return 0
  }

  /// Close at once.
  mutating func drop() {
    guard descriptor >= 0 else { return }
    forget(descriptor)
    descriptor = -1
    outbox.removeAll(keepingCapacity: true)
    sent = 0
  }

  /// Close once everything is written, as far as that succeeds in time.
  mutating func release(at now: Instant) {
    flush()
    guard descriptor >= 0, sent < outbox.count else { return drop() }
    if let older = released { forget(older.descriptor) }
    released = (descriptor, outbox, sent, now + Self.grace)
    watch(descriptor, for: EPOLLOUT.rawValue)
    descriptor = -1
    outbox = []
    sent = 0
  }

  private func forget(_ descriptor: Int32) {
    // A copy of the descriptor in a child of the process would keep it in the poller.
    epoll_ctl(poller, EPOLL_CTL_DEL, descriptor, nil)
    close(descriptor)
  }

  private func watch(_ descriptor: Int32, for events: UInt32) {
    var event = epoll_event(events: events, data: epoll_data(fd: descriptor))
    epoll_ctl(poller, EPOLL_CTL_MOD, descriptor, &event)
  }

  // MARK: Writing

  /// Append bytes to be sent. Bytes for a socket that is not open are dropped.
  mutating func send(_ bytes: [UInt8]) {
    guard descriptor >= 0 else { return }
    if outbox.isEmpty { outbox = bytes } else { outbox.append(contentsOf: bytes) }
    if outbox.count - sent >= Self.enough { flush() }
  }

  /// Watch for writing if there is something to write, and only then.
  mutating func watchForWriting() {
    let isWanted = descriptor >= 0 && sent < outbox.count
    guard isWanted != isWatchedForWriting else { return }
    isWatchedForWriting = isWanted
    guard descriptor >= 0 else { return }
    watch(descriptor, for: EPOLLIN.rawValue | (isWanted ? EPOLLOUT.rawValue : 0))
  }

  /// Write as much as the socket takes.
  mutating func flush() {
    guard descriptor >= 0, sent < outbox.count else { return }
    guard Self.write(outbox, from: &sent, to: descriptor) else {
      // A daemon that has closed accepts nothing more, but its goodbye is still to be read, and the
      // end of the stream follows it.
      sent = outbox.count
      return settle()
    }
    settle()
  }

  private mutating func settle() {
    if sent == outbox.count {
      outbox.removeAll(keepingCapacity: outbox.capacity <= Self.enough)
      sent = 0
    } else if sent > Self.enough && sent > outbox.count / 2 {
      outbox.removeSubrange(..<sent)
      sent = 0
    }
  }

  /// Continue to write what a released socket still has to send.
  mutating func flushReleased(at now: Instant) {
    guard let old = released.take() else { return }
    var sent = old.sent
    let isIntact = Self.write(old.outbox, from: &sent, to: old.descriptor)
    if isIntact && sent < old.outbox.count && now < old.deadline {
      released = (old.descriptor, old.outbox, sent, old.deadline)
    } else {
      forget(old.descriptor)
    }
  }

  /// Write bytes from an index on, which is advanced. Returns whether more can be written, now or
  /// later.
  private static func write(_ bytes: [UInt8], from sent: inout Int, to descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      while sent < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
        let count = Glibc.send(
          descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        if count >= 0 {
          sent += count
        } else if errno != EINTR {
          return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM
        }
      }
      return true
    }
  }

  // MARK: Reading

  enum Reading {
    /// These bytes, which are valid until the next call; `isLast` when the socket has no more.
    case bytes(UnsafeRawBufferPointer, isLast: Bool)
    case nothing
    /// The stream has ended.
    case end
  }

  mutating func read() -> Reading {
    guard descriptor >= 0 else { return .nothing }
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 {
        return .bytes(
          UnsafeRawBufferPointer(rebasing: buffer[..<count]), isLast: count < buffer.count)
      }
      if count == 0 { return .end }
      if errno == EAGAIN || errno == EWOULDBLOCK { return .nothing }
      if errno != EINTR { return .end }
    }
  }

  /// Sleep until the socket is ready or the time is up; -1 for no limit. Returns whether the sleep was
  /// interrupted by a signal.
  func wait(milliseconds: Int32) -> Bool {
    var event = epoll_event()
    return epoll_wait(poller, &event, 1, milliseconds) < 0 && errno == EINTR
  }
}

extension Instant {
  /// The time of the system's monotonic clock.
  static var now: Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(
      nanoseconds: UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec))
  }

  /// Milliseconds until this time, rounded up; 0 if it has passed.
  func milliseconds(after now: Instant) -> Int32 {
    guard self > now else { return 0 }
    return Int32(clamping: (nanoseconds - now.nanoseconds + 999_999) / 1_000_000)
  }
}
