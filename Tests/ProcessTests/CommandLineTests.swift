import Documents
import EventLoop
import Foundation
import LockstepClient
import Testing
import Values

/// The command line as its users see it: its output and its exit status.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct CommandLineTests {
  @Test func `a value is set, read, changed and removed`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      #expect(try await lockstep(socket, "set", "/a", #"{"n":1,"l":[1]}"#).status == .exit(0))
      #expect(try await lockstep(socket, "increment", "/a/n", "41").status == .exit(0))
      #expect(try await lockstep(socket, "increment", "/a/new").status == .exit(0))
      #expect(try await lockstep(socket, "append", "/a/l", "\"x\"").status == .exit(0))
      #expect(try await lockstep(socket, "merge", "/a", #"{"m":true}"#).status == .exit(0))
      let value = try await lockstep(socket, "get", "/a")
      #expect(value.lines == [#"{"l":[1,"x"],"m":true,"n":42,"new":1}"#])
      #expect(try await lockstep(socket, "get", "/a/l/1").lines == [#""x""#])
      #expect(try await lockstep(socket, "remove", "/a").status == .exit(0))
      #expect(try await lockstep(socket, "get", "").lines == ["{}"])
    }
  }

  @Test func `each kind of failure has its status and names the fault`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      let cases: [(arguments: [String], status: Int32, says: String)] = [
        (["get", "/absent"], 8, "\"absent\""), (["set", "/a/b/c", "1"], 1, "no member \"a\""),
        (["test", "", "7"], 10, "7"), (["test", "/absent", "7"], 10, "absent"),
        (["get", "absent"], 2, "'/absent'"),
        (["set", "/a", "{oops"], 2, "line 1, column 2"), (["lamps"], 2, "lamps"),
        (["send", #"{"incr":{}}"#], 2, "increment"),
        (["send", "set", "path=/x", "bogus=3"], 2, #"set carries no "bogus""#),
        (["send", "set", "/x", "{on: true}"], 2, "is not JSON: line 1, column 2"),
        (["send", "set", "/x", "99999999999999999999"], 2, "does not fit 64 bits"),
        (["send", "set", "/x", "007"], 2, "must not begin with 0"),
        (["--json", "replay", "x"], 2, "words"),
        (["patch", "/no/such/file"], 2, "/no/such/file"),
        (["watch", "--until", "/a=1", "--timeout", "0.1"], 5, "not done within 100 ms"),
        (["digest", "/absent"], 8, "no member \"absent\""), (["export", "-o"], 2, "-o"),
        (["help", "nope"], 2, "no command 'nope'"), (["-v"], 2, "--version"),
      ]
      for item in cases {
        let command = try ChildProcess(
          Binaries.commandLine, ["--socket", socket] + item.arguments)
        let status = try await command.end()
        #expect(status == .exit(item.status), "\(item.arguments): \(command.output)")
        #expect(
          command.output.joined(separator: "\n").contains(item.says),
          "\(item.arguments): \(command.output)")
      }
      let missing = try await lockstep(served.folder + "/none", "get", "")
      #expect(missing.status == .exit(3), "\(missing.lines)")
    }
  }

  @Test func `a command that times out says that the outcome is unknown`() async throws {
    try await withDaemon { served in
      served.daemon.signal(SIGSTOP)
      let late = try await lockstep(served.socket, "set", "/a", "1", "--timeout", "0.2")
      served.daemon.signal(SIGCONT)
      #expect(late.status == .exit(5))
      #expect(late.lines.joined().contains("whether it was done is unknown"), "\(late.lines)")
    }
  }

  @Test func `bytes that are not UTF-8 are refused, and nothing is stored`() async throws {
    try await withDaemon { served in
      let program = (Binaries.folder ?? ".") + "/lockstep"
      for script in [
        #"exec "$0" --socket "$1" set /a --text "$(printf 'x\377')""#,
        #"printf 'x\377' | "$0" --socket "$1" set /a --text -"#,
      ] {
        let command = try ChildProcess("/bin/sh", ["-c", script, program, served.socket])
        #expect(try await command.end() == .exit(2))
        #expect(command.output.joined().contains("not UTF-8"), "\(command.output)")
      }
      #expect(try await lockstep(served.socket, "get", "").lines == ["{}"])
    }
  }

  @Test func `a server with another protocol is reported as no Lockstep daemon`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let loop = try Loop.startThread(name: "web")
      defer { loop.stop() }
      try await withCheckedThrowingContinuation { continuation in
        loop.execute {
          continuation.resume(
            with: Result {
              _ = try Listener.bind(
                path: socket, mode: 0o600, backlog: 8, on: loop,
                onConnection: { _ = $0.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) })
            })
        }
      }
      let said = try await lockstep(socket, "get", "")
      #expect(said.status == .exit(3))
      #expect(said.lines.joined().contains("no Lockstep daemon"), "\(said.lines)")
    }
  }

  @Test func `watch prints every revision and ends with the daemon's goodbye`() async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try await startDaemon(socket)
      defer { daemon.signal(SIGKILL) }
      let watch = try ChildProcess(
        Binaries.commandLine, ["--socket", socket, "watch", "/n"])
      defer { watch.signal(SIGKILL) }
      // An absent value is an empty line.
      try await watch.line("")
      for number in 1...20 {
        let set = try await lockstep(socket, "set", "/n", "\(number)")
        #expect(set.status == .exit(0))
      }
      try await watch.line("20")
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
      #expect(try await watch.end() == .exit(4))
      #expect(watch.output.filter { Int($0) != nil } == (1...20).map(String.init))
    }
  }

  @Test func `watch shows what was and what is, at several paths, with who did it`() async throws {
    try await withDaemon { served in
      let start = #"{"lamps":{"hall":{"on":false,"n":1}},"doors":[],"x":0}"#
      #expect(try await lockstep(served.socket, "set", "", start).status == .exit(0))
      let watch = try ChildProcess(
        Binaries.commandLine,
        ["--socket", served.socket, "watch", "/lamps/*/on", "/doors", "--why", "--changes-only"])
      defer { watch.signal(SIGKILL) }
      // It follows when its subscriptions show among the clients'.
      try await eventually("it watches") {
        try await lockstep(served.socket, "--json", "clients").lines
          .contains { $0.contains(#""label":"lockstep watch""#) && $0.contains("/doors") }
      }
      for (path, value) in [
        ("/x", "1"), ("/lamps/hall/n", "2"), ("/lamps/hall/on", "true"), ("/doors/-", "7"),
        ("/lamps", #"{"attic":{"on":1}}"#),
      ] {
        let verb = path.hasSuffix("-") ? "insert" : "set"
        let done = try await lockstep(served.socket, verb, path, value)
        #expect(done.status == .exit(0), "\(done.lines)")
      }
      try await watch.line(with: "attic")
      let shown = watch.output.map { $0.firstMatch(of: #/"changes":(.*?),"revision":(\d+)/#) }
      #expect(
        shown.map { $0.map { "\($0.2) \($0.1)" } } == [
          #"4 [{"from":false,"path":"/lamps/hall/on","to":true}]"#,
          #"5 [{"path":"/doors/0","to":7}]"#,
          #"6 [{"path":"/lamps/attic/on","to":1},{"from":true,"path":"/lamps/hall/on"}]"#,
        ])
      for (line, action) in zip(watch.output, ["set", "insert", "set"]) {
        #expect(line.contains(#""action":"\#(action)""#), "\(line)")
        #expect(line.contains(#""label":"lockstep \#(action)""#), "\(line)")
      }
      for (path, rest) in [
        ("/b", ["--format", "patch"]), ("/*", ["--format", "state"]),
        ("/c", ["--why", "--reconnect"]), ("/a/*", ["--until", "/b=1"]),
      ] {
        let wrong = try await lockstep(served.socket, "watch", "/a/d", path, rest[0], rest[1])
        #expect(wrong.status == .exit(2), "\(path): \(wrong.lines)")
      }
      let until = try await lockstep(
        served.socket, "watch", "/x", "--format", "diff", "--until", "/x=1", "--timeout", "60")
      #expect(until.lines == [#"{"changes":[{"path":"/x","to":1}],"revision":6}"#])
      let latest = try await lockstep(
        served.socket, "watch", "/x", "/none", "--latest", "--count", "1", "--timeout", "60")
      #expect(latest.lines == until.lines)
      let rejected = try await lockstep(served.socket, "log", "--client", "lockstep insert")
      #expect(rejected.lines.count == 1)
    }
  }

  @Test func `a jump is followed by every mirror, undone, and done again`() async throws {
    try await withDaemon { served in
      try await eventually("there is a past") {
        try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
      }
      let mirror = try await served.mirror()
      for value in ["1", "2", "3"] {
        #expect(try await lockstep(served.socket, "set", "/x", value).status == .exit(0))
      }
      func check(_ arguments: String..., line: String, _ x: Value?) async throws {
        let done = try await lockstep(served.socket, arguments)
        #expect(done.lines == [line], "\(arguments)")
        let (own, theirs) = try await mirror.bothDigests()
        #expect(own == theirs && mirror.value("/x") == x, "\(arguments)")
      }
      try await check("jump", "1", line: #"{"of":1,"revision":4}"#, 1)
      try await check("undo", line: #"{"of":3,"revision":5}"#, 3)
      try await check("undo", "3", line: #"{"of":0,"revision":6}"#, nil)
      try await check("redo", "2", line: #"{"of":2,"revision":7}"#, 2)
      try await check(
        "redo", "3",
        line: "lockstep: there are not so many changes to redo: 2 have been undone since anything "
          + "else changed the state.", 2)
      try await check(
        "undo", "3",
        line: "lockstep: there are not so many changes to undo: the past begins with revision 0.",
        2)
      try await check("jump", "99", line: "lockstep: the newest revision is 7.", 2)
      let log = try await lockstep(served.socket, "log", "--action", "undo", "--action", "redo")
      #expect(log.lines.count == 3 && log.lines.allSatisfy { $0.contains("\"lockstep ") })
      #expect(mirror.connection.divergences == 0)
    }
  }

  @Test func `a daemon that is paused does no action until it is resumed`() async throws {
    try await withDaemon { served in
      #expect(try await lockstep(served.socket, "set", "/x", "1").status == .exit(0))
      let paused = try await lockstep(served.socket, "pause")
      #expect(paused.lines == [#"{"paused":true,"was":false}"#])
      let refused = try await lockstep(served.socket, "--json", "set", "/x", "2")
      #expect(refused.status == .exit(1) && refused.lines.count == 1, "\(refused)")
      #expect(refused.lines.first?.contains(#""code":"paused""#) == true, "\(refused)")
      #expect(try await lockstep(served.socket, "get", "/x").lines == ["1"])
      let status = try await lockstep(served.socket, "status").lines.first
      #expect(status?.contains(#"pausedMs":null"#) == false)
      let resumed = try await lockstep(served.socket, "resume")
      #expect(resumed.lines == [#"{"paused":false,"was":true}"#])
      #expect(try await lockstep(served.socket, "set", "/x", "2").status == .exit(0))
      // It goes on by itself.
      #expect(try await lockstep(served.socket, "pause", "--for", "1").status == .exit(0))
      try await eventually("it goes on") {
        try await lockstep(served.socket, "set", "/x", "3").status == .exit(0)
      }
    }
  }

  @Test func `the past is what stood there, and who changed it`() async throws {
    try await withDaemon { served in
      // The past begins with the first checkpoint, within a second or two.
      try await eventually("there is a past") {
        try await lockstep(served.socket, "get", "", "--at", "0").status == .exit(0)
      }
      for (path, value) in [
        ("/lamp", #"{"on":false,"n":[1,2]}"#), ("/x", "1"), ("/lamp/on", "true"), ("/x", "2"),
        ("/lamp/n/0", "5"),
      ] {
        let done = try await lockstep(served.socket, "set", path, value)
        #expect(done.status == .exit(0), "\(done.lines)")
      }
      #expect(try await lockstep(served.socket, "get", "/lamp/on", "--at", "2").lines == ["false"])
      #expect(try await lockstep(served.socket, "get", "/lamp/n/0", "--at", "5").lines == ["5"])
      let before = try await lockstep(served.socket, "get", "/lamp", "--at", "0")
      #expect(before.lines == ["lockstep: nothing stood at '/lamp' at revision 0."])
      #expect(before.status == .exit(8))
      let later = try await lockstep(served.socket, "get", "/lamp", "--at", "99")
      #expect(later.lines == ["lockstep: the newest revision is 5."])
      #expect(
        try await lockstep(served.socket, "diff", "1", "4").lines.sorted() == [
          #"{"from":false,"path":"/lamp/on","to":true}"#, #"{"path":"/x","to":2}"#,
        ])
      #expect(
        try await lockstep(served.socket, "diff", "4", "now", "/lamp").lines
          == [#"{"from":1,"path":"/lamp/n/0","to":5}"#])
      #expect(try await lockstep(served.socket, "diff", "5").lines == [])
      let history = try await lockstep(served.socket, "history", "/lamp", "--limit", "2").lines
      let shown = history.map { $0.firstMatch(of: #/"changes":(.*?),"revision":(\d+)/#) }
      #expect(
        shown.map { $0.map { "\($0.2) \($0.1)" } } == [
          #"3 [{"from":false,"path":"/lamp/on","to":true}]"#,
          #"5 [{"from":1,"path":"/lamp/n/0","to":5}]"#,
        ])
      #expect(history.allSatisfy { $0.contains(#""label":"lockstep set""#) })
      // Of a path below what the daemon tells of: an array is changed as a whole.
      for (path, value) in [("/lamp/n/1", "6"), ("/lamp/n/0", "7"), ("/lamp/n/0", "8")] {
        #expect(try await lockstep(served.socket, "set", path, value).status == .exit(0))
      }
      let below = try await lockstep(served.socket, "history", "/lamp/n/1", "--limit", "1").lines
      #expect(below.count == 1 && below[0].contains(#"{"from":2,"path":"/lamp/n/1","to":6}"#))
    }
  }

  @Test func `an export through a link replaces the file, and leaves the link`() async throws {
    try await withDaemon { served in
      let (link, file) = (served.folder + "/link", served.folder + "/file")
      try Data("old".utf8).write(to: URL(fileURLWithPath: file))
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "file")
      let exported = try await lockstep(served.socket, "export", link)
      #expect(exported.status == .exit(0), "\(exported.lines)")
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "file")
      #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("{}"))
      let names = try FileManager.default.contentsOfDirectory(atPath: served.folder)
      #expect(!names.contains { $0.hasSuffix(".new") }, "\(names)")
    }
  }

  @Test func `a value is set only where the expected one stands`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      #expect(try await lockstep(socket, "set", "/n", "1").status == .exit(0))
      // Numbers are compared by their value, and one may be negative.
      let cases: [(arguments: [String], status: Int32, says: String)] = [
        (["/n", "2", "--if", "1.0"], 0, "2"),
        (["/n", "3", "--if", "1"], 10, #"rejected: expected 1, found 2 (at /n)."#),
        (["/n", "-4", "--if", "2"], 0, "3"), (["/n", "5", "--if", "-4"], 0, "4"),
        (["/absent", "6", "--if", "5"], 10, #"no member "absent" (at /absent)."#),
        (["/n/deep", "6", "--if", "5"], 10, "no container"),
        (["/n", "6", "--if", "{"], 2, "not JSON"),
        (["/n", "-", "--if", "-"], 2, "only one of the two"),
        (["/n", "a", "--text", "--if", "5"], 10, #"expected "5", found 5"#),
      ]
      for item in cases {
        let command = try await lockstep(socket, ["set"] + item.arguments)
        let said = command.lines.joined(separator: "\n")
        #expect(command.status == .exit(item.status), "\(item.arguments): \(said)")
        #expect(
          said.contains(item.says) && !said.contains("transaction"), "\(item.arguments): \(said)")
      }
      #expect(try await lockstep(socket, "get", "").lines == [#"{"n":5}"#])
    }
  }

  @Test func `a JSON Patch is applied whole or not at all`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      let file = served.folder + "/patch.json"
      let patch = #"[{"op":"add","path":"/a","value":1},{"op":"test","path":"/a","value":2}]"#
      try Data(patch.utf8).write(to: URL(fileURLWithPath: file))
      let failed = try await lockstep(socket, "patch", file)
      #expect(failed.status == .exit(10), "\(failed.lines)")
      #expect(failed.lines.joined().contains("operation 1 (test): expected 2"), "\(failed.lines)")
      #expect(try await lockstep(socket, "get", "").lines == ["{}"])
      try Data(patch.replacing("\"value\":2", with: "\"value\":1").utf8)
        .write(to: URL(fileURLWithPath: file))
      #expect(try await lockstep(socket, "patch", file).status == .exit(0))
      #expect(try await lockstep(socket, "get", "").lines == [#"{"a":1}"#])
    }
  }

  @Test func `a document survives export and load, as JSON and as CBOR`() async throws {
    try await withDaemon { served in
      let socket = served.socket
      let document = #"{"big":18446744073709551615,"é":[1,1.0,-0.0,null,"\u0000"]}"#
      #expect(try await lockstep(socket, "set", "", document).status == .exit(0))
      let digest = try await lockstep(socket, "digest")
      #expect(digest.status == .exit(0))
      for form in ["json", "cbor"] {
        let file = served.folder + "/export.\(form)"
        let before = try await served.mirror().bothDigests().1
        #expect(
          try await lockstep(socket, "export", file, "--format", form).status == .exit(0))
        #expect(try await lockstep(socket, "set", "", "{}").status == .exit(0))
        let load = try await lockstep(socket, "load", file, "--format", form)
        #expect(load.status == .exit(0), "\(load.lines)")
        #expect(try await served.mirror().bothDigests().1 == before)
      }
    }
  }

  @Test func `clients, status, schema, limits and ping answer in JSON`() async throws {
    try await withDaemon { served in
      let mirror = try await served.mirror()
      for command in ["clients", "status", "schema", "limits"] {
        let done = try await lockstep(served.socket, command)
        #expect(done.status == .exit(0), "\(command): \(done.lines)")
        for line in done.lines { _ = try JSON.parse(Array(line.utf8)) }
        #expect(!done.lines.isEmpty)
      }
      let clients = try await lockstep(served.socket, "clients")
      let own = try clients.lines.map { try JSON.parse(Array($0.utf8)) }
        .first { $0["label"] == "test" }
      #expect(own?["pid"]?.number == Int64(getpid()))
      for name in [
        "uid", "position", "lagRevisions", "lagBytes", "lagMs", "joining", "scopes", "coalesced",
      ] {
        #expect(own?[name] != nil, "\(name)")
      }
      #expect(try await lockstep(served.socket, "ping").status == .exit(0))
      mirror.connection.close()
    }
  }
}
