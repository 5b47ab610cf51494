import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct DaemonTests {
  /// Starts a daemon that must fail, and returns its message.
  private func refusal(_ arguments: [String], code: Int32 = 1) async throws -> String {
    let daemon = try ChildProcess(Binaries.daemon, arguments)
    let ending = try await daemon.end()
    #expect(ending == .exit(code), "\(daemon.output)")
    return daemon.output.joined(separator: "\n")
  }

  // MARK: The socket

  @Test func `a second daemon on a socket names the pid of the first`() async throws {
    try await withDaemon { served in
      let said = try await refusal(["--socket", served.socket])
      #expect(said.contains("pid \(served.daemon.pid)"))
      #expect(said.contains(served.socket))
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(["a"], 1))
    }
  }

  @Test func `of ten daemons that start at once on a stale socket one serves`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let dead = try await startDaemon(socket)
      try await dead.kill()
      let daemons = try (0..<10).map { _ in
        try ChildProcess(Binaries.daemon, ["--socket", socket])
      }
      defer { for daemon in daemons { daemon.signal(SIGKILL) } }
      try await eventually("one serves, the others refuse") {
        daemons.count { $0.output.contains { $0.contains(" serving ") } } == 1
          && daemons.count { $0.output.contains { $0.contains("already") } } == 9
      }
      let mirror = try await Subscription<Value>.connect(.init(socket: socket, label: "test"))
      try await mirror.send(DocumentAction.set(["a"], 1))
      mirror.connection.close()
      for daemon in daemons { try await daemon.kill() }
    }
  }

  @Test func `the socket of a killed daemon is replaced`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let first = try await startDaemon(socket)
      try await first.kill()
      #expect(FileManager.default.fileExists(atPath: socket))
      let second = try await startDaemon(socket)
      second.signal(SIGTERM)
      #expect(try await second.end() == .exit(0))
    }
  }

  @Test func `the socket of another program is kept`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let proxy = try ForwardingProxy(at: socket, to: folder + "/nowhere")
      defer { proxy.close() }
      let said = try await refusal(["--socket", socket])
      #expect(said.contains("pid \(getpid())"))
      #expect(FileManager.default.fileExists(atPath: socket))
    }
  }

  @Test func `a lock file that is a link stops the start, and the linked file is kept`()
    async throws
  {
    try await withFolder { folder in
      let (socket, other) = (folder + "/socket", folder + "/other")
      Files.write(Array("precious".utf8), to: other)
      for makeLink in [link, symlink] {
        #expect(makeLink(other, socket + ".lock") == 0)
        let daemon = try ChildProcess(Binaries.daemon, ["--socket", socket])
        #expect(try await daemon.end() == .exit(1))
        let said = daemon.output.joined()
        #expect(said.contains("\(socket).lock: ") && said.contains("Remove it"), "\(said)")
        #expect(Files.read(other) == Array("precious".utf8))
        unlink(socket + ".lock")
      }
    }
  }

  @Test func `an option without effect is logged`() async throws {
    try await withFolder { folder in
      let (file, other) = (folder + "/begin.json", folder + "/other.json")
      Files.write(Array(#"{"n":1}"#.utf8), to: file)
      Files.write(Array(#"{"n":2}"#.utf8), to: other)
      let kept = ["--state-dir", folder + "/state", "--load", file]
      let cases: [(arguments: [String], words: String?)] = [
        (kept, nil),
        (kept, "is not read: the state that was kept goes before it file=\(file)"),
        (["--load", file, "--stub", other], "is not read: --stub serves another one file=\(file)"),
        (["--hand-over"], "--hand-over has no effect"),
      ]
      for (arguments, words) in cases {
        let daemon = try await startDaemon(folder + "/socket", arguments)
        daemon.signal(SIGTERM)
        try await daemon.end()
        let said = daemon.output.joined(separator: "\n")
        #expect(said.contains(words ?? " serving "), "\(arguments): \(said)")
        if words == nil { #expect(!said.contains("is not read"), "\(said)") }
      }
    }
  }

  /// Also a large one, which is decoded beside the loop.
  @Test func `a stub accepts every action, also one that would fail, and its document stays`()
    async throws
  {
    try await withFolder { folder in
      let (file, large) = (folder + "/stub.json", String(repeating: "x", count: 100_000))
      Files.write(Array(#"{"n":2,"list":[1,2]}"#.utf8), to: file)
      try await withDaemon(["--stub", file]) { served in
        let before = try await lockstep(served.socket, "get")
        for action in [
          ["set", "/n", "3"], ["increment", "/n"], ["increment", "/list"], ["set", "/list", "{}"],
          ["set", "/a/b", "1"], ["set", "/n", "\"\(large)\""],
        ] {
          let done = try await lockstep(served.socket, action)
          #expect(done.status == .exit(0), "\(action.prefix(2)): \(done.lines)")
        }
        let after = try await lockstep(served.socket, "get")
        #expect(after.status == .exit(0) && after.lines == before.lines)
        #expect(before.values == [["n": 2, "list": [1, 2]]], "\(before.lines)")
        let log = try await lockstep(served.socket, "log")
        #expect(log.lines.filter { $0.contains("unchanged") }.count == 6, "\(log.lines)")
      }
    }
  }

  @Test func `a path that is too long is an error with the limit`() async throws {
    try await withFolder { folder in
      let path = folder + "/" + String(repeating: "s", count: 108 - folder.utf8.count - 1)
      #expect(path.utf8.count == 108)
      let said = try await refusal(["--socket", path])
      #expect(said.contains("108 bytes"))
      #expect(said.contains("107"))
      let longest = String(path.dropLast())
      let daemon = try await startDaemon(longest)
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
    }
  }

  @Test func `a file that is no socket is an error, and is kept`() async throws {
    try await withFolder { folder in
      let path = folder + "/file"
      try "precious".write(toFile: path, atomically: false, encoding: .utf8)
      let said = try await refusal(["--socket", path])
      #expect(said.contains("not a socket"))
      #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }
  }

  @Test func `a missing directory is an error that says so`() async throws {
    try await withFolder { folder in
      let said = try await refusal(["--socket", folder + "/missing/socket"])
      #expect(said.contains("No such file or directory"))
      #expect(said.contains(folder + "/missing/socket"))
    }
  }

  @Test(arguments: [("600", 0o600), ("0660", 0o660), ("777", 0o777), ("0", 0)])
  func `the socket has the mode that the option says`(mode: String, bits: Int) async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket, ["--mode", mode])
      var status = stat()
      #expect(lstat(socket, &status) == 0)
      #expect(Int(status.st_mode) & 0o7777 == bits)
      try await daemon.kill()
    }
  }

  @Test func `the socket is accessible only to its owner by default`() async throws {
    try await withDaemon { served in
      var status = stat()
      #expect(lstat(served.socket, &status) == 0)
      #expect(Int(status.st_mode) & 0o7777 == 0o600)
    }
  }

  @Test(arguments: [
    ["--mode", "9"], ["--mode", "1777"], ["--limit", "nonsense=1"], ["--limit", "window"],
    ["--limit", "window=-1"], ["--log-form", "xml"], ["--log-level", "loud"], ["--unknown"],
  ])
  func `a wrong command line has its own exit status`(arguments: [String]) async throws {
    let said = try await refusal(arguments, code: 2)
    #expect(said.contains(arguments.last ?? ""))
  }

  // MARK: Loading

  @Test func `a document is loaded from a file`() async throws {
    try await withFolder { folder in
      let file = folder + "/file.json"
      let text = #"{"a": [1, 2.5, 18446744073709551615, -9223372036854775808], "é": null}"#
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      let daemon = try await startDaemon(folder + "/socket", ["--load", file])
      defer { daemon.signal(SIGKILL) }
      let mirror = try await Subscription<Value>.connect(
        .init(socket: folder + "/socket", label: "test"))
      let expected: Value = [
        "a": [1, .double(2.5), Value(UInt64.max), .integer(.min)], "é": .null,
      ]
      #expect(mirror.state?.isSame(as: expected) == true)
      mirror.connection.close()
      try await daemon.kill()
    }
  }

  @Test(arguments: [
    ("{\n  \"a\": tru\n}", "line 2, column"), ("", "line 1, column 1"),
    ("{\"a\": 1, \"a\": 2}", "\"a\""), ("[1, 2", "line 1, column 6"),
    ("{} {}", "line 1, column 4"), ("18446744073709551616e999", "line 1, column"),
  ])
  func `a malformed JSON file is an error with the position of the fault`(
    text: String, place: String
  ) async throws {
    try await withFolder { folder in
      let file = folder + "/bad.json"
      try text.write(toFile: file, atomically: false, encoding: .utf8)
      let said = try await refusal(["--socket", folder + "/socket", "--load", file])
      #expect(said.contains(file))
      #expect(said.contains(place))
      #expect(!FileManager.default.fileExists(atPath: folder + "/socket"))
    }
  }

  @Test func `a file that is missing or a directory is an error with its path`() async throws {
    try await withFolder { folder in
      for file in [folder + "/missing.json", folder] {
        let said = try await refusal(["--socket", folder + "/socket", "--load", file])
        #expect(said.contains(file))
      }
    }
  }

  // MARK: Stopping

  @Test(arguments: [SIGTERM, SIGINT])
  func `a signal stops the daemon after a goodbye to every client`(signal: Int32) async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let goodbyes = try await blocking {
        let clients = try (0..<5).map { number in
          let client = try RawClient(path: socket)
          // The first client has not even said hello.
          if number > 0 { try client.greet() }
          if number > 1 { try client.send(.subscribe(subscription: 1, .root, nil)) }
          if number > 2 { try client.act(1, .increment(["n"], by: 1)) }
          return client
        }
        _ = try clients[4].acknowledgements(through: 1)
        daemon.signal(signal)
        return try clients.map { try $0.goodbye() }
      }
      for goodbye in goodbyes {
        #expect(goodbye?.code == .stopping)
        #expect(goodbye?.retryAfter != nil)
      }
      #expect(try await daemon.end() == .exit(0))
      #expect(!FileManager.default.fileExists(atPath: socket))
    }
  }

  @Test func `a stopped client does not keep the daemon from stopping`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket, ["--limit", "goodbyeDeadlineMs=500"])
      defer { daemon.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: daemon)
      let client = try await served.client("sleeper")
      client.signal(SIGSTOP)
      let mirror = try await served.mirror(of: ["nothing"])
      let text = String(repeating: "x", count: 1 << 20)
      for number in 0..<3 {
        try await mirror.send(DocumentAction.set([.text("k\(number)")], .text(text)))
      }
      let report = try await mirror.connection.report("clients").elements.first {
        $0["label"] == "sleeper"
      }
      #expect(report?["lagBytes"]?.number ?? 0 > 0)
      let start = ContinuousClock.now
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
      #expect(ContinuousClock.now - start < .seconds(8))
      mirror.connection.close()
      try await client.kill()
    }
  }

  @Test func `a second signal stops the daemon at once`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let served = Served(folder: folder, socket: socket, daemon: daemon)
      let client = try await served.client("sleeper")
      client.signal(SIGSTOP)
      let mirror = try await served.mirror(of: ["nothing"])
      let text = String(repeating: "x", count: 1 << 20)
      try await mirror.send(DocumentAction.set(["k"], .text(text)))
      mirror.connection.close()
      daemon.signal(SIGTERM)
      try await daemon.line(with: "stopping")
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
      try await client.kill()
    }
  }

  @Test(arguments: [
    SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGSTKFLT, SIGXFSZ, 34, 50, 64,
  ])
  func `an unexpected signal does not end the daemon`(signal: Int32) async throws {
    try await withDaemon { served in
      let client = try served.raw()
      try client.greet()
      served.daemon.signal(signal)
      try await served.daemon.line(with: "a signal that means nothing to the daemon")
      try client.send(.ping(7))
      var answer: ServerMessage?
      while answer == nil, let message = try client.receive() {
        if case .pong = message { answer = message }
      }
      #expect(answer == .pong(7, revision: 0))
    }
  }

  @Test(arguments: [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGPWR, SIGXCPU])
  func `a terminating signal ends the daemon with a goodbye`(signal: Int32) async throws {
    try await withFolder { folder in
      let daemon = try await startDaemon(folder + "/socket")
      let goodbye = try await blocking {
        let client = try RawClient(path: folder + "/socket")
        try client.greet()
        daemon.signal(signal)
        return try client.goodbye()
      }
      #expect(goodbye?.code == .stopping)
      #expect(try await daemon.end() == .exit(0))
    }
  }

  @Test func `of the actions sent before a stop all or none are acknowledged before the goodbye`()
    async throws
  {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let (acknowledged, goodbye) = try await blocking {
        let client = try RawClient(path: socket)
        try client.greet()
        daemon.signal(SIGSTOP)
        for number in 1...100 as ClosedRange<UInt64> {
          try client.act(number, .increment(["n"], by: 1))
        }
        daemon.signal(SIGTERM)
        daemon.signal(SIGCONT)
        var acknowledged: UInt64 = 0
        var goodbye: Goodbye?
        while let message = try client.receive() {
          if case .acknowledgement(let acknowledgement) = message {
            #expect(goodbye == nil)
            acknowledged = acknowledgement.last
          }
          if case .goodbye(let last) = message { goodbye = last }
        }
        return (acknowledged, goodbye)
      }
      // Both the actions and the signal are pending when it continues: it reads all the actions, or
      // none.
      #expect(acknowledged == 100 || acknowledged == 0)
      #expect(goodbye?.code == .stopping)
      #expect(try await daemon.end() == .exit(0))
    }
  }

  // MARK: Logs

  @Test func `each log form is well-formed`() async throws {
    for form in ["text", "json", "journal"] {
      try await withFolder { folder in
        let socket = folder + "/socket"
        let daemon = try await startDaemon(
          socket, ["--log-form", form, "--log-level", "debug"])
        defer { daemon.signal(SIGKILL) }
        try await blocking {
          let client = try RawClient(path: socket)
          try client.greet(label: "a \"label\"\n<3>with = \\ é")
          try client.send([1, 0, 0, 0, 0xff])
          _ = try client.goodbye()
        }
        try await daemon.line(with: "malformed")
        daemon.signal(SIGTERM)
        try await daemon.end()
        #expect(daemon.output.count >= 4)
        for line in daemon.output { #expect(try isWellFormed(line, form), "\(line)") }
      }
    }
  }

  private func isWellFormed(_ line: String, _ form: String) throws -> Bool {
    switch form {
    case "json":
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      let texts = ["level", "message", "time", "label", "reason", "position", "digest", "socket"]
      return ["level", "message", "time"].allSatisfy { object?[$0] != nil }
        && (object ?? [:]).allSatisfy { $1 is String == texts.contains($0) }
    case "journal":
      return line.prefixMatch(of: /<[2-7]>[a-z]/) != nil
    default:
      return line.prefixMatch(
        of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (debug|info|notice|warning) [a-z]/) != nil
    }
  }

  /// The target of a process's descriptor, according to /proc.
  private func descriptor(_ number: Int32, of pid: pid_t) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/fd/\(number)")
  }

  @Test(arguments: [[0], [1], [2], [0, 1, 2]])
  func `standard descriptors that were closed are opened as the null device`(
    closed: [Int32]
  ) async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let closing = closed.map { "exec \($0)>&-" }.joined(separator: "; ")
      let daemon = try ChildProcess(
        "/bin/sh",
        ["-c", "\(closing); exec \"$0\" \"$@\"", Binaries.daemon, "--socket", socket])
      defer { daemon.signal(SIGKILL) }
      try await eventually("it serves") { (try? RawClient(path: socket)) != nil }
      for number in closed {
        #expect(descriptor(number, of: daemon.pid) == "/dev/null", "\(number)")
      }
    }
  }

  @Test func `nothing below the log level is logged`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try ChildProcess(
        Binaries.daemon, ["--socket", socket, "--log-level", "error"])
      try await eventually("it serves") { (try? RawClient(path: socket)) != nil }
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
      #expect(daemon.output == [])
    }
  }
}
