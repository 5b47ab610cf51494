import Lockstep
import Records
import Testing
import Wire

@testable import DaemonCore

/// The mirrors of former runs that can continue from their state.
@Suite struct TimelineTests {
  /// Run 1 was durable up to 100 when run 2 began, and run 2 up to 250 when run 4 began; there was
  /// no run 3.
  private let timeline = Timeline(
    epoch: 7, run: 4,
    runs: [
      JournalRun(run: 1, base: 0), JournalRun(run: 2, base: 100), JournalRun(run: 4, base: 250),
    ])

  @Test(arguments: [
    (4, 900, true), (4, 0, true),
    (2, 250, true), (2, 251, false),
    (1, 100, true), (1, 101, false), (1, 250, false),
    (3, 1, false), (5, 1, false), (0, 0, false),
  ])
  func `a position holds unless a later run began before it`(
    run: UInt64, revision: UInt64, holds: Bool
  ) {
    #expect(timeline.holds(Position(epoch: 7, run: run, revision: revision)) == holds)
  }

  @Test func `only runs of the epoch are known`() {
    let known = (0...5).filter {
      timeline.knows(Position(epoch: 7, run: UInt64($0), revision: 1))
    }
    #expect(known == [1, 2, 4])
    #expect(timeline.hasFormerRuns)
    #expect(!Timeline(epoch: 7, run: 1, runs: [JournalRun(run: 1, base: 0)]).hasFormerRuns)
  }
}

@Suite struct ServerClockTests {
  @Test func `the clock never goes back`() {
    var clock = ServerClock(at: Instant(nanoseconds: 1_000_000_000))
    clock.advance(to: Instant(nanoseconds: 3_000_000_000))
    clock.advance(to: Instant(nanoseconds: 2_000_000_000))
    #expect(clock.now == Instant(nanoseconds: 3_000_000_000))
    #expect(clock.uptimeMilliseconds == 2000)
  }

  @Test func `the time of day continues from its last setting, which may be earlier`() {
    var clock = ServerClock(at: Instant(nanoseconds: 100))
    #expect(clock.timeOfDay == Timestamp(nanoseconds: 100))
    clock.set(Timestamp(nanoseconds: 5000), at: Instant(nanoseconds: 200))
    clock.advance(to: Instant(nanoseconds: 250))
    #expect(clock.timeOfDay == Timestamp(nanoseconds: 5050))
    clock.set(Timestamp(nanoseconds: 40), at: Instant(nanoseconds: 300))
    #expect(clock.timeOfDay == Timestamp(nanoseconds: 40))
  }
}

@Suite struct ClosedConnectionsTests {
  private func closed(_ id: UInt64) -> ClosedConnection {
    ClosedConnection(
      id: id, peer: Peer(pid: 1, uid: 1, gid: 1), label: "", actions: 0, bytesSent: 0, lastedMs: 0,
      time: Timestamp(nanoseconds: 0), goodbye: nil)
  }

  @Test(arguments: [0, 1, 3])
  func `the newest closed connections are kept, up to the limit`(limit: Int) {
    var connections = ClosedConnections(limit: limit)
    for id: UInt64 in 1...10 { connections.append(closed(id)) }
    var page = PageWriter(Limits())
    #expect(connections.write(from: 0, into: &page) == nil)
    #expect(page.rows == limit)
    #expect(connections.count == (limit == 0 ? 0 : 10))
  }
}
