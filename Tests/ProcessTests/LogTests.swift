import EventLoop
import Glibc
import Journal
import Records
import Testing

/// The log of actions, with what each changed.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct LogTests {
  /// What a line of the log says: the action, and the changes, if there are any.
  private func told(_ line: String) -> String {
    let action = line.firstMatch(of: #/"action":"(.*?)"/#).map { "\($0.1)" } ?? line
    let changes = line.firstMatch(of: #/"changes":(null|\[.*?\]),"label"/#).map { " \($0.1)" }
    return action + (changes ?? "")
  }

  @Test func `the log shows what each action changed, from the first on`() async throws {
    try await withDaemon { served in
      func done(_ arguments: String...) async throws {
        let done = try await lockstep(served.socket, arguments)
        #expect(done.status == .exit(0), "\(done.lines)")
      }
      // At once: before the daemon has looked at its state for the first time.
      try await done("set", "", #"{"lamps":{"hall":false},"doors":[1,2]}"#)
      try await done("set", "/lamps/hall", "true")
      try await done("remove", "/doors/0")
      _ = try await lockstep(served.socket, "test", "/lamps/hall", "false")
      try await eventually("there is a past") {
        try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
      }
      try await done("undo", "2")
      #expect(
        try await lockstep(served.socket, "log", "--changes").lines.map(told) == [
          #"set [{"path":"/doors","to":[1,2]},{"path":"/lamps","to":{"hall":false}}]"#,
          #"set [{"from":false,"path":"/lamps/hall","to":true}]"#,
          #"remove [{"from":1,"path":"/doors/0"}]"#,
          "test",
          #"undo.1 [{"path":"/doors/0","to":1},{"from":true,"path":"/lamps/hall","to":false}]"#,
        ])
      #expect(
        try await lockstep(served.socket, "log", "--path", "/doors/0").lines.map(told) == [
          #"set [{"path":"/doors/0","to":1}]"#,
          #"remove [{"from":1,"path":"/doors/0","to":2}]"#,
          #"undo.1 [{"from":2,"path":"/doors/0","to":1}]"#,
        ])
      #expect(
        try await lockstep(
          served.socket, "log", "--path", "/lamps/hall", "--path", "/lamps", "--limit", "1"
        ).lines.map(told) == [#"undo.1 [{"from":true,"path":"/lamps/hall","to":false}]"#])
      #expect(try await lockstep(served.socket, "log", "--path", "/none").lines == [])
      #expect(try await lockstep(served.socket, "log").lines.map(told).contains("remove"))
      let wrong = try await lockstep(served.socket, "log", "--path", "lamps")
      #expect(wrong.status == .exit(2), "\(wrong.lines)")
    }
  }

  @Test func `who follows the log of a path sees what changes there, and nothing else`()
    async throws
  {
    try await withDaemon { served in
      try await eventually("there is a past") {
        try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
      }
      let log = try ChildProcess(
        Binaries.commandLine,
        ["--socket", served.socket, "log", "--follow", "--path", "/a"])
      defer { log.signal(SIGKILL) }
      for number in 1...30 {
        for path in ["/a", "/b"] {
          #expect(try await lockstep(served.socket, "set", path, "\(number)").status == .exit(0))
        }
      }
      try await log.line(with: #""to":30}"#)
      let told = log.output.map(told)
      #expect(
        told == [#"set [{"path":"/a","to":1}]"#]
          + (2...30).map { #"set [{"from":\#($0 - 1),"path":"/a","to":\#($0)}]"# })
      served.daemon.signal(SIGTERM)
      #expect(try await log.end() == .exit(4))
    }
  }

  @Test func `where there is no past, the log says so, and shows the actions`() async throws {
    try await withDaemon(["--limit", "historyBytes=64"]) { served in
      let text = "\"\(String(repeating: "x", count: 200))\""
      for _ in 1...2 {
        #expect(try await lockstep(served.socket, "set", "/t", text).status == .exit(0))
      }
      let log = try await lockstep(served.socket, "log", "--changes")
      #expect(log.status == .exit(0) && log.lines.count == 3, "\(log.lines)")
      #expect(log.lines.contains { $0.contains("is not known: there is no past yet") })
      let filtered = try await lockstep(served.socket, "log", "--path", "/t")
      #expect(filtered.status == .exit(8), "\(filtered.lines)")
    }
  }

  @Test func `what the journal's snapshot has replaced is still in the log of the next process`()
    async throws
  {
    try await withHome { home in
      let arguments = ["--limit", "journalBytes=0", "--limit", "logEntries=30"]
      var daemon = try await home.start(arguments)
      var before: [String] = []
      for start in 1...3 {
        for number in 1...12 {
          let done = try await home.lockstep("set", "/n", "\(100 * start + number)", "--durable")
          #expect(done.status == .exit(0))
        }
        before = try await home.lockstep("log").lines
        try await eventually("a snapshot has replaced some of it") {
          (try JournalReader(reading: home.state).contents().snapshot?.revision ?? 0)
            > UInt64(12 * start - 8)
        }
        #expect(try await home.lockstep("log").lines == before)
        try await daemon.stop()
        daemon = try await home.start(arguments)
        let log = try await home.lockstep("log")
        #expect(log.lines == before && log.lines.count == min(30, 12 * start), "\(log.lines)")
      }
      #expect(
        before.first?.contains(#""payload":{"set":{"path":"/n","value":107}}"#) == true, "\(before)"
      )
      let checked = try await home.lockstep("fsck", home.state)
      #expect(checked.status == .exit(0), "\(checked.lines)")
      try await daemon.stop()
    }
  }

  @Test func `an action of a former process is in the log, as far as the journal goes back`()
    async throws
  {
    try await withHome { home in
      let first = try await home.start()
      for _ in 1...2 {
        #expect(try await home.lockstep("increment", "/n", "--durable").status == .exit(0))
      }
      let before = try await home.lockstep("log")
      #expect(before.lines.count == 2)
      try await first.stop()
      let second = try await home.start()
      #expect(try await home.lockstep("log").lines == before.lines)
      let why = try await home.lockstep("why", "2")
      #expect(why.status == .exit(0) && why.lines == [before.lines.last ?? ""])
      #expect(try await home.lockstep("get", "/n", "--at", "1").lines == ["1"])
      #expect(try await home.lockstep("history", "/n").lines.count == 2)
      #expect(try await home.lockstep("undo").status == .exit(0))
      #expect(try await home.lockstep("get", "/n").lines == ["1"])
      let newer = try await home.lockstep("why", "9")
      #expect(newer.status == .exit(8))
      let said = newer.lines.joined()
      #expect(said.contains("the log has no action 9: it has 1 to 3"), "\(said)")
      #expect(said.contains("'lockstep journal \(home.state)'"), "\(said)")
      try await second.stop()
    }
  }

  // MARK: At a terminal

  @Test func `at a terminal, each action of the log is followed by what it changed`() async throws {
    try await withDaemon { served in
      for value in [#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#, #"{"a":2,"b":2,"c":3,"d":4,"e":5}"#] {
        #expect(try await lockstep(served.socket, "set", "", value).status == .exit(0))
      }
      _ = try await lockstep(served.socket, "test", "/a", "9")
      try await eventually("there is a past") {
        try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
      }
      let log = try await atTerminal(served.socket, columns: 80, "log")
      #expect(log.count == 8, "\(log)")
      #expect(
        log.dropFirst().prefix(4) == [
          "    + /a  1", "    + /b  2", "    + /c  3", "    … and 2 more",
        ], "\(log)")
      #expect(log.dropFirst(6).first == "    ~ /a  1 → 2", "\(log)")
      let all = try await atTerminal(served.socket, columns: 80, "log --changes")
      #expect(all.count == 9, "\(all)")
      let none = try await atTerminal(served.socket, columns: 80, "log --no-changes")
      #expect(none.count == 3, "\(none)")
    }
  }

  /// Where nobody asked for it, and it is not known, there is no word on it.
  @Test func `at a terminal, the log of a daemon without a past is that of the actions`()
    async throws
  {
    try await withDaemon(["--limit", "historyBytes=64"]) { served in
      let text = "\"\(String(repeating: "x", count: 200))\""
      for path in ["/a", "/b"] {
        #expect(try await lockstep(served.socket, "set", path, text).status == .exit(0))
      }
      let log = try await atTerminal(served.socket, columns: 80, "log")
      #expect(log.count == 2 && log.allSatisfy { $0.contains("set") }, "\(log)")
    }
  }
}
