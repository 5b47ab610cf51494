import Lockstep
import Values
import Wire

/// A connection that has ended, and why.
struct ClosedConnection: Sendable {
  let id: UInt64
  let peer: Peer
  let label: String
  let actions: UInt64
  let bytesSent: UInt64
  /// How long it lasted, in milliseconds.
  let lastedMs: UInt64
  let time: Timestamp
  /// Nil when the client was lost: it said nothing, and was told nothing.
  let goodbye: Goodbye?
}

extension Server {
  /// Remember why a connection ended, so that it can be asked afterwards.
  mutating func remember(_ connection: ServerSession) {
    guard limits.closedConnections > 0 else { return }
    if closedConnections.count >= limits.closedConnections {
      closedConnections.removeFirst(closedConnections.count - limits.closedConnections + 1)
    }
    closedConnections.append(
      ClosedConnection(
        id: connection.id.rawValue, peer: connection.peer, label: connection.label,
        actions: connection.counters.actions, bytesSent: connection.counters.bytesSent,
        lastedMs: now.milliseconds(since: connection.openedAt), time: core.time,
        goodbye: connection.goodbye))
  }

  /// The report "clients.closed": the newest last.
  var closedReport: Value {
    .array(TreeArray(closedConnections.map(describe)))
  }

  private func describe(_ closed: ClosedConnection) -> Value {
    var entries: [(String, Value)] = [
      ("connection", Value(closed.id)), ("pid", Value(closed.peer.pid)),
      ("uid", Value(closed.peer.uid)), ("label", .text(closed.label)),
      ("actions", Value(closed.actions)), ("bytesSent", Value(closed.bytesSent)),
      ("lastedMs", Value(closed.lastedMs)), ("time", .text(closed.time.description)),
      ("cause", .text(closed.goodbye.map { "\($0.code)" } ?? "lost")),
    ]
    if let goodbye = closed.goodbye {
      entries.append(("message", .text(goodbye.message)))
      if let limit = goodbye.limit {
        entries.append(("limit", .text(limit.name)))
        entries.append(("allowed", Value(limit.limit)))
        entries.append(("observed", Value(limit.observed)))
      }
    }
    return object(entries)
  }
}
