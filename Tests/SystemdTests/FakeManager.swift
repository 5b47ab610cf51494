import Glibc
import Testing

@testable import Systemd

/// The manager's end of the notify protocol: receives what PID 1 would, with the sender.
final class FakeManager: Sendable {
  struct Datagram {
    var bytes: [UInt8]
    var sender: pid_t?
    /// The receiver closes them; otherwise they are closed when the datagram is freed.
    var descriptors: Descriptors

    var text: String { String(decoding: bytes, as: UTF8.self) }
  }

  private let descriptor: Int32

  /// A manager at a path, or at an abstract name after "@".
  init(at address: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(descriptor >= 0)
    let address = try #require(DatagramAddress(address))
    try #require(address.withSocketAddress { bind(descriptor, $0, $1) } == 0)
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    try #require(setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, size) == 0)
  }

  deinit { close(descriptor) }

  /// The next datagram; nil if there is none now.
  func receive() -> Datagram? {
    var bytes = [UInt8](repeating: 0, count: 8192)
    var control = [Int](repeating: 0, count: 4096)
    let controlBytes = control.count * MemoryLayout<Int>.size
    let received: (count: Int, controlLength: Int)? = bytes.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &part) { part in
          var message = msghdr()
          message.msg_iov = part
          message.msg_iovlen = 1
          message.msg_control = control.baseAddress
          message.msg_controllen = controlBytes
          let flags = Int32(MSG_DONTWAIT) | Int32(MSG_CMSG_CLOEXEC)
          let count = recvmsg(descriptor, &message, flags)
          return count < 0 ? nil : (count, message.msg_controllen)
        }
      }
    }
    guard let received else { return nil }
    var datagram = Datagram(
      bytes: Array(bytes.prefix(received.count)), sender: nil, descriptors: Descriptors())
    control.withUnsafeBytes { Self.read($0.prefix(received.controlLength), into: &datagram) }
    return datagram
  }

  private static func read(
    _ control: Slice<UnsafeRawBufferPointer>, into datagram: inout Datagram
  ) {
    let control = UnsafeRawBufferPointer(rebasing: control)
    let head = MemoryLayout<cmsghdr>.size
    let credentials: Int32 = 2  // SCM_CREDENTIALS, which Glibc's module does not import.
    var position = 0
    while position + head <= control.count {
      let length = control.load(fromByteOffset: position, as: Int.self)
      let type = control.load(fromByteOffset: position + 12, as: Int32.self)
      let numbers = stride(from: position + head, to: position + length, by: 4).map {
        control.load(fromByteOffset: $0, as: Int32.self)
      }
      if type == Int32(SCM_RIGHTS) { datagram.descriptors = Descriptors(numbers) }
      if type == credentials { datagram.sender = numbers.first }
      position += (length + 7) & ~7
    }
  }
}

/// Descriptors that are closed when the object is freed.
final class Descriptors {
  let numbers: [Int32]
  init(_ numbers: [Int32] = []) { self.numbers = numbers }
  deinit { for number in numbers { close(number) } }
}

/// Calls `body` with a path in a new directory, and removes the directory.
func withPath<Result>(_ body: (String) throws -> Result) throws -> Result {
  var template = Array("/tmp/lockstep-systemd-XXXXXX".utf8CString)
  let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer {
    unlink(directory + "/socket")
    rmdir(directory)
  }
  return try body(directory + "/socket")
}

/// Calls `body` with a manager and a socket to it.
func withManager(_ body: (FakeManager, NotifySocket) throws -> Void) throws {
  try withPath { path in
    let manager = try FakeManager(at: path)
    try body(manager, try #require(try NotifySocket(environment: ["NOTIFY_SOCKET": path])))
  }
}

/// Whether two descriptors refer to the same open file.
func isSameFile(_ one: Int32, _ other: Int32) -> Bool {
  var (left, right) = (stat(), stat())
  return fstat(one, &left) == 0 && fstat(other, &right) == 0 && left.st_ino == right.st_ino
    && left.st_dev == right.st_dev
}

/// The two ends of a pipe that no child inherits.
func pipeEnds() throws -> Descriptors {
  var ends: [Int32] = [-1, -1]
  try #require(
    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
  return Descriptors(ends)
}
