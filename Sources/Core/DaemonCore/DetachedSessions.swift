import Wire

/// The sessions that no connection has now, by user. Where there are too many, whoever keeps the
/// most of them loses the one that has waited longest: nobody can push out those of others.
struct DetachedSessions: Sendable {
  private struct Line: Sendable {
    /// In the order in which they lost their connections. One whose ticket is another by now, or
    /// that has none, is not in the line any more.
    var waiting: [(token: SessionToken, ticket: UInt64)] = []
    /// How many at the front have gone.
    var gone = 0
    var count = 0
  }

  private var lines: [UInt64: Line] = [:]
  private var tickets: [SessionToken: UInt64] = [:]
  private var nextTicket: UInt64 = 0

  var count: Int { tickets.count }

  /// A session of a user waits for its client from now on. Amortised O(1).
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

  /// A session has a connection again, or is forgotten. O(1).
  mutating func remove(_ token: SessionToken, of uid: UInt64) {
    guard tickets.removeValue(forKey: token) != nil, let count = lines[uid]?.count else { return }
    if count == 1 { lines[uid] = nil } else { lines[uid]?.count = count - 1 }
  }

  /// The session that has waited longest, of the user who has the most. Amortised O(users).
  mutating func evictionCandidate() -> SessionToken? {
    // The lesser number where two have as many, so that it does not follow from hashing.
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
