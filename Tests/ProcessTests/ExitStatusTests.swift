import Documents
import EventLoop
import Foundation
import LockstepClient
import Testing
import Values

/// Swift Testing has a type of that name too.
private typealias ExitStatus = EventLoop.ExitStatus

/// Each status of the table, caused with the real programs, and the error that `--json` writes.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(4)))
struct ExitStatusTests {
  /// Runs a shell line in which `lockstep` is the command line and `$socket` the daemon's socket.
  private func shell(_ line: String, _ socket: String) async throws -> CommandResult {
    let lockstep = (Binaries.folder ?? ".") + "/lockstep"
    let command = try ChildProcess(
      "/bin/sh", ["-c", "lockstep() { \"\(lockstep)\" \"$@\"; }; \(line)"],
      environment: ["LOCKSTEP_SOCKET": socket, "socket": socket, "PROGRAM": lockstep])
    return CommandResult(status: try await command.end(), lines: command.output)
  }

  /// Expects a status, and as the only line on standard error an object with its name.
  private func expect(
    _ status: ExitStatus, code: String? = nil, _ line: String, _ socket: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let done = try await shell(line, socket)
    #expect(
      done.status == .exit(status.rawValue), "\(line): \(done.lines)",
      sourceLocation: sourceLocation)
    let error = done.values.last?["error"]
    #expect(done.lines.count == 1, "\(line): \(done.lines)", sourceLocation: sourceLocation)
    #expect(
      error?["status"] == .text(status.name), "\(line): \(done.lines)",
      sourceLocation: sourceLocation)
    #expect(
      error?["code"] == .text(code ?? status.name), "\(line): \(done.lines)",
      sourceLocation: sourceLocation)
    guard case .text(let message)? = error?["message"] else {
      Issue.record("\(line): no message: \(done.lines)", sourceLocation: sourceLocation)
      return
    }
    #expect(message.hasSuffix("."), "\(message)", sourceLocation: sourceLocation)
  }

  @Test func `refused, wrong, absent, failed and late commands have a status each`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      #expect(try await shell("lockstep set /n 1", socket).status == .exit(0))
      try await expect(.refused, code: "wrongType", "lockstep --json append /n 1", socket)
      try await expect(.refused, code: "badPath", "lockstep --json set /a/b 1", socket)
      try await expect(.refused, code: "numberOutOfRange", Self.overflow, socket)
      try await expect(.usage, "lockstep --json nope", socket)
      try await expect(.usage, "lockstep --json get --nope", socket)
      try await expect(.usage, "lockstep --json set /n {", socket)
      try await expect(.usage, "lockstep --json load /no/such", socket)
      try await expect(.usage, "lockstep --json", socket)
      try await expect(.unreachable, "lockstep --json get --socket \"$socket.none\"", socket)
      try await expect(.absent, "lockstep --json get /m", socket)
      try await expect(.absent, "lockstep --json digest /m", socket)
      try await expect(.absent, "lockstep --json effects cancel none", socket)
      try await expect(.absent, "lockstep --json why 99", socket)
      try await expect(.differs, code: "testFailed", "lockstep --json test /n 2", socket)
      try await expect(
        .differs, code: "testFailed",
        "echo '[{\"op\":\"test\",\"path\":\"/n\",\"value\":2}]' | lockstep --json patch -", socket)
      try await expect(
        .timeout, "lockstep --json watch /m --timeout 0.1 --until /m=1 >\(served.folder)/out",
        socket)
      let path = try await shell("lockstep --json test /n 2", socket).values.last?["error"]?["path"]
      #expect(path == "/n")
    }
  }

  private static let overflow =
    "lockstep set /n 18446744073709551615 >/dev/null && lockstep --json increment /n"

  @Test
  func `an action that was performed, but is not durable or not reported, has its own status`()
    async throws
  {
    try await withDaemon { served in
      let socket = served.socket
      try await expect(
        .notDurable, "lockstep --json set /n 1 --durable >\(served.folder)/out", socket)
      // Three increments, and no more.
      try await expect(.unwritten, "lockstep --json increment /n >/dev/full", socket)
      try await expect(.unwritten, "lockstep --json increment /n >&-", socket)
      try await expect(.unwritten, "lockstep --json increment /n <&- >&-", socket)
      #expect(try await shell("lockstep get /n", socket).lines == ["4"])
      let told = try await shell("lockstep increment /n >/dev/full", socket)
      #expect(told.lines.joined().contains("lockstep: done at revision 5, but"), "\(told.lines)")
      for line in [
        "lockstep --json get >/dev/full", "lockstep --json --help >/dev/full",
        "lockstep --json export /dev/full", "lockstep --json export >/dev/full",
        "lockstep --json export /no/such/file", "lockstep --json status >&-",
        "lockstep --json watch /n >/dev/full", "lockstep --json limits >/dev/full",
      ] {
        try await expect(.unwritten, line, socket)
      }
      let left = try await shell("lockstep get /n | true; lockstep increment /n | true", socket)
      #expect(left.status == .exit(0))
    }
  }

  @Test func `a closed standard stream is never reused for a socket or file of the program`()
    async throws
  {
    try await withDaemon { served in
      let watch = try ChildProcess(
        "/bin/sh",
        [
          "-c", #"exec "$0" --socket "$1" watch / --format patch <&- 2>&-"#,
          Binaries.commandLine, served.socket,
        ])
      defer { watch.signal(SIGKILL) }
      try await watch.line(with: "revision")
      for descriptor in [0, 2] {
        let target = try FileManager.default.destinationOfSymbolicLink(
          atPath: "/proc/\(watch.pid)/fd/\(descriptor)")
        #expect(target == "/dev/null")
      }
      let stdin = try await shell("lockstep set /a - <&-", served.socket)
      #expect(stdin.status == .exit(2))
      #expect(stdin.lines.joined().contains("cannot read standard input"), "\(stdin.lines)")
    }
  }

  @Test func `a goodbye has a status`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let watch = try ChildProcess(
        Binaries.commandLine, ["--socket", socket, "--json", "watch", "/n"])
      try await watch.line("")
      daemon.signal(SIGTERM)
      #expect(try await watch.end() == .exit(ExitStatus.goodbye.rawValue))
      let error = try JSON.parse(try #require(watch.output.last))["error"]
      #expect(error?["status"] == "goodbye")
      #expect(error?["code"] == "stopping")
      #expect(error?["retryAfterMs"] == 1000)
      #expect(try await daemon.end() == .exit(ExitStatus.done.rawValue))
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can start processes of other users"))
  func `every kind of denial has the same status`() async throws {
    let other = #"setpriv --reuid=65534 --regid=65534 --clear-groups "$PROGRAM" --json"#
    try await withDaemon { served in
      chmod(served.folder, 0o711)
      try await expect(.denied, "\(other) get", served.socket)
    }
    try await withDaemon(["--mode", "666"]) { served in
      chmod(served.folder, 0o711)
      try await expect(.denied, "\(other) get", served.socket)
    }
    try await withFolder { folder in
      let policy = """
        version: 1
        rules:
          - everyone: true
            connect: true
            read: [/a]
            act: ["*"]
            deny-act: [remove]
        """
      try Data(policy.utf8).write(to: URL(filePath: folder + "/policy.yaml"))
      let daemon = try await startDaemon(folder + "/s", ["--policy", folder + "/policy.yaml"])
      defer { daemon.signal(SIGKILL) }
      chmod(folder, 0o711)
      try await expect(.denied, "\(other) get /b", folder + "/s")
      try await expect(.denied, "\(other) remove /a", folder + "/s")
      for report in ["clients", "effects", "log", "why 1", "effects cancel x"] {
        try await expect(.denied, "\(other) \(report)", folder + "/s")
      }
      #expect(try await shell("\(other) status", folder + "/s").status == .exit(0))
      daemon.signal(SIGTERM)
      try await daemon.end()
    }
  }

  @Test func `a damaged journal has a status`() async throws {
    try await withHome { home in
      let daemon = try await home.start()
      #expect(try await home.lockstep("set", "/a", "1", "--durable").status == .exit(0))
      try await daemon.stop()
      Files.write(Array(Files.read(home.journal).dropLast(4096)), to: home.journal)
      let out = home.folder + "/out"
      try await expect(.damaged, "lockstep --json fsck \(home.state) >\(out)", home.socket)
      let said = try await shell("lockstep fsck \(home.state) 2>&1 >\(out)", home.socket)
      #expect(said.lines == ["lockstep: what is kept in \(home.state) is damaged."])
    }
  }

  // MARK: The daemon

  @Test func `a daemon exits with the statuses of the same table`() async throws {
    func end(_ script: String) async throws -> CommandResult {
      let daemon = try ChildProcess("/bin/sh", ["-c", "exec \"$0\" \(script)", Binaries.daemon])
      return CommandResult(status: try await daemon.end(), lines: daemon.output)
    }
    let usage = try await end("--nope")
    #expect(usage.status == .exit(ExitStatus.usage.rawValue))
    #expect(usage.lines.first == "lockstepd: Unknown option '--nope'.")
    let refused = try await end("--socket /proc/none/s")
    #expect(refused.status == .exit(ExitStatus.refused.rawValue), "\(refused.lines)")
    #expect(try await end("--help").status == .exit(ExitStatus.done.rawValue))
    #expect(try await end("--help >/dev/full").status == .exit(ExitStatus.unwritten.rawValue))
    #expect(try await end("--version").lines == ["0.1.0"])
  }

  @Test func `the help and the manual pages of both programs have the table`() async throws {
    try await withFolder { folder in
      let script = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
      let made = try ChildProcess(
        "/\(script)/Scripts/make-documentation", [folder, Binaries.folder ?? "."])
      #expect(try await made.end() == .exit(0), "\(made.output)")
      for (name, section, program) in [
        ("lockstep", 1, ExitStatus.Program.commandLine), ("lockstepd", 8, .daemon),
      ] {
        let file = "\(folder)/man/man\(section)/\(name).\(section)"
        let page = try String(contentsOfFile: file, encoding: .utf8)
          .replacing("\\(aq", with: "'").replacing("\\-", with: "-")
        for status in ExitStatus.allCases {
          guard let meaning = status.meaning(of: program) else { continue }
          #expect(page.contains("\n.It \\&\(status.rawValue)\n\(meaning)\n"), "\(page)")
        }
        #expect(page.contains("\n.Xr lockstepd.service 8"))
        let help = try ChildProcess("\(Binaries.folder ?? ".")/\(name)", ["--help"])
        try await help.end()
        let lines = Set(help.output)
        for line in ExitStatus.help(of: program).split(separator: "\n") {
          #expect(lines.contains(String(line)), "\(line)")
        }
      }
    }
  }
}
