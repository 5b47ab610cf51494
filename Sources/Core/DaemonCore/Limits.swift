public import Wire

/// Everything that a peer could make grow, and how far it may. Passing a limit ends in a typed
/// rejection or goodbye that names it, with the observed value.
public struct Limits: Hashable, Sendable {
  /// The most bytes of one frame's item, either way.
  public var frameBytes = Frame.defaultLimit
  /// The most connections at once. Each costs a descriptor and a few kilobytes.
  public var connections = 10_000
  /// The most connections of one user: a quarter of all, so that four users have room.
  public var connectionsPerUser = 2500
  /// How often a user may connect in a second. After a restart all of its clients come back at
  /// once.
  public var connectionsPerSecond = 2500
  /// The most subscriptions of one user, on all its connections. Each costs some hundred bytes.
  public var subscriptionsPerUser = 100_000
  /// The most bytes that may wait to be written to a user, on all its connections: as many as wait
  /// on each of a thousand that do not read, with a quarter of a megabyte.
  public var unsentBytesPerUser = 256 << 20
  /// The most bytes of frames whose end has not come, on all connections of a user: sixteen of the
  /// largest at a time.
  public var partialBytesPerUser = 256 << 20
  /// Bytes that are read from one user in a turn while others are connected: four buffers, which
  /// are some thousand actions, and about as many milliseconds as anyone then waits for the others.
  public var turnBytesPerUser = 256 << 10
  /// Actions of one user in a second: more than the loop does, so that only who lowers it notices.
  public var actionsPerSecond = 10_000_000
  /// Effects that run at a time, after which actions of clients are rejected.
  public var effects = 100_000
  /// Connections that are gone and of which it is known why.
  public var closedConnections = 256
  /// The most subscriptions of one connection.
  public var subscriptions = 10_000
  /// The most keys of a subscribed path: deeper than documents may nest serves nobody.
  public var pathKeys = 100
  /// The most bytes of a subscribed path's keys: as many as the path of a file may have.
  public var pathBytes = 4096
  /// Unacknowledged actions of a session, and outcomes kept for it: enough to keep a pipe full
  /// (10,000 in flight saturate the loop), at most about a megabyte.
  public var window = 16_384
  /// Sessions without a connection that are kept for their client to return.
  public var detachedSessions = 10_000
  /// How long they are kept.
  public var sessionGrace: Duration = .seconds(300)
  /// Distinct old states held for clients that lag. Each can pin as much as the state changed
  /// since; a client whose state is dropped gets a snapshot.
  public var heldStates = 64
  /// How many of them clients of one user may hold: three quarters, so that no one user's slow
  /// clients take what those of others stand at.
  public var heldStatesPerUser = 48
  /// The most bytes of memory that the state takes, by an estimate that is not below what it does:
  /// ten million entries. Beyond it, clients can only remove.
  public var stateBytes = 4 << 30
  /// The most bytes of memory that the values of one action take, by the same estimate: sixteen
  /// times `frameBytes`, for small containers take a hundred times their bytes.
  public var actionMemoryBytes = 256 << 20
  /// Bytes of recent patches kept for clients that reconnect.
  public var historyBytes = 4 << 20
  /// How long a client may leave sent bytes unread before it is told goodbye.
  public var stallDeadline: Duration = .seconds(120)
  /// How long a connection may take to say hello.
  public var helloDeadline: Duration = .seconds(10)
  /// How long a client may take to read the goodbye, after which the connection is closed unread.
  public var goodbyeDeadline: Duration = .seconds(3)
  /// How often an idle client is told the newest revision: two of these missed and it may take
  /// the daemon for dead.
  public var bookmarkInterval: Duration = .seconds(5)
  /// The bytes of one part of a snapshot: large enough to fill a socket buffer, small enough that
  /// a client can show progress.
  public var snapshotPartBytes = 64 << 10
  /// A scope whose value form is at most this long is encoded on the loop (about a quarter of a
  /// millisecond); a longer one beside it.
  public var inlineSnapshotBytes = 128 << 10
  /// Once this many bytes of patches wait in a turn, they become a frame of their own.
  public var patchFrameBytes = 256 << 10
  /// Requests of one connection that wait for an answer, actions not counted; as long as there are
  /// so many, nothing more is read from it. Enough to fill some turns.
  public var requestsPerTurn = 1024
  /// Work on requests in one turn, in units of about a microsecond: as long as anybody waits for
  /// the questions of others.
  public var requestWorkPerTurn = 2000
  /// Bytes of one page of a report: some hundred rows.
  public var reportPageBytes = 64 << 10
  /// The most bytes of a text that is said or kept: of a rejection, a goodbye, a member of a
  /// report.
  public var textBytes = 1024
  /// Bytes of the texts of rejections that are kept for each session: some hundred. Of older ones
  /// only the code is known.
  public var rejectionBytes = 32 << 10
  /// Actions that effects and middleware sent and that run in one turn: some milliseconds, so that
  /// a feature that keeps sending to itself stops nobody else.
  public var waitingPerTurn = 4096
  /// Actions that the log keeps: enough to see what led to the present, a megabyte at most.
  public var logEntries = 2048
  /// The most bytes of an action that the log keeps with its name.
  public var logActionBytes = 512

