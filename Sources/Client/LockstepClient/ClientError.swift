public import EventLoop
public import Wire

/// Why a client's request failed.
public enum ClientError: Error, CustomStringConvertible {
  /// No daemon listens at the path, or permission is denied.
  case cannotConnect(path: String, LoopError)
  /// The connection ended for good, for this reason.
  case closed(Goodbye)
  /// The daemon rejected the action; nothing changed.
  case rejected(RejectionMessage)
  /// Whether the action was reduced cannot be known: the session is lost. It is never retried
  /// automatically.
  case outcomeUnknown
  /// A middleware of the daemon took the action, which was not reduced, and may have added others in its
  /// place. Of a post only (`MirrorStore.failedPosts`): `send` returns it as the outcome.
  case swallowed
  /// The daemon refuses to show the path.
  case refused(ServerMessage.Reason)
  /// The daemon has no digest that could be compared now: the mirror has not caught up, or shows a
  /// part of the value at its path.
  case noDigest

  public var description: String {
    switch self {
    case .cannotConnect(let path, let error):
      switch error.name {
      case "ENOENT": "no daemon at \(path): there is no such socket. Is lockstepd running?"
      case "ECONNREFUSED": "no daemon at \(path): the socket is there, but nobody listens."
      case "EACCES", "EPERM": "may not connect to \(path): permission denied."
      default: "cannot connect to \(path): \(error)"
      }
    case .closed(let goodbye): "the connection is closed (\(goodbye.code)): \(goodbye.message)"
    case .rejected(let rejection): "rejected: \(rejection)"
    case .swallowed: "a middleware of the daemon took the action"
    case .outcomeUnknown: "whether the action was done cannot be known: the session is lost"
    case .refused(let reason): "the daemon refuses the subscription: \(reason)"
    case .noDigest:
      "the daemon has no digest to compare now: the mirror has not caught up, or shows only a part"
    }
  }
}
