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
    closedCount += 1
    closedConnections.append(
      ClosedConnection(
        id: connection.id.rawValue, peer: connection.peer, label: connection.label,
        actions: connection.counters.actions, bytesSent: connection.counters.bytesSent,
        lastedMs: now.milliseconds(since: connection.openedAt), time: core.time,
        goodbye: connection.goodbye))
  }

  /// Write the next rows of the report "clients.closed": the newest last.
  func writeClosed(from first: UInt64, into page: inout PageWriter) -> RunningReport.Rest? {
    let oldest = closedCount - UInt64(closedConnections.count)
    var next = max(first, oldest)
    while next < closedCount, !page.isFull {
      page.beginRow()
      write(closedConnections[Int(next - oldest)], into: &page)
      page.endRow()
      next += 1
    }
    return next < closedCount ? .closed(from: next) : nil
  }

  private func write(_ closed: ClosedConnection, into page: inout PageWriter) {
    page.add("connection", closed.id)
    page.add("pid", closed.peer.pid)
    page.add("uid", closed.peer.uid)
    page.add("label", closed.label)
    page.add("actions", closed.actions)
    page.add("bytesSent", closed.bytesSent)
    page.add("lastedMs", closed.lastedMs)
    page.add("time", closed.time.description)
    page.add("cause", closed.goodbye.map { "\($0.code)" } ?? "lost")
    guard let goodbye = closed.goodbye else { return }
    page.add("message", goodbye.message)
    guard let limit = goodbye.limit else { return }
    page.add("limit", limit.name)
    page.add("allowed", limit.limit)
    page.add("observed", limit.observed)
  }
}
