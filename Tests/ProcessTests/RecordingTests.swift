import Documents
import Foundation
import LockstepClient
import Testing
import Values

/// The folder in which every daemon of a test run records its events, if `LOCKSTEP_RECORDINGS`
/// names one: `Scripts/test` runs most suites a second time with it, and replays all recordings.
enum Recordings {
  private static let folder = ProcessInfo.processInfo.environment["LOCKSTEP_RECORDINGS"]
  /// With these options, a daemon's behaviour depends on more than its feature.
  private static let unrecorded: Set = ["--record", "--stub", "--rate-limit", "--feature"]

  static func arguments(_ arguments: [String], of program: String) -> [String] {
    guard let folder, program == Binaries.daemon, unrecorded.isDisjoint(with: arguments) else {
      return arguments
    }
    return arguments + ["--record", "\(folder)/\(UUID())"]
  }
}

/// A daemon that records its events, and the tool that replays them.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(3)))
struct RecordingTests {
  private func replay(_ arguments: String...) async throws -> CommandResult {
    try await replay(arguments: arguments)
  }

  private func replay(arguments: [String]) async throws -> CommandResult {
    let process = try ChildProcess(Binaries.commandLine, ["replay"] + arguments)
    let status = try await process.end()
    return CommandResult(status: status, lines: process.output)
  }

  @Test func `what a daemon did is done again in another process, command by command`()
    async throws
  {
    try await withFolder { folder in
      let file = folder + "/recording"
      try await withDaemon(["--record", file]) { served in
        let mirror = try await served.mirror()
        for number in 1...300 as ClosedRange<Int64> {
          try await mirror.connection.send(DocumentAction.set(["n"], .integer(number)))
        }
        _ = try await mirror.connection.report("log")
        let digests = try await mirror.bothDigests()
        #expect(digests.0 == digests.1)
      }
      let done = try await replay(file)
      #expect(done.status == .exit(0), "\(done.lines)")
      let said = try #require(done.lines.last)
      #expect(said.contains("equal, to revision 300, digest "))
      #expect(try await replay(file, file).lines.count == 2)
      // The recording is as private as the state.
      let attributes = try FileManager.default.attributesOfItem(atPath: file)
      #expect(attributes[.posixPermissions] as? Int == 0o600)

      let until = try await replay("--until", "7", file)
      #expect(until.status == .exit(0) && until.lines.first == #"{"n":7}"#, "\(until.lines)")

      // Change the recorded action of a client.
      var bytes = try Data(contentsOf: URL(filePath: file))
      let sent = DocumentAction.set(["n"], .integer(250)).payload
      let place = try #require(bytes.firstRange(of: Data(sent)))
      bytes[place.upperBound - 1] ^= 1
      let changed = folder + "/changed"
      try bytes.write(to: URL(filePath: changed))
      let other = try await replay(changed)
      #expect(other.status == .exit(10), "\(other.lines)")
      #expect(other.lines.first?.contains("\(changed): event ") == true, "\(other.lines)")
    }
  }

