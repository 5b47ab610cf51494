import DaemonCore
import Testing

/// The rate limits of users, and of `RateLimitMiddleware`.
@Suite struct TokenBucketTests {
  /// Takes tokens of a bucket of four a second at these times, in quarters of a second. Returns
  /// whether there were any.
  private func take(at quarters: [Double]) -> [Bool] {
    var bucket = TokenBucket(perSecond: 4, at: 0)
    var taken: [Bool] = []
    for quarter in quarters { taken.append(bucket.take(at: Int64(quarter * 250_000_000))) }
    return taken
  }

  @Test func `a second's worth can be taken at once`() {
    #expect(
      take(at: [0, 0, 0, 0, 0, 40, 40, 40, 40, 40])
        == [true, true, true, true, false, true, true, true, true, false])
  }

  @Test func `then one each time that it has been earned`() {
    #expect(
      take(at: [0, 0, 0, 0, 0.5, 1, 1, 3, 3, 3])
        == [true, true, true, true, false, true, false, true, true, false])
  }

  @Test func `a clock that goes back neither gives tokens nor stops them`() {
    #expect(
      take(at: [40, 40, 40, 40, 20, 21, 21]) == [true, true, true, true, false, true, false])
  }
}
