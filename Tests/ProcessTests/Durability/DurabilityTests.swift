import Documents
import Foundation
import Lockstep
import LockstepClient
import Testing
import Values
import Wire

/// What is acknowledged as durable survives `kill -9` at any moment, with real daemons, eight
/// clients that never stop writing, and journals that are cut continually.
///
/// `Scripts/torture --rounds 300` runs the same for longer.
@Suite(
  .enabled(if: Binaries.isThere, Binaries.comment),
  .timeLimit(.minutes(Torture.rounds > Torture.usualRounds ? 180 : 5)))
struct DurabilityTests {
  @Test func `what is durable is there after every kill, in order and once`() async throws {
    try await withHome { home in
      var torture = try await Torture(home)
      defer { torture.abandon() }
      for round in 1...Torture.rounds {
        try await torture.kill()
        if torture.isRare(3) { try await torture.killAtStart() }
        try await torture.restart()
        if round.isMultiple(of: 25) { print(torture.report) }
      }
      try await torture.finish()
      print(torture.report)
    }
  }

  @Test func `a first start that is killed anywhere is continued by the next`() async throws {
    try await withHome { home in
      let start = ContinuousClock.now
      try await home.start().stop()
      let whole = UInt32(clamping: (ContinuousClock.now - start).microseconds)
      for _ in 0..<10 {
        try FileManager.default.removeItem(atPath: home.state)
        // Several daemons start in one directory, and all are killed.
        for _ in 0..<3 {
          let process = try home.spawn()
          usleep(UInt32.random(in: 0...whole))
          try await process.kill()
        }
        let daemon = try await home.start()
        #expect(daemon.revision == 0)
        let mirror = try await home.mirror()
        let set = try await mirror.send(DocumentAction.set(["a"], 1), .durable)
        #expect(set.mark == .durable)
        mirror.connection.close()
        try await daemon.process.kill()
        let next = try await home.start()
        #expect(next.epoch == daemon.epoch)
        #expect(next.revision == 1)
        try await next.stop()
      }
    }
  }
}

