import Access
import DaemonCore
public import Lockstep
public import Logging
public import Values

/// Logs every action at the level `info`: its number, origin, cause and outcome, but neither its
/// payload nor the state.
public struct LoggingMiddleware<State: Synchronizable, Action: SynchronizableAction>: Middleware {
  private let logger: Logger

  public init(logger: Logger) { self.logger = logger }

  public var name: String { "logging" }

  public func after(
    _ action: Action, state: State, reduction: Reduction, context: MiddlewareContext<Action>
  ) -> Effect<Action> {
    var metadata: Logger.Metadata = [
      "sequence": .number(context.sequence), "origin": "\(context.cause.origin)",
      "outcome": "\(reduction.label)",
    ]
    if let parent = context.cause.parent { metadata["parent"] = "\(parent)" }
    if case .changed(let revision) = reduction { metadata["revision"] = "\(revision)" }
    // Without the feature's own message, which may quote values.
    if case .rejected(let rejection) = reduction {
      metadata["reason"] = "\(rejection.code.sentence)"
    }
    logger.info("action \(action.name)", metadata: metadata)
    return .none
  }
}

extension Reduction {
  /// The outcome in one word.
  var label: String {
    switch self {
    case .changed: "changed"
    case .unchanged: "unchanged"
    case .swallowed: "swallowed"
    case .accepted: "accepted"
    case .rejected: "rejected"
    }
  }
}
