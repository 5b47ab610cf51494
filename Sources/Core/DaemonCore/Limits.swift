public import Wire

/// The limits of everything that a peer could make grow. Exceeding one ends in a typed rejection or
/// goodbye that names it, with the observed value.
public struct Limits: Hashable, Sendable {
  /// The most bytes of one frame's item, either way.
  public var frameBytes = Frame.defaultLimit
  /// The most connections at once. Each costs a descriptor and a few kilobytes.
  public var connections = 10_000
  /// The most connections of one user: a quarter of all, so that four users have room.
  public var connectionsPerUser = 2500
  /// Rate limit of new connections of one user, per second. After a restart all of its clients
  /// reconnect at once.
  public var connectionsPerSecond = 2500
  /// The most subscriptions of one user, on all its connections. Each costs some hundred bytes.
  public var subscriptionsPerUser = 100_000
  /// The most unsent bytes of one user, on all its connections: a quarter of a megabyte on each of
  /// a thousand connections that do not read.
  public var unsentBytesPerUser = 256 << 20
  /// The most bytes of incomplete frames, on all connections of a user: sixteen of the largest at a
  /// time.
  public var partialBytesPerUser = 256 << 20
  /// Bytes that are read from one user in a turn while others are connected: one buffer. With the
  /// smallest actions these are 2,500, for which the others wait two or three milliseconds. A user that
  /// sends now and then does not wait for so long: see `UserTable`.
  public var turnBytesPerUser = 64 << 10
  /// Rate limit of actions of one user, per second: more than the loop can do, so it has an effect
  /// only if it is lowered.
  public var actionsPerSecond = 10_000_000
  /// The most effects that run at a time. Beyond it, actions of clients are rejected.
  public var effects = 100_000
  /// The most ended connections whose reason is stored, for the report "clients.closed".
  public var closedConnections = 256
  /// The most subscriptions of one connection.
  public var subscriptions = 10_000
  /// The most keys of a subscribed path: paths deeper than documents may nest are useless.
  public var pathKeys = 100
  /// The most bytes of a subscribed path's keys: the limit of a file's path.
  public var pathBytes = 4096
  /// The most unacknowledged actions of a session, and the outcomes stored for it: enough to keep a
  /// pipe full (10,000 in flight saturate the loop), at most about a megabyte.
  public var window = 16_384
  /// The most sessions without a connection. They are stored so that their clients can resume them.
  public var detachedSessions = 10_000
  /// How long a session without a connection is stored.
  public var sessionGrace: Duration = .seconds(300)
  /// The most distinct old states held for lagging clients. Each can pin as much as the state
  /// changed since; a client whose state is evicted gets a snapshot.
  public var heldStates = 64
  /// The most of these states for clients of one user: three quarters, so that the slow clients of
  /// one user cannot evict all states of others.
  public var heldStatesPerUser = 48
  /// The most bytes of memory that the state takes, by an estimate that is never too low: ten
  /// million entries. Beyond it, clients can only remove.
  public var stateBytes = 4 << 30
  /// The most bytes of memory that the values of one action take, by the same estimate: sixteen
  /// times `frameBytes`, because small containers take two hundred times their bytes.
  public var actionMemoryBytes = 256 << 20
  /// The bytes of a message from which on its action is decoded off the loop: one or two milliseconds'
  /// worth.
  public var largeActionBytes = 16 << 10
  /// The most bytes of recent patches, stored for clients that reconnect and for the past (`Past`).
  public var historyBytes = 4 << 20
  /// How long a client may leave sent bytes unread before the daemon says goodbye.
  public var stallDeadline: Duration = .seconds(120)
  /// How long a connection may take to say hello.
  public var helloDeadline: Duration = .seconds(10)
  /// How long a client may take to read the goodbye, before the connection is closed unread.
  public var goodbyeDeadline: Duration = .seconds(3)
  /// The interval of heartbeats, which tell an idle client the newest revision: after two missed
  /// ones it may assume that the daemon is dead.
  public var bookmarkInterval: Duration = .seconds(5)
  /// The bytes of one part of a snapshot: large enough to fill a socket buffer, small enough that
  /// a client can show progress.
  public var snapshotPartBytes = 64 << 10
  /// A scope whose value form is at most this long is encoded on the loop (about a quarter of a
  /// millisecond); a longer one off the loop. An element counts as 8 bytes at least (`SmallForm`).
  public var inlineSnapshotBytes = 128 << 10
  /// The patch for a mirror that was behind is made on the loop if at most this many bytes of patches
  /// have been made since (about a millisecond); else off the loop. Likewise the change of a jump behind
  /// others.
  public var inlineDifferenceBytes = 8 << 10
  /// The most snapshots and differences that are encoded for one connection at a time; the others wait
  /// in order. Each holds a state.
  public var concurrentSnapshots = 64
  /// When this many bytes of patches are pending in a turn, they become a frame of their own.
  public var patchFrameBytes = 256 << 10
  /// The most requests of one connection that wait for an answer, actions not counted; at this
  /// number, reading from it pauses. Enough to fill some turns.
  public var requestsPerTurn = 1024
  /// Work on requests in one turn, in units of about a microsecond, and as much again on subscriptions
  /// that are behind: the time that a client waits for those of others.
  public var requestWorkPerTurn = 2000
  /// About the most bytes of one page of a report: some hundred rows.
  public var reportPageBytes = 64 << 10
  /// The most bytes of a text that is sent or stored: of a rejection, a goodbye, a member of a
  /// report.
  public var textBytes = 1024
  /// The most bytes of rejection texts stored for each session: some hundred texts. Of older
  /// rejections only the code is stored.
  public var rejectionBytes = 32 << 10
  /// The most actions of effects and middleware that run in one turn: about a millisecond, so that
  /// a feature that keeps sending to itself does not starve others.
  public var waitingPerTurn = 1024
  /// The most actions in the log: enough to see what led to the present, a megabyte at most.
  public var logEntries = 2048
  /// The most bytes of an action that the log stores with its name.
  public var logActionBytes = 512

