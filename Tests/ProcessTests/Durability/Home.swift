import CBOR
import DaemonCore
import Documents
import Foundation
import Journal
import LockstepClient
import Records
import Testing
import Values
import Wire

/// A socket and a state directory, and the daemons that serve there one after the other.
struct Home: Sendable {
  let folder: String
  var socket: String
  var state: String
  var journal: String { state + "/journal.sqlite" }

  init(_ folder: String) {
    self.folder = folder
    socket = folder + "/s"
    state = folder + "/state"
  }

  /// Starts a daemon and waits until it serves.
  func start(_ arguments: [String] = []) async throws -> RunningDaemon {
    let process = try spawn(arguments)
    do {
      let line = try await process.line(with: " serving ")
      return try #require(RunningDaemon(process, line), "\(line)")
    } catch {
      process.signal(SIGKILL)
      throw error
    }
  }

  /// Starts a daemon without waiting until it serves.
  func spawn(_ arguments: [String] = []) throws -> ChildProcess {
    try ChildProcess(
      Binaries.daemon, ["--socket", socket, "--state-dir", state] + arguments)
  }

  /// Starts a daemon that must fail to serve. Returns its last line.
  func refusal(_ arguments: [String] = []) async throws -> String {
    let process = try spawn(arguments)
    defer { process.signal(SIGKILL) }
    let ending = try await process.end()
    #expect(ending == .exit(1), "\(process.output.suffix(5))")
    return process.output.last ?? ""
  }

  /// A mirror in this process, which waits while no daemon serves.
  func mirror(
    of path: Path = .root, label: String = "test"
  ) async throws -> Subscription<Value> {
    var options = Connection.Options(socket: socket, label: label)
    options.digestInterval = nil
    options.waitsForDaemon = true
    return try await Subscription<Value>.connect(to: path, options)
  }

  /// Runs the command line to its end.
  func lockstep(_ arguments: String...) async throws -> CommandResult {
    try await lockstep(arguments)
  }

  func lockstep(_ arguments: [String]) async throws -> CommandResult {
    let command = try ChildProcess(
      Binaries.commandLine, arguments, environment: ["LOCKSTEP_SOCKET": socket])
    let status = try await command.end()
    return CommandResult(status: status, lines: command.output)
  }
}

/// A finished command: its status, and its lines from both streams.
struct CommandResult {
  let status: ChildProcess.Ending
  let lines: [String]

  /// The lines that are JSON.
  var values: [Value] { lines.compactMap { try? JSON.parse($0) } }
}

func withHome<R>(_ body: (Home) async throws -> R) async throws -> R {
  try await withFolder { try await body(Home($0)) }
}

/// A home whose state directory is on a small disk of its own, with this size.
func withHome<R>(
  onDiskOf bytes: Int, _ body: (Home, SmallDisk) async throws -> R
) async throws -> R {
  try await withHome { home in
    let disk = try SmallDisk(home.folder + "/disk", bytes: bytes)
    defer { disk.remove() }
    var home = home
    home.state = disk.path + "/state"
    return try await body(home, disk)
  }
}

/// A serving daemon, and the state with which it started.
struct RunningDaemon: Sendable {
  let process: ChildProcess
  let epoch: String
  let run: UInt64
  let revision: UInt64
  let digest: String

  /// Parses the line that a daemon logs when it serves: `digest=… position=epoch:run:revision`.
  init?(_ process: ChildProcess, _ line: String) {
    let fields = line.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1) }
    func field(_ name: String) -> Substring? { fields.first { $0.first ?? "" == name }?.last }
    let position = field("position")?.split(separator: ":") ?? []
    guard let digest = field("digest"), position.count == 3, let run = UInt64(position[1]),
      let revision = UInt64(position[2])
    else { return nil }
    self.process = process
    epoch = String(position[0])
    self.run = run
    self.revision = revision
    self.digest = String(digest)
  }

  /// Stops the daemon, and expects an orderly end.
  func stop(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    process.signal(SIGTERM)
    let ending = try await process.end()
    #expect(
      ending == .exit(0), "the daemon said: \(process.output.suffix(10))",
      sourceLocation: sourceLocation)
  }
}

/// The document in a state directory without a daemon, restored from the file alone.
struct KeptDocument {
  let revision: UInt64
  let digest: String
  let root: Value
  /// The revision of the snapshot that it continues from.
  let snapshot: UInt64

  init(_ directory: String) throws {
    let reader = try JournalReader(reading: directory)
    defer { reader.close() }
    let contents = try reader.contents()
    let schema = try CBORDecoder.read(try #require(contents.runs.last).schema) {
      (decoder) throws(CBORError) in try Schema(from: &decoder)
    }
    let head = try #require(contents.snapshot)
    var recovery = try JournalReplay<Document>(
      from: head, reader.snapshotBytes(), schema: schema, seed: contents.identity.seed)
    var last = head.sequence
    while true {
      let entries = try reader.rows(after: last, limit: 1000)
      guard let newest = entries.last else { break }
      last = newest.row.sequence
      for entry in entries { try recovery.apply(entry) }
    }
    revision = max(recovery.revision, contents.runs.last?.ended ?? 0)
    digest = Digest(recovery.state.digest(seed: contents.identity.seed)).description
    root = recovery.state.root
    snapshot = head.revision
  }
}
