import Documents
import EventLoop
import Glibc
import JSONCoding
import LockstepClient
import Schemas
import Values
import Wire

/// Answers what a page asks.
struct InspectorAnswers {
  let client: Client
  let label: String

  /// The most bytes of the JSON of a value.
  private static let mostBytes = 256 << 10

  /// The names of what can be asked.
  enum Ask: String {
    case hello, parts, value, see, log, why, history, past, send, jump, undo, redo, pause, resume
    case cancel
  }

  /// The answer; nil for `see`, which concerns what comes later.
  func answer(_ ask: Ask, _ members: Value) async throws -> Value {
    switch ask {
    case .hello: return try await hello()
    case .parts: return try await parts(members)
    case .value: return try await value(members)
    case .see: return [:]
    case .log:
      let limit = try members.count("limit", 200, atMost: 2000)
      let records = try LogRecord.records(of: await client.report(.log, ["\(limit)"]))
      var changes = try LogChanges(client, at: [], isShown: true) { _ in }
      return ["records": .array(TreeArray(try await changes.add(to: records).map(\.value)))]
    case .why: return try await client.report(.why, ["\(try members.number("sequence"))"])
    case .history:
      let limit = try members.count("limit", 50, atMost: 1000)
      let rows = try await client.history(
        of: client.resolve(members.path), limit: Int(clamping: limit))
      return ["rows": .array(TreeArray(rows.map { $0.change.value(by: .some($0.maker)) }))]
    case .past: return try await client.pastRange()
    case .send: return try await send(members.child("action") ?? .null)
    case .jump: return try await client.report(.jump, ["\(try members.number("revision"))"])
    case .undo: return try await client.report(.undo, ["\(try members.count("count", 1))"])
    case .redo: return try await client.report(.redo, ["\(try members.count("count", 1))"])
    case .pause:
      let seconds = members.child("seconds") == nil ? nil : try members.number("seconds")
      return try await client.report(.pause, seconds.map { ["\($0)"] } ?? [])
    case .resume: return try await client.report(.resume)
    case .cancel:
      return try await client.report(.cancelEffects, [try members.text("effect") ?? ""])
    }
  }

  private func hello() async throws -> Value {
    let status = try await client.report(.status)
    return [
      "socket": .text(client.socket), "version": status.child("version") ?? .null,
      "label": .text(label), "uid": Value(UInt64(geteuid())),
      "isDocument": .bool(client.isDocument), "schema": client.connection.schema?.value ?? .null,
    ]
  }

  private func parts(_ members: Value) async throws -> Value {
    let path = try members.path.path
    let limit = try members.count("limit", 200, atMost: 1000)
    var arguments = [path.pointer, "1", "\(limit)", ""]
    if let text = try members.text("after") {
      guard let after = Path(pointer: text), path.leads(to: after) else {
        throw Failure(
          .usage, code: "malformed", "'\(text.shortened)' is not below '\(path.pointer)'.")
      }
      // The daemon counts from the listed path on.
      arguments[3] = Path(Array(after.keys.dropFirst(path.keys.count))).pointer
    }
    if members.child("at") != nil { arguments.append("\(try members.number("at"))") }
    return try await client.report(.parts, arguments)
  }

  private func value(_ members: Value) async throws -> Value {
    let path = try client.resolve(members.path)
    let found: (revision: UInt64, value: Value?)
    if members.child("at") != nil {
      let revision = try members.number("at")
      found = (revision, try await client.value(at: path, revision: revision))
    } else {
      let mirror = try await client.mirror(of: path.scope)
      let (state, position) = mirror.snapshot
      found = (position?.revision ?? 0, state?.value(at: path.rest))
    }
    guard let value = found.value else { return ["revision": Value(found.revision)] }
    guard JSON.text(value).utf8.count <= Self.mostBytes else {
      throw Failure(
        .refused, code: "limit",
        "this value has more than \(Self.mostBytes >> 10) kB. 'lockstep get' shows it.")
    }
    return ["revision": Value(found.revision), "value": value]
  }

  private func send(_ action: Value) async throws -> Value {
    guard let schema = client.connection.schema else {
      throw Failure(.refused, "the daemon does not say what its actions are.")
    }
    let payload: [UInt8]
    do {
      payload = try ActionJSON.payload(of: action, schema: schema)
    } catch {
      throw Failure(.usage, code: "malformed", "that is no action of the daemon: \(error).")
    }
    return try await client.send(payload: payload).value
  }
}

extension Client {
  /// From which revision to which the past can be looked at.
  func pastRange() async throws -> Value {
    let status = try await report(.status)
    let newest = status.child("revision") ?? .null
    if let since = status.child("pastSince") { return ["since": since, "newest": newest] }
    // The status says it only to users who see the whole state.
    let page = try await changes(at: PathArgument(.root), before: .max, count: 1)
    return ["since": Value(page.since), "newest": newest]
  }
}

extension Value {
  fileprivate func text(_ name: PathKey) throws(Failure) -> String? {
    switch child(name) {
    case .text(let text)?: return text
    case nil: return nil
    default: throw Failure(.usage, code: "malformed", "'\(name)' is a text.")
    }
  }

  fileprivate func number(_ name: PathKey) throws(Failure) -> UInt64 {
    guard let number = child(name)?.number else {
      throw Failure(.usage, code: "malformed", "'\(name)' is a whole number.")
    }
    return number
  }

  fileprivate func count(
    _ name: PathKey, _ standard: UInt64, atMost limit: UInt64 = .max
  ) throws(Failure) -> UInt64 {
    child(name) == nil ? standard : min(limit, try number(name))
  }

  fileprivate var path: PathArgument {
    get throws {
      let pointer = try text("path") ?? ""
      guard let path = Path(pointer: pointer) else {
        throw Failure(.usage, code: "malformed", "'\(pointer.shortened)' is no path.")
      }
      return PathArgument(path)
    }
  }
}
