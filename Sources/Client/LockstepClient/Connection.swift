import ClientCore
import EventLoop
public import Schemas
import SocketPaths
import Synchronization
public import Values
public import Wire

/// A connection to a daemon: sends actions, asks for reports, and mirrors any number of paths of
/// the daemon's state.
///
///     let connection = try await Connection.connect()
///     let visits = connection.subscribe(to: ["visits"], as: Value.self)
///     try await connection.send(DocumentAction.increment(["visits"], by: 1))
///     print(visits.state ?? .null)  // Reads its own write.
///
/// The client reconnects after it loses the connection, and every unacknowledged action is reduced
/// exactly once, or reported as `ClientError.outcomeUnknown`. The connection says goodbye when it
/// is closed, or when no reference to it or to one of its mirrors remains: everything sent before
/// still goes out.
///
/// Any thread may use it, and so may every closure that is passed to it or to its mirrors: none is
/// called under a lock.
///
/// Whatever waits, for an answer, a revision or the daemon, ends with `CancellationError` as soon as
/// its task is cancelled.
public final class Connection: Sendable {
  let link: Link

  private init(_ link: Link) { self.link = link }

  deinit { link.close() }

  /// How to connect.
  public struct Options: Sendable {
    /// The daemon's socket; nil for a standard one: at each attempt until the first that succeeds,
    /// what `SocketPath.standard` finds then.
    public var socket: String?
    /// The client's name for itself in the daemon's reports.
    public var label: String
    /// Wait for a daemon that does not listen yet, instead of failing at once.
    public var waitsForDaemon = false
    /// Reconnect when the connection is lost.
    public var reconnects = true
    /// How often to compare digests with the daemon; nil for never.
    public var digestInterval: Duration? = .seconds(60)
    /// How to use the daemon's schema: ignore it, show its state by names, or match fields and
    /// cases with those of this build.
    public var schemaUse = SchemaUse.ignore
    /// Whether actions may show before they are decided.
    var wantsDecisions = false

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

  /// Start to connect, and return at once.
  public static func open(_ options: Options = Options()) throws -> Connection {
    try SocketPath.check(options.socket ?? SocketPath.standard)
    var configuration = Link.Session.Configuration(label: options.label)
    configuration.reconnects = options.reconnects
    configuration.digestInterval = options.digestInterval
    configuration.schemaUse = options.schemaUse
    configuration.wantsDecisions = options.wantsDecisions
    let link = Link(
      path: options.socket, configuration: configuration, waitsForDaemon: options.waitsForDaemon,
      loop: try ClientLoop.shared.get())
    link.start()
    return Connection(link)
  }

  /// Return when the connection is live, and `welcome` and `schema` are set.
  public func connected() async throws {
    try await link.wait { (state, waiter: Waiter<Void>) in
      switch state.connection {
      case .live: state.deliver { waiter.resume() }
      case .closed(let goodbye):
        let error = link.closedError(goodbye, state)
        state.deliver { waiter.resume(throwing: error) }
      case .connecting, .stale: state.connecting.append(waiter)
      }
    }
  }

  /// Mirror a path. The mirror is empty at first; `Subscription.reached(revision: 0)` waits until
  /// it is complete. Mirrors of one path share a subscription, and must be of one type.
  ///
  /// `everyRevision` is for `Subscription.revisions`.
  public func subscribe<State: Synchronizable>(
    to path: Path = .root, as type: State.Type = State.self, everyRevision: Bool = false
  ) -> Subscription<State> {
    let number = link.subscribe(to: path, as: type, everyRevision: everyRevision)
    return Subscription(self, number, path)
  }

  /// Say goodbye. Pending requests fail with `ClientError.closed`.
  public func close() { link.close() }

  /// Say goodbye, and return when it has been handed to the socket: the process may then exit.
  public func finish() async {
    close()
    // The loop runs jobs in order, and the goodbye comes first.
    await withCheckedContinuation { continuation in link.loop.execute { continuation.resume() } }
  }

  // MARK: Reading

  public var state: ConnectionState {
    ConnectionState(link.state.withLock { $0.connection }, at: Link.now())
  }

  /// The state, then each change of it. Ends with the connection.
  public var states: AsyncStream<ConnectionState> { link.states(of: nil) }

  /// The daemon's welcome, from the start of the session; nil before the first connection.
  public var welcome: ServerMessage.Welcome? { link.state.withLock { $0.session.welcome } }

  /// The daemon's number for this client's session: it identifies this client's data in the state
  /// (`ClientOrigin.session`), for other clients and for itself. Nil before the first connection.
  public var sessionNumber: UInt64? { welcome?.session }

  /// The schema of the daemon's state and actions; nil before the first connection.
  public var schema: Schema? { link.state.withLock { $0.session.schema } }

  /// The number of actions that are not acknowledged yet.
  public var unacknowledged: Int { link.state.withLock { $0.session.unacknowledged } }

  /// How often the daemon has rejected actions, sent or posted; those that end with their session
  /// count once.
  public var rejections: UInt64 { link.state.withLock { $0.rejections } }

  /// How often a mirror diverged from the daemon's state, and was replaced.
  public var divergences: UInt64 { link.state.withLock { $0.divergences } }

  /// A description of the last divergence: both digests and the revision.
  public var lastDivergence: String? { link.state.withLock { $0.lastDivergence } }
}
