import Glibc
import Synchronization
import Testing

@testable import Systemd

@Suite struct NotifySocketTests {
  // MARK: - Where it goes

  @Test func `without a manager there is no socket`() throws {
    #expect(try NotifySocket(environment: [:]) == nil)
    #expect(try NotifySocket(environment: ["NOTIFY_SOCKET": ""]) == nil)
  }

  @Test(arguments: [
    "notify", "./notify", "vsock:2:1234", "@", "/", " /run/notify", "/a\0b",
    "/" + String(repeating: "x", count: 107), "@" + String(repeating: "x", count: 107),
    "/" + String(repeating: "é", count: 54),
  ])
  func `an invalid address is refused`(text: String) throws {
    let error = #expect(throws: NotifyError.self) {
      _ = try NotifySocket(environment: ["NOTIFY_SOCKET": text])
    }
    guard case .environment(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.variable == "NOTIFY_SOCKET")
    #expect(reason.value == text)
    #expect(reason.description.hasSuffix("of at most 107 bytes"))
  }

  @Test func `an address of 107 bytes is accepted`() throws {
    for sigil in ["/", "@"] {
      let text = sigil + String(repeating: "x", count: 106)
      #expect(try NotifySocket(environment: ["NOTIFY_SOCKET": text]) != nil)
    }
  }

  @Test func `a manager at an abstract name is reached, to the name's last byte`() throws {
    let name = "@lockstep-\(getpid())-" + String(repeating: "n", count: 80)
    let manager = try FakeManager(at: name)
    let socket = try #require(try NotifySocket(environment: ["NOTIFY_SOCKET": name]))
    try socket.send(.ready)
    #expect(manager.receive()?.text == "READY=1")
    #expect(throws: NotifyError.self) {
      try NotifySocket(environment: ["NOTIFY_SOCKET": String(name.dropLast())])?.send(.ready)
    }
  }

  @Test func `a missing manager is an error, and a returning one is reached again`() throws {
    try withPath { path in
      let socket = try #require(try NotifySocket(environment: ["NOTIFY_SOCKET": path]))
      let nobody = NotifyError.system(
        SystemError(code: ENOENT, operation: "connect to \(path)"))
      #expect(throws: nobody) { try socket.send(.ready) }
      try withExtendedLifetime(FakeManager(at: path)) { try socket.send(.ready) }
      #expect(throws: NotifyError.self) { try socket.send(.ready) }
      unlink(path)
      let manager = try FakeManager(at: path)
      try socket.send(.stopping)
      #expect(manager.receive()?.text == "STOPPING=1")
    }
  }

  // MARK: - What it says

  @Test(
    arguments: [
      (.ready, "READY=1"),
      (.status("revision 7, 3 clients"), "STATUS=revision 7, 3 clients"),
      (.reloading(monotonicMicroseconds: .max), "RELOADING=1\nMONOTONIC_USEC=18446744073709551615"),
      (.stopping, "STOPPING=1"),
      (.watchdog, "WATCHDOG=1"),
      (.extendTimeout(microseconds: 5_000_000), "EXTEND_TIMEOUT_USEC=5000000"),
      (.mainPID(42), "MAINPID=42"),
      (.fdStoreRemove(name: "c7"), "FDSTOREREMOVE=1\nFDNAME=c7"),
    ] as [(Notification, String)])
  func `each notification has its lines`(notification: Notification, text: String) throws {
    try withManager { manager, socket in
      try socket.send(notification)
      let datagram = try #require(manager.receive())
      #expect(datagram.text == text)
      #expect(datagram.sender == getpid())
      #expect(datagram.descriptors.numbers.isEmpty)
    }
  }

  @Test func `several notifications are sent in one datagram`() throws {
    try withManager { manager, socket in
      try socket.send([.ready, .status("serving")])
      try socket.send(assignments: ["X_OWN=a=b", "ERRNO=2"])
      #expect(manager.receive()?.text == "READY=1\nSTATUS=serving")
      #expect(manager.receive()?.text == "X_OWN=a=b\nERRNO=2")
      #expect(manager.receive() == nil)
    }
  }

  @Test(arguments: [
    ("a\nREADY=1", "a READY=1"), ("\r\n\0\t\u{7f}\u{85}", "      "), ("", ""), ("é €", "é €"),
    ("e\u{301}", "e\u{301}"),
    (String(repeating: "x", count: 5000), String(repeating: "x", count: 2048)),
    (String(repeating: "€", count: 683), String(repeating: "€", count: 682)),
  ])
  func `a status is one line of limited length`(text: String, line: String) throws {
    try withManager { manager, socket in
      try socket.send(.status(text))
      let received = try #require(manager.receive())
      #expect(received.bytes == Array("STATUS=\(line)".utf8))
    }
  }

  @Test(arguments: ["", "READY", "=1", "A=b\nREADY=1", "A=\0", "\nA=b"])
  func `an invalid assignment is not sent`(text: String) throws {
    try withManager { manager, socket in
      #expect(throws: NotifyError.invalidAssignment(text)) {
        try socket.send(assignments: ["READY=1", text])
      }
      #expect(manager.receive() == nil)
    }
  }

  @Test func `a datagram has at most the length that the manager accepts`() throws {
    try withManager { manager, socket in
      let longest = "A=" + String(repeating: "x", count: 4093)
      try socket.send(assignments: [longest])
      #expect(manager.receive()?.text == longest)
      #expect(throws: NotifyError.tooLong(bytes: 4096)) {
        try socket.send(assignments: [longest + "x"])
      }
    }
  }

  // MARK: - Descriptors

  @Test func `a descriptor goes to the store under its name`() throws {
    try withManager { manager, socket in
      let ends = try pipeEnds()
      try socket.send(.fdStore(name: "c1", polls: false), descriptors: [ends.numbers[0]])
      try socket.send(.fdStore(name: "state", polls: true), descriptors: ends.numbers)
      let one = try #require(manager.receive())
      #expect(one.text == "FDSTORE=1\nFDNAME=c1\nFDPOLL=0")
      #expect(one.descriptors.numbers.count == 1)
      #expect(isSameFile(one.descriptors.numbers[0], ends.numbers[0]))
      let both = try #require(manager.receive())
      #expect(both.text == "FDSTORE=1\nFDNAME=state")
      #expect(both.descriptors.numbers.count == 2)
      for (copy, end) in zip(both.descriptors.numbers, ends.numbers) {
        #expect(isSameFile(copy, end))
      }
    }
  }

  @Test func `a notification carries at most the kernel's limit of descriptors`() throws {
    try withManager { manager, socket in
      let ends = try pipeEnds()
      let many = [Int32](repeating: ends.numbers[0], count: NotifySocket.descriptorLimit)
      try socket.send(.fdStore(name: "", polls: false), descriptors: many)
      #expect(manager.receive()?.descriptors.numbers.count == 253)
      #expect(throws: NotifyError.tooManyDescriptors(count: 254)) {
        try socket.send(.fdStore(name: "", polls: false), descriptors: many + many.prefix(1))
      }
    }
  }

  @Test func `a closed descriptor is an error`() throws {
    try withManager { manager, socket in
      let error = #expect(throws: NotifyError.self) {
        try socket.send(.fdStore(name: "c1", polls: false), descriptors: [-1])
      }
      guard case .system(let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.code == EBADF)
      #expect(manager.receive() == nil)
    }
  }

  @Test(arguments: ["a:b", "a\nREADY=1", "é", "\u{7f}", String(repeating: "x", count: 256)])
  func `a name that the manager would refuse is refused`(name: String) throws {
    try withManager { manager, socket in
      let ends = try pipeEnds()
      #expect(throws: NotifyError.invalidName(name)) {
        try socket.send(.fdStore(name: name, polls: false), descriptors: ends.numbers)
      }
      #expect(throws: NotifyError.invalidName(name)) {
        try socket.send(.fdStoreRemove(name: name))
      }
      #expect(manager.receive() == nil)
    }
  }

  @Test func `descriptors must match their notifications`() throws {
    try withManager { manager, socket in
      let ends = try pipeEnds()
      let store = Notification.fdStore(name: "c1", polls: false)
      for (notifications, descriptors) in [
        ([store], []), ([.ready], ends.numbers), ([], ends.numbers),
        ([.fdStoreRemove(name: "c1")], ends.numbers),
        ([store, .fdStoreRemove(name: "c2")], ends.numbers), ([store, store], ends.numbers),
      ] as [([Notification], [Int32])] {
        #expect(throws: NotifyError.mismatchedDescriptors) {
          try socket.send(notifications, descriptors: descriptors)
        }
      }
      try socket.send([store, .ready], descriptors: ends.numbers)
      #expect(manager.receive()?.text == "FDSTORE=1\nFDNAME=c1\nFDPOLL=0\nREADY=1")
      #expect(manager.receive() == nil)
    }
  }

  // MARK: - A busy manager

  /// Fills the manager's queue, and returns the number of datagrams it took.
  private func fill(_ socket: NotifySocket) -> Int {
    for count in 0..<100_000 {
      guard (try? socket.send(.watchdog, patience: .zero)) != nil else { return count }
    }
    return .max
  }

  @Test func `sending waits for a manager that does not read, and then fails`() throws {
    try withManager { manager, socket in
      #expect(fill(socket) < 100_000)
      let start = ContinuousClock.now
      let error = #expect(throws: NotifyError.self) {
        try socket.send(.ready, patience: .milliseconds(60))
      }
      #expect(ContinuousClock.now - start >= .milliseconds(60))
      guard case .system(let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.code == EAGAIN)
      #expect(manager.receive() != nil)
    }
  }

  @Test func `a manager that reads late receives the notification`() throws {
    try withPath { path in
      let manager = try FakeManager(at: path)
      let socket = try #require(try NotifySocket(environment: ["NOTIFY_SOCKET": path]))
      let count = fill(socket)
      onThread {
        usleep(50_000)
        _ = manager.receive()
      }
      try socket.send(.ready, patience: .seconds(30))
      for _ in 1..<count { #expect(manager.receive()?.text == "WATCHDOG=1") }
      #expect(manager.receive()?.text == "READY=1")
    }
  }

  // MARK: - Barrier

  private final class Seen: Sendable {
    let texts = Mutex<[String]>([])
  }

  @Test func `a barrier returns when the manager has read everything before it`() throws {
    try withPath { path in
      let manager = try FakeManager(at: path)
      let socket = try #require(try NotifySocket(environment: ["NOTIFY_SOCKET": path]))
      try socket.send(.stopping)
      let seen = Seen()
      onThread {
        usleep(30_000)
        // The barrier may come later than what was before it.
        while seen.texts.withLock({ $0.last }) != "BARRIER=1" {
          guard let text = manager.receive()?.text else {
            usleep(1000)
            continue
          }
          seen.texts.withLock { $0.append(text) }
        }
      }
      try socket.barrier(timeout: .seconds(30))
      #expect(seen.texts.withLock { $0.first } == "STOPPING=1")
    }
  }

  @Test func `a barrier times out`() throws {
    try withManager { manager, socket in
      #expect(throws: NotifyError.barrierTimedOut) {
        try socket.barrier(timeout: .milliseconds(20))
      }
      let barrier = try #require(manager.receive())
      #expect(barrier.text == "BARRIER=1")
      #expect(barrier.descriptors.numbers.count == 1)
      #expect(throws: NotifyError.barrierTimedOut) { try socket.barrier(timeout: .zero) }
    }
  }
}
