internal import Glibc

/// A socket that sends datagrams to one address, each whole or not at all.
///
/// No call waits longer than its caller allows. The socket connects at its first datagram, and
/// again when the receiver has been replaced. It is connected so that `poll` can tell when the
/// receiver's queue has room again.
final class DatagramSocket: Sendable {
  let address: DatagramAddress
  private let descriptor: Int32

  /// The most descriptors that the kernel takes with one datagram (`SCM_MAX_FD`).
  static let descriptorLimit = 253

  init(to address: DatagramAddress) throws(SystemError) {
    self.address = address
    let kind = Int32(
      SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    descriptor = socket(AF_UNIX, kind, 0)
    try check(descriptor, "make a socket towards \(address.text)")
  }

  deinit { close(descriptor) }

  /// Send one datagram, with copies of descriptors; the caller keeps its own.
  ///
  /// While the receiver's queue is full, wait until it has room; while the kernel holds too many
  /// descriptors of ours in flight, retry every millisecond. Both end when `patience` is over, and
  /// then throw `EAGAIN` or `ETOOMANYREFS`. Throws `EMSGSIZE` for a datagram that is too large, and
  /// `ENOENT` or `ECONNREFUSED` when there is no receiver.
  func send(
    _ bytes: [UInt8], descriptors: [Int32] = [], patience: Duration
  ) throws(SystemError) {
    let deadline = Monotonic.now + max(patience, .zero)
    var mayConnect = true
    while true {
      let code = DescriptorMessage.send(bytes, descriptors, to: descriptor)
      switch code {
      case 0: return
      case EINTR: continue
      case ENOTCONN, ECONNREFUSED, ECONNRESET:
        guard mayConnect else { throw error(code) }
        mayConnect = false
        try connect()
      case EAGAIN:
        guard wait(for: Int16(POLLOUT), until: deadline) else { throw error(code) }
      case ETOOMANYREFS:
        guard Monotonic.now < deadline else { throw error(code) }
        poll(nil, 0, 1)
      default: throw error(code)
      }
    }
  }

  private func error(_ code: Int32) -> SystemError {
    SystemError(code: code, operation: "send to \(address.text)")
  }

  private func connect() throws(SystemError) {
    try check(
      address.withSocketAddress { Glibc.connect(descriptor, $0, $1) },
      "connect to \(address.text)")
  }

  private func wait(for events: Int16, until deadline: Duration) -> Bool {
    let left = deadline - Monotonic.now
    guard left > .zero else { return false }
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    // The caller retries an interrupted wait, against the same deadline.
    return poll(&entry, 1, left.pollMilliseconds) != 0
  }
}

/// The ancillary data that carries descriptors: `SCM_RIGHTS`, as the macros of cmsg(3) lay it out.
struct DescriptorMessage {
  private var words: [Int]
  private let length: Int

  init(_ descriptors: [Int32]) {
    let head = MemoryLayout<cmsghdr>.size
    length = descriptors.isEmpty ? 0 : head + descriptors.count * MemoryLayout<Int32>.size
    // In words, so that the data is aligned and padded at its end.
    words = [Int](
      repeating: 0, count: (length + MemoryLayout<Int>.size - 1) / MemoryLayout<Int>.size)
    if descriptors.isEmpty { return }
    let length = length
    words.withUnsafeMutableBytes { bytes in
      var header = cmsghdr()
      header.cmsg_len = length
      header.cmsg_level = SOL_SOCKET
      header.cmsg_type = Int32(SCM_RIGHTS)
      bytes.storeBytes(of: header, as: cmsghdr.self)
      for (index, descriptor) in descriptors.enumerated() {
        bytes.storeBytes(
          of: descriptor, toByteOffset: head + index * MemoryLayout<Int32>.size, as: Int32.self)
      }
    }
  }

  /// One `sendmsg` with copies of descriptors: 0, or an `errno` value.
  static func send(_ bytes: [UInt8], _ descriptors: [Int32], to socket: Int32) -> Int32 {
    var control = DescriptorMessage(descriptors)
    return bytes.withUnsafeBytes { bytes in
      control.withUnsafeBytes { control in
        var part = iovec(
          iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &part) { part in
          var message = msghdr()
          message.msg_iov = part
          message.msg_iovlen = 1
          message.msg_control = control.baseAddress
          message.msg_controllen = control.count
          return sendmsg(socket, &message, Int32(MSG_NOSIGNAL)) < 0 ? errno : 0
        }
      }
    }
  }

  mutating func withUnsafeBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result {
    words.withUnsafeMutableBytes(body)
  }
}

/// The monotonic clock, since boot.
enum Monotonic {
  static var now: Duration {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

extension Duration {
  /// Milliseconds for `poll`: rounded up, at least 0 and at most a day.
  var pollMilliseconds: Int32 {
    if self <= .zero { return 0 }
    if self >= .seconds(86_400) { return 86_400_000 }
    let (seconds, attoseconds) = components
    return Int32(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
