import Foundation
import Synchronization

/// A Unix socket that forwards bytes to another, and keeps all of them.
final class RecordingProxy: Sendable {
  private struct State: Sendable {
    var bytes: [UInt8] = []
    var fromClients: [UInt8] = []
    var isClosed = false
  }

  let path: String
  private let target: String
  private let listener: Int32
  private let state = Mutex(State())

  init(at path: String, to target: String) throws {
    self.path = path
    self.target = target
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let status = Self.withAddress(path) { bind(listener, $0, $1) }
    guard status == 0, listen(listener, 16) == 0 else {
      throw ChildProcess.Failure(description: "no proxy at \(path)")
    }
    Thread { [self] in
      while !state.withLock({ $0.isClosed }) {
        if let client = acceptNext() { Thread { [self] in serve(client) }.start() }
      }
      Foundation.close(listener)
    }.start()
  }

  /// Whether the text was among the bytes, in either direction.
  func saw(_ text: String) -> Bool {
    state.withLock { Data($0.bytes).range(of: Data(text.utf8)) != nil }
  }

  /// What the clients sent, in the order in which it came.
  var fromClients: [UInt8] { state.withLock { $0.fromClients } }

  func close() {
    state.withLock { $0.isClosed = true }
    shutdown(listener, Int32(SHUT_RDWR))
  }

  private func acceptNext() -> Int32? {
    var ready = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
    _ = poll(&ready, 1, -1)
    return ChildProcess.spawning.withLock {
      let client = accept(listener, nil, nil)
      guard client >= 0 else { return nil }
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      return client
    }
  }

  private func serve(_ client: Int32) {
    let daemon = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer {
      Foundation.close(client)
      Foundation.close(daemon)
    }
    guard Self.withAddress(target, { connect(daemon, $0, $1) }) == 0 else { return }
    var ends = [
      pollfd(fd: client, events: Int16(POLLIN), revents: 0),
      pollfd(fd: daemon, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      _ = poll(&ends, 2, -1)
      for (index, other) in [daemon, client].enumerated() where ends[index].revents != 0 {
        guard forward(ends[index].fd, other, isFromClient: index == 0) else { return }
      }
    }
  }

  /// Carry some bytes over. Returns false at the end of either.
  private func forward(_ source: Int32, _ target: Int32, isFromClient: Bool) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 14)
    let count = recv(source, &buffer, buffer.count, 0)
    guard count > 0 else { return false }
    state.withLock { state in
      state.bytes += buffer[..<count]
      if isFromClient { state.fromClients += buffer[..<count] }
    }
    var sent = 0
    while sent < count {
      let more = buffer[sent..<count].withUnsafeBytes {
        send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard more > 0 else { return false }
      sent += more
    }
    return true
  }

  private static func withAddress(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
