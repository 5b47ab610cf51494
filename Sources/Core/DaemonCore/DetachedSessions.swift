import Wire

/// The sessions without a connection, by user. It names the session to evict if there are too many
/// (`SessionTable.surplus`): the longest waiting one of the user who has the most, so that no user
/// can evict the sessions of others.
struct DetachedSessions: Sendable {
  private struct Line: Sendable {
    /// In the order in which the sessions lost their connections. An entry is stale if its session
    /// has another ticket now, or none.
    var waiting: [(token: SessionToken, ticket: UInt64)] = []
    /// The number of stale entries at the front.
    var gone = 0
    var count = 0
  }

  private var lines: [UInt64: Line] = [:]
  private var tickets: [SessionToken: UInt64] = [:]
  private var nextTicket: UInt64 = 0

  var count: Int { tickets.count }

  /// Add a session of a user that now waits for its client. Amortised O(1).
  mutating func add(_ token: SessionToken, of uid: UInt64) {
    guard tickets[token] == nil else { return }
    nextTicket += 1
    tickets[token] = nextTicket
    var line = lines.removeValue(forKey: uid) ?? Line()
    if line.waiting.count > 2 * line.count + 64 {
      line.waiting = line.waiting.filter { tickets[$0.token] == $0.ticket }
      line.gone = 0
    }
    line.waiting.append((token, nextTicket))
    line.count += 1
    lines[uid] = line
  }

  /// Remove a session that has a connection again, or was forgotten. O(1).
  mutating func remove(_ token: SessionToken, of uid: UInt64) {
    guard tickets.removeValue(forKey: token) != nil, let count = lines[uid]?.count else { return }
    if count == 1 { lines[uid] = nil } else { lines[uid]?.count = count - 1 }
  }

  /// The longest waiting session of the user who has the most. Amortised O(users).
  mutating func evictionCandidate() -> SessionToken? {
    // With equal counts the lower uid wins, so that the choice does not depend on hashing.
    let most = lines.max { ($0.value.count, $1.key) < ($1.value.count, $0.key) }?.key
    guard let most, var line = lines.removeValue(forKey: most) else { return nil }
    while line.gone < line.waiting.count,
      tickets[line.waiting[line.gone].token] != line.waiting[line.gone].ticket
    {
      line.gone += 1
    }
    let token = line.gone < line.waiting.count ? line.waiting[line.gone].token : nil
    lines[most] = line
    return token
  }
}
