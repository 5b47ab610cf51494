import Glibc

/// A connection of another user, for a test. It sends the bytes of each line of standard input, in
/// hexadecimal, and prints `bytes` and the received bytes in the same form; `connected` or `failed
/// ERRNO` at the start, and `closed` at the end.
///
/// As root, it becomes the user before it connects. With `inherit` it connects first, and its
/// child, which has become the user, continues with the connection.
struct Relay {
  private let descriptor: Int32

  /// `SOCKET relay UID GID GROUPS` or `SOCKET inherit UID GID GROUPS`, with commas between the
  /// groups; the child of the latter has the descriptor in place of the socket.
  static func run(_ arguments: [String]) throws {
    guard arguments.count == 6, let uid = UInt32(arguments[3]), let gid = UInt32(arguments[4])
    else { throw RawClient.Failure(description: "relay UID GID GROUPS") }
    let groups = arguments[5].split(separator: ",").compactMap { UInt32($0) }
    if arguments[2] == "inherit" { return try bequeath(arguments) }
    try become(uid, gid, groups)
    if let inherited = Int32(arguments[1]) { return try Relay(descriptor: inherited).run() }
    do {
      let client = try RawClient(path: arguments[1])
      try Relay(descriptor: client.descriptor).run()
    } catch {
      say("failed \(errno)")
    }
  }

  static func become(_ uid: UInt32, _ gid: UInt32, _ groups: [UInt32]) throws {
    guard setgroups(groups.count, groups) == 0, setgid(gid) == 0, setuid(uid) == 0 else {
      throw RawClient.Failure(description: "cannot become user \(uid)")
    }
  }

  private static func bequeath(_ arguments: [String]) throws {
    let client = try RawClient(path: arguments[1])
    _ = fcntl(client.descriptor, F_SETFD, 0)
    let words = ["TestClient", "\(client.descriptor)", "relay"] + arguments[3...]
    var argv = words.map { strdup($0) } + [nil]
    defer { for word in argv { free(word) } }
    var child: pid_t = 0
    guard posix_spawn(&child, "/proc/self/exe", nil, nil, &argv, environ) == 0 else {
      throw RawClient.Failure(description: "no child")
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
  }

  private func run() throws {
    Self.say("connected")
    var input: [UInt8] = []
    var isOpen = true
    while isOpen {
      var polled = [
        pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&polled, 2, -1) > 0 else { continue }
      if polled[1].revents != 0 { isOpen = receive() }
      if polled[0].revents != 0 {
        let bytes = Self.read(STDIN_FILENO)
        if bytes.isEmpty { return }
        input += bytes
        while let end = input.firstIndex(of: 10) {
          write(String(decoding: input[..<end], as: UTF8.self))
          input.removeSubrange(...end)
        }
      }
    }
    Self.say("closed")
  }

  private func receive() -> Bool {
    let bytes = Self.read(descriptor)
    guard !bytes.isEmpty else { return false }
    Self.say("bytes " + Hex.text(bytes))
    return true
  }

  private func write(_ line: String) {
    let bytes = Hex.bytes(line)
    // After its goodbye, the daemon may not read any more.
    _ = bytes.withUnsafeBytes {
      send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
  }

  private static func read(_ descriptor: Int32) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      return Array(buffer.prefix(max(0, count)))
    }
  }

  private static func say(_ line: String) {
    var rest = Array((line + "\n").utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return }
      rest = rest.dropFirst(max(0, count))
    }
  }
}

/// Bytes as two hexadecimal digits each.
package enum Hex {
  package static func text(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  package static func bytes(_ text: some StringProtocol) -> [UInt8] {
    let digits = text.utf8.map { UInt8($0 > 57 ? $0 - 87 : $0 - 48) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
