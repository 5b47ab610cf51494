import Foundation
import Testing

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct AppShellTests {
  @Test("RDX-05 RDX-17: windows show the same state, and one outlives another")
  func windows() async throws {
    try await withExample("appshelld") { example in
      let left = try example.start("appshell", "watch")
      let right = try example.start("appshell", "watch")
      for window in [left, right] { try await window.line("tab home, route /, nobody") }
      _ = try await example.run("appshell", "tab", "search")
      _ = try await example.run("appshell", "push", "books")
      for window in [left, right] { try await window.line("tab search, route /books, nobody") }

      try await left.kill()
      let done = try await example.run("appshell", "pop")
      #expect(done.lines == ["tab search, route /, nobody"])
      try await right.line("tab search, route /, nobody")
    }
  }

  @Test("RDX-16: logging middleware is first and sees the new state, in the order of the log")
  func logging() async throws {
    try await withExample("appshelld") { example in
      _ = try await example.run("appshell", "tab", "profile")
      try await example.daemon.line("logging: tabAction.select, from client")
      try await example.daemon.line("logging: tabAction.select led to tab profile, route /, nobody")
    }
  }

  @Test("RDX-07: a swallowed action is acknowledged as swallowed, and makes no revision")
  func swallowing() async throws {
    try await withExample("appshelld") { example in
      _ = try await example.run("appshell", "login", "  ada ")
      #expect(try await example.lockstep("get", "/loginState/user").lines == [#""ada""#])
      // Wait for the greeting, after which nothing changes by itself.
      try await eventually("ada is greeted") { try await example.log().count >= 5 }
      let revision = try await revision(example)
      let done = try await example.lockstep("send", "loginAction.login", "   ")
      #expect(done.lines == [#"{"outcome":"swallowed","revision":\#(revision)}"#])
      #expect(try await self.revision(example) == revision)
      #expect(try await example.log().last?["outcome"] as? String == "swallowed")
    }
  }

  @Test("RDX-12: a second after a login, middleware's further actions follow, with their cause")
  func greeting() async throws {
    try await withExample("appshelld") { example in
      _ = try await example.run("appshell", "tab", "profile")
      #expect(try await example.run("appshell", "login", "ada").status == .exit(0))
      try await eventually("home") {
        try await example.lockstep("get", "/tabState/selected").lines == [#""home""#]
      }
      let log = try await example.log()
      let login = try #require(log.first { $0["action"] as? String == "loginAction.login" })
      let follow = log.filter { $0["parent"] as? Int == login["sequence"] as? Int }
      #expect(
        follow.map { $0["action"] as? String }
          == ["loginAction.greeted", "navigationAction.popToRoot", "tabAction.select"])
      for action in follow {
        #expect((action["origin"] as? String)?.contains("greet") == true)
        let wait = try time(of: action).timeIntervalSince(time(of: login))
        #expect(wait >= 0.999, "by the daemon's clock, whose times have milliseconds")
      }
      try await eventually("no effect is left") { try await example.effects().isEmpty }
    }
  }

  @Test("RDX-12: the kernel's user of a client decides whether it may evict")
  func authorization() async throws {
    try await withExample("appshelld") { _ in
      ["--administrator", "\(getuid() + 1)"]
    } _: { example in
      for command in ["evict", "crash"] {
        let done = try await example.run("appshell", command)
        #expect(done.status == .exit(1), "\(done)")
        #expect(done.lines.contains { $0.contains("the user \(getuid()) may not send") })
      }
      let done = try await example.lockstep("send", "launch")
      #expect(done.status == .exit(9))
      #expect(done.lines.contains { $0.contains("may not send launch") })
    }
    try await withExample("appshelld") { example in
      _ = try await example.run("appshell", "login", "ada")
      let done = try await example.run("appshell", "evict")
      #expect(done.lines == ["tab home, route /, nobody"])
    }
  }

  @Test("RDX-19: saved state is restored when another daemon launches")
  func persistence() async throws {
    try await withFolder { folder in
      let file = folder + "/state"
      try await withExample("appshelld") { _ in
        ["--store", file]
      } _: { example in
        _ = try await example.run("appshell", "login", "ada")
        try await eventually("ada is greeted") { try await example.log().count == 5 }
        _ = try await example.run("appshell", "push", "books")
        try await eventually("the route is saved") {
          let stored = FileManager.default.contents(atPath: file) ?? Data()
          return stored.range(of: Data("books".utf8)) != nil
        }
      }
      try await withExample("appshelld") { _ in
        ["--store", file]
      } _: { example in
        let window = try example.start("appshell", "watch")
        try await window.line("tab home, route /books, user ada")
        #expect(try await example.log().map { $0["action"] as? String } == ["launch", "restore"])
      }
    }
  }

  @Test("RDX-12: a crash report names the last actions, and a daemon only crashes if it may")
  func crash() async throws {
    try await withExample("appshelld") { example in
      let done = try await example.run("appshell", "crash")
      #expect(
        done.lines == [
          "Error: rejected: this daemon was not started with --allow-crash"
        ])
    }
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try ChildProcess(
        Binaries.example("appshelld"), ["--socket", socket, "--allow-crash"],
        environment: ["SWIFT_BACKTRACE": "enable=no"])
      try await daemon.line(with: "serving")
      let example = ServedExample(folder: folder, socket: socket, daemon: daemon)
      _ = try await example.run("appshell", "tab", "search")
      #expect(try await example.run("appshell", "crash").status == .exit(1))
      let ending = try await daemon.end()
      #expect([.signal(SIGILL), .signal(SIGTRAP)].contains(ending))
      try await daemon.line("fatal signal; the last actions, oldest first:")
      try await daemon.line(with: "tabAction.select from client")
      try await daemon.line(with: "crash from client")
    }
  }

  private func revision(_ example: ServedExample) async throws -> String {
    let lines = try await example.lockstep("status").lines
    let object = try JSONSerialization.jsonObject(with: Data(lines.joined().utf8))
    return "\((object as? [String: Any])?["revision"] ?? "none")"
  }

  private func time(of action: [String: any Sendable]) throws -> Date {
    let text = try #require(action["time"] as? String)
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    return try Date(text, strategy: style)
  }
}
