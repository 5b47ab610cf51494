import CBOR
public import ClientCore
import EventLoop
public import Lockstep
public import Schemas
import Synchronization
public import Values
public import Wire

/// A live copy of a daemon's state, or of what stands at a path in it.
///
/// Every read gives the newest value that has arrived; `state` is a consistent snapshot, O(1).
/// Nothing but actions changes the state: `send` returns when this mirror contains what the action
/// did. Lost connections are made anew, and every action that is not acknowledged is done exactly
/// once, or reported as `ClientError.outcomeUnknown`.
///
///     let mirror = try await Replica<Value>.connect()
///     try await mirror.send(DocumentAction.increment(["visits"], by: 1))
///     print(mirror.state?.value(at: ["visits"]))
public final class Replica<Mirrored: Synchronizable>: Sendable {
  let link: Link
  let subscription: UInt64
  /// What the mirror shows: a path in the daemon's state.
  public let path: Path

  init(_ link: Link, _ subscription: UInt64, _ path: Path) {
    self.link = link
    self.subscription = subscription
    self.path = path
    link.state.withLock { state in
      state.stores += 1
      state.shares[subscription, default: 0] += 1
    }
  }

  deinit {
    let subscription = subscription
    link.perform { state in
      state.stores -= 1
      let shares = (state.shares[subscription] ?? 1) - 1
      let isUnused = shares == 0
      state.shares[subscription] = isUnused ? nil : shares
      if state.session.hasEnded { return }
      if subscription != 0, isUnused {
        state.session.unsubscribe(subscription, into: &state.commands)
      }
      // Nobody can read or send any more: what was sent still goes out, then the goodbye.
      if state.stores == 0 { state.session.close(into: &state.commands) }
    }
  }

  /// How a client connects.
  public struct Options: Sendable {
    /// The daemon's socket; nil for the standard one (`SocketPath.standard`).
    public var socket: String?
    /// What the client calls itself in the daemon's reports.
    public var label: String
    /// Wait for a daemon that is not there yet, instead of failing at once.
    public var waitsForDaemon = false
    /// Come back when the connection is lost.
    public var reconnects = true
    /// Hand out every revision (`revisions`), not only the newest.
    public var everyRevision = false
    /// Mirror the path. Without this the store only sends and asks; `mirror(of:)` adds mirrors.
    public var subscribes = true
    /// How often to compare digests with the daemon; nil for never.
    public var digestInterval: Duration? = .seconds(60)
    /// What to do with the daemon's schema: nothing, show its state by names, or match fields and
    /// cases with those of this build.
    public var schemaUse = SchemaUse.ignore

    public init(socket: String? = nil, label: String = CommandLine.arguments.first ?? "") {
      self.socket = socket
      self.label = label
    }
  }

  /// Connect to a daemon, and return when the mirror is whole.
  public static func connect(
    path: Path = .root, _ options: Options = Options()
  ) async throws -> Replica {
    let mirror = try open(path: path, options)
    do {
      if options.subscribes {
        try await mirror.reached(revision: 0)
      } else {
        try await mirror.connected()
      }
    } catch {
      mirror.close()
      throw error
    }
    return mirror
  }

  /// Begin to connect, and return at once.
  public static func open(path: Path = .root, _ options: Options = Options()) throws -> Replica {
    let socket = options.socket ?? SocketPath.standard
    try SocketPath.check(socket)
    var configuration = Link.Session.Configuration(label: options.label)
    configuration.reconnects = options.reconnects
    configuration.digestInterval = options.digestInterval
    configuration.schemaUse = options.schemaUse
    let link = Link(
      path: socket, configuration: configuration, waitsForDaemon: options.waitsForDaemon,
      loop: try ClientLoop.shared.get())
    let subscription =
      !options.subscribes
      ? 0
      : link.perform { state in
        state.session.subscribe(
          to: path, everyRevision: options.everyRevision, as: AnyMirrored.form(of: Mirrored.self),
          into: &state.commands)
      }
    link.start()
    return Replica(link, subscription, path)
  }

  /// Another mirror on the same connection.
  public func mirror(of path: Path, everyRevision: Bool = false) -> Replica {
    mirror(of: path, as: Mirrored.self, everyRevision: everyRevision)
  }

  /// A mirror of what stands at another path, on the same connection. Mirrors of one path share a
  /// subscription, and must be of one type.
  func mirror<Part: Synchronizable>(
    of path: Path, as type: Part.Type, everyRevision: Bool = false
  ) -> Replica<Part> {
    let subscription = link.perform { state -> UInt64 in
      if let known = state.session.mirrors.first(where: { $0.path == path }) {
        if everyRevision { state.session.wantEveryRevision(of: known.number) }
        return known.number
      }
      return state.session.subscribe(
        to: path, everyRevision: everyRevision, as: AnyMirrored.form(of: type),
        into: &state.commands)
    }
    return Replica<Part>(link, subscription, path)
  }

