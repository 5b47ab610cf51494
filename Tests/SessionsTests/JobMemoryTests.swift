import Access
import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Testing
import Values
import Wire

/// Snapshots and differences that are made beside the loop take no more memory than is asked for them:
/// where a limit leaves no more, Swift ends the process.
///
/// Two of the sizes are just longer than a buffer that doubles has room for (14 and 28 MB), and take the
/// most.
@Suite(.enabled(if: AllocationPeak.isCounted), .serialized)
struct JobMemoryTests {
  /// One of the texts is hidden.
  private static let policy = Policy([
    Rule(users: [1000], mayConnect: true, read: [.whole], denyRead: patterns(["texts/7"]))
  ])

  @Test(arguments: [14.0, 20, 28.1, 29])
  func `a snapshot for the journal`(megabytes: Double) throws {
    let bench = Self.bench(megabytes)
    let (snapshot, granted) = (bench.server.pendingSnapshot, bench.server.snapshotMemory)
    let peak = try AllocationPeak.bytes { _ = snapshot.encode() }
    #expect(peak > 1 << 20 && peak <= granted, "\(peak) bytes of \(granted)")
  }

  enum Sight: CaseIterable {
    case whole, part, filtered
  }

  @Test(arguments: [14.0, 20, 28.1, 29], Sight.allCases)
  func `a client's snapshot`(megabytes: Double, sight: Sight) throws {
    var bench = Self.bench(megabytes, sight == .filtered ? Self.policy : nil)
    bench.join(1)
    bench.say(1, .subscribe(subscription: 1, sight == .part ? ["texts"] : .root, nil))
    try check(&bench)
  }

  /// The client did not read while the texts came.
  @Test(arguments: [14.0, 20, 28.1, 29], Sight.allCases)
  func `what a client lacks`(megabytes: Double, sight: Sight) throws {
    for historyBytes in [0, 64 << 20] {
      var limits = Limits()
      limits.inlineDifferenceBytes = 0
      limits.historyBytes = historyBytes
      var bench = Self.bench(0, sight == .filtered ? Self.policy : nil, limits)
      bench.join(1)
      bench.say(1, .subscribe(subscription: 1, sight == .part ? ["texts"] : .root, nil))
      _ = bench.settle()
      bench.handle(.blocked(ConnectionID(1), unsent: 5))
      Self.fill(&bench, megabytes)
      bench.handle(.drained(ConnectionID(1)))
      try check(&bench)
    }
  }

  @Test(arguments: [14.0, 20, 28.1, 29], Sight.allCases)
  func `a list of what there is`(megabytes: Double, sight: Sight) throws {
    var bench = Self.bench(megabytes, sight == .filtered ? Self.policy : nil)
    bench.join(1, versions: 1...3)
    bench.say(1, .query(number: 1, "parts", arguments: [sight == .part ? "/texts" : ""]))
    for case .answer(let id, _, let asked) in bench.turn() {
      let granted = bench.server.inspectionMemory(of: asked)
      guard case .success(let inspection)? = bench.server.inspection(of: asked, for: id) else {
        break
      }
      let peak = try AllocationPeak.bytes { _ = inspection.finding() }
      #expect(peak > 1 << 20 && peak <= granted, "\(peak) bytes of \(granted)")
      return
    }
    Issue.record("nothing was looked at")
  }

  /// The one job that the turn commands.
  private func check(_ bench: inout Bench) throws {
    let jobs = bench.turn().compactMap { command -> SnapshotJobID? in
      if case .encodeSnapshot(let id) = command { id } else { nil }
    }
    #expect(jobs.count == 1)
    let id = try #require(jobs.first)
    let granted = bench.server.memory(for: id)
    // Not in the macro, which would print all that is in the server.
    let found = bench.server.snapshot(for: id)
    let job = try #require(found)
    let peak = try AllocationPeak.bytes { _ = job.measured() }
    #expect(peak > 1 << 20 && peak <= granted, "\(peak) bytes of \(granted)")
  }

  private static func bench(
    _ megabytes: Double, _ policy: Policy? = nil, _ limits: Limits = Limits()
  ) -> Bench {
    var bench = Bench(["texts": [:]], limits: limits, policy: policy)
    fill(&bench, megabytes)
    return bench
  }

  /// Grow by so many megabytes, which are measured.
  private static func fill(_ bench: inout Bench, _ megabytes: Double) {
    let text = Value.text(String(repeating: "x", count: 200_000))
    for number in 0..<Int(megabytes * 1_048_576) / 200_000 + 1 {
      bench.handle(.acted(.set(["texts", .text("\(number)")], text)))
    }
    _ = bench.turn()
    bench.handle(.tick)
    bench.measure()
  }
}
