import CBOR
import Foundation
import Values
import Wire

/// A file of `Protocols/vectors`, whose README explains the notation.
struct VectorFile<Vector: Decodable & Sendable>: Decodable, Sendable {
  let seed: String?
  let vectors: [Vector]

  init(_ name: String) {
    let file = repository.appendingPathComponent("Protocols/vectors/\(name)")
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: file))
    } catch {
      preconditionFailure("\(file.path): \(error)")
    }
  }

  /// The seed with which the collections of the file hash.
  var hashSeed: HashSeed { HashSeed(seed.flatMap { UInt64($0, radix: 16) } ?? 0) }
}

let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent()

/// JSON that keeps 64-bit integers exact.
enum JSON: Decodable, Equatable {
  case null
  case bool(Bool)
  case integer(Int64)
  case unsigned(UInt64)
  case text(String)
  case array([JSON])
  case object([String: JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .unsigned(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  subscript(name: String) -> JSON {
    guard let member = member(name) else {
      preconditionFailure("No member \(name) in \(self).")
    }
    return member
  }

  /// An optional member.
  func member(_ name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members[name]
  }

  var isNull: Bool { self == .null }

  var number: UInt64 {
    switch self {
    case .integer(let value): UInt64(value)
    case .unsigned(let value): value
    default: preconditionFailure("\(self) is no number.")
    }
  }

  var isTrue: Bool {
    guard case .bool(let value) = self else { preconditionFailure("\(self) is no boolean.") }
    return value
  }

  var string: String {
    guard case .text(let value) = self else { preconditionFailure("\(self) is no text.") }
    return value
  }

  var elements: [JSON] {
    guard case .array(let value) = self else { preconditionFailure("\(self) is no array.") }
    return value
  }

  /// The number of sixteen hex digits.
  var word: UInt64 { UInt64(string, radix: 16)! }

  /// The mapped value, or nil for `null`.
  func map<T>(_ body: (JSON) -> T) -> T? { isNull ? nil : body(self) }
}

// MARK: Values

extension JSON {
  /// The value in the notation of the vectors; nil for an absent one.
  var value: Value? {
    switch self {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .unsigned(let value): return Value(value)
    case .text(let value): return .text(value)
    case .array(let elements): return .array(TreeArray(elements.map { $0.value! }))
    case .object(let members):
      guard let (form, content) = members.first, form.hasPrefix("$") else {
        return .object(Self.object(members.map { ($0.key, $0.value) }))
      }
      switch form {
      case "$undefined": return nil
      case "$double": return .double(Double(content.string)!)
      case "$bytes": return .bytes(bytes(content.string))
      case "$map":
        let pairs = content.elements.map(\.pair)
        return .object(Self.object(pairs.map { ($0.0.string, $0.1) }))
      default: preconditionFailure("There is no form \(form).")
      }
    }
  }

  private var pair: (JSON, JSON) { (elements[0], elements[1]) }

  private static func object(_ members: [(String, JSON)]) -> TrieMap<String, Value> {
    TrieMap(uniqueKeysWithValues: members.map { ($0.0, $0.1.value!) })
  }

  /// The map, if it is one with integer keys.
  var integerMap: TrieMap<Int, Value>? {
    guard case .object(let members) = self, case .array(let pairs)? = members["$map"],
      case .integer? = pairs.first?.pair.0
    else { return nil }
    return TrieMap(
      uniqueKeysWithValues: pairs.map { entry in
        guard case .integer(let key) = entry.pair.0 else { preconditionFailure("\(entry)") }
        return (Int(key), entry.pair.1.value!)
      })
  }

  var path: Path {
    Path(
      elements.map { key in
        switch key {
        case .text(let text): .text(text)
        case .integer(let number): .integer(number)
        default: preconditionFailure("\(key) is no key.")
        }
      })
  }
}

// MARK: Messages

/// A message of `messages.json`: its bytes and its meaning.
struct MessageVector: Decodable, CustomStringConvertible {
  let name: String
  let sender: Sender
  let type: String
  let hex: String
  let fields: JSON

  static let file = VectorFile<MessageVector>("messages.json")

  var description: String { name }
  var encoded: [UInt8] { bytes(hex) }

  func message(seed: HashSeed) throws -> Message {
    switch sender {
    case .client: .client(try clientMessage)
    case .daemon: .daemon(try daemonMessage(seed))
    }
  }

  private var clientMessage: ClientMessage {
    get throws {
      switch type {
      case "hello":
        let versions = fields["versions"].elements.map(\.number)
        return .hello(
          .init(
            versions: versions[0]...versions[1], label: fields["label"].string,
            fingerprint: fields["fingerprint"].map(\.word), token: fields["token"].map(\.token),
            position: fields["position"].map(\.position),
            wantsDecisions: fields.member("decisions")?.isTrue ?? false))
      case "subscribe":
        return .subscribe(
          subscription: fields["subscription"].number, fields["path"].path,
          fields["position"].map(\.position))
      case "unsubscribe": return .unsubscribe(subscription: fields["subscription"].number)
      case "action":
        return .action(
          number: fields["number"].number, Mark(rawValue: fields["mark"].number)!,
          payload: bytes(fields["payload"].string))
      case "ping": return .ping(fields["value"].number)
      case "digestRequest": return .digestRequest(subscription: fields["subscription"].number)
      case "query":
        return .query(
          number: fields["number"].number, fields["name"].string,
          arguments: fields.member("arguments")?.elements.map(\.string) ?? [])
      case "clientGoodbye":
        return .goodbye(
          GoodbyeCode(rawValue: fields["code"].number), fields["message"].string)
      default: preconditionFailure("Clients send no \(type).")
      }
    }
  }

  private func daemonMessage(_ seed: HashSeed) throws -> ServerMessage {
    switch type {
    case "welcome": return .welcome(try welcome)
    case "subscribed":
      return .subscribed(
        .init(
          subscription: fields["subscription"].number, scope: fields["scope"].number,
          ServerMessage.Continuation(rawValue: fields["continuation"].number)!,
          ServerMessage.Reason(rawValue: fields["reason"].number)!,
          revision: fields["revision"].number))
    case "snapshot":
      return .snapshot(
        .init(
          scope: fields["scope"].number, revision: fields["revision"].number,
          index: fields["index"].number, isLast: fields["isLast"].isTrue,
          bytes: bytes(fields["bytes"].string)))
    case "patch":
      return .patch(
        scope: fields["scope"].number, from: fields["from"].number,
        fields["patches"].elements.map {
          .init(span: $0.elements[0].number, patch: bytes($0.elements[1].string))
        })
    case "acknowledgement": return .acknowledgement(acknowledgement)
    case "pong":
      return .pong(fields["value"].number, revision: fields["revision"].number)
    case "bookmark":
      return .bookmark(
        revision: fields["revision"].number, durable: fields["durable"].map(\.number))
    case "digest":
      return .digest(
        subscription: fields["subscription"].number, revision: fields["revision"].number,
        fields["digest"].map { Digest($0.word) })
    case "schema": return .schema(try fields["schema"].schema)
    case "report":
      var value = fields["value"].value!
      value.adopt(seed: seed)
      return .report(
        number: fields["number"].number, value, hasMore: fields.member("hasMore")?.isTrue ?? false)
    case "goodbye": return .goodbye(goodbye)
    case "restarting": return .restarting(retryAfter: fields["retryAfter"].number)
    case "restarted": return .restarted(fields["position"].position)
    case "decided":
      return .decided(through: fields["last"].number, revision: fields["revision"].number)
    default: preconditionFailure("Daemons send no \(type).")
    }
  }

  private var welcome: ServerMessage.Welcome {
    get throws {
      let peer = fields["peer"].elements.map(\.number)
      return .init(
        version: fields["version"].number, position: fields["position"].position,
        seed: HashSeed(fields["seed"].word), token: fields["token"].token,
        isResumed: fields["isResumed"].isTrue, lastAction: fields["lastAction"].number,
        window: fields["window"].number,
        limits: fields["limits"].elements.map {
          .init($0.elements[0].string, $0.elements[1].number)
        },
        schema: fields["schema"].isNull ? nil : try fields["schema"].schema,
        peer: Peer(pid: peer[0], uid: peer[1], gid: peer[2]),
        durable: fields["durable"].map(\.number), session: fields.member("session")?.number)
    }
  }

  private var acknowledgement: Acknowledgement {
    let outcome: Acknowledgement.Outcome =
      switch fields["outcome"].number {
      case 0: .reduced
      case 1: .unchanged
      case 2: .swallowed
      case 3: .accepted
      case 4:
        .rejected(
          RejectionMessage(
            code: fields["rejection"].elements[0].number,
            message: fields["rejection"].elements[1].string,
            path: fields["rejection"].elements[2].map(\.path)))
      case 5: .outcomeUnknown
      case let other: preconditionFailure("There is no outcome \(other).")
      }
    return Acknowledgement(
      first: fields["first"].number, last: fields["last"].number,
      revision: fields["revision"].number, mark: Mark(rawValue: fields["mark"].number)!, outcome,
      notDurable: fields.member("notDurable").flatMap { $0.map(\.string) },
      sequence: fields.member("sequence")?.number)
  }

  private var goodbye: Goodbye {
    let limit = fields["limit"].map { limit in
      let numbers = limit.elements.dropFirst().map(\.number)
      var breach = LimitBreach(limit.elements[0].string, limit: 0, observed: 0)
      (breach.limit, breach.observed) = (numbers[0], numbers[1])
      return breach
    }
    return Goodbye(
      GoodbyeCode(rawValue: fields["code"].number), fields["message"].string, limit: limit,
      retryAfter: fields["retryAfter"].map(\.number))
  }
}

extension JSON {
  fileprivate var position: Position {
    let numbers = elements.map(\.number)
    return Position(epoch: numbers[0], run: numbers[1], revision: numbers[2])
  }

  fileprivate var token: SessionToken {
    SessionToken(
      high: UInt64(string.prefix(16), radix: 16)!, low: UInt64(string.suffix(16), radix: 16)!)
  }

  fileprivate var schema: Schema {
    get throws {
      try CBORDecoder.read(bytes(string)) { decoder throws(CBORError) in
        try Schema(from: &decoder)
      }
    }
  }
}