  /// Bytes of changes in the journal before a snapshot of the state replaces them, or twice the
  /// snapshot's bytes if that is more. A start replays them: some hundred milliseconds.
  public var journalBytes = 64 << 20
  /// The age of the last snapshot at which a new one replaces the changes since.
  public var journalAge: Duration = .seconds(3600)
  /// The most bytes that wait for the disk; beyond it, actions of clients are rejected.
  public var journalQueueBytes = 64 << 20
  /// The number of changes between two digests in the journal. Each digest costs what has changed
  /// since the last.
  public var journalDigestChanges = 4096

  public init() {}

  /// The limits that can end a connection or that a client must obey, by name: sent in the welcome.
  public var announced: [ServerMessage.Welcome.Limit] {
    Self.rows.filter(\.isAnnounced).map { .init($0.name, $0.member.value(in: self)) }
  }

  /// The limits by name, for people and for clients; durations in milliseconds.
  public var table: [(name: String, value: UInt64)] {
    Self.rows.map { ($0.name, $0.member.value(in: self)) }
  }

  /// The least usable value of a limit; nil if there is no such limit.
  public static func least(of name: String) -> UInt64? {
    rows.first { $0.name == name }?.least
  }

  /// Change a limit by its name. Returns false if there is no such limit.
  @discardableResult
  public mutating func set(_ name: String, to value: UInt64) -> Bool {
    guard let member = Self.rows.first(where: { $0.name == name })?.member else { return false }
    member.set(value, in: &self)
    return true
  }

  private enum Member: Sendable {
    case count(any WritableKeyPath<Limits, Int> & Sendable)
    case duration(any WritableKeyPath<Limits, Duration> & Sendable)

    func value(in limits: Limits) -> UInt64 {
      switch self {
      case .count(let path): return UInt64(clamping: limits[keyPath: path])
      case .duration(let path): return limits[keyPath: path].milliseconds
      }
    }

    func set(_ value: UInt64, in limits: inout Limits) {
      switch self {
      // So that sums and small multiples of limits fit.
      case .count(let path): limits[keyPath: path] = Int(clamping: min(value, 1 << 48))
      case .duration(let path):
        limits[keyPath: path] = .milliseconds(Int64(clamping: min(value, 1 << 50)))
      }
    }
  }

  /// What there is to know of a limit beside its value.
  private struct Row: Sendable {
    let name: String
    let member: Member
    let least: UInt64
    let isAnnounced: Bool

