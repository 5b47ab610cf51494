import Foundation
import Synchronization
import Values

/// A Unix socket that forwards bytes to another, and records them. With a seed it cuts each
/// connection after a random number of bytes, until `letThrough`.
final class ForwardingProxy: Sendable {
  private struct State: Sendable {
    /// Nil when nothing is cut.
    var random: SplitMix64?
    var cuts = 0
    var bytes: [UInt8] = []
    var fromClients: [UInt8] = []
    var isClosed = false
  }

  let path: String
  private let target: String
  private let listener: Int32
  private let state: Mutex<State>

  init(at path: String, to target: String, cuttingWith seed: UInt64? = nil) throws {
    self.path = path
    self.target = target
    state = Mutex(State(random: seed.map { SplitMix64($0) }))
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

  /// The number of connections that have been cut.
  var cuts: Int { state.withLock { $0.cuts } }

  /// Stops cutting connections, also those that are there.
  func letThrough() { state.withLock { $0.random = nil } }

  /// Whether the text was in the bytes of either direction.
  func saw(_ text: String) -> Bool { count(of: text) > 0 }

  /// How often the text was in the bytes of both directions.
  func count(of text: String) -> Int {
    let (bytes, text) = (Data(state.withLock { $0.bytes }), Data(text.utf8))
    var (count, place) = (0, bytes.startIndex)
    while let found = bytes.range(of: text, in: place..<bytes.endIndex) {
      (count, place) = (count + 1, found.upperBound)
    }
    return count
  }

  /// The bytes from clients, in the order of their arrival.
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

  /// The number of bytes that a connection may carry. Sometimes that is less than a welcome, so
  /// that the client backs off for longer.
  private func budget() -> Int {
    state.withLock { state in
      guard var random = state.random else { return .max }
      defer { state.random = random }
      let isShort = Int.random(in: 0..<5, using: &random) == 0
      return Int.random(in: isShort ? 0..<1000 : 1000..<12_000, using: &random)
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
      if state.withLock({ $0.random == nil }) { left = .max }
      for (end, other) in [(0, daemon), (1, client)] where ends[end].revents != 0 {
        guard left > 0, let bytes = Self.read(ends[end].fd, atMost: left) else { return }
        keep(bytes, isFromClient: end == 0)
        guard Self.write(bytes, to: other) else { return }
        left -= bytes.count
      }
    }
    state.withLock { $0.cuts += 1 }
  }

  /// Records bytes before they are forwarded, so that they are present when their answer arrives.
  private func keep(_ bytes: ArraySlice<UInt8>, isFromClient: Bool) {
    state.withLock { state in
      state.bytes += bytes
      if isFromClient { state.fromClients += bytes }
    }
  }

  /// The next bytes; nil at the end.
  private static func read(_ source: Int32, atMost limit: Int) -> ArraySlice<UInt8>? {
    var buffer = [UInt8](repeating: 0, count: min(limit, 1 << 14))
    let count = recv(source, &buffer, buffer.count, 0)
    return count > 0 ? buffer[..<count] : nil
  }

  /// Writes everything; false when the other end is closed.
  private static func write(_ bytes: ArraySlice<UInt8>, to target: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