  /// Say goodbye. What waits ends with `ClientError.closed`.
  public func close() {
    link.perform { $0.session.close(into: &$0.commands) }
  }

  /// Say goodbye, and return when it is on its way: the process may end then.
  public func finish() async {
    close()
    // The loop does things in order, and the goodbye comes first.
    await withCheckedContinuation { continuation in link.loop.execute { continuation.resume() } }
  }

  // MARK: Reading

  /// The newest value; nil when nothing stands at the path. A copy is a snapshot, O(1).
  public var state: Mirrored? {
    link.state.withLock { $0.session.value(of: subscription) }?.value(as: Mirrored.self)
  }

  /// Where the mirror stands; nil before its first snapshot.
  public var position: Position? {
    link.state.withLock { $0.session.position(of: subscription) }
  }

  /// The value and where it stands, read together.
  public var snapshot: (state: Mirrored?, position: Position?) {
    link.state.withLock { state in
      (
        state.session.value(of: subscription)?.value(as: Mirrored.self),
        state.session.position(of: subscription)
      )
    }
  }

  /// The digest of the value, in the form in which it is held: not the daemon's where a schema has
  /// it translated. O(what changed since it was last asked for).
  public var digest: Digest? {
    let (value, seed) = link.state.withLock { state in
      (state.session.value(of: subscription), state.session.welcome?.seed)
    }
    return seed.map { Digest(value.digest(seed: $0)) }
  }

  /// Snapshots, patches and bytes that came.
  public var counters: MirrorCounters {
    link.state.withLock { $0.session.mirror(subscription)?.counters ?? .init() }
  }

  /// How often the mirror was found to differ from the daemon's state, and was replaced.
  public var divergences: UInt64 { link.state.withLock { $0.divergences } }

  /// How a mirror last differed: both digests and the revision.
  public var lastDivergence: String? { link.state.withLock { $0.lastDivergence } }

  /// What the daemon said at the beginning of the session.
  public var welcome: ServerMessage.Welcome? { link.state.withLock { $0.session.welcome } }

  /// The daemon's number for this client's session: under it others see what the client owns
  /// (`ClientOrigin.session`), and it finds what is its own. Nil before the first connection.
  public var sessionNumber: UInt64? { welcome?.session }

  /// What the daemon's state and actions are made of; nil before the first connection.
  public var schema: Schema? { link.state.withLock { $0.session.schema } }

  /// Where the mirror stands with the daemon. One that holds what this build does not know is stale,
  /// with the goodbye code `schema`, though others of its connection are live.
  public var connection: ConnectionState {
    let state = link.state.withLock { $0.connection(of: subscription) }
    return ConnectionState(state, at: Link.now())
  }

  /// Where the connection stands, then each change of that. Ends with the connection.
  public var connections: AsyncStream<ConnectionState> {
    AsyncStream { continuation in
      let number = link.perform { state -> UInt64 in
        state.nextNumber += 1
        continuation.yield(ConnectionState(state.connection(of: subscription), at: Link.now()))
        if case .closed = state.connection {
          continuation.finish()
        } else {
          state.connectionObservers[state.nextNumber] =
            Link.ConnectionObserver(subscription: subscription, stream: continuation)
        }
        return state.nextNumber
      }
      continuation.onTermination = { [link] reason in
        // A finished stream has no observer any more, and may have been finished under the mutex.
        if case .cancelled = reason {
          link.perform { state in state.connectionObservers[number] = nil }
        }
      }
    }
  }

  // MARK: Sending

  /// Have an action done, and return when this mirror contains what it did. Throws
  /// `ClientError.rejected` when it was not done, `.outcomeUnknown` when nobody can know.
  @discardableResult
  public func send(
    _ action: some SynchronizableAction, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await send(payload: Self.payload(action), mark)
  }

  /// Have an action done that is encoded already.
  @discardableResult
  public func send(payload: [UInt8], _ mark: Mark = .applied) async throws -> Acknowledgement {
    try await withCheckedThrowingContinuation { continuation in
      link.perform { state in
        if case .closed(let goodbye) = state.connection {
          return continuation.resume(throwing: ClientError.closed(goodbye))
        }
        let id = state.session.send(payload, mark, into: &state.commands)
        state.actions[id] = continuation
      }
    }
  }

  /// Have an action done, without waiting. It is kept, and sent again after a reconnection, like
  /// any other; what came of it is only counted (`rejectedPosts`).
  public func post(_ action: some SynchronizableAction) { post(payload: Self.payload(action)) }

