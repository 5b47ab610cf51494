import Documents
import EventLoop
import Foundation
import LockstepClient
import Testing
import Values

/// The errors and reports of the programs: they tell people what to do.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct MessagesTests {
  // MARK: Absent paths

  @Test func `every command's error for an absent path says how far the path exists`() async throws
  {
    try await withDaemon { served in
      let document = #"{"lamp":{"level":1},"a":{"b":[1,2,3]},"n":5}"#
      #expect(try await lockstep(served.socket, "set", "", document).status == .exit(0))
      for (path, says) in [
        ("/lmap", #"the document has no member "lmap"; it has "a", "lamp", "n"."#),
        ("/lamps", #"it has "a", "lamp", "n". Did you mean "lamp"?"#),
        ("/lamp/levle/x", #"the object at /lamp has no member "levle"; it has "level"."#),
        ("/a/b/3", "the array at /a/b has 3 elements; there is no index 3."),
        ("/a/b/x", #"the array at /a/b has 3 elements, and "x" is no index of one."#),
        ("/a/b/-1", #"the array at /a/b has 3 elements, and "-1" is no index of one."#),
        ("/n/x", "the number at /n has no parts, so there is no /n/x."),
      ] {
        for command in ["get", "keys", "digest"] {
          let done = try await lockstep(served.socket, command, path)
          #expect(done.status == .exit(8), "\(command) \(path): \(done.lines)")
          #expect(done.lines.joined().contains(says), "\(command) \(path): \(done.lines)")
        }
        let watch = try await atTerminal(served.socket, columns: 80, "watch \(path) --count 1")
        #expect(watch.first?.hasPrefix("lockstep: waiting for '\(path)': ") == true, "\(watch)")
        #expect(watch.first?.contains(says) == true, "\(watch)")
      }
      let inside = try await lockstep(served.socket, "digest", "/a/b/1")
      #expect(inside.lines.joined().contains("compare '/a/b'"), "\(inside.lines)")
    }
  }

  @Test func `an error message does not need a large document to be sent`() async throws {
    try await withDaemon { served in
      let mirror = try await served.mirror(of: ["none"])
      let text = Value.text(String(repeating: "x", count: 1 << 20))
      for number in 0..<8 {
        try await mirror.send(DocumentAction.set([.text("k\(number)")], text))
      }
      let done = try await lockstep(served.socket, "get", "/k")
      #expect(done.lines == ["lockstep: nothing stands at '/k'."])
      mirror.connection.close()
    }
  }

  @Test func `keys lists the members directly at a path`() async throws {
    try await withDaemon { served in
      let put = try await lockstep(served.socket, "put", "", #"{"b":[7],"a":{"c":1}}"#)
      #expect(put.status == .exit(0), "\(put.lines)")
      #expect(try await lockstep(served.socket, "keys").lines == [#""a""#, #""b""#])
      #expect(try await lockstep(served.socket, "keys", "/b").lines == [#""0""#])
      #expect(try await lockstep(served.socket, "keys", "/b/0").status == .exit(8))
      #expect(try await lockstep(served.socket, "rm", "/a").status == .exit(0))
      #expect(try await atTerminal(served.socket, columns: 80, "keys") == ["b"])
    }
  }

  @Test func `ls lists what is under a path, without values`() async throws {
    try await withDaemon { served in
      let put = try await lockstep(served.socket, "put", "", #"{"b":[7],"a":{"c":"hush"}}"#)
      #expect(put.status == .exit(0), "\(put.lines)")
      let rows = try await lockstep(served.socket, "ls", "--depth", "2").lines
      #expect(
        rows == [
          #"{"bytes":8,"changed":1,"count":1,"kind":"object","path":"/a"}"#,
          #"{"bytes":5,"changed":1,"count":null,"kind":"string","path":"/a/c"}"#,
          #"{"bytes":2,"changed":1,"count":1,"kind":"array","path":"/b"}"#,
        ])
      #expect(
        try await lockstep(served.socket, "ls", "/b").lines
          == [#"{"bytes":2,"changed":1,"count":1,"kind":"array","path":"/b"}"#])
      #expect(
        try await atTerminal(served.socket, columns: 80, "ls --depth 2") == [
          "KIND    COUNT  BYTES  CHANGED  NAME", "object      1      8        1  a",
          "string      -      5        1    c", "array       1      2        1  b",
        ])
      let absent = try await lockstep(served.socket, "ls", "/none")
      #expect(absent.lines == ["lockstep: there is nothing at /none."])
      #expect(absent.status == .exit(8))
      let inside = try await lockstep(served.socket, "ls", "/b/0")
      #expect(inside.lines.joined().contains("an array, whose elements are not listed"))
      #expect(inside.status == .exit(8))
      let wrong = try await lockstep(served.socket, "ls", "/a", "--after", "/b")
      #expect(wrong.status == .exit(2), "\(wrong)")
      #expect(wrong.lines.joined().contains("--after names '/b', which is not under '/a'"))
    }
  }

  @Test func `ls lists thirty thousand in pages, all of them or as many as are wanted`()
    async throws
  {
    try await withDaemon { served in
      let mirror = try await served.mirror(of: ["none"])
      var entries = TrieMap<String, Value>()
      for number in 0..<30_000 { entries.updateValue(.integer(1), forKey: "k\(number)") }
      try await mirror.send(DocumentAction.set(["m"], .object(entries)))
      mirror.connection.close()
      let all = try await lockstep(served.socket, "ls", "/m", "--all")
      #expect(all.lines.count == 30_000 && Set(all.lines).count == 30_000)
      let first = try await lockstep(served.socket, "ls", "/m", "--limit", "2")
      #expect(first.lines.filter { $0.contains(#""path""#) } == Array(all.lines[..<2]))
      let next = #"there is more: go on with --after '/m/k1', or see --all."#
      #expect(first.lines.contains { $0.contains(next) }, "\(first.lines)")
      let rest = try await lockstep(served.socket, "ls", "/m", "--after", "/m/k1", "--limit", "2")
      #expect(rest.lines.filter { $0.contains(#""path""#) } == Array(all.lines[2..<4]))
    }
  }

  // MARK: Actions that cannot be done

  @Test func `a missing container is named, with the command that makes it`() async throws {
    try await withDaemon { served in
      #expect(try await lockstep(served.socket, "set", "", #"{"lamp":{}}"#).status == .exit(0))
      let value = #"{"it's":[null,1]}"#
      for arguments in [
        ["set", "/deep/x/y", value], ["insert", "/lamp/a b/c", "1"], ["increment", "/n/m/k"],
        ["append", "/lamp/queue/jobs", #""job""#],
      ] {
        let done = try await lockstep(served.socket, arguments)
        #expect(done.status == .exit(1), "\(arguments): \(done.lines)")
        let said = done.lines.joined()
        let advice = try #require(
          said.firstMatch(of: #/ (lockstep --.*) makes the objects/#), "\(said)")
        let merge = try ChildProcess(
          "/bin/sh", ["-c", "lockstep() { \"$0\" \"$@\"; }; \(advice.1)", Binaries.commandLine])
        #expect(try await merge.end() == .exit(0), "\(advice.1): \(merge.output)")
      }
      #expect(
        try await lockstep(served.socket, "get").lines == [
          #"{"deep":{"x":{"y":{"it's":[null,1]}}},"lamp":{"a b":{"c":1},"queue":{"jobs":["job"]}}"#
            + #","n":{"m":{"k":1}}}"#
        ])
    }
  }

  @Test func `no command is advised that would fail`() async throws {
    try await withDaemon { served in
      let document = #"{"lamp":{"on":true},"list":[1]}"#
      #expect(try await lockstep(served.socket, "set", "", document).status == .exit(0))
      for (arguments, says) in [
        (["set", "/lamps/on", "false"], #"it has "lamp", "list". Did you mean "lamp"?"#),
        (["remove", "/lamp/of"], #"the object at /lamp has no member "of"; it has "on"."#),
        (["set", "/new/x", #"{"a":null}"#], #"no member "new"; it has "lamp", "list"."#),
        (["set", "/new/0/x", "1"], #"no member "new"; it has "lamp", "list"."#),
        (["set", "/list/7", "1"], "has 1 element; there is no index 7"),
        (["set", "/lamp/on/x", "1"], "is no container"),
      ] {
        let done = try await lockstep(served.socket, arguments)
        #expect(done.status == .exit(1), "\(arguments): \(done.lines)")
        #expect(done.lines.joined().contains(says), "\(arguments): \(done.lines)")
        #expect(!done.lines.joined().contains("merge"), "\(arguments): \(done.lines)")
      }
    }
  }

  @Test func `a value that must be written otherwise is explained`() async throws {
    try await withDaemon { served in
      let large = try await lockstep(served.socket, "set", "/n", "18446744073709551616")
      #expect(large.lines.joined().contains("write 18446744073709551616.0, a double"))
      #expect(
        try await lockstep(served.socket, "set", "/n", "18446744073709551616.0").status == .exit(0))
      let rule = "of which an object counts one and an array two"
      for (count, status) in [(51, 1), (129, 2)] as [(Int, Int32)] {
        let deep = String(repeating: "[", count: count) + String(repeating: "]", count: count)
        let done = try await lockstep(served.socket, "set", "/n", deep)
        #expect(done.status == .exit(status) && done.lines.joined().contains(rule), "\(done.lines)")
      }
      #expect(
        try await lockstep(served.socket, "set", "/a", #"{"b":[1,2,{"c":3}]}"#).status == .exit(0))
      let test = try await lockstep(served.socket, "test", "/a", #"{"b":[1,2,{"c":4}]}"#)
      #expect(test.status == .exit(10))
      #expect(
        test.lines == [
          "lockstep: rejected: the first difference is at /a/b/2/c: expected 4, found 3 (at /a)."
        ])
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can start processes of other users"))
  func `a denied client learns the right that it lacks, and who grants it`() async throws {
    try await withFolder { folder in
      let policy = folder + "/policy.yaml"
      let rules = """
        version: 1
        rules:
          - users: [0]
            administer: true
          - everyone: true
            connect: true
            read: [/]
            deny-read: [/secret]
            act: ["*"]
            deny-act: [remove]
        """
      try Data(rules.utf8).write(to: URL(filePath: policy))
      let daemon = try await startDaemon(folder + "/s", ["--policy", policy])
      defer { daemon.signal(SIGKILL) }
      chmod(folder, 0o711)
      let giver = "Its policy file gives rights ('lockstepd --policy', see lockstepd.service(8))"
      for (arguments, right, rule) in [
        (["get", "/secret"], "gives you no right to read '/secret'", nil),
        (["watch", "/secret"], "gives you no right to read '/secret'", nil),
        (["set", "/secret/x", "1"], "set needs the right to read /secret/x", "deny-read /secret"),
        (["remove", "/a"], "you may not send remove", "deny-act remove"),
      ] as [([String], String, String?)] {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", Binaries.commandLine]
        let other = try ChildProcess(
          "/usr/bin/setpriv", user + ["--socket", folder + "/s"] + arguments)
        #expect(try await other.end() == .exit(9), "\(other.output)")
        let said = other.output.joined()
        #expect(said.contains(right) && said.contains(giver), "\(said)")
        let root = try await lockstep(folder + "/s", arguments)
        #expect(root.status == .exit(9), "\(root.lines)")
        // An administrator learns the rule; for a hidden path it is in the log.
        guard let rule else { continue }
        #expect(
          root.lines.joined().contains("\(rule) of the rule at \(policy):5"), "\(root.lines)")
      }
      daemon.signal(SIGTERM)
      try await daemon.end()
    }
  }

  // MARK: Journals

  @Test func `a daemon without a journal says that it lacks one`() async throws {
    try await withDaemon { served in
      let done = try await lockstep(served.socket, "set", "/a", "1", "--durable")
      #expect(done.status == .exit(6))
      #expect(done.lines.last?.contains("it has no state directory ('--state-dir')") == true)
    }
    try await withHome { home in
      let daemon = try await home.start(["--durability", "async"])
      let done = try await home.lockstep("set", "/a", "1", "--durable")
      #expect(
        done.lines.last?.contains("it runs with '--durability async'") == true, "\(done.lines)")
      try await daemon.stop()
    }
  }

  @Test func `the advice for a file that is no journal is not to move it away`() async throws {
    let done = try await lockstep("/tmp/none", "journal", "/etc/passwd")
    #expect(done.status == .exit(2))
    #expect(done.lines.joined().contains("Name a journal"), "\(done.lines)")
    #expect(!done.lines.joined().contains("Move"), "\(done.lines)")
  }

  @Test func `every command and option that a message names is one`() async throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Sources")
    var helps: [String: String] = [:]
    /// What the help of a command says; without one, of the program.
    func help(_ words: [String]) async throws -> String {
      if let known = helps[words.joined(separator: " ")] { return known }
      let program = words[0] == "lockstepd" ? Binaries.daemon : Binaries.commandLine
      let process = try ChildProcess(program, words.dropFirst() + ["--help"])
      #expect(try await process.end() == .exit(0), "\(words)")
      helps[words.joined(separator: " ")] = process.output.joined(separator: "\n")
      return process.output.joined(separator: "\n")
    }
    let named = /['`](lockstepd?)(?: ([a-z]+))?((?: --[a-z-]+)*)/
    var count = 0
    for folder in ["Client/CommandLineTool", "Daemon/LockstepServer", "System"] {
      let files = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
      while let name = files?.nextObject() as? String {
        guard name.hasSuffix(".swift") else { continue }
        let text = try String(
          contentsOf: root.appending(path: "\(folder)/\(name)"), encoding: .utf8)
        for line in text.split(separator: "\n") where line.contains("\"") && !line.contains("///") {
          for match in line.matches(of: named) {
            let words = [String(match.1)] + (match.2.map { [String($0)] } ?? [])
            let help = try await help(words)
            for option in match.3.split(separator: " ") {
              #expect(help.contains(option), "\(name): \(match.0)")
            }
            count += 1
          }
        }
      }
    }
    #expect(count > 20, "messages name commands")
  }

  // MARK: Help

  @Test func `every field of a report is explained in its command's help`() async throws {
    try await withHome { home in
      let daemon = try await home.start(["--limit", "subscriptions=1"])
      let mirror = try await home.mirror()
      try await mirror.send(DocumentAction.set(["a"], 1))
      for arguments in [["status"], ["clients"], ["clients", "--closed"], ["log"]] {
        let help = try await home.lockstep("help", arguments[0]).lines
        let rows = try await home.lockstep(arguments).values
        guard case .object(let members)? = rows.first else {
          Issue.record("\(arguments): \(rows)")
          continue
        }
        for name in members.map(\.key) {
          #expect(help.contains { $0.hasPrefix("  \(name)  ") }, "\(arguments): \(name)")
        }
      }
      mirror.connection.close()
      try await daemon.stop()
    }
  }

  @Test func `every field of an effect is explained in the help of effects`() async throws {
    try await withExample("counterd") { _ in
      ["--facts-command", "/bin/sleep"]
    } _: { example in
      // The count is the number of seconds that the command takes.
      for _ in 0..<9 { _ = try await example.lockstep("send", "increment") }
      var line = ""
      try await eventually("the effect runs") {
        _ = try await example.lockstep("send", "numberFactButtonTapped")
        line = try await example.lockstep("effects").lines.first ?? ""
        return !line.isEmpty
      }
      guard case .object(let members) = try JSON.parse(line) else {
        throw ChildProcess.Failure(description: line)
      }
      let help = try await example.lockstep("help", "effects").lines
      for name in members.map(\.key) {
        #expect(help.contains { $0.hasPrefix("  \(name)  ") }, "\(name)")
      }
    }
  }

  @Test(arguments: [
    (["--socket", "RE"], ["README.md"]), (["--json", "ge"], ["get"]),
    (["--socket", "x", "ge"], ["get"]), (["--lab"], ["--label"]),
    (["watch", "--format", "pa"], ["patch"]), (["journal", "READ"], ["README.md"]),
  ])
  func `bash completes files, commands and values, after global options too`(
    words: [String], completions: [String]
  ) async throws {
    try await withFolder { folder in
      try Data().write(to: URL(filePath: folder + "/README.md"))
      let script = #"""
        cd "$1" && source <("$0" --generate-completion-script bash)
        shift
        COMP_WORDS=(lockstep "$@") COMP_CWORD=$# COMP_LINE="lockstep $*" COMP_POINT=1000
        [[ $(complete -p lockstep) =~ -F\ ([^\ ]+) ]]
        "${BASH_REMATCH[1]}" lockstep "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}" 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}"
        """#
      let bash = try ChildProcess(
        "/bin/bash", ["-c", script, Binaries.commandLine, folder] + words)
      try await bash.end()
      #expect(bash.output == completions)
    }
  }

  @Test func `bash completes what the daemon has`() async throws {
    try await withDaemon { served in
      let start = #"{"lamps":{"hall":{"on":true},"attic":1,"hatch~/":[]},"list":[],"lost":{}}"#
      #expect(try await lockstep(served.socket, "set", "", start).status == .exit(0))
      let script = #"""
        PATH=$(dirname "$0"):$PATH && source <(lockstep --generate-completion-script bash)
        COMP_WORDS=(lockstep "$@") COMP_CWORD=$# COMP_LINE="lockstep $*" COMP_POINT=1000
        [[ $(complete -p lockstep) =~ -F\ ([^\ ]+) ]]
        "${BASH_REMATCH[1]}" lockstep "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\n' "${COMPREPLY[@]}"
        """#
      for (words, completions) in [
        (["get", ""], ["/"]), (["get", "/la"], ["/lamps", "/lamps/"]), (["ls", "/li"], ["/list"]),
        (["watch", "/list", "/lo"], ["/lost"]),
        (["set", "/lamps/h"], ["/lamps/hall", "/lamps/hall/", "/lamps/hatch~0~1"]),
        (["remove", "/none/x"], [""]), (["send", "inc"], ["increment"]),
        (["log", "--action", "mer"], ["merge"]), (["effects", "cancel", ""], [""]),
      ] {
        for socket in [["--socket", served.socket], []] {
          let bash = try ChildProcess(
            "/bin/bash", ["-c", script, Binaries.commandLine] + socket + words,
            environment: [
              "LOCKSTEP_SOCKET": socket.isEmpty ? served.socket : "/none", "PATH": "/usr/bin:/bin",
            ])
          try await bash.end()
          #expect(bash.output == completions, "\(socket) \(words)")
        }
      }
    }
    try await withDaemon { served in
      // More than are listed at once.
      let entries = (0..<3000).map { #""k\#($0)":0"# }.joined(separator: ",")
      #expect(try await lockstep(served.socket, "set", "/m", "{\(entries)}").status == .exit(0))
      let words = ["lockstep", "get", "/m/k299"]
      let complete = try ChildProcess(
        Binaries.commandLine, ["---completion", "get", "--", "positional@0", "2", "7"] + words,
        environment: ["LOCKSTEP_SOCKET": served.socket])
      try await complete.end()
      let names = ["k299"] + (2990...2999).map { "k\($0)" }
      #expect(complete.output.sorted() == names.map { "/m/\($0)" })
    }
    // Without a daemon there is nothing to complete, and nothing is said.
    let bash = try ChildProcess(
      Binaries.commandLine,
      ["---completion", "get", "--", "positional@0", "2", "1", "lockstep", "get", "/"],
      environment: ["LOCKSTEP_SOCKET": "/none"])
    try await bash.end()
    #expect(bash.output.joined() == "")
  }

  // MARK: Watching

  @Test func `on a terminal a long value is laid out once, then what changes in it`() async throws {
    try await withDaemon { served in
      let members = (0..<10).map { #""k\#($0)":"\#(String(repeating: "x", count: 60))""# }
      let long = "{\(members.joined(separator: ","))}"
      for (value, shown) in [(long, [#"~ /v/k3  "xxx"#, #"+ /v/n  1"#]), ("{}", [#"{"n": 1}"#])] {
        #expect(try await lockstep(served.socket, "set", "/v", value).status == .exit(0))
        let watch = try ChildProcess(
          "/usr/bin/script",
          [
            "--quiet", "--return", "--command", "\(Binaries.commandLine) watch /v --count 2",
            "/dev/null",
          ],
          environment: [
            "LOCKSTEP_SOCKET": served.socket, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80",
          ])
        defer { watch.signal(SIGKILL) }
        try await watch.line(with: value == long ? "k9" : "{}")
        let before = watch.output.count
        let change = value == long ? #"{"k3":2,"n":1}"# : #"{"n":1}"#
        #expect(try await lockstep(served.socket, "merge", "/v", change).status == .exit(0))
        #expect(try await watch.end() == .exit(0))
        let rest = watch.output.dropFirst(before).joined(separator: "\n")
        for text in shown { #expect(rest.contains(text), "\(rest)") }
        #expect(rest.contains("k9") == false, "\(rest)")
      }
    }
  }

  // MARK: Tables

  @Test func `tables have the width of COLUMNS`() async throws {
    try await withDaemon { served in
      let long = String(repeating: "x", count: 64)
      for _ in 0..<3 {
        #expect(try await lockstep(served.socket, "get", "--label", long).status == .exit(0))
      }
      for columns in [80, 120] {
        let closed = try await atTerminal(served.socket, columns: columns, "clients --closed")
        #expect(closed.count >= 4 && closed[0].hasPrefix("TIME "), "\(closed)")
        #expect(closed.allSatisfy { $0.count <= columns }, "\(closed)")
        #expect(closed[1...3].allSatisfy { $0.contains("xxx…  ") }, "\(closed)")
        let clients = try await atTerminal(served.socket, columns: columns, "clients")
        #expect(clients.count == 2, "\(clients)")
      }
      let wide = try await atTerminal(served.socket, columns: 200, "clients --closed")
      #expect(wide[1].contains(long), "\(wide)")
      let narrow = try await atTerminal(served.socket, columns: 30, "clients")
      #expect(narrow.count == 9 && narrow[0].hasPrefix("PID  "), "\(narrow)")
      _ = try await lockstep(served.socket, "set", "/a/b/c", "1")
      let log = try await atTerminal(served.socket, columns: 80, "log")
      let columns = log.map { $0.firstRange(of: " client ")?.lowerBound.utf16Offset(in: $0) }
      #expect(Set(columns).count == 1, "\(log)")
    }
  }
}