  /// Bytes of changes that are kept before a snapshot of the state replaces them; as much as twice
  /// the snapshot, if that is more. A start reads them: some hundred milliseconds.
  public var journalBytes = 64 << 20
  /// The age at which a snapshot replaces the changes since the last.
  public var journalAge: Duration = .seconds(3600)
  /// Bytes that may wait for the disk; beyond them, actions of clients are rejected.
  public var journalQueueBytes = 64 << 20
  /// Changes between two digests in the journal. Each costs what has changed since the last.
  public var journalDigestChanges = 4096

  public init() {}

  /// Those that can end a connection or that a client must keep to, by name: said in the welcome.
  public var announced: [ServerMessage.Welcome.Limit] {
    let names: Set = [
      "frameBytes", "connections", "connectionsPerUser", "connectionsPerSecond", "subscriptions",
      "subscriptionsPerUser", "pathKeys", "pathBytes", "unsentBytesPerUser", "partialBytesPerUser",
      "helloDeadlineMs", "goodbyeDeadlineMs", "stallDeadlineMs", "bookmarkIntervalMs",
    ]
    return table.filter { names.contains($0.name) }.map { .init($0.name, $0.value) }
  }

  /// The limits by name, for people and for clients; durations in milliseconds.
  public var table: [(name: String, value: UInt64)] {
    Self.members.map { name, member in (name, member.value(in: self)) }
  }

  /// The least value of a limit with which anybody can work; nil when there is no such limit.
  public static func least(of name: String) -> UInt64? {
    guard members.contains(where: { $0.name == name }) else { return nil }
    return switch name {
    // The least frame that holds a welcome.
    case "frameBytes": 4096
    case "textBytes": 256
    case "connections", "connectionsPerUser", "connectionsPerSecond", "unsentBytesPerUser",
      "partialBytesPerUser", "turnBytesPerUser", "actionsPerSecond", "effects", "window",
      "helloDeadlineMs", "goodbyeDeadlineMs", "stallDeadlineMs", "bookmarkIntervalMs",
      "snapshotPartBytes", "patchFrameBytes", "requestsPerTurn", "requestWorkPerTurn",
      "reportPageBytes", "waitingPerTurn", "journalQueueBytes", "journalDigestChanges":
      1
    default: 0
    }
  }

  /// Change a limit by its name. Returns false when there is no such limit.
  @discardableResult
  public mutating func set(_ name: String, to value: UInt64) -> Bool {
    guard let member = Self.members.first(where: { $0.name == name })?.member else { return false }
    member.set(value, in: &self)
    return true
  }

  private enum Member {
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

  private static let members: [(name: String, member: Member)] = [
    ("frameBytes", .count(\.frameBytes)),
    ("connections", .count(\.connections)),
    ("connectionsPerUser", .count(\.connectionsPerUser)),
    ("connectionsPerSecond", .count(\.connectionsPerSecond)),
    ("subscriptions", .count(\.subscriptions)),
    ("subscriptionsPerUser", .count(\.subscriptionsPerUser)),
    ("unsentBytesPerUser", .count(\.unsentBytesPerUser)),
    ("partialBytesPerUser", .count(\.partialBytesPerUser)),
    ("turnBytesPerUser", .count(\.turnBytesPerUser)),
    ("actionsPerSecond", .count(\.actionsPerSecond)),
    ("effects", .count(\.effects)),
    ("closedConnections", .count(\.closedConnections)),
    ("pathKeys", .count(\.pathKeys)),
    ("pathBytes", .count(\.pathBytes)),
    ("window", .count(\.window)),
    ("detachedSessions", .count(\.detachedSessions)),
    ("sessionGraceMs", .duration(\.sessionGrace)),
    ("heldStates", .count(\.heldStates)),
    ("heldStatesPerUser", .count(\.heldStatesPerUser)),
    ("stateBytes", .count(\.stateBytes)),
    ("actionMemoryBytes", .count(\.actionMemoryBytes)),
    ("historyBytes", .count(\.historyBytes)),
    ("stallDeadlineMs", .duration(\.stallDeadline)),
    ("helloDeadlineMs", .duration(\.helloDeadline)),
    ("goodbyeDeadlineMs", .duration(\.goodbyeDeadline)),
    ("bookmarkIntervalMs", .duration(\.bookmarkInterval)),
    ("snapshotPartBytes", .count(\.snapshotPartBytes)),
    ("inlineSnapshotBytes", .count(\.inlineSnapshotBytes)),
    ("patchFrameBytes", .count(\.patchFrameBytes)),
    ("requestsPerTurn", .count(\.requestsPerTurn)),
    ("requestWorkPerTurn", .count(\.requestWorkPerTurn)),
    ("reportPageBytes", .count(\.reportPageBytes)),
    ("textBytes", .count(\.textBytes)),
    ("rejectionBytes", .count(\.rejectionBytes)),
    ("waitingPerTurn", .count(\.waitingPerTurn)),
    ("logEntries", .count(\.logEntries)),
    ("logActionBytes", .count(\.logActionBytes)),
    ("journalBytes", .count(\.journalBytes)),
    ("journalAgeMs", .duration(\.journalAge)),
    ("journalQueueBytes", .count(\.journalQueueBytes)),
    ("journalDigestChanges", .count(\.journalDigestChanges)),
  ]
}
