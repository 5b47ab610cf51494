/// The reports of a daemon, by the names that queries ask for (`ClientMessage.query`).
public enum ReportName: String, CaseIterable, Sendable {
  case changes
  case clients
  case closedClients = "clients.closed"
  case effects
  case cancelEffects = "effects.cancel"
  case limits
  case log
  case followLog = "log.follow"
  case jump
  case unfollowLog = "log.unfollow"
  case metrics
  case parts
  case past
  case pause
  case redo
  case reloadPolicy = "policy.reload"
  case resume
  case status
  case undo
  case why

  /// Whether every client may ask for it; the others need the right to administer.
  public var isForEveryone: Bool {
    switch self {
    case .limits, .parts, .status: true
    case .changes, .clients, .closedClients, .effects, .cancelEffects, .jump, .log, .followLog,
      .unfollowLog, .metrics, .past, .pause, .redo, .reloadPolicy, .resume, .undo, .why:
      false
    }
  }

  /// A report that takes as long as to encode the whole state.
  package enum Inspected { case parts, past, changes, jump(Jump) }

  /// The most changes of one `undo` or `redo`.
  package static let mostSteps = 1000

  /// The most seconds after which a `pause` ends by itself.
  package static let longestPause = 86_400

  /// A query that makes a revision with the contents of a former one.
  package enum Jump { case jump, undo, redo }

  /// The report among those that take as long as to encode the whole state; nil if it is none.
  package var inspected: Inspected? {
    switch self {
    case .parts: .parts
    case .past: .past
    case .changes: .changes
    case .jump: .jump(.jump)
    case .undo: .jump(.undo)
    case .redo: .jump(.redo)
    default: nil
    }
  }

  /// The names, sorted, as a sentence lists them.
  public static func list(where isIncluded: (ReportName) -> Bool = { _ in true }) -> [String] {
    allCases.filter(isIncluded).map(\.rawValue).sorted()
  }
}
