import Glibc
package import Values
package import Wire

/// A client that sends what a test says, valid or not, over a blocking socket.
package final class RawClient {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  package let descriptor: Int32
  private var received: [UInt8] = []
  private var isOpen = true
  /// The seed with which maps hash; known after `greet`.
  package var seed = HashSeed.unseeded

  package init(path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard status == 0 else { throw Self.failure("connect to \(path)") }
  }

  deinit { close() }

  package func close() {
    if isOpen { Glibc.close(descriptor) }
    isOpen = false
  }

  /// Close the sending direction.
  package func shutdownSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  private static func failure(_ what: String) -> Failure {
    Failure(description: "cannot \(what): \(String(cString: strerror(errno)))")
  }

  // MARK: Sending

  package func send(_ bytes: [UInt8]) throws {
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Self.failure("send") }
      offset += count
    }
  }

  /// Send what the socket accepts without waiting. Returns the number of bytes; -1 if it never
  /// will.
  package func sendSome(_ bytes: ArraySlice<UInt8>) -> Int {
    let count = bytes.withUnsafeBytes {
      Glibc.send(
        descriptor, $0.baseAddress, $0.count,
        Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
    return count >= 0 ? count : errno == EAGAIN ? 0 : -1
  }

  package func send(_ message: ClientMessage) throws {
    try send(Frame.encode { message.encode(into: &$0) })
  }

  // MARK: Receiving

  /// The next message; nil when the daemon has closed the connection.
  package func receive(within milliseconds: Int32 = 30_000) throws -> ServerMessage? {
    while true {
      if let item = nextItem() {
        return try item.withUnsafeBytes { try ServerMessage($0, seed: seed) }
      }
      guard try fill(milliseconds) else { return nil }
    }
  }

  private func nextItem() -> [UInt8]? {
    guard received.count >= Frame.headLength else { return nil }
    let length = received[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
    guard received.count >= Frame.headLength + length else { return nil }
    let item = Array(received[4..<(4 + length)])
    received.removeFirst(4 + length)
    return item
  }

  private func fill(_ milliseconds: Int32) throws -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard Glibc.poll(&poll, 1, milliseconds) > 0 else {
      throw Failure(description: "nothing came within \(milliseconds) ms")
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    if count < 0 && errno == EINTR { return true }
    // A connection that was reset is closed too.
    guard count > 0 else { return false }
    received.append(contentsOf: buffer[..<count])
    return true
  }

  // MARK: Conversations

  /// Say hello, and return the daemon's answer.
  @discardableResult
  package func greet(
    label: String = "raw", token: SessionToken? = nil
  ) throws -> ServerMessage.Welcome {
    try send(.hello(.init(versions: 1...1, label: label, token: token)))
    guard case .welcome(let welcome) = try receive() else {
      throw Failure(description: "the daemon did not say welcome")
    }
    seed = welcome.seed
    return welcome
  }

  /// Read until the daemon closes the connection. Returns its goodbye; nil if there was none.
  package func goodbye() throws -> Goodbye? {
    var last: Goodbye?
    while let message = try receive() {
      if case .goodbye(let goodbye) = message { last = goodbye }
    }
    return last
  }

  /// Read until an acknowledgement, and return it.
  package func acknowledgement() throws -> Acknowledgement {
    while let message = try receive() {
      if case .acknowledgement(let acknowledgement) = message { return acknowledgement }
    }
    throw Failure(description: "the connection ended before an acknowledgement")
  }

  /// Read acknowledgements up to the one of this action, and return them.
  package func acknowledgements(through number: UInt64) throws -> [Acknowledgement] {
    var all: [Acknowledgement] = []
    while all.last.map({ $0.last < number }) ?? true { all.append(try acknowledgement()) }
    return all
  }
}
