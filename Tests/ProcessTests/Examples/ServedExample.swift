import Foundation
import Testing

/// An example's daemon, with its folder and socket.
struct ServedExample {
  /// A finished command: its lines from both streams, and its status.
  struct Done {
    let status: ChildProcess.Ending
    let lines: [String]
  }

  let folder: String
  let socket: String
  let daemon: ChildProcess

  /// Runs a client of the example to its end.
  func run(_ program: String, _ arguments: String...) async throws -> Done {
    try await Self.end(try start(program, arguments))
  }

  /// Starts a client of the example.
  func start(_ program: String, _ arguments: String...) throws -> ChildProcess {
    try start(program, arguments)
  }

  private func start(_ program: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(Binaries.example(program), arguments + ["--socket", socket])
  }

  /// Runs the stock command line to its end.
  func lockstep(_ arguments: String...) async throws -> Done {
    try await Self.end(
      ChildProcess(Binaries.commandLine, ["--socket", socket] + arguments))
  }

  private static func end(_ process: ChildProcess) async throws -> Done {
    let status = try await process.end()
    return Done(status: status, lines: process.output)
  }

  /// The names of the running effects.
  func effects() async throws -> [String] {
    try await lockstep("effects").lines.map { try Self.object($0)["name"] as? String ?? "" }
  }

  /// The records of the daemon's log.
  func log() async throws -> [[String: any Sendable]] {
    try await lockstep("log").lines.map(Self.object)
  }

  private static func object(_ line: String) throws -> [String: any Sendable] {
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
    return try #require(object as? [String: any Sendable])
  }
}

/// Runs an example's daemon for one test, at whose end it must still be alive. Its arguments may
/// name files in the test's folder.
func withExample<R>(
  _ program: String, arguments: (String) throws -> [String] = { _ in [] },
  _ body: (ServedExample) async throws -> R, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> R {
  try await withFolder { folder in
    let socket = folder + "/socket"
    let daemon = try ChildProcess(
      Binaries.example(program), ["--socket", socket] + arguments(folder))
    defer { daemon.signal(SIGKILL) }
    try await daemon.line(with: "serving")
    let result: R
    do {
      result = try await body(ServedExample(folder: folder, socket: socket, daemon: daemon))
    } catch {
      Issue.record(
        "the daemon said: \(daemon.output.suffix(20))", sourceLocation: sourceLocation)
      throw error
    }
    daemon.signal(SIGTERM)
    let ending = try await daemon.end()
    #expect(ending == .exit(0), sourceLocation: sourceLocation)
    return result
  }
}

extension Binaries {
  /// The path of an example's program, which is built beside the tests.
  static func example(_ name: String) -> String {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (tests as NSString).deletingLastPathComponent + "/" + name
  }
}
