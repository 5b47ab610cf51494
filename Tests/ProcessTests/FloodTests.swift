import CBOR
import Documents
import Foundation
import LockstepClient
import Synchronization
import TestClient
import Testing
import Values
import Wire

/// The share of the daemon that some clients take, and what remains for the others.
///
/// Run apart from the other tests and serially, because they load the whole machine and measure how
/// it is shared (`Scripts/test`).
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)), .serialized)
struct FloodTests {
  /// A user that needs no entry in the password file.
  private static let flooder: UInt32 = 4242

  @Test(.enabled(if: geteuid() == 0, "only root can start processes of other users"))
  func `a thousand connections of one user take no more than twenty of another`() async throws {
    try await withFolder { folder in
      chmod(folder, 0o711)
      let file = folder + "/policy.yaml"
      let policy = """
        version: 1
        rules:
          - users: [root, \(Self.flooder)]
            connect: true
            read: [/]
            act: ["*"]
        """
      try policy.write(toFile: file, atomically: true, encoding: .utf8)
      let daemon = try await startDaemon(
        folder + "/socket", ["--policy", file, "--limit", "window=65536"])
      defer { daemon.signal(SIGKILL) }
      let served = Served(folder: folder, socket: folder + "/socket", daemon: daemon)
      let mirror = try await served.mirror()
      let many = try ChildProcess(
        Binaries.client, [served.socket, "flood", "\(Self.flooder)", "1000", "16000"])
      defer { many.signal(SIGKILL) }
      try await eventually("the flood has begun") { mirror.value("/flood\(Self.flooder)") != nil }
      let few = try ChildProcess(Binaries.client, [served.socket, "flood", "0", "20", "64000"])
      defer { few.signal(SIGKILL) }
      try await few.line("connected")
      let ours = Int64(20 * 64_000)
      // Both shares are read from one state each time, so that a late mirror does not matter.
      var shares: [(few: Int64, many: Int64)] = []
      try await eventually("all of the few's is done", within: .seconds(60)) {
        let state = mirror.state
        guard case .integer(let few)? = state?["flood0"],
          case .integer(let many)? = state?["flood\(Self.flooder)"]
        else { return false }
        if few < ours { shares.append((few, many)) }
        return few == ours
      }
      guard let first = shares.first, let last = shares.last, first.few < last.few else {
        Issue.record("the mirror did not see it happen: \(shares)")
        return
      }
      let (got, meanwhile) = (last.few - first.few, last.many - first.many)
      // If connections took turns instead of users, the many would get fifty times as much.
      #expect(meanwhile < 5 * got)
      #expect(last.many < 1000 * 16_000, "the flood was over before it mattered")
      print("flood: \(got) actions of 20 connections, meanwhile \(meanwhile) of 1000")
      mirror.connection.close()
    }
  }

  @Test func `a client that floods and never reads does not slow the others`() async throws {
    try await withDaemon(["--limit", "stallDeadlineMs=1000"]) { served in
      let mirror = try await served.mirror(of: ["other"])
      _ = try await roundTrips(mirror)
      let calm = try await roundTrips(mirror)
      let before = served.daemon.residentBytes

      // One subscribes to its own changes, so the daemon soon pauses it; the other gets only
      // acknowledgements, and continues until its socket is full.
      let flood = try Writers(served, subscribes: [true, false])
      flood.begin()
      defer { flood.close() }
      let flooded = try await roundTrips(mirror) { flood.sent > 20_000 }
      #expect(flooded < max(calm * 20, .milliseconds(100)), "\(calm) without a flood")
      let grown = served.daemon.residentBytes - before
      #expect(grown < 64 << 20, "the daemon grew by \(grown >> 20) MiB")

      flood.stop()
      try await served.daemon.line(with: "stalled")
      try await eventually("all that do not read are gone") {
        try await mirror.connection.report("clients").elements.allSatisfy { $0["lagBytes"] == 0 }
      }
      let (ours, theirs) = try await mirror.bothDigests()
      #expect(ours == theirs)
    }
  }

  @Test func `nobody waits for a large object of another client to be decoded`() async throws {
    try await withDaemon { served in
      let mirror = try await served.mirror(of: ["other"])
      let connection = mirror.connection
      // Once it is added, and then replaced.
      for isNew in [true, false] {
        var waits: [(longest: Duration, all: Duration)] = []
        // Were it decoded on the loop, a ping would wait for nearly all of it, each time; a busy machine
        // may delay one.
        while waits.count < 3, waits.last.map({ $0.longest >= $0.all / 3 }) ?? true {
          if isNew { try await mirror.send(DocumentAction.set(["large"], 0)) }
          waits.append(
            try await longestPing(connection, whileSetting: waits.count + (isNew ? 0 : 10), served))
        }
        #expect(waits.last.map { $0.longest < $0.all / 3 } == true, "\(waits)")
        print("a ping waited at most, in all: \(waits)")
      }
      // Where they share a core, the loop comes first.
      let folder = "/proc/\(served.daemon.pid)/task"
      let threads = try FileManager.default.contentsOfDirectory(atPath: folder)
      let priorities = try threads.map { thread -> Int in
        let stat = try String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)
        // The name, in parentheses, may have spaces.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        return fields.count > 16 ? Int(fields[16]) ?? 0 : 0
      }
      let own = getpriority(Int32(PRIO_PROCESS.rawValue), id_t(served.daemon.pid))
      #expect(priorities.contains { $0 > Int(own) }, "\(priorities)")
      mirror.connection.close()
    }
  }

  /// The longest ping while a client sets a large object, and the time that this took.
  private func longestPing(
    _ connection: Connection, whileSetting value: Int, _ served: Served
  ) async throws -> (longest: Duration, all: Duration) {
    let large = Value.object(
      TrieMap(
        uniqueKeysWithValues: (0..<300_000).map { ("member \($0)", .integer(Int64(value))) }))
    let payload = DocumentAction.set(["large"], large).payload
    let writer = try await served.mirror(of: ["nothing"])
    defer { writer.connection.close() }
    let isOver = Mutex(false)
    let clock = ContinuousClock()
    async let whole: Duration = {
      defer { isOver.withLock { $0 = true } }
      let begin = clock.now
      try await writer.connection.send(payload: payload)
      return begin.duration(to: clock.now)
    }()
    var longest = Duration.zero
    while !isOver.withLock({ $0 }) {
      let start = clock.now
      _ = try await connection.ping()
      longest = max(longest, start.duration(to: clock.now))
    }
    return (longest, try await whole)
  }

  /// The 99th percentile of at least 500 round trips.
  private func roundTrips(
    _ mirror: Subscription<Value>, until isOver: () -> Bool = { true }
  ) async throws -> Duration {
    var times: [Duration] = []
    let clock = ContinuousClock()
    while times.count < 500 || !isOver() {
      let start = clock.now
      try await mirror.send(DocumentAction.increment(["other"], by: 1))
      times.append(start.duration(to: clock.now))
    }
    return times.sorted()[times.count * 99 / 100]
  }

  /// Clients that write for as long as the daemon reads, and never read. When the daemon stops
  /// reading one, the next replaces it.
  private final class Writers: Sendable {
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

    /// Stops writing; the connections stay open and unread.
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
          // Closing would tell the daemon what it must detect by itself.
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

    /// Sends until the daemon stops reading.
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
