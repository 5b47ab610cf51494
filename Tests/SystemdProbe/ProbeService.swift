import Glibc
import Systemd

/// The only thing that the signal handler touches: the end of a pipe that the service polls.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// The service: one thread, one `poll`.
final class ProbeService {
  private let notify: NotifySocket?
  private let watchdog: Watchdog?
  private let journal: JournalStream?
  private let signals: Int32
  private var listener: Int32 = -1
  private var clients: [Int32: Client] = [:]
  private var number = 0
  private var nextClient = 1
  private var lastPet: UInt64 = 0
  private let isSilent: Bool

  private struct Client {
    let name: String
    var input = LineBuffer()
  }

  init(isSilent: Bool) throws {
    self.isSilent = isSilent
    notify = try NotifySocket()
    watchdog = try Watchdog()
    journal = JournalStream(identifier: "probe")
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
    else { throw Failure("no pair of sockets") }
    signals = ends[0]
    signalPipe = ends[1]
    for number in [SIGHUP, SIGTERM] {
      signal(number) { number in
        var byte = UInt8(truncatingIfNeeded: number)
        send(signalPipe, &byte, 1, Int32(MSG_DONTWAIT))
      }
    }
    try takeOver(try Activation.take())
    Environment.removeManagerVariables()
  }

  private func log(_ message: String, _ fields: [JournalStream.Field] = []) {
    do {
      guard let journal else { return say(message) }
      try journal.send(priority: .notice, message: message, fields: fields)
    } catch {
      say("\(message) (\(error))")
    }
  }

  // MARK: Taking over

  private func takeOver(_ activation: Activation) throws {
    var activation = activation
    guard let socket = activation.remove(named: "lockstep").first else {
      throw Failure("no socket was handed over")
    }
    listener = socket
    for (name, descriptor) in activation.remove(where: { $0.hasPrefix("c") }).map({
      ($0.name, $0.descriptor)
    }) {
      clients[descriptor] = Client(name: name)
      nextClient = max(nextClient, (Int(name.dropFirst()) ?? 0) + 1)
    }
    for memory in activation.remove(named: "state") {
      restore(String(decoding: try HandOverMemory.read(memory, limit: 1 << 20), as: UTF8.self))
      close(memory)
      try notify?.send(.fdStoreRemove(name: "state"))
    }
    for entry in activation.closeRest() { try notify?.send(.fdStoreRemove(name: entry.name)) }
    log("took over \(clients.count) clients", [("clients", "\(clients.count)")])
  }

  /// Restores the number from the first line, and the partial input of one client from each other
  /// line.
  private func restore(_ text: String) {
    let lines = text.split(separator: "\n")
    number = lines.first.flatMap { Int($0) } ?? 0
    for line in lines.dropFirst() {
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let entry = clients.first(where: { $0.value.name == words[0] })
      else { continue }
      clients[entry.key]?.input.append(words[1].utf8)
    }
  }

  private func handOver() throws {
    var lines = ["\(number)"]
    for client in clients.values where !client.input.rest.isEmpty {
      lines.append("\(client.name) \(String(decoding: client.input.rest, as: UTF8.self))")
    }
    let memory = try HandOverMemory.make([Array(lines.joined(separator: "\n").utf8)])
    defer { close(memory) }
    try notify?.send(.fdStore(name: "state", polls: false), descriptors: [memory])
    try notify?.barrier(timeout: .seconds(5))
  }

  // MARK: Serving

  func run() throws {
    if !isSilent { try notify?.send([.ready, status]) }
    var isServing = true
    while isServing {
      var entries = ([signals, listener] + clients.keys.sorted()).map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      poll(&entries, nfds_t(entries.count), 100)
      try pet()
      for entry in entries where entry.revents != 0 {
        if entry.fd == signals {
          if try stops() { isServing = false }
        } else if entry.fd == listener {
          try accept()
        } else {
          try serve(entry.fd)
        }
      }
    }
    try notify?.send([.stopping, .status("stopping")])
    try handOver()
    log("handed over \(clients.count) clients")
  }

  private var status: Notification { .status("number \(number), \(clients.count) clients") }

  private func pet() throws {
    guard let watchdog, !isSilent else { return }
    let now = monotonicMicroseconds()
    guard Duration.microseconds(now - lastPet) >= watchdog.interval / 2 else { return }
    lastPet = now
    try notify?.send([.watchdog, status])
  }

  /// Handles the pending signals; returns whether one of them stops the service.
  private func stops() throws -> Bool {
    var byte: UInt8 = 0
    var stops = false
    while recv(signals, &byte, 1, Int32(MSG_DONTWAIT)) == 1 {
      if Int32(byte) == SIGTERM {
        stops = true
      } else {
        try notify?.send([
          .reloading(monotonicMicroseconds: monotonicMicroseconds()), .status("reloading"),
        ])
        log("reloaded")
        try notify?.send([.ready, status])
      }
    }
    return stops
  }

  private func accept() throws {
    let descriptor = Glibc.accept(listener, nil, nil)
    guard descriptor >= 0 else { return }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let client = Client(name: "c\(nextClient)")
    nextClient += 1
    clients[descriptor] = client
    try notify?.send(.fdStore(name: client.name, polls: false), descriptors: [descriptor])
  }

  private func serve(_ descriptor: Int32) throws {
    guard var client = clients[descriptor] else { return }
    let isThere = client.input.fill(from: descriptor)
    while let line = client.input.next() {
      switch line {
      case "add":
        number += 1
        answer("\(number)", descriptor)
      case "pid": answer("\(getpid())", descriptor)
      case "who": answer(Self.peer(descriptor), descriptor)
      case "crash": abort()
      default: answer("what?", descriptor)
      }
    }
    clients[descriptor] = client
    if isThere { return }
    clients[descriptor] = nil
    close(descriptor)
    try notify?.send(.fdStoreRemove(name: client.name))
  }

  /// The user and the group of the peer, according to the kernel.
  private static func peer(_ descriptor: Int32) -> String {
    var credentials: (pid: Int32, uid: UInt32, gid: UInt32) = (0, 0, 0)
    var size = socklen_t(MemoryLayout.size(ofValue: credentials))
    getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size)
    return "\(credentials.uid) \(credentials.gid)"
  }

  /// An answer is short and its reader waits for it, so the socket has room.
  private func answer(_ line: String, _ descriptor: Int32) {
    let bytes = Array((line + "\n").utf8)
    _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
  }
}
