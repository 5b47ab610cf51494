import Lockstep
import Values
import Wire

/// An ended connection, with the reason.
struct ClosedConnection: Sendable {
  let id: UInt64
  let peer: Peer
  let label: String
  let actions: UInt64
  let bytesSent: UInt64
  /// How long the connection lasted, in milliseconds.
  let lastedMs: UInt64
  let time: Timestamp
  /// Nil if the client was lost without a goodbye from either side.
  let goodbye: Goodbye?
}

/// The connections that ended last, oldest first, for the report "clients.closed".
///
/// Invariant: at most `limit` are stored, and they are numbered without gaps: the newest is number
/// `count` - 1.
struct ClosedConnections: Sendable {
  private let limit: Int
  private var newest: [ClosedConnection] = []
  /// The number of all connections that have ended.
  private(set) var count: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  /// Append the connection that has just ended. O(`limit`).
  mutating func append(_ closed: ClosedConnection) {
    guard limit > 0 else { return }
    if newest.count >= limit { newest.removeFirst(newest.count - limit + 1) }
    newest.append(closed)
    count += 1
  }

  /// Write the next rows of the report "clients.closed", as many as fit the page, the newest last.
  /// Returns the number of the next row; nil if all are written.
  func write(from first: UInt64, into page: inout PageWriter) -> UInt64? {
    let oldest = count - UInt64(newest.count)
    var next = max(first, oldest)
    while next < count, !page.isFull {
      page.beginRow()
      write(newest[Int(next - oldest)], into: &page)
      page.endRow()
      next += 1
    }
    return next < count ? next : nil
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

extension Server {
  /// Record why a connection ended, for the report "clients.closed".
  mutating func remember(_ connection: ServerSession) {
    connections.remember(
      ClosedConnection(
        id: connection.id.rawValue, peer: connection.peer, label: connection.client.label,
        actions: connection.counters.actions, bytesSent: connection.counters.bytesSent,
        lastedMs: clock.now.milliseconds(since: connection.origin.openedAt), time: core.time,
        goodbye: connection.goodbye))
  }
}
