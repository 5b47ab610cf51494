/// The reports of a daemon, by the names that queries ask for (`ClientMessage.query`).
public enum ReportName: String, CaseIterable, Sendable {
  case clients
  case closedClients = "clients.closed"
  case effects
  case cancelEffects = "effects.cancel"
  case limits
  case log
  case followLog = "log.follow"
  case unfollowLog = "log.unfollow"
  case metrics
  case parts
  case reloadPolicy = "policy.reload"
  case status
  case why

  /// Whether every client may ask for it; the others need the right to administer.
  public var isForEveryone: Bool {
    switch self {
    case .limits, .parts, .status: true
    case .clients, .closedClients, .effects, .cancelEffects, .log, .followLog, .unfollowLog,
      .metrics, .reloadPolicy, .why:
      false
    }
  }

  /// The names, sorted, as a sentence lists them.
  public static func list(where isIncluded: (ReportName) -> Bool = { _ in true }) -> [String] {
    allCases.filter(isIncluded).map(\.rawValue).sorted()
  }
}
