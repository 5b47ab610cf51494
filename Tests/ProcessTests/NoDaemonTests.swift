import EventLoop
import Foundation
import Testing

/// Where daemons and clients meet if they are told no path, and the advice of a command that finds no
/// daemon: followed, it works.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct NoDaemonTests {
  /// The quoted advice that begins with `beginning`, as a shell command that execs the daemon.
  private func advice(_ beginning: String, in lines: [String]) throws -> String {
    let text = lines.joined(separator: " ")
    let start = try #require(text.firstRange(of: "'" + beginning), "\(text)").lowerBound
    let quoted = text[text.index(after: start)...]
    return String(quoted[..<(try #require(quoted.firstIndex(of: "'")))])
      .replacing(Binaries.daemon, with: "exec \(Binaries.daemon)")
  }

  @Test func `the advice where no daemon serves starts one that serves there`() async throws {
    try await withFolder { folder in
      for socket in ["\(folder)/s", "\(folder)/a folder/below/s"] {
        let said = try await lockstep(socket, "get")
        #expect(said.status == .exit(3))
        let command = try advice(
          socket.hasSuffix("below/s") ? "mkdir" : Binaries.daemon, in: said.lines)
        let daemon = try ChildProcess("/bin/sh", ["-c", command])
        try await daemon.line(with: "serving")
        #expect(try await lockstep(socket, "get").lines == ["{}"])
        try await daemon.kill()
        let leftover = try await lockstep(socket, "get")
        let again = try ChildProcess(
          "/bin/sh", ["-c", try advice(Binaries.daemon, in: leftover.lines)])
        try await again.line(with: "serving")
        try await again.kill()
      }
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can start processes of other users"))
  func `a user without a runtime directory has a place of his own, and its advice works`()
    async throws
  {
    try await asUser(65533) { run in
      let missing = try run(#"exec "$1" get"#)
      #expect(try await missing.end() == .exit(3))
      #expect(missing.output.joined().contains("/tmp/lockstep-65533/lockstep.sock, nor at "))
      let daemon = try run(try advice(Binaries.daemon, in: missing.output))
      try await daemon.line(with: "serving")
      let got = try run(#"exec "$1" get"#)
      #expect(try await got.end() == .exit(0), "\(got.output)")
      // A variable that su has kept from root.
      let kept = try run(#"XDG_RUNTIME_DIR=/root exec "$1" get"#)
      #expect(try await kept.end() == .exit(0), "\(kept.output)")
      daemon.signal(SIGTERM)
      #expect(try await daemon.end() == .exit(0))
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can start processes of other users"))
  func `the place of a user that somebody else has made is refused, and the advice works`()
    async throws
  {
    try await asUser(65532) { run in
      // As anybody could, and listen there for what the user sends.
      let squatter = "/tmp/lockstep-65532"
      #expect(mkdir(squatter, 0o755) == 0)
      let false_ = try ChildProcess(
        Binaries.daemon, ["--socket", "\(squatter)/lockstep.sock", "--mode", "0666"])
      try await false_.line(with: "serving")
      let refused = try run(#"exec "$0""#)
      #expect(try await refused.end() == .exit(1))
      #expect(refused.output.joined().contains("somebody else could serve there"))
      let lost = try run(#"exec "$1" get"#)
      #expect(try await lost.end() == .exit(3), "\(lost.output)")
      let option = try advice("--socket", in: refused.output)
      let daemon = try run(#"exec "$0" \#(option)"#)
      try await daemon.line(with: "serving")
      let got = try run(#"exec "$1" \#(option) get"#)
      #expect(try await got.end() == .exit(0), "\(got.output)")
      for daemon in [daemon, false_] {
        daemon.signal(SIGTERM)
        #expect(try await daemon.end() == .exit(0))
      }
    }
  }

  /// Run `body`, which can run lines of a shell as a user without a home and a runtime directory. "$0"
  /// is the daemon, "$1" the command line.
  private func asUser(
    _ user: Int, _ body: ((_ line: String) throws -> ChildProcess) async throws -> Void
  ) async throws {
    let own = "/tmp/lockstep-\(user)"
    try? FileManager.default.removeItem(atPath: own)
    defer { try? FileManager.default.removeItem(atPath: own) }
    try await body { line in
      try ChildProcess(
        "/usr/bin/setpriv",
        [
          "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "env", "--unset=XDG_RUNTIME_DIR",
          "--unset=LOCKSTEP_SOCKET", "HOME=/nonexistent", "/bin/sh", "-c", line, Binaries.daemon,
          Binaries.commandLine,
        ])
    }
  }

  @Test(.enabled(if: SmallDisk.isAllowed, SmallDisk.comment))
  func `a daemon of root makes the directory of the standard path`() async throws {
    // With a /run of its own.
    let script = #"""
      mount -t tmpfs none /run && umask 077
      "$0" & daemon=$!
      until "$1" ping --count 1 >/dev/null 2>&1; do kill -0 $daemon || exit 9; done
      stat --format='%a %U' /run/lockstep
      "$1" get
      kill $daemon && wait $daemon
      """#
    let box = try ChildProcess(
      "/usr/bin/env",
      [
        "--unset=XDG_RUNTIME_DIR", "--unset=LOCKSTEP_SOCKET", "unshare", "--mount", "sh", "-c",
        script, Binaries.daemon, Binaries.commandLine,
      ])
    #expect(try await box.end() == .exit(0), "\(box.output)")
    #expect(box.output.contains("755 root") && box.output.contains("{}"), "\(box.output)")
  }
}
