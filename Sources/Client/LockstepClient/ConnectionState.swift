import ClientCore
public import Wire

/// How far a connection, or one subscription of it, follows the daemon.
public enum ConnectionState: Sendable, Equatable {
  case connecting
  /// The mirror follows the daemon.
  case live
  /// The mirror shows what was true when the connection was lost, so long ago; the goodbye is the
  /// daemon's, if it said one. Or what it could last read, where the daemon's state holds a case
  /// that this build does not know: the goodbye then says which.
  case stale(for: Duration, Goodbye?)
  /// Final: the connection is never made again.
  case closed(Goodbye)
}

extension ConnectionState {
  init(_ state: Link.Session.ConnectionState, at now: Instant) {
    switch state {
    case .connecting: self = .connecting
    case .live: self = .live
    case .stale(let since, let goodbye):
      let lag = now.milliseconds(since: since)
      self = .stale(for: .milliseconds(Int64(clamping: lag)), goodbye)
    case .closed(let goodbye): self = .closed(goodbye)
    }
  }
}