/// Daemons that are killed while eight clients write.
struct Torture {
  static let usualRounds = 15
  static let rounds = number("LOCKSTEP_TORTURE_ROUNDS") ?? usualRounds

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
  }

  /// Snapshots and digests are so frequent that some kills interrupt them.
  private static let arguments = [
    "--limit", "journalBytes=20000", "--limit", "journalDigestChanges=50",
  ]

  private let home: Home
  private let seed: UInt64
  private var random: SplitMix64
  private var daemon: RunningDaemon
  private let library: [LibraryWriter]
  private var raw: [RawWriter]
  /// A client that connects just before the daemon is killed: its session may be lost.
  private var newcomer: RawWriter?
  private let mirrors: [Subscription<Value>]
  private let began = ContinuousClock.now
  private var starts = 1
  private var killsAtStart = 0
  private var restarts: [Duration] = []
  /// The snapshots found after a kill.
  private var snapshots: Set<UInt64> = []

  private var books: [Book] { library.map(\.book) + raw.map(\.book) }
  private var durableCount: Int { books.reduce(0) { $0 + $1.durableCount } }

  init(_ home: Home) async throws {
    self.home = home
    let seed = Self.number("LOCKSTEP_TORTURE_SEED").map { UInt64($0) } ?? .random(in: 1...999_999)
    self.seed = seed
    random = SplitMix64(seed)
    daemon = try await home.start(Self.arguments)
    var library: [LibraryWriter] = []
    for number in 1...4 { library.append(try await LibraryWriter("library-\(number)", home)) }
    self.library = library
    raw = (1...4).map { number in
      RawWriter("raw-\(number)", home, isDeaf: number == 4, seed: seed + UInt64(number))
    }
    var mirrors: [Subscription<Value>] = []
    for _ in 1...3 { mirrors.append(try await home.mirror()) }
    self.mirrors = mirrors
  }

  /// True on average once in `count` calls.
  mutating func isRare(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  /// Kills the daemon while it works, and checks its journal.
  mutating func kill() async throws {
    let enough = durableCount + Int.random(in: 1...200, using: &random)
    try await eventually("\(enough) actions are durable", within: .seconds(60)) {
      durableCount >= enough
    }
    let name = "new-\(starts)"
    let newcomer = RawWriter(name, home, seed: random.next())
    self.newcomer = newcomer
    raw.append(newcomer)
    // At any moment, not only after an acknowledgement.
    let longest: UInt32 = isRare(2) ? 3000 : 30_000
    usleep(UInt32.random(in: 0...longest, using: &random))
    try await daemon.process.kill()
    _ = try check()
  }

  /// Kills another daemon before it serves, or soon after.
  mutating func killAtStart() async throws {
    let process = try home.spawn(Self.arguments)
    usleep(UInt32.random(in: 0...60_000, using: &random))
    try await process.kill()
    killsAtStart += 1
    _ = try check()
  }

  /// Starts the next daemon, which must continue from exactly the kept state.
  mutating func restart() async throws {
    let kept = try check()
    let start = ContinuousClock.now
    daemon = try await home.start(Self.arguments)
    restarts.append(ContinuousClock.now - start)
    starts += 1
    #expect(daemon.revision == kept.revision, "seed \(seed)")
    #expect(daemon.digest == kept.digest, "seed \(seed)")
    try await newcomer?.end()
    newcomer = nil
  }

  /// Stops the writers without waiting.
  func abandon() {
    for writer in raw { writer.abandon() }
    for writer in library { writer.replica.connection.close() }
  }

  private mutating func check() throws -> KeptDocument {
    // Before the file is read, because an action acknowledged later may have been written later.
    let books = books.map { ($0, $0.now) }
    let kept = try KeptDocument(home.state)
    let complaints = books.flatMap { $0.0.complaints(kept.root, asOf: $0.1) }
    try #require(complaints.isEmpty, "seed \(seed): \(complaints)")
    snapshots.insert(kept.snapshot)
    return kept
  }

  /// Stops all writers. Then all copies must agree, and still agree after an orderly stop.
  mutating func finish() async throws {
    for writer in raw { try await writer.end() }
    for writer in library { try await writer.end() }
    let asker = mirrors[0]
    // It may still be reconnecting after the last kill.
    try await eventually("it is connected", within: .seconds(60)) { asker.status == .live }
    let (revision, digest) = try await asker.nextDaemonDigest()
    for mirror in mirrors + library.map(\.replica) {
      try await mirror.reached(revision: revision)
      #expect(
        mirror.connection.divergences == 0,
        "seed \(seed): \(mirror.connection.lastDivergence ?? "")")
    }
    for mirror in mirrors { #expect(mirror.digest == digest, "seed \(seed)") }
    let complaints = books.flatMap { $0.complaints(asker.state, isWhole: true) }
    #expect(complaints.isEmpty, "seed \(seed): \(complaints)")
    // A daemon killed twice in the turn of one action rightly takes that action for the cause. The
    // checks above verify that it was not performed.
    let rejected = books.flatMap(\.now.rejected).filter {
      $0.1.code != Rejection.Code.poisoned.rawValue
    }
    #expect(rejected.isEmpty, "seed \(seed): \(rejected)")

    let checked = try await home.lockstep("fsck", home.state)
    #expect(checked.status == .exit(0), "\(checked.lines)")
    #expect(checked.values.first?["digest"] == .text(digest.description))
    try await daemon.stop()
    let kept = try check()
    #expect(kept.digest == digest.description)
    try await restart()
    #expect(daemon.digest == digest.description)
    try await daemon.stop()
    for mirror in mirrors { mirror.connection.close() }
  }

  /// A line of statistics.
  var report: String {
    let entries = books.map(\.now)
    func sum(_ count: (Book.Entries) -> Int) -> Int { entries.reduce(0) { $0 + count($1) } }
    let longest = restarts.max() ?? .zero
    return "torture: seed \(seed), \(starts) starts, \(killsAtStart) killed at the start, "
      + "\(snapshots.count) snapshots, "
      + "\(sum { Int($0.sent) }) actions, \(sum(\.durable.count)) durable, "
      + "\(sum(\.unknown.count)) unknown, \(sum(\.rejected.count)) poisoned; raw: \(sum(\.reconnections)) connections, "
      + "\(sum(\.keptUnjournaled)) kept unheard, \(sum(\.doneAnew)) done anew; "
      + "longest start \(longest.milliseconds) ms, \((ContinuousClock.now - began).seconds) s"
  }
}

extension Duration {
  fileprivate var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
  fileprivate var milliseconds: Int64 { microseconds / 1000 }
  fileprivate var seconds: Int64 { components.seconds }
}
