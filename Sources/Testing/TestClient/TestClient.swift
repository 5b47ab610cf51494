import CBOR
import ClientCore
import Documents
import Glibc
import LockstepClient
import Values
import Wire

/// A client process for tests, which can stop it and kill it. It mirrors the document of the daemon
/// at a socket, and performs the commands on its standard input:
///
///     increment POINTER COUNT     one after the other; says `ack REVISION` after each
///     post POINTER COUNT          all at once
///     random SEED COUNT           random changes of the document
///     reached REVISION            says `at REVISION DIGEST` when the mirror has come there
///     digest                      says `digest REVISION OURS THEIRS`
///     counters                    says `counters SNAPSHOTS PATCHES COALESCED BYTES RESYNCS`
///
/// and `done` after each. With a third argument, a file, it appends the numbers from 1 to the
/// fourth argument to `/log`, in a session whose token that file keeps.
///
/// As `TestClient SOCKET clients COUNT SECONDS` it is many clients: see `ManyClients`. It prints
/// `connected`, and at the end `clients COUNT actions EACH longest-ms TIME`. As `TestClient SOCKET
/// flood UID COUNT ACTIONS` it is a hostile user: see `Flood`. With five other arguments it is
/// another user: see `Relay`.
@main
struct TestClient {
  @MainActor
  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments.count == 6, arguments[2] == "flood", let uid = UInt32(arguments[3]),
      let count = Int(arguments[4]), let actions = UInt64(arguments[5])
    {
      try Relay.become(uid, uid, [])
      return try Flood(socket: arguments[1], connections: count, actions: actions).run { say($0) }
    }
    if arguments.count == 6 { return try Relay.run(arguments) }
    if arguments.count == 5, arguments[2] == "clients", let count = Int(arguments[3]),
      let seconds = Int(arguments[4])
    {
      var clients = try ManyClients(socket: arguments[1], count: count)
      let (actions, longest) = try clients.run(for: .seconds(seconds)) { say($0) }
      return say(
        "clients \(count) actions \(actions) longest-ms \(Int(longest / .milliseconds(1)))")
    }
    if arguments.count == 5, let count = UInt64(arguments[4]) {
      return try appendNumbers(socket: arguments[1], tokenFile: arguments[3], through: count)
    }
    var options = Connection.Options(socket: arguments[1], label: arguments[2])
    options.digestInterval = nil
    let mirror = try await Subscription<Value>.connect(options)
    say("live \(mirror.position?.revision ?? 0)")
    while let line = readLine() {
      try await perform(line.split(separator: " ").map(String.init), on: mirror)
      say("done")
    }
    mirror.connection.close()
  }

  private static func perform(_ words: [String], on mirror: Subscription<Value>) async throws {
    switch words[0] {
    case "increment":
      let action = DocumentAction.increment(try path(words[1]), by: 1)
      for _ in 0..<(Int(words[2]) ?? 0) {
        let acknowledgement = try await mirror.send(action)
        say("ack \(acknowledgement.revision)")
      }
    case "post":
      let action = DocumentAction.increment(try path(words[1]), by: 1)
      for _ in 0..<(Int(words[2]) ?? 0) { mirror.post(action) }
      try await mirror.send(DocumentAction.transaction([]))
    case "random":
      var changes = RandomChanges(seed: UInt64(words[1]) ?? 0)
      for _ in 0..<(Int(words[2]) ?? 0) { mirror.post(changes.next()) }
      try await mirror.send(DocumentAction.transaction([]))
    case "reached":
      try await mirror.reached(revision: UInt64(words[1]) ?? 0)
      say("at \(mirror.position?.revision ?? 0) \(text(mirror.digest))")
    case "digest":
      let (revision, theirs) = try await mirror.daemonDigest()
      say("digest \(revision) \(text(mirror.digest)) \(theirs)")
    case "counters":
      let counters = mirror.counters
      say(
        "counters \(counters.snapshots) \(counters.patches) \(counters.coalesced) "
          + "\(counters.bytes) \(counters.resyncs)")
    default: throw RawClient.Failure(description: "there is no \(words[0])")
    }
  }

  /// Write a line at once: standard output would buffer it.
  private static func say(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }

  private static func text(_ digest: Digest?) -> String { digest?.description ?? "none" }

  private static func path(_ pointer: String) throws -> Path {
    guard let path = Path(pointer: pointer) else {
      throw RawClient.Failure(description: "\(pointer) is no JSON Pointer")
    }
    return path
  }

  // MARK: A session that outlives its process

  private static func appendNumbers(
    socket: String, tokenFile: String, through count: UInt64
  ) throws {
    let client = try RawClient(path: socket)
    let old = readToken(tokenFile)
    let welcome = try client.greet(label: "append", token: old)
    guard old == nil || welcome.isResumed else {
      throw RawClient.Failure(description: "the session is lost")
    }
    // The token is saved before the first action, so no action is ever sent in an unknown session.
    try keep(welcome.token, tokenFile)
    var number = welcome.lastAction
    say("resumed \(number)")
    while number < count {
      let last = min(number + 20, count)
      var encoder = CBOREncoder()
      while number < last {
        number += 1
        var payload = CBOREncoder()
        DocumentAction.append(["log"], .integer(Int64(number))).encode(into: &payload)
        Frame.append(to: &encoder) {
          ClientMessage.action(number: number, .applied, payload: payload.bytes).encode(into: &$0)
        }
      }
      try client.send(encoder.bytes)
      for acknowledgement in try client.acknowledgements(through: last) {
        say("acks \(acknowledgement.first) \(acknowledgement.last) \(acknowledgement.revision)")
      }
    }
    say("done")
  }

  private static func readToken(_ path: String) -> SessionToken? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var numbers: [UInt64] = [0, 0]
    guard fread(&numbers, 8, 2, file) == 2 else { return nil }
    return SessionToken(high: numbers[0], low: numbers[1])
  }

  private static func keep(_ token: SessionToken, _ path: String) throws {
    guard let file = fopen(path + ".new", "w") else {
      throw RawClient.Failure(description: "cannot write \(path)")
    }
    let written = fwrite([token.high, token.low], 8, 2, file)
    fclose(file)
    guard written == 2, rename(path + ".new", path) == 0 else {
      throw RawClient.Failure(description: "cannot write \(path)")
    }
  }
}
