public import ClientCore
public import Lockstep
import Synchronization
public import Values
public import Wire

/// A mirror of one path of a daemon's state: an exact copy that follows it.
///
///     let visits = try await Subscription<Value>.connect(to: ["visits"])
///     try await visits.send(DocumentAction.increment(["visits"], by: 1))
///     print(visits.state ?? .null)  // Reads its own write.
///
/// Every read gives the newest value received; `state` is a consistent snapshot, O(1). Only actions
/// change it. The subscription ends when no reference to it remains; `connection` can have others.
public final class Subscription<State: Synchronizable>: Sendable {
  /// The connection of the mirror: sends actions, sends queries, and closes.
  public let connection: Connection
  /// The mirrored path in the daemon's state.
  public let path: Path
  /// The session's number for it.
  let number: UInt64

  /// `number` is one that `Link.subscribe` gave.
  init(_ connection: Connection, _ number: UInt64, _ path: Path) {
    self.connection = connection
    self.number = number
    self.path = path
  }

  deinit { link.release(number) }

  /// Connect to a daemon, mirror a path, and return when the mirror is complete.
  public static func connect(
    to path: Path = .root, everyRevision: Bool = false,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> Subscription {
    let mirror = try Connection.open(options)
      .subscribe(to: path, as: State.self, everyRevision: everyRevision)
    try await mirror.reached(revision: 0)
    return mirror
  }

  var link: Link { connection.link }

  // MARK: Reading

  /// The newest value; nil when there is no value at the path. A copy is a snapshot, O(1).
  public var state: State? {
    link.state.withLock { $0.session.mirror(number)?.value }?.value(as: State.self)
  }

  /// The revision that the mirror shows, with the daemon's epoch and run; nil before its first
  /// snapshot.
  public var position: Position? { link.state.withLock { $0.session.position(of: number) } }

  /// The value and its position, read together.
  public var snapshot: (state: State?, position: Position?) {
    let (value, position) = link.state.withLock { state in
      (state.session.mirror(number)?.value, state.session.position(of: number))
    }
    return (value?.value(as: State.self), position)
  }

  /// The digest of the value as the mirror holds it: it differs from the daemon's where the value
  /// is translated by a schema. O(what changed since the last call).
  public var digest: Digest? {
    let (value, seed) = link.state.withLock { state in
      (state.session.mirror(number)?.value, state.session.welcome?.seed)
    }
    guard let value, let seed else { return nil }
    return Digest(value.digest(seed: seed))
  }

  /// Counters of the snapshots, patches and bytes received.
  public var counters: MirrorCounters {
    link.state.withLock { $0.session.mirror(number)?.counters ?? .init() }
  }

  /// Whether the mirror follows the daemon. A mirror of a value that this build cannot decode is
  /// stale, with the goodbye code `schema`, although others of its connection are live.
  public var status: ConnectionState {
    ConnectionState(link.state.withLock { $0.connection(of: number) }, at: Link.now())
  }

  /// The status, then each change of it. Ends with the connection.
  public var statuses: AsyncStream<ConnectionState> { link.states(of: number) }

  // MARK: Sending

  /// Send an action, and return when this mirror contains its change, as `Connection.send`.
  @discardableResult
  public func send(
    _ action: some SynchronizableAction, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await connection.send(action, mark)
  }

  /// Send an action without waiting, as `Connection.post`.
  public func post(_ action: some SynchronizableAction) { connection.post(action) }

  // MARK: Waiting

  /// Return when the mirror has reached a revision.
  public func reached(revision: UInt64) async throws {
    try await link.wait { (state, waiter: Waiter<Void>) in
      if let error = obstacle(state) { return state.deliver { waiter.resume(throwing: error) } }
      state.reached.append((number, revision, waiter))
    }
  }

  /// Why the mirror cannot progress; nil if it can.
  private func obstacle(_ state: Link.State) -> ClientError? {
    if case .closed(let goodbye) = state.connection { return link.closedError(goodbye, state) }
    if let reason = state.refusals[number] { return .refused(reason) }
    return state.unreadable[number].map { .closed($0.why) }
  }

  /// The daemon's digest of the mirrored value, and the revision that it is valid for. Throws
  /// `ClientError.noDigest` when there is none that could be compared now.
  public func daemonDigest() async throws -> (revision: UInt64, digest: Digest) {
    let (revision, digest): (UInt64, Digest?) = try await link.request { state, waiter in
      state.digests[number, default: []].append(waiter)
      state.session.requestDigest(of: number, into: &state.commands)
    }
    guard let digest else { throw ClientError.noDigest }
    return (revision, digest)
  }
}
