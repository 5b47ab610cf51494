import ClientCore
public import Wire

/// The state of a connection, or of one of its subscriptions.
public enum ConnectionState: Sendable, Equatable {
  case connecting
  /// The mirror follows the daemon.
  case live
  /// The mirror shows the value from when the connection was lost, this long ago; the goodbye is
  /// the daemon's, if it said one. Or the daemon's state contains a case that this build does not
  /// know, and the mirror shows the last value that it could decode: the goodbye then names the
  /// case.
  case stale(for: Duration, Goodbye?)
  /// Final: the client does not reconnect.
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
