import Wire

/// A rate limit: `perSecond` tokens a second; after a quiet second, as many at once.
struct TokenBucket: Sendable {
  private let perSecond: Double
  private var tokens: Double
  private var time: Instant

  init(perSecond: Int, at now: Instant) {
    self.perSecond = Double(perSecond)
    tokens = Double(perSecond)
    time = now
  }

  /// Take a token. Returns false if there is none.
  mutating func take(at now: Instant) -> Bool {
    if now > time {
      tokens = min(perSecond, tokens + Double(now.nanoseconds - time.nanoseconds) / 1e9 * perSecond)
      time = now
    }
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}
