import Glibc

/// Clients that add as fast as they get answers, over connections that must never end.
final class ProbeClients {
  private var clients: [Int32: LineBuffer] = [:]
  /// The numbers received so far: a duplicate or a missing one means that a request was lost or
  /// repeated.
  private var told: Set<Int> = []
  private var longest: UInt64 = 0

  init(path: String, count: Int) throws {
    for _ in 0..<count { clients[try Self.connection(to: path)] = LineBuffer() }
  }

  private static func connection(to path: String) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard status == 0 else { throw Failure("cannot connect: \(String(cString: strerror(errno)))") }
    return descriptor
  }

  func run(seconds: Int) throws {
    let end = monotonicMicroseconds() + UInt64(seconds) * 1_000_000
    var rounds = 0
    while rounds < 2 || monotonicMicroseconds() < end {
      try round()
      rounds += 1
      if rounds == 1 { say("connected") }
    }
    let (least, most) = (told.min() ?? 0, told.max() ?? 0)
    say(
      "clients \(clients.count) rounds \(rounds) numbers \(told.count) longest-ms "
        + "\(longest / 1000)")
    guard told.count == rounds * clients.count, most - least + 1 == told.count else {
      throw Failure("numbers from \(least) to \(most), and only \(told.count) of them")
    }
  }

  /// Each client adds once, all of them concurrently.
  private func round() throws {
    let start = monotonicMicroseconds()
    for descriptor in clients.keys {
      // In two pieces: a restart between them must not lose the first.
      for piece in ["ad", "d\n"] {
        guard send(descriptor, piece, piece.utf8.count, Int32(MSG_NOSIGNAL)) > 0 else {
          throw Failure("a connection ended: \(String(cString: strerror(errno)))")
        }
      }
    }
    var waiting = Set(clients.keys)
    while !waiting.isEmpty {
      var entries = waiting.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&entries, nfds_t(entries.count), 30_000) > 0 else {
        throw Failure("\(waiting.count) clients were told nothing for 30 seconds")
      }
      for entry in entries where entry.revents != 0 {
        if try isTold(entry.fd) { waiting.remove(entry.fd) }
      }
    }
    longest = max(longest, monotonicMicroseconds() - start)
  }

  private func isTold(_ descriptor: Int32) throws -> Bool {
    guard clients[descriptor]?.fill(from: descriptor) == true else {
      throw Failure("a connection ended")
    }
    guard let line = clients[descriptor]?.next() else { return false }
    guard let number = Int(line), told.insert(number).inserted else {
      throw Failure("a client was told \(line)")
    }
    return true
  }
}
