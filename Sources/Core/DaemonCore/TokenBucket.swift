import Wire

/// A rate limit: `perSecond` tokens a second; after a quiet second, as many at once.
///
/// Times are nanoseconds of any clock. One that goes back gives no tokens for that, and takes none.
package struct TokenBucket: Sendable {
  private let perSecond: Double
  private var tokens: Double
  private var time: Int64

  package init(perSecond: Int, at now: Int64) {
    self.perSecond = Double(perSecond)
    tokens = Double(perSecond)
    time = now
  }

  /// Take a token. Returns false if there is none.
  package mutating func take(at now: Int64) -> Bool {
    if now != time {
      let passed = max(0, Double(now &- time) / 1e9)
      tokens = min(perSecond, tokens + passed * perSecond)
      time = now
    }
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}

extension TokenBucket {
  init(perSecond: Int, at now: Instant) {
    self.init(perSecond: perSecond, at: Int64(bitPattern: now.nanoseconds))
  }

  @inline(__always)
  mutating func take(at now: Instant) -> Bool { take(at: Int64(bitPattern: now.nanoseconds)) }
}