    init(_ name: String, _ member: Member, least: UInt64 = 0, isAnnounced: Bool = false) {
      self.name = name
      self.member = member
      self.least = least
      self.isAnnounced = isAnnounced
    }
  }

  private static let rows: [Row] = [
    // At least the smallest frame that holds a welcome.
    Row("frameBytes", .count(\.frameBytes), least: 4096, isAnnounced: true),
    Row("connections", .count(\.connections), least: 1, isAnnounced: true),
    Row("connectionsPerUser", .count(\.connectionsPerUser), least: 1, isAnnounced: true),
    Row("connectionsPerSecond", .count(\.connectionsPerSecond), least: 1, isAnnounced: true),
    Row("subscriptions", .count(\.subscriptions), isAnnounced: true),
    Row("subscriptionsPerUser", .count(\.subscriptionsPerUser), isAnnounced: true),
    Row("unsentBytesPerUser", .count(\.unsentBytesPerUser), least: 1, isAnnounced: true),
    Row("partialBytesPerUser", .count(\.partialBytesPerUser), least: 1, isAnnounced: true),
    Row("turnBytesPerUser", .count(\.turnBytesPerUser), least: 1),
    Row("actionsPerSecond", .count(\.actionsPerSecond), least: 1),
    Row("effects", .count(\.effects), least: 1),
    Row("closedConnections", .count(\.closedConnections)),
    Row("pathKeys", .count(\.pathKeys), isAnnounced: true),
    Row("pathBytes", .count(\.pathBytes), isAnnounced: true),
    Row("window", .count(\.window), least: 1),
    Row("detachedSessions", .count(\.detachedSessions)),
    Row("sessionGraceMs", .duration(\.sessionGrace)),
    Row("heldStates", .count(\.heldStates)),
    Row("heldStatesPerUser", .count(\.heldStatesPerUser)),
    Row("stateBytes", .count(\.stateBytes)),
    Row("actionMemoryBytes", .count(\.actionMemoryBytes)),
    Row("largeActionBytes", .count(\.largeActionBytes)),
    Row("historyBytes", .count(\.historyBytes)),
    Row("stallDeadlineMs", .duration(\.stallDeadline), least: 1, isAnnounced: true),
    Row("helloDeadlineMs", .duration(\.helloDeadline), least: 1, isAnnounced: true),
    Row("goodbyeDeadlineMs", .duration(\.goodbyeDeadline), least: 1, isAnnounced: true),
    Row("bookmarkIntervalMs", .duration(\.bookmarkInterval), least: 1, isAnnounced: true),
    Row("snapshotPartBytes", .count(\.snapshotPartBytes), least: 1),
    Row("inlineSnapshotBytes", .count(\.inlineSnapshotBytes)),
    Row("inlineDifferenceBytes", .count(\.inlineDifferenceBytes)),
    Row("concurrentSnapshots", .count(\.concurrentSnapshots), least: 1),
    Row("patchFrameBytes", .count(\.patchFrameBytes), least: 1),
    Row("requestsPerTurn", .count(\.requestsPerTurn), least: 1),
    Row("requestWorkPerTurn", .count(\.requestWorkPerTurn), least: 1),
    Row("reportPageBytes", .count(\.reportPageBytes), least: 1),
    Row("textBytes", .count(\.textBytes), least: 256),
    Row("rejectionBytes", .count(\.rejectionBytes)),
    Row("waitingPerTurn", .count(\.waitingPerTurn), least: 1),
    Row("logEntries", .count(\.logEntries)),
    Row("logActionBytes", .count(\.logActionBytes)),
    Row("journalBytes", .count(\.journalBytes)),
    Row("journalAgeMs", .duration(\.journalAge)),
    Row("journalQueueBytes", .count(\.journalQueueBytes), least: 1),
    Row("journalDigestChanges", .count(\.journalDigestChanges), least: 1),
  ]
}

/// Those that the frames of patches keep to. By themselves, for they are handed down with every change, and
/// all limits are 400 bytes.
struct FrameLimits: Sendable {
  let frameBytes: Int
  /// Patches of so many bytes have frames of their own.
  let patchFrameBytes: Int

  @inline(__always)
  init(_ limits: Limits) {
    (frameBytes, patchFrameBytes) = (limits.frameBytes, limits.patchFrameBytes)
  }
}
