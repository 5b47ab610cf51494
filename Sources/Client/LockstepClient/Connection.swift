import ClientCore
import EventLoop
public import Schemas
import Synchronization
public import Values
public import Wire

/// A connection to a daemon: sends actions, asks for reports, and mirrors any number of paths of the
/// daemon's state.
///
///     let connection = try await Connection.connect()
///     let visits = connection.subscribe(to: ["visits"], as: Value.self)
///     try await connection.send(DocumentAction.increment(["visits"], by: 1))
///     print(visits.state ?? .null)  // Reads its own write.
///
/// A lost connection is made again, and every action that is not acknowledged is done exactly once,
/// or reported as `ClientError.outcomeUnknown`. The connection says goodbye when it is closed, or
/// when neither it nor a mirror of it is referred to any more: what was sent still goes out.
///
/// Any thread may use it, and so may every closure that is given to it or to its mirrors: none is
/// called under a lock.
public final class Connection: Sendable {
  let link: Link

  private init(_ link: Link) { self.link = link }

  deinit { link.close() }

  /// How to connect.
  public struct Options: Sendable {
    /// The daemon's socket; nil for the standard one (`SocketPath.standard`).
    public var socket: String?
    /// What the client calls itself in the daemon's reports.
    public var label: String
    /// Wait for a daemon that is not there yet, instead of failing at once.
    public var waitsForDaemon = false
    /// Connect again when the connection is lost.
    public var reconnects = true
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

  /// Connect to a daemon, and return when the connection is live.
  public static func connect(_ options: Options = Options()) async throws -> Connection {
    let connection = try open(options)
    try await connection.connected()
    return connection
  }

  /// Begin to connect, and return at once.
  public static func open(_ options: Options = Options()) throws -> Connection {
    let path = options.socket ?? SocketPath.standard
    try SocketPath.check(path)
    var configuration = Link.Session.Configuration(label: options.label)
    configuration.reconnects = options.reconnects
    configuration.digestInterval = options.digestInterval
    configuration.schemaUse = options.schemaUse
    let link = Link(
      path: path, configuration: configuration, waitsForDaemon: options.waitsForDaemon,
      loop: try ClientLoop.shared.get())
    link.start()
    return Connection(link)
  }

  /// Return when the connection is live, and `welcome` and `schema` are there.
  public func connected() async throws {
    try await withCheckedThrowingContinuation { (continuation: Link.Waiter) in
      link.perform { state in
        switch state.connection {
        case .live: state.deliver { continuation.resume() }
        case .closed(let goodbye):
          let error = link.closedError(goodbye, state)
          state.deliver { continuation.resume(throwing: error) }
        case .connecting, .stale: state.connecting.append(continuation)
        }
      }
    }
  }

  /// Mirror a path. The mirror is empty at first; `Subscription.reached(revision: 0)` waits until it
  /// is whole. Mirrors of one path share what comes, and must be of one type.
  ///
  /// `everyRevision` is for `Subscription.revisions`.
  public func subscribe<State: Synchronizable>(
    to path: Path = .root, as type: State.Type = State.self, everyRevision: Bool = false
  ) -> Subscription<State> {
    let number = link.subscribe(to: path, as: type, everyRevision: everyRevision)
    return Subscription(self, number, path)
  }

  /// Say goodbye. What waits ends with `ClientError.closed`.
  public func close() { link.close() }

  /// Say goodbye, and return when it is on its way: the process may end then.
  public func finish() async {
    close()
    // The loop does things in order, and the goodbye comes first.
    await withCheckedContinuation { continuation in link.loop.execute { continuation.resume() } }
  }

  // MARK: Reading

  public var state: ConnectionState {
    ConnectionState(link.state.withLock { $0.connection }, at: Link.now())
  }

  /// The state, then each change of it. Ends with the connection.
  public var states: AsyncStream<ConnectionState> { link.states(of: nil) }

  /// What the daemon said at the beginning of the session; nil before the first connection.
  public var welcome: ServerMessage.Welcome? { link.state.withLock { $0.session.welcome } }

  /// The daemon's number for this client's session: under it others see what the client owns
  /// (`ClientOrigin.session`), and it finds what is its own. Nil before the first connection.
  public var sessionNumber: UInt64? { welcome?.session }

  /// What the daemon's state and actions are made of; nil before the first connection.
  public var schema: Schema? { link.state.withLock { $0.session.schema } }

  /// How many actions are not acknowledged yet.
  public var unacknowledged: Int { link.state.withLock { $0.session.unacknowledged } }

  /// How many actions have been rejected.
  public var rejectedPosts: UInt64 { link.state.withLock { $0.rejectedPosts } }

  /// How often a mirror was found to differ from the daemon's state, and was replaced.
  public var divergences: UInt64 { link.state.withLock { $0.divergences } }

  /// How a mirror last differed: both digests and the revision.
  public var lastDivergence: String? { link.state.withLock { $0.lastDivergence } }
}
