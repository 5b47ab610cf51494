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

/// The connections that ended last, oldest first, so that it can be asked why.
///
/// Invariant: there are at most `limit`, and they are counted without gaps: the newest is number
/// `count` - 1.
struct ClosedConnections: Sendable {
  private let limit: Int
  private var newest: [ClosedConnection] = []
  /// How many have ended in all.
  private(set) var count: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  /// Add the one that has just ended. O(`limit`).
  mutating func append(_ closed: ClosedConnection) {
    guard limit > 0 else { return }
    if newest.count >= limit { newest.removeFirst(newest.count - limit + 1) }
    newest.append(closed)
    count += 1
  }

  /// Write the next rows of the report "clients.closed", as many as a page takes: the newest last.
  /// Returns the number to go on from; nil when all are written.
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
  /// Remember why a connection ended, so that it can be asked afterwards.
  mutating func remember(_ connection: ServerSession) {
    connections.remember(
      ClosedConnection(
        id: connection.id.rawValue, peer: connection.peer, label: connection.label,
        actions: connection.counters.actions, bytesSent: connection.counters.bytesSent,
        lastedMs: clock.now.milliseconds(since: connection.openedAt), time: core.time,
        goodbye: connection.goodbye))
  }
}
