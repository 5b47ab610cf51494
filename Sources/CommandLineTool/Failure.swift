import EventLoop
import Glibc
import LockstepClient
import Sessions
import Wire

/// Why a command ends without having done what it was asked: a status, and a sentence for people.
struct Failure: Error, Equatable {
  var status: ExitStatus
  /// Nil when there is nothing to say.
  var message: String?

  init(_ status: ExitStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  /// The failure that an error of the client amounts to; nil for an error of another kind.
  init?(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as ClientError: self.init(error)
    case let error as SocketPath.Unfit:
      self.init(.usage, "\(error). Choose another with --socket or $LOCKSTEP_SOCKET.")
    case let error as LoopError: self.init(.unreachable, "\(error)")
    default: return nil
    }
  }

  private init(_ error: ClientError) {
    switch error {
    case .cannotConnect(let path, let cause):
      self.init(.unreachable, Self.cannotConnect(path, cause))
    case .closed(let goodbye): self.init(.goodbye, Self.sentence(goodbye))
    case .rejected(let rejection):
      // Some reasons are sentences already.
      let text = "rejected: \(rejection)"
      self.init(.refused, text.hasSuffix(".") ? text : text + ".")
    case .outcomeUnknown:
      self.init(
        .goodbye,
        "the connection was lost before the daemon answered: whether the action was done is "
          + "unknown. Look with 'lockstep get' before you send it again.")
    case .refused(.memory):
      self.init(
        .refused,
        "the daemon has no memory for a snapshot of the path. Show a part of it, or let the daemon "
          + "have more.")
    case .refused(let reason):
      self.init(.refused, "the daemon refuses to show the path (\(reason)).")
    case .noDigest: self.init(.refused, "\(error). Ask again, or for another path.")
    }
  }

  private static func cannotConnect(_ path: String, _ error: LoopError) -> String {
    var status = stat()
    if stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK {
      return "\(path) is not a socket. Name the daemon's socket with --socket."
    }
    return switch error.name {
    case "ENOENT":
      "no daemon serves at \(path): there is no such socket. Start one with "
        + "'lockstepd --socket \(path)', or name another socket with --socket."
    case "ECONNREFUSED":
      "no daemon serves at \(path): the socket is a leftover and nobody listens. Start one with "
        + "'lockstepd --socket \(path)', which takes it over."
    case "EACCES", "EPERM":
      "may not connect to \(path): permission denied. The daemon's user and root may; others if a "
        + "policy lets them ('lockstepd --policy')."
    default: "cannot connect to \(path): \(error)."
    }
  }

  static func sentence(_ goodbye: Goodbye) -> String {
    var text = "the daemon said goodbye (\(goodbye.code)): \(goodbye.message)"
    if goodbye.isLoss { text = "\(goodbye.message): the daemon ended without a goodbye" }
    if let breach = goodbye.limit {
      text += " (\(breach.name): \(breach.observed) of \(breach.limit))"
    }
    if let wait = goodbye.retryAfter { text += "; try again in \(wait) ms" }
    return text.hasSuffix(".") ? text : text + "."
  }
}

extension Goodbye {
  /// Whether this is no goodbye of the daemon's, only the end of the connection.
  var isLoss: Bool { code == .done }
}
