import CBOR
import Documents
import Foundation
import LockstepClient
import Sessions
import Synchronization
import TestClient
import Testing
import Values
import Wire

@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)), .serialized)
struct SlowClientsTests {
  @Test func `a client stopped during a million changes gets one patch over what it missed`()
    async throws
  {
    try await withDaemon { served in
      let client = try await served.client("sleeper")
      let mirror = try await served.mirror(of: ["nothing"])
      try await Self.change(served, times: 1)
      client.write("reached 10000")
      try await client.line("done")
      client.signal(SIGSTOP)
      let before = served.daemon.residentBytes

      try await Self.change(served, times: 100)
      let grown = served.daemon.residentBytes - before
      #expect(grown < 64 << 20, "the daemon grew by \(grown >> 20) MiB")
      let report = try await mirror.report("clients").elements.first { $0["label"] == "sleeper" }
      #expect(report?["lagBytes"]?.number ?? 0 > 0)
      let status = try await mirror.report("status")
      #expect(status["heldStates"] == 1)

      client.signal(SIGCONT)
      client.write("reached 1010000")
      let digest = try #require(status["digest"])
      #expect(try await client.line("at") == "at 1010000 \(try text(digest))")
      client.write("counters")
      let counters = try await client.line("counters").split(separator: " ")
        .compactMap { UInt64($0) }
      let (snapshots, patches, coalesced) = (counters[0], counters[1], counters[2])
      #expect(snapshots == 1)
      // What the socket's buffer held came one by one; all the rest as one.
      #expect(coalesced > 900_000)
      #expect(patches < 110_000)
      #expect(patches + coalesced == 1_010_000)
      client.signal(SIGKILL)
    }
  }

  private func text(_ value: Value) throws -> String {
    guard case .text(let text) = value else {
      throw ChildProcess.Failure(description: "\(value) is no text")
    }
    return text
  }

  /// Ten thousand changes, so often. Each time is a session of its own, so that the bytes of the
  /// actions are the same and need to be made only once.
  private static func change(_ served: Served, times: Int) async throws {
    try await blocking {
      var bytes: [UInt8] = []
      for number in 1...10_000 as ClosedRange<UInt64> {
        let action = DocumentAction.increment([.text("k\(number % 1000)")], by: 1)
        bytes += Frame.encode {
          ClientMessage.action(number: number, .applied, payload: action.payload).encode(into: &$0)
        }
      }
      for _ in 0..<times {
        let feeder = try served.raw()
        try feeder.greet(label: "feeder")
        try feeder.send(bytes)
        _ = try feeder.acknowledgements(through: 10_000)
        feeder.close()
      }
    }
  }

  @Test func `a client that floods and never reads does not slow the others`() async throws {
    try await withDaemon(["--limit", "stallDeadlineMs=1000"]) { served in
      let mirror = try await served.mirror(of: ["other"])
      _ = try await roundTrips(mirror)
      let calm = try await roundTrips(mirror)
      let before = served.daemon.residentBytes

      // One sees its own changes and is soon stopped by the daemon; the other gets nothing but
      // acknowledgements, and goes on for as long as its socket takes those.
      let flood = try Flood(served, subscribes: [true, false])
      flood.begin()
      defer { flood.close() }
      let flooded = try await roundTrips(mirror) { flood.sent > 20_000 }
      #expect(flooded < max(calm * 20, .milliseconds(100)), "\(calm) without a flood")
      let grown = served.daemon.residentBytes - before
      #expect(grown < 64 << 20, "the daemon grew by \(grown >> 20) MiB")

      flood.stop()
      try await served.daemon.line(with: "stalled")
      try await eventually("all that do not read are gone") {
        try await mirror.report("clients").elements.allSatisfy { $0["lagBytes"] == 0 }
      }
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
    }
  }

  /// The median of at least 500 round trips: who is starved waits each time, and a machine that is busy
  /// with other tests makes some wait.
  private func roundTrips(
    _ mirror: Replica<Value>, until isOver: () -> Bool = { true }
  ) async throws -> Duration {
    var times: [Duration] = []
    let clock = ContinuousClock()
    while times.count < 500 || !isOver() {
      let start = clock.now
      try await mirror.send(DocumentAction.increment(["other"], by: 1))
      times.append(start.duration(to: clock.now))
    }
    return times.sorted()[times.count / 2]
  }

  /// Clients that write for as long as the daemon reads, and never read themselves. When it reads
  /// no more from one of them, the next takes its place.
  private final class Flood: Sendable {
    private struct State: Sendable {
      var sent = 0
      var isOver = false
      var isClosed = false
    }
    private let served: Served
    private let state = Mutex(State())
    private let subscribes: [Bool]

    init(_ served: Served, subscribes: [Bool]) throws {
      self.served = served
      self.subscribes = subscribes
    }

    var sent: Int { state.withLock { $0.sent } }

    /// Write no more; the connections stay, unread.
    func stop() { state.withLock { $0.isOver = true } }

    func close() { state.withLock { $0.isClosed = true } }

    func begin() {
      for subscribes in subscribes {
        Thread { [self] in
          var stalled: [RawClient] = []
          while !state.withLock({ $0.isOver }), stalled.count < 200 {
            guard let client = try? connect(subscribes) else { break }
            write(client)
            stalled.append(client)
          }
          // Closing would tell the daemon what it must find out by itself.
          while !state.withLock({ $0.isClosed }) { usleep(10_000) }
          for client in stalled { client.close() }
        }.start()
      }
    }

    private func connect(_ subscribes: Bool) throws -> RawClient {
      let client = try served.raw()
      try client.greet(label: "flood")
      if subscribes { try client.send(.subscribe(subscription: 1, .root, nil)) }
      return client
    }

    /// Send until the daemon takes no more.
    private func write(_ client: RawClient) {
      var number: UInt64 = 0
      while !state.withLock({ $0.isOver }) {
        var encoder = CBOREncoder()
        for _ in 0..<100 {
          number += 1
          Frame.append(to: &encoder) {
            ClientMessage.action(
              number: number, .applied,
              payload: DocumentAction.increment(["flood"], by: 1).payload
            ).encode(into: &$0)
          }
        }
        var rest = encoder.bytes[...]
        while !rest.isEmpty {
          var poll = pollfd(fd: client.descriptor, events: Int16(POLLOUT), revents: 0)
          guard Foundation.poll(&poll, 1, 50) > 0 else { return }
          let taken = client.sendSome(rest)
          guard taken >= 0 else { return }
          rest = rest.dropFirst(taken)
        }
        state.withLock { $0.sent += 100 }
      }
    }
  }
}