  @Test func `a recording for others has nothing that the policy denies anybody to read`()
    async throws
  {
    try await withFolder { folder in
      let (file, policy) = (folder + "/recording", folder + "/policy.yaml")
      let rules = """
        version: 1
        rules:
          - users: [\(getuid())]
            connect: true
            administer: true
            read: [/]
            act: ["*"]
            write: [/]
          - groups: [nogroup]
            connect: true
            read: [/]
            deny-read: [/secrets]
        """
      try rules.write(toFile: policy, atomically: true, encoding: .utf8)
      func done(_ arguments: [String], _ socket: String) async throws {
        let done = try await lockstep(socket, arguments)
        #expect(done.status == .exit(0), "\(done.lines)")
      }
      try await withDaemon(["--record", file, "--policy", policy]) { served in
        for arguments in [
          [
            "set", "",
            #"{"secrets":{"code":"one-two-three"},"users":{"ann":{"name":"Ann Ashby"}}}"#,
          ],
          ["set", "/secrets/code", "\"four-five\""],
          ["set", "/users/bob", #"{"name":"Bob Byrd"}"#],
          ["set", "/open", "\"as it is\""], ["ls", "/secrets"], ["get", "/users"],
        ] { try await done(arguments, served.socket) }
      }
      let export = folder + "/for-others"
      let told = try await replay(file, "--export", export, "--leave-out", "/users/*/name")
      #expect(told.status == .exit(0), "\(told.lines)")
      #expect(told.lines.count == 1, "\(told.lines)")
      #expect(
        told.lines.first?.contains("to revision 4, without /secrets, /users/*/name: ") == true,
        "\(told.lines)")
      let bytes = try Data(contentsOf: URL(filePath: export))
      for secret in ["one-two", "four-five", "Ashby", "Byrd"] {
        #expect(bytes.firstRange(of: Data(secret.utf8)) == nil, "\(secret)")
      }
      let again = try await replay(export)
      #expect(again.status == .exit(0), "\(again.lines)")
      #expect(again.lines.last?.contains("equal, to revision 4, digest ") == true, "\(again.lines)")
      let state = try await replay("--until", "4", export)
      let text = state.lines.first ?? ""
      #expect(
        text.contains(#""open":"as it is""#) && text.contains(#""ann":{"name":"aaaa"#), "\(text)")

      // What is there already is not overwritten, and what has nothing to leave out is not exported.
      let twice = try await replay(file, "--export", export)
      #expect(twice.status == .exit(2) && twice.lines.joined().contains("exists"), "\(twice.lines)")
      for wrong in [
        ["--leave-out", "/a"], ["--export", export, "--until", "3"],
        ["--export", folder + "/new", "--leave-out", "users"], ["--export", folder + "/no/dir"],
      ] {
        let refused = try await replay(arguments: [file] + wrong)
        #expect(refused.status == .exit(2), "\(wrong): \(refused.lines)")
      }
      let open = folder + "/open"
      try await withDaemon(["--record", open]) { try await done(["set", "/a", "1"], $0.socket) }
      let nothing = try await replay(open, "--export", folder + "/new")
      #expect(nothing.status == .exit(2), "\(nothing.lines)")
      #expect(nothing.lines.joined().contains("Name it with --leave-out"), "\(nothing.lines)")
    }
  }

  @Test func `a daemon that is killed leaves what happened until then, and the next one keeps it`()
    async throws
  {
    try await withFolder { folder in
      let home = Home(folder)
      let file = folder + "/recording"
      let first = try await home.start(["--durability", "sync", "--record", file])
      let mirror = try await home.mirror()
      for number in 1...50 as ClosedRange<Int64> {
        try await mirror.connection.send(DocumentAction.set(["n"], .integer(number)))
      }
      // A start that comes to nothing leaves the recording that there is.
      _ = try await home.refusal(["--record", file])
      #expect(!FileManager.default.fileExists(atPath: file + ".old"))
      let other = try ChildProcess(
        Binaries.daemon, ["--socket", folder + "/other", "--record", file])
      #expect(try await other.end() == .exit(1))
      #expect(other.output.last?.contains("another daemon does") == true, "\(other.output)")
      first.process.signal(SIGKILL)
      _ = try await first.process.end()
      let second = try await home.start(["--durability", "sync", "--record", file])
      try await mirror.connection.send(DocumentAction.set(["m"], 1))
      second.process.signal(SIGTERM)
      _ = try await second.process.end()

      let broken = try await replay(file + ".old")
      #expect(broken.status == .exit(0), "\(broken.lines)")
      #expect(broken.lines.last?.contains("to revision 50, ") == true, "\(broken.lines)")
      #expect(broken.lines.last?.hasSuffix("where the recording breaks off") == true)
      let whole = try await replay(file)
      #expect(whole.status == .exit(0), "\(whole.lines)")
      #expect(whole.lines.last?.contains("to revision 51, ") == true, "\(whole.lines)")
    }
  }

  @Test func `what is no recording is named, and why`() async throws {
    try await withFolder { folder in
      let file = folder + "/file"
      let missing = try await replay(file)
      #expect(missing.status == .exit(2), "\(missing.lines)")
      #expect(missing.lines == ["lockstep-replay: cannot read \(file): No such file or directory"])
      try Data("hello".utf8).write(to: URL(filePath: file))
      let text = try await replay(file)
      #expect(text.status == .exit(11), "\(text.lines)")
      #expect(text.lines == ["lockstep-replay: \(file): it is no recording of a daemon."])
      try Data("LSRE".utf8).write(to: URL(filePath: file))
      let empty = try await replay(file)
      #expect(empty.status == .exit(11), "\(empty.lines)")
      #expect(empty.lines.first?.contains("breaks off before the daemon began") == true)
    }
  }

  @Test(arguments: [
    (["--record", "FOLDER"], "cannot record in FOLDER: it exists, and is not a regular file"),
    (["--record", "FOLDER/none/file"], "No such file or directory"),
    (["--record", "FOLDER/f", "--stub", "/dev/null"], "--record works with the feature alone"),
  ]) func `a daemon that cannot record does not start`(
    _ arguments: [String], _ reason: String
  ) async throws {
    try await withFolder { folder in
      let daemon = try ChildProcess(
        Binaries.daemon,
        ["--socket", folder + "/s"]
          + arguments.map { $0.replacing("FOLDER", with: folder) })
      let ending = try await daemon.end()
      #expect(ending != .exit(0))
      let said = daemon.output.joined(separator: "\n")
      #expect(said.contains(reason.replacing("FOLDER", with: folder)), "\(said)")
      #expect(FileManager.default.fileExists(atPath: folder))
    }
  }
}
