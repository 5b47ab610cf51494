import CBOR
import Documents
import Foundation
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// The programs under test. `Scripts/test` builds them in release mode and names their folder.
enum Binaries {
  static let folder = ProcessInfo.processInfo.environment["LOCKSTEP_BINARIES"]
  static let isThere = folder != nil
  static let comment: Comment = "LOCKSTEP_BINARIES names the folder of lockstepd: see Scripts/test"

  static let python = ProcessInfo.processInfo.environment["LOCKSTEP_PYTHON"]
  static let hasPython = isThere && python != nil
  static let pythonComment: Comment =
    "LOCKSTEP_PYTHON names a Python with cbor2, and LOCKSTEP_BINARIES: see Scripts/test"

  static var daemon: String { (folder ?? ".") + "/lockstepd" }
  static var commandLine: String { (folder ?? ".") + "/lockstep" }

  /// The client is built with the tests, so it is beside them; a faster one may be beside the
  /// daemon.
  static var client: String {
    let fast = (folder ?? ".") + "/TestClient"
    if FileManager.default.isExecutableFile(atPath: fast) { return fast }
    return besideTests("TestClient")
  }

  /// A program that is built with the tests.
  static func besideTests(_ name: String) -> String {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (tests as NSString).deletingLastPathComponent + "/" + name
  }
}

/// Run a test with a temporary folder.
func withFolder<R>(_ body: (String) async throws -> R) async throws -> R {
  var template = Array("/tmp/lockstep-process-XXXXXX".utf8CString)
  let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { try? FileManager.default.removeItem(atPath: folder) }
  return try await body(folder)
}

/// Start a daemon and wait until it serves.
func startDaemon(_ socket: String, _ arguments: [String] = []) async throws -> ChildProcess {
  let daemon = try ChildProcess(Binaries.daemon, ["--socket", socket] + arguments)
  do {
    try await daemon.line(with: "serving")
  } catch {
    daemon.signal(SIGKILL)
    throw error
  }
  return daemon
}

/// Run the command line, and wait for its end.
func lockstep(_ socket: String, _ arguments: String...) async throws -> CommandResult {
  try await lockstep(socket, arguments)
}

func lockstep(_ socket: String, _ arguments: [String]) async throws -> CommandResult {
  let command = try ChildProcess(Binaries.commandLine, ["--socket", socket] + arguments)
  return CommandResult(status: try await command.end(), lines: command.output)
}

/// Run the command line at a terminal of this width, with arguments as a shell reads them. Returns the
/// lines of both streams.
func atTerminal(
  _ socket: String, columns: Int, _ arguments: String
) async throws -> [String] {
  let command = try ChildProcess(
    "/usr/bin/script",
    ["--quiet", "--return", "--command", "\(Binaries.commandLine) \(arguments)", "/dev/null"],
    environment: [
      "LOCKSTEP_SOCKET": socket, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "\(columns)",
    ])
  try await command.end()
  return command.output.map { $0.trimmingCharacters(in: .newlines) }
}

/// Run a test with a daemon, which must still run when the test has ended.
func withDaemon<R>(
  _ arguments: [String] = [], _ body: (Served) async throws -> R,
  sourceLocation: SourceLocation = #_sourceLocation
) async throws -> R {
  try await withFolder { folder in
    let socket = folder + "/socket"
    let daemon = try await startDaemon(socket, arguments)
    defer { daemon.signal(SIGKILL) }
    let served = Served(folder: folder, socket: socket, daemon: daemon)
    let result: R
    do {
      result = try await body(served)
    } catch {
      Issue.record(
        "the daemon said: \(daemon.output.suffix(20))", sourceLocation: sourceLocation)
      throw error
    }
    daemon.signal(SIGTERM)
    let ending = try await daemon.end()
    #expect(
      ending == .exit(0), "the daemon said: \(daemon.output.suffix(20))",
      sourceLocation: sourceLocation)
    return result
  }
}

/// A daemon and its location.
struct Served {
  let folder: String
  let socket: String
  let daemon: ChildProcess

  /// A client process, connected and with a whole mirror.
  func client(_ label: String) async throws -> ChildProcess {
    let client = try ChildProcess(Binaries.client, [socket, label])
    try await client.line("live")
    return client
  }

  /// A mirror in this process.
  func mirror(of path: Path = .root, at socket: String? = nil) async throws -> Subscription<Value> {
    try await Subscription<Value>.connect(to: path, options(at: socket))
  }

  func options(at socket: String? = nil) -> Connection.Options {
    var options = Connection.Options(socket: socket ?? self.socket, label: "test")
    options.digestInterval = nil
    return options
  }

  func raw() throws -> RawClient { try RawClient(path: socket) }
}

extension Subscription {
  /// The daemon's digest, once it has one: it has none while it still sends this mirror changes.
  func nextDaemonDigest() async throws -> (revision: UInt64, digest: Digest) {
    while true {
      do { return try await daemonDigest() } catch ClientError.noDigest {}
    }
  }
}

extension Subscription<Value> {
  func value(_ pointer: String) -> Value? {
    Path(pointer: pointer).flatMap { state?.value(at: $0) }
  }

  /// The mirror's own digest and the daemon's, at the same revision.
  func bothDigests() async throws -> (Digest, Digest) {
    let (_, theirs) = try await nextDaemonDigest()
    return (try #require(digest), theirs)
  }
}

extension Value {
  var number: Int64? { if case .integer(let number) = self { number } else { nil } }

  /// A member of an object.
  subscript(_ key: String) -> Value? { value(at: [.text(key)]) }

  var elements: [Value] { if case .array(let elements) = self { Array(elements) } else { [] } }
}

extension DocumentAction {
  var payload: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }
}

extension RawClient {
  func act(_ number: UInt64, _ action: DocumentAction) throws {
    try send(.action(number: number, .applied, payload: action.payload))
  }
}
