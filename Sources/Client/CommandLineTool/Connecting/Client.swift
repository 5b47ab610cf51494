import ArgumentParser
import CBOR
import Documents
import EventLoop
import Lockstep
import LockstepClient
import Schemas
import SocketPaths
import Values
import Wire

/// A connection to a daemon, made for one command.
struct Client: Sendable {
  let connection: Connection
  let socket: String
  /// The daemon looks at the state for a connection once at a time.
  private let looks = Turnstile()

  init(connection: Connection, socket: String) {
    self.connection = connection
    self.socket = socket
  }

  /// Connect as the options say, run `body`, and say goodbye. Nothing is mirrored at first.
  static func with<R, C: ParsableCommand>(
    _ options: GlobalOptions, for command: C, reconnects: Bool = false,
    _ body: (Client) async throws -> R
  ) async throws -> R {
    let client = try await connect(options, for: command, reconnects: reconnects)
    do {
      let result = try await body(client)
      await client.connection.finish()
      return result
    } catch {
      await client.connection.finish()
      throw error
    }
  }

  /// What a command calls itself, if it is given no other label.
  static func label(of command: (some ParsableCommand).Type) -> String {
    "lockstep \(command.configuration.commandName ?? "")"
  }

  private static func connect<C: ParsableCommand>(
    _ options: GlobalOptions, for command: C, reconnects: Bool
  ) async throws -> Client {
    Deadline.start(options.timeout, acts: command is any SendingCommand)
    return try await connect(
      to: options.socket ?? SocketPath.standard, label: options.label ?? label(of: C.self),
      reconnects: reconnects)
  }

  /// Connect to the daemon at a socket. Nothing is mirrored at first.
  static func connect(
    to socket: String, label: String, reconnects: Bool = false
  ) async throws -> Client {
    var settings = Connection.Options(socket: socket, label: label)
    settings.reconnects = reconnects
    settings.digestInterval = nil
    settings.schemaUse = .names
    do {
      return Client(connection: try await Connection.connect(settings), socket: socket)
    } catch ClientError.closed(let goodbye) where goodbye.isLoss {
      throw Failure(
        .unreachable,
        "\(socket) accepts connections, but does not answer as a Lockstep daemon. Is it one, and "
          + "is it running, not stopped? Or it has just ended.")
    } catch ClientError.closed(let goodbye)
      where goodbye.code == .frameTooLarge || goodbye.code == .malformed
    {
      // No daemon answers a hello like that.
      throw Failure(.unreachable, "what serves at \(socket) is no Lockstep daemon.")
    }
  }

  // MARK: Reading

  /// A complete mirror of the value at a path.
  func mirror(of path: Path, everyRevision: Bool = false) async throws -> Subscription<Value> {
    let mirror = open(path, everyRevision: everyRevision)
    do {
      try await mirror.reached(revision: 0)
    } catch ClientError.refused(.denied) {
      throw Failure.unreadable(path.keys.isEmpty ? "the state" : "'\(path.pointer)'", at: path)
    }
    return mirror
  }

  /// A mirror of the value at a path, still empty.
  func open(_ path: Path, everyRevision: Bool = false) -> Subscription<Value> {
    connection.subscribe(to: path, everyRevision: everyRevision)
  }

  /// Whether the state is a document: one without a schema of its own.
  var isDocument: Bool { connection.schema.map { $0.state == .value } ?? true }

  /// The path resolved with the daemon's schema. Throws the reason if it leads nowhere.
  func resolve(_ path: PathArgument) throws(Failure) -> PathArgument {
    guard let schema = connection.schema else { return path }
    do {
      return try path.resolved(in: schema)
    } catch {
      throw Failure(error.status, error.message, at: path.path)
    }
  }

  /// A report of the daemon.
  func report(_ name: ReportName, _ arguments: [String] = []) async throws -> Value {
    let ask = { @Sendable [connection] in
      try await connection.report(name.rawValue, arguments: arguments)
    }
    return try Self.checked(try await name.inspected == nil ? ask() : looks.pass(ask))
  }

  /// Calls `body` with reports until the connection ends or `body` throws.
  func reports(
    _ name: ReportName, _ arguments: [String], _ body: (Value) throws -> Void
  ) async throws {
    for try await report in connection.reports(name.rawValue, arguments: arguments) {
      try body(Self.checked(report))
    }
  }

  private static func checked(_ report: Value) throws(Failure) -> Value {
    if let error = ReportError(report) { throw Failure(error) }
    return report
  }

  // MARK: Sending

  /// Send an action of the document feature, and wait for its outcome.
  func send(
    _ action: DocumentAction, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try requireActions(of: action)
    var payload: [UInt8] = []
    action.encode(into: &payload)
    return try await send(payload: payload, mark)
  }

  /// Send an encoded action, and wait for its outcome.
  func send(payload: [UInt8], _ mark: Mark = .applied) async throws -> Acknowledgement {
    // The message around the payload takes a few bytes more.
    guard payload.count + 64 <= frameLimit else {
      throw Failure(
        .refused, code: "limit",
        "the action has \(payload.count) bytes, and the daemon takes \(frameLimit) in one "
          + "message. 'lockstep load' sends a document in parts; 'lockstepd --limit frameBytes=…' "
          + "allows more.")
    }
    return try await connection.send(payload: payload, mark)
  }

  /// The most bytes of one message to the daemon.
  var frameLimit: Int {
    let limit = connection.welcome?.limits.first { $0.name == "frameBytes" }
    return Int(clamping: limit?.value ?? UInt64(Frame.defaultLimit))
  }

  /// Payloads carry numbers of cases: check that these mean the same to the daemon.
  private func requireActions(of action: DocumentAction) throws(Failure) {
    guard let schema = connection.schema else { return }
    guard isDocument else {
      throw Failure(
        .refused, code: "unknownAction",
        "the daemon's state is not a document, so \(action.name) is none of its actions. "
          + "\(Schema.sentence("It has", schema.actionCases.keys)) Send them with 'lockstep send', "
          + "see 'lockstep schema'.")
    }
    let ours = DocumentFeature().schema.actionCases
    let theirs = schema.actionCases
    for name in action.heldNames.sorted() where !theirs.contains(where: { ours[name] == $0.value })
    {
      throw Failure(
        .refused, code: "unknownAction",
        "the daemon has no document action \"\(name)\"; it has: "
          + "\(theirs.keys.sorted().joined(separator: ", ")). See 'lockstep schema', and send with "
          + "'lockstep send'.")
    }
  }
}

extension Schema {
  /// A sentence that lists names: `It has: a, b.`
  static func sentence(_ beginning: String, _ names: some Sequence<String>) -> String {
    let sorted = names.sorted { String.precedes($0, $1) }
    return "\(beginning)\(sorted.isEmpty ? " none" : ": \(sorted.joined(separator: ", "))")."
  }

  /// The cases of the action by their names.
  var actionCases: [String: Case] {
    guard case .type(let name) = action, case .enumeration(let cases)? = types[name] else {
      return [:]
    }
    return Dictionary(cases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }
}

extension DocumentAction {
  fileprivate func encode(into bytes: inout [UInt8]) {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    bytes = encoder.bytes
  }
}