  public func post(payload: [UInt8]) {
    link.perform { state in
      if case .closed = state.connection { return }
      _ = state.session.send(payload, into: &state.commands)
    }
  }

  /// How many actions have been rejected on this connection.
  public var rejectedPosts: UInt64 { link.state.withLock { $0.rejectedPosts } }

  /// How many actions are not acknowledged yet.
  public var unacknowledged: Int { link.state.withLock { $0.session.unacknowledged } }

  private static func payload(_ action: some SynchronizableAction) -> [UInt8] {
    var encoder = CBOREncoder()
    action.encode(into: &encoder)
    return encoder.bytes
  }

  // MARK: Waiting

  /// Return when the mirror stands at a revision, or past it.
  public func reached(revision: UInt64) async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      link.perform { state in
        if case .closed(let goodbye) = state.connection {
          return continuation.resume(throwing: closedError(goodbye, state))
        }
        if let reason = state.refusals[subscription] {
          return continuation.resume(throwing: ClientError.refused(reason))
        }
        if let (_, why) = state.unreadable[subscription] {
          return continuation.resume(throwing: ClientError.closed(why))
        }
        state.reached.append((subscription, revision, .init(continuation: continuation)))
      }
    }
  }

  /// Return when the connection is live, and `welcome` and `schema` are there.
  public func connected() async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      link.perform { state in
        switch state.connection {
        case .live: continuation.resume()
        case .closed(let goodbye): continuation.resume(throwing: closedError(goodbye, state))
        case .connecting, .stale: state.connecting.append(.init(continuation: continuation))
        }
      }
    }
  }

  private func closedError(_ goodbye: Goodbye, _ state: Link.State) -> ClientError {
    if !state.hasBeenLive, let error = state.connectError {
      return .cannotConnect(path: link.path, error)
    }
    return .closed(goodbye)
  }

  /// The time of a round trip through the daemon's loop.
  public func ping() async throws -> Duration {
    let clock = ContinuousClock()
    let start = clock.now
    _ = try await request { state, continuation in
      state.nextNumber += 1
      state.pongs[state.nextNumber] = continuation
      state.session.ping(state.nextNumber, into: &state.commands)
    }
    return start.duration(to: clock.now)
  }

  /// What the daemon says of itself: "status", "clients" or "limits", or of what arguments name.
  public func report(_ name: String, arguments: [String] = []) async throws -> Value {
    try await request { state, continuation in
      state.nextNumber += 1
      state.reports[state.nextNumber] = continuation
      state.session.query(
        state.nextNumber, name, arguments: arguments, into: &state.commands)
    }
  }

  /// The reports of a query that goes on being answered, as "log.follow" is. Ends with the
  /// connection, by its error. A reader that is slower than the daemon makes the stream grow.
  public func reports(
    _ name: String, arguments: [String] = []
  ) -> AsyncThrowingStream<Value, any Error> {
    AsyncThrowingStream { continuation in
      let number = link.perform { state -> UInt64 in
        guard state.session.isLive else {
          continuation.finish(throwing: downError(state))
          return 0
        }
        state.nextNumber += 1
        state.reportStreams[state.nextNumber] = continuation
        state.session.query(
          state.nextNumber, name, arguments: arguments, into: &state.commands)
        return state.nextNumber
      }
      continuation.onTermination = { [link] reason in
        // A finished stream is forgotten already, and may have been finished under the mutex.
        if case .cancelled = reason {
          link.perform { state in state.reportStreams[number] = nil }
        }
      }
    }
  }

  /// The daemon's digest of what the mirror shows, and the revision at which it is true. Throws
  /// `ClientError.noDigest` when there is none that could be compared now.
  public func daemonDigest() async throws -> (revision: UInt64, digest: Digest) {
    let subscription = subscription
    let (revision, digest): (UInt64, Digest?) = try await request { state, continuation in
      state.digests[subscription, default: []].append(continuation)
      state.session.requestDigest(of: subscription, into: &state.commands)
    }
    guard let digest else { throw ClientError.noDigest }
    return (revision, digest)
  }

  private func request<R: Sendable>(
    _ body: (inout Link.State, CheckedContinuation<R, any Error>) -> Void
  ) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      link.perform { state in
        guard state.session.isLive else {
          return continuation.resume(throwing: downError(state))
        }
        body(&state, continuation)
      }
    }
  }

  /// Why nothing can be asked now.
  private func downError(_ state: Link.State) -> ClientError {
    let goodbye =
      if case .closed(let goodbye) = state.connection { goodbye } else {
        Goodbye(.done, "the connection is down")
      }
    return closedError(goodbye, state)
  }
}
