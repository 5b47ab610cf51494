import Documents
import Foundation
import LockstepClient
import Testing
import Values

/// `Tests/ProtocolTests/false_daemon.py` plays transcripts to our clients, and to faulty ones.
@Suite(.enabled(if: Binaries.hasPython, Binaries.pythonComment), .timeLimit(.minutes(2)))
struct FalseDaemonTests {
  /// Transcripts in which a client mirrors the root and sends nothing, and one with an action.
  static let names = [
    "snapshot and patches", "snapshot and target", "snapshot in parts", "a client that lags",
    "gap and resync", "restarted", "resume, continuation 1",
    "resume, continuation 1, cut before the patch", "resume, continuation 2, history",
    "resume, continuation 2, epoch", "resume, continuation 2, ahead", "restarted, then cut",
    "stopping", "an action that was lost",
  ]

  @Test(arguments: names)
  func `our client sends what a transcript says, and shows its final state`(
    name: String
  ) async throws {
    let (revision, value) = try Self.end(of: name)
    let shown = "at \(revision) \(value.digest(HashSeed(7)))"
    try await withFalseDaemon(name) { socket, daemon in
      let client = try ChildProcess(Binaries.client, [socket, "test"])
      try await client.line("live")
      if name == "an action that was lost" { client.write("increment /n 1") }
      try await daemon.line("played")
      try await eventually("it shows \(shown)") {
        client.write("reached \(revision)")
        return try await client.line("at ") == shown
      }
      try await client.kill()
      #expect(try await daemon.end() == .exit(0), "\(daemon.output)")
    }
  }

  @Test(arguments: [
    ("snapshot and patches", ""), ("snapshot and target", ""),
    ("snapshot and target elsewhere", "n"), ("snapshot in parts", ""), ("an absent place", "a b"),
    ("a client that lags", ""), ("gap and resync", ""), ("restarted", ""),
  ])
  func `the reader passes the transcripts of its level`(name: String, path: String) async throws {
    try await withFalseDaemon(name) { socket, daemon in
      let keys = path.split(separator: " ").map(String.init)
      let reader = try Python("reader.py", [socket] + keys)
      try await daemon.line("played")
      try await reader.process.kill()
      #expect(try await daemon.end() == .exit(0), "\(daemon.output)")
    }
  }

  @Test func `the command line passes a transcript`() async throws {
    try await withFalseDaemon("snapshot and target") { socket, daemon in
      let command = try ChildProcess(
        Binaries.commandLine, ["--socket", socket, "get", ""])
      #expect(try await command.end() == .exit(0))
      #expect(command.output == [#"{"a":1,"list":[1,2,3],"n":5}"#])
      #expect(try await daemon.end() == .exit(0), "\(daemon.output)")
    }
  }

  // MARK: Wrong clients

