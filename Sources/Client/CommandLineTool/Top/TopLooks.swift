import EventLoop
import LockstepClient

/// Looks at a daemon, one each interval.
struct TopLooks: Sendable {
  let client: Client
  let interval: Duration
  /// How many; without end if it is nil.
  let count: Int?
  /// Whether the second comes sooner: somebody waits for the first rates.
  let hurries: Bool

  private static let hurry = Duration.milliseconds(300)

  /// Call `body` with each look. Throws when the connection has ended.
  func run(_ body: (TopLook) async throws -> Void) async throws {
    let clock = LoopClock()
    var newest: UInt64?
    var number = 0
    while true {
      let start = clock.now
      if let look = try await look(after: newest) {
        newest = look.log.contents?.newest
        try await body(look)
        number += 1
        if let count, number >= count { return }
      }
      try await clock.sleep(
        until: start + (number == 1 && hurries ? min(Self.hurry, interval) : interval))
    }
  }

  /// A look; nil if the daemon is about to go on in another process, and answers no query now.
  private func look(after newest: UInt64?) async throws -> TopLook? {
    do {
      return try await TopLook.take(client, after: newest)
    } catch let failure as Failure where failure.isForRestart {
      return nil
    }
  }
}
