import Foundation
import Sessions
import Synchronization
import Values

/// A Unix socket that forwards bytes to another, and cuts each connection after a random number of
/// them, until told to let all through.
final class CuttingProxy: Sendable {
  private struct State: Sendable {
    var random: SplitMix64
    var cuts = 0
    var lets = false
    var isClosed = false
  }

  let path: String
  private let target: String
  private let listener: Int32
  private let state: Mutex<State>

  init(at path: String, to target: String, seed: UInt64) throws {
    self.path = path
    self.target = target
    state = Mutex(State(random: SplitMix64(seed)))
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let status = Self.withAddress(path) { bind(listener, $0, $1) }
    guard status == 0, listen(listener, 16) == 0 else {
      throw ChildProcess.Failure(description: "no proxy at \(path)")
    }
    Thread { [self] in
      while !state.withLock({ $0.isClosed }) {
        if let client = acceptNext() { Thread { [self] in serve(client) }.start() }
      }
    }.start()
  }

  var cuts: Int { state.withLock { $0.cuts } }

  /// Cut no more connections.
  func letThrough() { state.withLock { $0.lets = true } }

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

  /// How many bytes a connection may carry: sometimes not even a welcome, which makes the client
  /// wait longer before it comes again.
  private func budget() -> Int {
    state.withLock { state in
      if state.lets { return .max }
      let isShort = Int.random(in: 0..<5, using: &state.random) == 0
      return Int.random(in: isShort ? 0..<1000 : 1000..<12_000, using: &state.random)
    }
  }

  private func serve(_ client: Int32) {
    let daemon = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer {
      Foundation.close(client)
      Foundation.close(daemon)
    }
    guard Self.withAddress(target, { connect(daemon, $0, $1) }) == 0 else { return }
    var left = budget()
    var ends = [
      pollfd(fd: client, events: Int16(POLLIN), revents: 0),
      pollfd(fd: daemon, events: Int16(POLLIN), revents: 0),
    ]
    while left > 0 {
      _ = poll(&ends, 2, -1)
      for (index, other) in [daemon, client].enumerated() where ends[index].revents != 0 {
        guard left > 0, let count = Self.forward(ends[index].fd, other, atMost: left) else {
          return
        }
        left -= count
      }
    }
    state.withLock { $0.cuts += 1 }
  }

  /// Carry some bytes over. Returns nil at the end of either.
  private static func forward(_ source: Int32, _ target: Int32, atMost limit: Int) -> Int? {
    var buffer = [UInt8](repeating: 0, count: min(limit, 1 << 14))
    let count = recv(source, &buffer, buffer.count, 0)
    guard count > 0 else { return nil }
    var sent = 0
    while sent < count {
      let more = buffer[sent..<count].withUnsafeBytes {
        send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard more > 0 else { return nil }
      sent += more
    }
    return count
  }
}
