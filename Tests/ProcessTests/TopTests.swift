import Documents
import Foundation
import LockstepClient
import Testing
import Values

/// `lockstep top` as a person at a terminal sees it, and as a program reads it.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct TopTests {
  private func top(_ socket: String, _ arguments: String...) throws -> PseudoTerminal {
    try PseudoTerminal(
      Binaries.commandLine, ["--socket", socket, "top", "--interval", "0.1"] + arguments)
  }

  /// Whether a picture is one of a whole screen, with a title, the lists, and the keys at the end.
  private static func isWhole(_ picture: TerminalPicture) -> Bool {
    picture.isSecond && picture.lines.first?.contains(" pid ") == true
      && picture.line("CLIENTS ") != nil && picture.lines.last?.hasPrefix("q quit") == true
  }

  // MARK: The screen

  @Test func `the screen shows clients and actions with their rates, and keys change it`()
    async throws
  {
    try await withDaemon { served in
      let (hall, attic) = (try await served.client("hall"), try await served.client("attic"))
      let top = try top(served.socket)
      let before = top.firstAttributes
      let first = try await top.picture("both clients") {
        Self.isWhole($0) && $0.line("hall ") != nil && $0.line("attic ") != nil
      }
      #expect(!first.hasCursor && first.unknown.isEmpty && first.lines.count == 24)
      #expect(top.attributes != before, "keys come one by one, without echo")
      // One acts as fast as it can, the other now and then: the first is the first of the list.
      hall.write("increment /n 1000000")
      try await top.picture("how fast the hall acts") { picture in
        let (hall, attic) = (picture.line("hall "), picture.line("attic "))
        let rate = hall?.text.split(separator: " ").dropFirst(2).first ?? "-"
        return hall.map { $0.index < attic?.index ?? 0 } == true && !["-", "0"].contains(rate)
          && picture.line("increment ") != nil
      }
      // From the column of actions back over those of users and processes to the labels.
      top.press("<<<")
      try await top.picture("the attic first, by its label") { picture in
        picture.line("attic ").map { $0.index < picture.line("hall ")?.index ?? 0 } == true
      }
      top.press("r")
      try await top.picture("the hall first, in the other direction") { picture in
        picture.line("hall ").map { $0.index < picture.line("attic ")?.index ?? 0 } == true
      }
      top.press("/ATT")
      try await top.picture("the filter as it is typed") {
        $0.lines.last?.hasPrefix("/ATT_") == true && $0.line("hall ") == nil
          && $0.line("attic ") != nil
      }
      top.press("\u{1b}")
      try await top.picture("all again") { Self.isWhole($0) && $0.line("hall ") != nil }
      top.press("?")
      try await top.picture("the keys") { $0.line("KEYS") != nil && $0.line("hall ") == nil }
      top.press("x")
      top.resize(columns: 50, rows: 12)
      try await top.picture("the picture in a smaller window") { picture in
        picture.line("CLIENTS ") != nil && picture.lines.last?.hasPrefix("q quit") == true
      }
      top.press("q")
      let (ending, last) = try await top.end()
      #expect(ending == .exit(0) && !last.isSecond && last.hasCursor && last.wraps)
      #expect(last.unknown.isEmpty && top.attributes == before)
      attic.signal(SIGKILL)
      hall.signal(SIGKILL)
    }
  }

  private func bytesSentToTop(_ served: Served) async throws -> Int64 {
    let clients = try await lockstep(served.socket, "--json", "clients").values
    return clients.first { $0["label"] == "lockstep top" }?["bytesSent"]?.number ?? 0
  }

  @Test func `a screen that is frozen does not change until it goes on`() async throws {
    try await withDaemon { served in
      let top = try top(served.socket)
      try await top.picture("the screen", Self.isWhole)
      top.press(" ")
      let frozen = try await top.picture("that it is frozen") {
        $0.lines.first?.hasSuffix("frozen ") == true
      }
      let late = try await served.client("late")
      // It still looks: what it is sent grows by two looks at least.
      let start = try await bytesSentToTop(served)
      try await eventually("it has looked") { try await bytesSentToTop(served) > start + 5000 }
      top.press("?")
      try await top.picture("the keys") { $0.line("KEYS") != nil }
      top.press("x")
      let still = try await top.picture("what was frozen") { Self.isWhole($0) }
      #expect(still.lines == frozen.lines)
      top.press(" ")
      try await top.picture("the new client") { $0.line("late ") != nil }
      top.press("q")
      #expect(try await top.end().ending == .exit(0))
      late.signal(SIGKILL)
    }
  }

  @Test(arguments: [SIGTERM, SIGHUP, SIGINT, SIGQUIT])
  func `a signal ends it, and the terminal is as it was`(number: Int32) async throws {
    try await withDaemon { served in
      let top = try top(served.socket)
      let before = top.firstAttributes
      try await top.picture("the screen", Self.isWhole)
      #expect(top.attributes != before)
      // As a person sends it, where there is a key for it.
      if number == SIGINT { top.press("\u{3}") } else { top.signal(number) }
      let (ending, last) = try await top.end()
      #expect(ending == .signal(number) && !last.isSecond && last.hasCursor && last.wraps)
      #expect(top.attributes == before)
      #expect(!last.contains("lockstep"), "nothing is left on the screen: \(last.lines)")
    }
  }

  @Test func `while it is stopped the terminal is as it was, and then the screen is there again`()
    async throws
  {
    try await withDaemon { served in
      let top = try top(served.socket)
      let before = top.firstAttributes
      try await top.picture("the screen", Self.isWhole)
      // Otherwise the key throws away what waits to be shown, and a thread that waits for room to draw is
      // never woken: seen once in many runs, with a slow terminal.
      #expect(top.keepsOutput)
      top.press("\u{1a}")
      try await top.picture("the first screen") { !$0.isSecond && $0.hasCursor }
      try await eventually("it is stopped") {
        try String(contentsOfFile: "/proc/\(top.pid)/stat", encoding: .utf8).contains(") T ")
      }
      #expect(top.attributes == before)
      top.signal(SIGCONT)
      try await top.picture("the screen again", Self.isWhole)
      #expect(top.attributes != before)
      top.press("q")
      #expect(try await top.end().ending == .exit(0))
      #expect(top.attributes == before)
    }
  }

  @Test func `when the daemon is killed the screen is left first, and then said why`() async throws
  {
    try await withFolder { folder in
      let daemon = try await startDaemon(folder + "/socket")
      defer { daemon.signal(SIGKILL) }
      // It would look again in an hour only: the end of the connection is noticed without.
      let top = try PseudoTerminal(
        Binaries.commandLine, ["--socket", folder + "/socket", "top", "--interval", "3600"])
      let before = top.firstAttributes
      // The second look is soon, for its rates.
      try await top.picture("the second look") {
        Self.isWhole($0) && $0.line("Actions  0/s") != nil
      }
      try await daemon.kill()
      let (ending, last) = try await top.end()
      #expect(ending == .exit(4) && !last.isSecond && last.hasCursor && last.wraps)
      #expect(top.attributes == before)
      #expect(last.contains("lockstep: "), "\(last.lines)")
    }
  }

  @Test func `a command that times out leaves the screen before it says so`() async throws {
    try await withDaemon { served in
      let top = try top(served.socket, "--timeout", "0.5")
      let before = top.firstAttributes
      let (ending, last) = try await top.end()
      #expect(ending == .exit(5) && !last.isSecond && last.hasCursor)
      #expect(top.attributes == before)
      #expect(last.contains("lockstep: not done within 500 ms (--timeout)."), "\(last.lines)")
    }
  }

  @Test func `a daemon that does not answer is said, and keys still work`() async throws {
    try await withDaemon { served in
      let top = try top(served.socket)
      try await top.picture("the screen", Self.isWhole)
      served.daemon.signal(SIGSTOP)
      defer { served.daemon.signal(SIGCONT) }
      try await top.picture("that there is no answer") {
        $0.lines.first?.contains("no answer for ") == true
      }
      top.press("?")
      try await top.picture("the keys") { $0.line("KEYS") != nil }
      top.press("q")
      #expect(try await top.end().ending == .exit(0))
    }
  }

  @Test func `a label cannot do anything to the terminal`() async throws {
    try await withDaemon { served in
      let client = try ChildProcess(
        Binaries.client, [served.socket, "red\u{9b}2J\u{1b}[2J"])
      try await client.line("live")
      let top = try top(served.socket)
      let picture = try await top.picture("the label, escaped") { $0.contains(#"red\u009b2J"#) }
      #expect(picture.unknown.isEmpty)
      top.press("q")
      #expect(try await top.end().ending == .exit(0))
      client.signal(SIGKILL)
    }
  }

  // MARK: Rights

  @Test func `what the policy denies is said in its place, and the rest is shown`() async throws {
    try await withFolder { folder in
      let file = folder + "/policy.yaml"
      let policy = """
        version: 1
        rules:
          - users: [\(getuid())]
            connect: true
            read: [/]
        """
      try policy.write(toFile: file, atomically: true, encoding: .utf8)
      let daemon = try await startDaemon(folder + "/socket", ["--policy", file])
      defer { daemon.signal(SIGKILL) }
      let top = try top(folder + "/socket")
      let picture = try await top.picture("the lists, that are denied") {
        $0.lines.count { $0.hasPrefix("the daemon's policy does not let you see this") } == 3
      }
      #expect(picture.line("Clients  1 ") != nil && picture.line("Durable ") != nil)
      top.press("q")
      #expect(try await top.end().ending == .exit(0))
      let line = try await lockstep(folder + "/socket", "top", "--json", "--count", "1")
      #expect(line.status == .exit(0))
      #expect(line.values.first?["clients"] == .null && line.values.first?["effects"] == .null)
      #expect(line.values.first?["status"]?["clients"]?.number == 1)
    }
  }

  // MARK: Without a terminal

  @Test func `without a terminal it is plain text, one screen for each look`() async throws {
    try await withDaemon { served in
      let hall = try await served.client("hall")
      let done = try await lockstep(
        served.socket, "top", "--count", "2", "--interval", "0.2", "--filter", "hall")
      #expect(done.status == .exit(0))
      #expect(!done.lines.joined().unicodeScalars.contains { $0.value < 0x20 })
      #expect(done.lines.count { $0.contains(" pid \(served.daemon.pid)") } == 2)
      let rows = done.lines.filter { $0.hasPrefix("hall ") }
      // The first look has no rates.
      #expect(rows.count == 2 && rows[0].contains(" - ") && rows[1].contains(" 0 "), "\(rows)")
      #expect(done.lines.allSatisfy { $0.count <= 80 })
      hall.signal(SIGKILL)
    }
  }

  @Test func `with --json each look is an object a line, also on a terminal`() async throws {
    try await withDaemon { served in
      let hall = try await served.client("hall")
      hall.write("increment /n 3")
      try await hall.line("done")
      let done = try await lockstep(
        served.socket, "--json", "top", "--count", "2", "--interval", "0.2")
      #expect(done.status == .exit(0) && done.lines.count == 2 && done.values.count == 2)
      let (first, second) = (try #require(done.values.first), try #require(done.values.last))
      #expect(first["perSecond"]?["actions"] == .null && first["seconds"] == .null)
      #expect(second["perSecond"]?["actions"] == .double(0))
      guard case .double(let seconds)? = second["seconds"] else {
        Issue.record("no time: \(second)")
        return
      }
      #expect(seconds > 0.05 && seconds < 30, "of an interval of 0.2")
      #expect(first["actions"]?.elements.first?["action"] == "increment")
      #expect(first["actions"]?.elements.first?["count"]?.number == 3)
      let clients = second["clients"]?.elements ?? []
      #expect(clients.count == 2 && clients.count { $0["own"] == .bool(true) } == 1)
      let row = clients.first { $0["label"] == "hall" }
      #expect(row?["actions"]?.number == 3 && row?["actionsPerSecond"] == .double(0))
      #expect(second["status"]?["pid"]?.number == Int64(served.daemon.pid))
      let resident = second["memory"]?["residentBytes"]?.number ?? 0
      #expect(resident > 1_000_000, "of the daemon's process: \(resident)")
      let terminal = try top(served.socket, "--json", "--count", "1")
      let (ending, last) = try await terminal.end()
      #expect(ending == .exit(0) && last.contains(#""perSecond""#))
      hall.signal(SIGKILL)
    }
  }

  @Test func `it ends with its reader, and with the daemon's goodbye`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let pipe = try ChildProcess(
        "/bin/sh",
        ["-c", #""$0" --socket "$1" top --interval 0.1 | head -1"#, Binaries.commandLine, socket])
      #expect(try await pipe.end() == .exit(0) && pipe.output.count == 1)
      let top = try ChildProcess(
        Binaries.commandLine, ["--socket", socket, "top", "--interval", "0.1"])
      defer { top.signal(SIGKILL) }
      try await top.line("CLIENTS")
      daemon.signal(SIGTERM)
      #expect(try await top.end() == .exit(4))
      #expect(top.output.last?.hasPrefix("lockstep: the daemon said goodbye") == true)
    }
  }

  @Test func `an interval that is too short, and a column that is none, are explained`()
    async throws
  {
    for (arguments, says) in [
      (["--interval", "0.05"], "at least 0.1"), (["--sort", "colour"], "lag"),
      (["--count", "0"], "at least 1"), (["--list", "x"], "effects"),
    ] {
      let wrong = try ChildProcess(Binaries.commandLine, ["top"] + arguments)
      #expect(try await wrong.end() == .exit(2))
      #expect(wrong.output.joined(separator: " ").contains(says), "\(wrong.output)")
    }
  }
}
