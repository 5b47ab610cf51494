import EventLoop
import Foundation
import TestClient
import Testing
import Wire

/// A policy file and the daemon that reads it, at its start and again.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct PolicyProcessTests {
  private static let good = """
    version: 1
    rules:
    - users: [root]
      connect: true
      administer: true
      read: [/]
      act: ["*"]

    """

  private func run(_ arguments: [String]) async throws -> (
    ending: ChildProcess.Ending, said: String
  ) {
    let process = try ChildProcess(Binaries.daemon, arguments)
    let ending = try await process.end()
    return (ending, process.output.joined(separator: "\n"))
  }

  private func withPolicy(
    _ text: String, _ body: (_ folder: String, _ file: String) async throws -> Void
  ) async throws {
    try await withFolder { folder in
      let file = folder + "/policy.yaml"
      Files.write(Array(text.utf8), to: file)
      chmod(file, 0o600)
      try await body(folder, file)
    }
  }

  @Test func `a policy is checked without a daemon, with the daemon's messages`() async throws {
    try await withPolicy(Self.good) { folder, file in
      let good = try await run(["--check-policy", file])
      #expect(
        good.ending == .exit(0) && good.said == "\(file): a policy of 1 rule", "\(good.said)")
      for (text, words) in [
        ("rules: [", ":2: it is not YAML"), (Self.good + "  raed: [/]\n", ":8: a rule has no key"),
        ("\u{feff}" + Self.good, ":1: the file begins with a byte order mark"),
      ] {
        Files.write(Array(text.utf8), to: file)
        chmod(file, 0o600)
        let checked = try await run(["--check-policy", file])
        let started = try await run(["--socket", folder + "/s", "--policy", file])
        for result in [checked, started] {
          #expect(result.ending == .exit(1), "\(result.said)")
          #expect(result.said.contains(" critical \(file)\(words)"), "\(result.said)")
        }
      }
      Files.write(Array((Self.good + "- users: [no-such-user]\n  act: [set]\n").utf8), to: file)
      let noted = try await run(["--check-policy", file])
      #expect(noted.ending == .exit(0))
      #expect(noted.said.contains(" warning \(file):8: there is no user"), "\(noted.said)")
    }
  }

  @Test func `a reload reports its result`() async throws {
    try await withPolicy(Self.good) { folder, file in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket, ["--policy", file])
      defer { daemon.signal(SIGKILL) }
      let reload = ["--socket", socket, "--reload"]
      let good = try await run(reload)
      #expect(
        good.ending == .exit(0) && good.said == "\(file) is in force: 1 rule", "\(good.said)")
      Files.write(Array("rules: [".utf8), to: file)
      let bad = try await run(reload)
      #expect(bad.ending == .exit(1))
      #expect(
        bad.said.contains("the former policy stays: \(file):2: it is not YAML"), "\(bad.said)")
      // A policy that does not admit us must not prevent the next reload.
      let other = "version: 1\nrules:\n- users: [4242, no-such-user]\n  connect: true\n"
      Files.write(Array(other.utf8), to: file)
      let locked = try await run(reload)
      #expect(locked.ending == .exit(0))
      #expect(locked.said.contains(":3: there is no user \"no-such-user\""), "\(locked.said)")
      Files.write(Array(Self.good.utf8), to: file)
      #expect(try await run(reload).ending == .exit(0))
      #expect(daemon.output.count { $0.contains("policy read again") } == 3)
    }
  }

  @Test func `a reload without a daemon or without a policy is an error`() async throws {
    try await withFolder { folder in
      let reload = ["--socket", folder + "/socket", "--reload"]
      let absent = try await run(reload)
      #expect(absent.ending == .exit(1))
      #expect(absent.said.contains("No such file or directory. Start the daemon"), "\(absent.said)")
      let daemon = try await startDaemon(folder + "/socket")
      defer { daemon.signal(SIGKILL) }
      let none = try await run(reload)
      #expect(none.ending == .exit(1))
      #expect(none.said.contains("there is no policy file: give one with --policy"), "\(none.said)")
    }
  }

  @Test func `every one of many concurrent reloads is answered`() async throws {
    try await withPolicy(Self.good) { folder, file in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket, ["--policy", file])
      defer { daemon.signal(SIGKILL) }
      let endings = try await withThrowingTaskGroup(of: ChildProcess.Ending.self) { group in
        for _ in 0..<8 {
          group.addTask { try await run(["--socket", socket, "--reload"]).ending }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(endings.count == 8 && endings.allSatisfy { $0 == .exit(0) }, "\(endings)")
    }
  }

  @Test func `a large policy does not block the daemon`() async throws {
    let paths = (0..<8000).map { "/key\($0)" }.joined(separator: ", ")
    try await withPolicy(Self.good) { folder, file in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket, ["--policy", file])
      defer { daemon.signal(SIGKILL) }
      let client = try RawClient(path: socket)
      try client.greet()
      Files.write(Array((Self.good + "  deny-write: [\(paths)]\n").utf8), to: file)
      async let reloaded = run(["--socket", socket, "--reload"])
      var longest = Duration.zero
      for number in 1...500 as ClosedRange<UInt64> {
        let start = ContinuousClock.now
        try client.send(.ping(number))
        while let message = try client.receive() {
          if case .pong(number, _) = message { break }
        }
        longest = max(longest, ContinuousClock.now - start)
        try await LoopClock().sleep(for: .milliseconds(2))
      }
      #expect(try await reloaded.ending == .exit(0))
      #expect(longest < .seconds(1), "\(longest)")
    }
  }
}
