public import Access
public import DaemonCore
public import Values

/// The plan of a simulation: its limits, its users and its faults. Drawn from the seed, so that
/// every limit is small in some runs and large in others.
public struct SimulationPlan: Sendable {
  public var limits = Limits()
  /// The number of clients at a time.
  public var clients = 3
  /// The most paths that a client subscribes to.
  public var subscriptions = 3
  /// The bytes of a socket's buffer.
  public var socketBytes = 4096
  /// The most time that passes in a step.
  public var longestPause: Duration = .milliseconds(40)
  /// The interval at which a client compares digests.
  public var digestInterval: Duration? = .seconds(5)
  /// The probability of each fault, in thousandths of a step.
  public var cuts = 0
  public var stalls = 0
  public var stops = 0
  public var crashes = 0
  public var clones = 0
  public var strangers = 0
  public var closes = 0
  public var refusals = 0
  /// The probability of a check that a stalled client delays no other, in thousandths of a step.
  public var trials = 0
  /// The daemon's durability, the disk's delay, and the disk's fault rate, in thousandths of a
  /// step.
  public var durability = Durability.none
  public var diskDelay = 0
  public var diskFaults = 0
  /// The share of actions that should be durable, in thousandths.
  public var durableActions = 0
  /// The share of actions that show before they are decided, in thousandths; and of mirrors that show
  /// them.
  public var optimism = 0
  /// Whether mirrors may detect that they are wrong, as they must if the daemon has a fault that
  /// they can heal.
  public var toleratesDivergence = false
  /// The users of the clients, in turn, and the policy with the parts that each may see; nil for
  /// everything.
  package var users: [UInt64] = [1000]
  public var policy: Policy?
  /// Deliberate faults of the daemon.
  package var faults = Faults()
  /// Whether an administrator goes back to the past, and has the daemon pause.
  package private(set) var isAdministered = false
  /// Whether the daemon's events are recorded and replayed.
  package var isRecorded = false
  /// Deliberate faults of the clients.
  package var skipsBaseCheck = false
  package var skipsDecisionCheck = false
  package var keepsRejected = false
  package var ignoresLineage = false
  package var drawsAnew = false

  public init() {}

  /// The plan of a seed.
  public init(using random: inout SplitMix64) {
    func pick<T>(_ choices: T...) -> T {
      choices[Int.random(in: 0..<choices.count, using: &random)]
    }
    limits.frameBytes = pick(3000, 8192, 1 << 16, 1 << 20)
    limits.window = pick(1, 2, 8, 64, 16_384)
    limits.subscriptions = pick(1, 3, 100)
    limits.pathKeys = 10
    limits.detachedSessions = pick(0, 1, 100, 100)
    limits.sessionGrace = pick(.seconds(1), .seconds(100_000))
    limits.heldStates = pick(1, 2, 4, 64)
    limits.historyBytes = pick(0, 300, 5000, 4 << 20)
    limits.stallDeadline = pick(.seconds(2), .seconds(30))
    limits.helloDeadline = pick(.seconds(1), .seconds(10))
    limits.bookmarkInterval = pick(.seconds(1), .seconds(5))
    limits.snapshotPartBytes = pick(1, 50, 2000)
    limits.inlineSnapshotBytes = pick(0, 300, 128 << 10)
    limits.patchFrameBytes = pick(1, 100, 2000)
    // Derived, so that the worlds of known seeds stay as they are.
    limits.inlineDifferenceBytes = limits.inlineSnapshotBytes / 3
    limits.concurrentSnapshots = limits.subscriptions == 3 ? 1 : 64
    switch limits.patchFrameBytes {
    case 1: limits.requestWorkPerTurn = 1
    case 100: limits.requestWorkPerTurn = 5
    default: break
    }
    clients = Int.random(in: 1...5, using: &random)
    limits.connections = pick(clients, clients + 2, 1000)
    subscriptions = pick(1, 2, 4)
    socketBytes = pick(1, 100, 1000, 50_000)
    longestPause = pick(.milliseconds(5), .milliseconds(40), .milliseconds(500))
    digestInterval = pick(nil, .seconds(1), .seconds(60))
    cuts = pick(0, 5, 40)
    stalls = pick(0, 10, 60)
    stops = pick(0, 0, 4)
    crashes = pick(0, 0, 4)
    clones = pick(0, 0, 8)
    strangers = pick(0, 0, 20)
    closes = pick(0, 5)
    refusals = pick(0, 100)
    trials = pick(0, 0, 3)
    limits.largeActionBytes = pick(0, 60, 16 << 10)
  }

  /// Draw the durability and the disk's faults.
  mutating func drawDisk(using random: inout SplitMix64) {
    func pick<T>(_ choices: T...) -> T {
      choices[Int.random(in: 0..<choices.count, using: &random)]
    }
    durability = pick(.none, .sync, .sync, .async)
    diskDelay = pick(0, 300, 900)
    diskFaults = pick(0, 0, 5)
    durableActions = pick(0, 300, 1000)
    guard durability != .none else { return }
    limits.journalBytes = pick(500, 5000, 1 << 20)
    limits.journalAge = pick(.seconds(2), .seconds(3600))
    limits.journalDigestChanges = pick(1, 10, 4096)
    limits.journalQueueBytes = pick(2000, 1 << 20)
    // A journal is only tested if a daemon starts from it.
    if crashes == 0 && stops == 0 { crashes = pick(0, 3, 8) }
  }

  /// Let one user see all of a document, and two others parts of it.
  package mutating func drawViews(seed: UInt64) {
    var random = SplitMix64(seed)
    func patterns(_ count: ClosedRange<Int>) -> [PathPattern] {
      (0..<Int.random(in: count, using: &random)).map { _ in
        let path = Path.random(using: &random, longest: 3)
        return PathPattern(
          path.keys.map { Int.random(in: 0..<4, using: &random) == 0 ? .any : .key($0) })
      }
    }
    users = [1000, 1001, 1002]
    let parts = users.dropFirst().map { uid in
      Rule(
        users: [uid], read: patterns(0...3) + (Bool.random(using: &random) ? [.whole] : []),
        denyRead: patterns(1...3).filter { !$0.steps.isEmpty })
    }
    policy = Policy(
      [
        Rule(isForEveryone: true, mayConnect: true, act: [.all], write: [.whole]),
        Rule(users: [1000], mayAdminister: true, read: [.whole]),
      ] + parts)
  }

  /// Let an administrator go back to the past, of which there is some.
  package mutating func administer() {
    isAdministered = true
    limits.historyBytes = max(5000, limits.historyBytes)
  }

  /// Draw the limits of a feature's effects.
  mutating func drawEffectLimits(using random: inout SplitMix64) {
    let choices = [5, 40, 4096]
    limits.waitingPerTurn = choices[Int.random(in: 0..<choices.count, using: &random)]
  }
}
