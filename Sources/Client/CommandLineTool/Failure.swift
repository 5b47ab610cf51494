import EventLoop
import Lockstep
import LockstepClient
import SocketPaths
import Values
import Wire

/// The reason that a command does not end with status 0: a status, and a sentence for people.
struct Failure: Error, Equatable {
  var status: ExitStatus
  var message: String
  /// The protocol's name of the reason if it has one, else that of the status.
  var code: String
  /// The path in the state, if the failure is about one.
  var path: Path?
  /// The limit that was exceeded, if one was.
  var limit: LimitBreach?
  /// The delay before a retry, in milliseconds.
  var retryAfter: UInt64?

  init(_ status: ExitStatus, code: String? = nil, _ message: String, at path: Path? = nil) {
    self.status = status
    self.message = message
    self.code = code ?? status.name
    self.path = path
  }

  /// The failure for an error of the client library; nil for an error of another kind.
  init?(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as ClientError: self.init(error)
    case let error as SocketPath.Unfit:
      self.init(.usage, "\(error). Choose another with --socket or $LOCKSTEP_SOCKET.")
    case let error as LoopError: self.init(.unreachable, "\(error).")
    case let error as InspectorFailure: self.init(.unwritten, error.message.endingInDot)
    default: return nil
    }
  }

  private init(_ error: ClientError) {
    switch error {
    case .cannotConnect(let path, let cause): self.init(connectingTo: path, cause)
    case .closed(let goodbye): self.init(goodbye)
    case .rejected(let rejection): self.init(rejection)
    case .outcomeUnknown:
      self.init(
        .goodbye, code: "outcomeUnknown",
        "the connection was lost before the daemon answered: whether the action was done is "
          + "unknown. Look with 'lockstep get' before you send it again.")
    case .swallowed: self.init(.refused, code: "swallowed", "\(error).")
    case .refused(.memory):
      self.init(
        .refused, code: "memory",
        "the daemon has no memory for a snapshot of the path. Show a part of it, or let the daemon "
          + "have more.")
    case .refused(.denied): self = .unreadable("the path")
    case .refused(let reason):
      self.init(.refused, code: "\(reason)", "the daemon refuses to show the path (\(reason)).")
    case .noDigest:
      self.init(.refused, code: "noDigest", "\(error). Ask again, or for another path.")
    }
  }

  /// The failure for a missing right to read a path.
  static func unreadable(_ place: String, at path: Path? = nil) -> Failure {
    Failure(
      .denied,
      "the daemon's policy gives you no right to read \(place), nor anything in it. \(policyAdvice)",
      at: path)
  }

  /// How to get a right.
  private static let policyAdvice =
    "Its policy file gives rights ('lockstepd --policy', see lockstepd.service(8)), and its log says "
    + "which rule denies one."

  /// The failure for the end of the connection.
  init(_ goodbye: Goodbye) {
    var text = "the daemon said goodbye (\(goodbye.code)): \(goodbye.message)"
    if goodbye.isLoss { text = "\(goodbye.message): the daemon ended without a goodbye" }
    if let breach = goodbye.limit {
      text += " (\(breach.name): \(breach.observed) of \(breach.limit))"
    }
    if let wait = goodbye.retryAfter { text += "; try again in \(wait) ms" }
    self.init(
      goodbye.code == .denied ? .denied : .goodbye,
      code: goodbye.isLoss ? "lost" : "\(goodbye.code)", text.endingInDot)
    limit = goodbye.limit
    retryAfter = goodbye.retryAfter
  }

  private init(_ rejection: RejectionMessage) {
    let code = Rejection.Code(rawValue: rejection.code)
    let status: ExitStatus =
      switch code {
      case .denied: .denied
      case .testFailed: .differs
      default: .refused
      }
    // Some reasons are sentences already.
    var text = "rejected: \(rejection)".endingInDot
    // Denials by the feature or a middleware are not the policy's.
    if code == .denied && rejection.isForLackOfRight { text += " \(Self.policyAdvice)" }
    self.init(status, code: code.name, text, at: rejection.path)
  }

  /// The failure for a query that got no report.
  init(_ error: ReportError) {
    var text = error.text.endingInDot
    let status: ExitStatus
    switch error.code {
    case .denied:
      status = .denied
      text +=
        " A rule with 'administer: true' in its policy file gives it (see lockstepd.service(8))."
    case .absent: status = .absent
    case .malformed, .unknown, .limit, .refused, .restarting: status = .refused
    }
    self.init(status, code: error.code.rawValue, text)
  }

  /// The failure as `--json` has it: `{"error": {"code": …, "message": …, "status": …}}`.
  var value: Value {
    var members: TrieMap<String, Value> = [
      "code": .text(code), "message": .text(message), "status": .text(status.name),
    ]
    if let path { members.updateValue(.text(path.pointer), forKey: "path") }
    if let limit {
      let breach: Value = [
        "allowed": Value(limit.limit), "name": .text(limit.name), "observed": Value(limit.observed),
      ]
      members.updateValue(breach, forKey: "limit")
    }
    if let retryAfter { members.updateValue(Value(retryAfter), forKey: "retryAfterMs") }
    return ["error": .object(members)]
  }
}

extension RejectionMessage {
  /// Whether the daemon's policy denies the action, and the sentence does not say which rule.
  fileprivate var isForLackOfRight: Bool {
    (message.contains(" needs the right to ") || message.hasPrefix("you may not send "))
      && !message.contains(": ")
  }
}

extension Goodbye {
  /// Whether the connection ended without a goodbye of the daemon.
  var isLoss: Bool { code == .done }
}

extension Rejection.Code {
  /// The name that Protocols/wire.md gives to the code.
  var name: String {
    switch self {
    case .malformed: "malformed"
    case .unknownAction: "unknownAction"
    case .badPath: "badPath"
    case .wrongType: "wrongType"
    case .testFailed: "testFailed"
    case .numberOutOfRange: "numberOutOfRange"
    case .limit: "limit"
    case .refused: "refused"
    case .denied: "denied"
    case .notDurable: "notDurable"
    case .poisoned: "poisoned"
    case .paused: "paused"
    default: "code\(rawValue)"
    }
  }
}

extension String {
  var endingInDot: String { hasSuffix(".") || hasSuffix("?") ? self : self + "." }
}