  @Test func `a client that sends another message is told the difference`() async throws {
    try await withFalseDaemon("snapshot and patches") { socket, daemon in
      let command = try ChildProcess(
        Binaries.commandLine, ["--socket", socket, "set", "/n", "1"])
      #expect(try await daemon.end() == .exit(1))
      #expect(
        daemon.output.last
          == #"difference: the client says action 1, 0, [0, ["n"], 1], and not subscribe 1, [], null"#
      )
      try await command.end()
    }
  }

  @Test func `a reader that does not unsubscribe at a gap is detected`() async throws {
    try await withFolder { folder in
      let right = try String(contentsOfFile: Python.folder + "/reader.py", encoding: .utf8)
      let wrong = right.replacingOccurrences(of: "return [[3, 1], [2", with: "return [[2")
      #expect(wrong != right)
      try wrong.write(toFile: folder + "/wrong.py", atomically: true, encoding: .utf8)
      try await withFalseDaemon("gap and resync") { socket, daemon in
        let reader = try ChildProcess(
          try #require(Binaries.python), ["-B", folder + "/wrong.py", socket])
        #expect(try await daemon.end() == .exit(1))
        #expect(
          daemon.output.last
            == "difference: the client says subscribe 1, [], null, and not unsubscribe 1")
        try await reader.kill()
      }
    }
  }

  @Test func `a client that sends another action is detected`() async throws {
    try await withFalseDaemon("an action that was lost") { socket, daemon in
      let client = try ChildProcess(Binaries.client, [socket, "test"])
      try await client.line("live")
      client.write("increment /m 1")
      #expect(try await daemon.end() == .exit(1))
      #expect(daemon.output.last?.hasSuffix("the payload is another") == true, "\(daemon.output)")
      try await client.kill()
    }
  }

  // MARK: A real daemon

  @Test(arguments: [4, 5] as [UInt64])
  func `the reader mirrors a real daemon`(seed: UInt64) async throws {
    try await withDaemon { served in
      let mirror = try await served.mirror()
      try await mirror.send(DocumentAction.set(.root, ["lists": [:], "counts": [:], "end": false]))
      let reader = try Python("reader.py", [served.socket])
      try await reader.process.line("{")
      var random = SplitMix64(seed)
      for number in 0..<500 {
        let change = Self.change(&random)
        // Waits sometimes, so that the patches arrive one by one.
        if number % 4 == 0 { _ = try? await mirror.send(change) } else { mirror.post(change) }
      }
      try await mirror.send(DocumentAction.set(["end"], true))
      let last = try await reader.process.line(with: #""end": true"#)
      let shown = try JSON.parse(last)["value"]
      #expect(shown.isSame(as: mirror.state), "\(last)")
      try await reader.process.kill()
    }
  }

  /// A change of the document; some changes are rejected.
  private static func change(_ random: inout SplitMix64) -> DocumentAction {
    let name = PathKey.text("k\(random.next() % 8)")
    let index = PathKey.integer(Int64(random.next() % 4))
    let number = Value.integer(Int64(random.next() % 100))
    switch random.next() % 7 {
    case 0: return .set(["lists", name], [number, ["a": number], []])
    case 1: return .insert(["lists", name, index], number)
    case 2: return .remove(["lists", name, index])
    case 3: return .set(["lists", name, index], ["b": [number]])
    case 4: return .increment(["counts", name], by: number)
    case 5: return .remove(["counts", name])
    default: return .set(["lists", name, index, "a"], number)
    }
  }

  // MARK: Support

  private func withFalseDaemon(
    _ name: String, _ body: (String, ChildProcess) async throws -> Void
  ) async throws {
    try await withFolder { folder in
      let socket = folder + "/socket"
      let daemon = try Python("false_daemon.py", [socket, name, "--timeout", "30"]).process
      try await daemon.line("listening")
      do {
        try await body(socket, daemon)
      } catch {
        Issue.record("the false daemon said: \(daemon.output)")
        throw error
      }
    }
  }

  /// The final revision and value of a transcript's first mirror.
  private static func end(of name: String) throws -> (revision: Int64, value: Value) {
    let file = URL(fileURLWithPath: Python.folder)
      .appendingPathComponent("../../Protocols/vectors/sessions.json")
    let whole = try JSON.parse(Array(Data(contentsOf: file)))
    let transcript = whole["transcripts"]?.elements.first { $0["name"] == .text(name) }
    let last = transcript?["steps"]?.elements.last { $0["mirrors"] != nil }
    let mirror = try #require(last?["mirrors"]?.elements.first)
    let revision = try #require(mirror["position"]?.elements.last?.number)
    return (revision, try #require(mirror["value"]))
  }
}

/// A program of `Tests/ProtocolTests`.
private struct Python {
  static let folder =
    ((#filePath as NSString).deletingLastPathComponent as NSString)
    .deletingLastPathComponent + "/ProtocolTests"

  let process: ChildProcess

  init(_ script: String, _ arguments: [String]) throws {
    process = try ChildProcess(
      try #require(Binaries.python), ["-B", Self.folder + "/" + script] + arguments)
  }
}
