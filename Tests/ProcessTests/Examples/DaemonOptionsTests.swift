import Foundation
import Testing

/// The options of every daemon built with `LockstepServer`, tested on the counter's.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct DaemonOptionsTests {
  @Test("2.2: a stub shows the given state, and records actions without performing them")
  func stub() async throws {
    let state = #"{"count": 7, "isLoading": false}"#
    try await withExample("counterd") { folder in
      let path = folder + "/state.json"
      try Data(state.utf8).write(to: URL(fileURLWithPath: path))
      return ["--stub", path]
    } _: { served in
      #expect(try await served.run("counter", "increment").lines == ["7"])
      #expect(try await served.lockstep("send", "decrement").status == .exit(0))
      let log = try await served.log()
      #expect(log.map { $0["action"] as? String } == ["increment", "decrement"])
      #expect(log.allSatisfy { $0["outcome"] as? String == "unchanged" })
    }
  }

  @Test func `a stub whose state does not fit its schema fails with the place of the fault`()
    async throws
  {
    try await withFolder { folder in
      let path = folder + "/state.json"
      try Data(#"{"count": "seven", "isLoading": false}"#.utf8)
        .write(to: URL(fileURLWithPath: path))
      let daemon = try ChildProcess(
        Binaries.example("counterd"), ["--socket", folder + "/socket", "--stub", path])
      #expect(try await daemon.end() == .exit(1))
      let said = daemon.output.joined(separator: " ")
      #expect(said.contains("count: expected an integer"), "\(said)")
    }
  }

  @Test func `a stub keeps nothing`() async throws {
    try await withFolder { folder in
      let path = folder + "/state.json"
      try Data(#"{"count": 7, "isLoading": false}"#.utf8).write(to: URL(fileURLWithPath: path))
      let stub = try ChildProcess(
        Binaries.example("counterd"), ["--socket", folder + "/socket", "--stub", path],
        environment: ["XDG_STATE_HOME": folder])
      defer { stub.signal(SIGKILL) }
      try await stub.line(with: "serving")
      #expect(!FileManager.default.fileExists(atPath: folder + "/lockstep"))
    }
  }

  @Test(arguments: [
    (["--stub", "/x", "--state-dir", "/y"], "leave out --state-dir"),
    (["--stub", "/x", "--durability", "sync"], "leave out --state-dir"),
    (["--stub", "/x", "--recover-to", "3"], "needs a state that is kept"),
    (["--durability", "none", "--recover-to", "3"], "needs a state that is kept"),
    (["--state-dir", ""], "--state-dir names no directory"),
    (["--limit", "window=0"], "window is at least 1, not 0"),
    (["--limit", "wndow=9"], "there is no limit \"wndow\""),
    (["--limit", "window=many"], "a whole number"), (["--limit", "window"], "a whole number"),
    (["--limit", "framebytes=1"], "Did you mean \"frameBytes\"?"),
    (["--limit", "nope=1"], "The names are: actionMemoryBytes, actionsPerSecond,"),
    (["--mode", "999"], "three octal digits"), (["--rate-limit", "0"], "at least 1"),
    (["--crash-report", "10001"], "at least 1 and at most 10000"),
    (["--recover-to", "x"], "a whole number"), (["--nope"], "Unknown option '--nope'."),
  ])
  func `invalid options are refused, with the reason`(
    arguments: [String], said: String
  ) async throws {
    let daemon = try ChildProcess(Binaries.example("counterd"), arguments)
    #expect(try await daemon.end() == .exit(2))
    #expect(daemon.output.joined(separator: " ").contains(said), "\(daemon.output)")
    #expect(daemon.output.first?.hasPrefix("counterd: ") == true, "\(daemon.output)")
  }

  @Test("RKT-19: a daemon may serve a part of its feature, and rejects other actions by name")
  func part() async throws {
    try await withExample("primetimed", arguments: { _ in ["--feature", "counter"] }) { served in
      #expect(try await served.lockstep("send", "counter.incrTapped").status == .exit(0))
      let refused = try await served.lockstep("send", "primeModal.saveFavoritePrimeTapped")
      #expect(refused.status != .exit(0))
      #expect(refused.lines.joined().contains("serves only counter"), "\(refused.lines)")
    }
  }

  @Test func `a part that the feature lacks cannot be served`() async throws {
    let daemon = try ChildProcess(Binaries.example("primetimed"), ["--feature", "conter"])
    #expect(try await daemon.end() == .exit(1))
    let said = daemon.output.joined()
    #expect(said.contains("there is no action") && said.contains("counter"), "\(said)")
  }

  @Test func `a user above the action rate is rejected`() async throws {
    try await withExample("counterd", arguments: { _ in ["--rate-limit", "3"] }) { served in
      var refused = 0
      for _ in 0..<8 where try await served.lockstep("send", "increment").status != .exit(0) {
        refused += 1
      }
      let log = try await served.log()
      let outcomes = log.compactMap { $0["outcome"] as? String }
      #expect(outcomes.count { $0.contains("more than 3 actions a second") } == refused)
      #expect(outcomes.count { $0 == "changed" } == 8 - refused)
      #expect(outcomes.prefix(3) == ["changed", "changed", "changed"])
    }
  }

  @Test func `metrics count actions by name and outcome, as OpenMetrics`() async throws {
    try await withExample("counterd", arguments: { _ in ["--metrics"] }) { served in
      for _ in 0..<3 { _ = try await served.lockstep("send", "increment") }
      let lines = try await served.lockstep("metrics").lines
      #expect(lines.contains(#"lockstep_actions_total{action="increment",outcome="changed"} 3"#))
      #expect(lines.contains("# TYPE lockstep_actions counter"))
      #expect(lines.contains("lockstep_revisions_total 3"))
      #expect(lines.last == "# EOF")
    }
  }

  @Test func `the log can be followed from its first action on`() async throws {
    try await withExample("counterd") { served in
      let log = try ChildProcess(
        Binaries.commandLine, ["--socket", served.socket, "log", "--follow"])
      defer { log.signal(SIGKILL) }
      for action in ["increment", "decrement"] {
        _ = try await served.lockstep("send", action)
        let line = try await log.line(with: #""action":"\#(action)""#)
        #expect(line.contains(#""outcome":"changed""#), "\(line)")
      }
    }
  }

  @Test func `actions are logged with their cause on request`() async throws {
    try await withExample("counterd", arguments: { _ in ["--log-actions"] }) { served in
      _ = try await served.lockstep("send", "increment")
      let line = try await served.daemon.line(with: "action increment")
      #expect(line.contains("outcome=changed"))
      #expect(line.contains("sequence=1"))
      #expect(line.contains("origin=\"client"))
    }
  }
}
