/// The client that sent an action: its credentials from the kernel, and its own label.
public struct ClientOrigin: Hashable, Sendable, CustomStringConvertible {
  /// The daemon's number for the connection.
  public var connection: UInt64
  /// The daemon's number for the session, counted within the epoch. It stays the same when the
  /// client reconnects, and when the daemon restarts and continues its sessions. Never reused,
  /// below 2^63, and not secret. 0 where there are no sessions.
  public var session: UInt64
  public var pid: UInt64
  public var uid: UInt64
  public var gid: UInt64
  /// The client's own name for itself: for display only.
  public var label: String

  public init(
    connection: UInt64, pid: UInt64, uid: UInt64, gid: UInt64, label: String = "",
    session: UInt64 = 0
  ) {
    self.connection = connection
    self.session = session
    self.pid = pid
    self.uid = uid
    self.gid = gid
    self.label = label
  }

  public var description: String { "client \(connection) (pid \(pid), uid \(uid))" }
}

/// The sender of an action.
public enum Origin: Hashable, Sendable, CustomStringConvertible {
  case client(ClientOrigin)
  case effect(EffectID, name: String)
  case timer(EffectID, name: String)
  case middleware(String)
  /// The process that owns the store.
  case owner

  public var description: String {
    switch self {
    case .client(let client): client.description
    case .effect(_, let name): "effect \(name)"
    case .timer(_, let name): "timer \(name)"
    case .middleware(let name): "middleware \(name)"
    case .owner: "the daemon"
    }
  }
}

/// Why an action is in the queue. A copy is O(1): all actions of a connection share one.
public struct Cause: Hashable, Sendable {
  private struct Fields: Hashable, Sendable {
    var origin: Origin
    /// What led to it; nil if nothing did, as for what a client sends: each connection keeps such a cause.
    var cascade: Cascade?
  }

  /// In memory of its own.
  private indirect enum Cascade: Hashable, Sendable {
    case of(parent: UInt64?, client: ClientOrigin?, root: UInt64?)
  }

  private final class Storage: Sendable {
    let fields: Fields
    init(_ fields: Fields) { self.fields = fields }
  }

  private let storage: Storage
  private var fields: Fields { storage.fields }

  public var origin: Origin { storage.fields.origin }

  /// The sequence number of the action that led to it; nil when it came from outside.
  public var parent: UInt64? {
    if case .of(let parent, _, _) = storage.fields.cascade { parent } else { nil }
  }

  /// The client that started the cascade; nil when no client did.
  public var client: ClientOrigin? {
    if case .client(let sender) = storage.fields.origin { return sender }
    return if case .of(_, let client, _) = storage.fields.cascade { client } else { nil }
  }

  /// The sequence number of the action from outside that started the cascade; nil for that action
  /// itself.
  var root: UInt64? {
    if case .of(_, _, let root) = storage.fields.cascade { root } else { nil }
  }

  public init(_ origin: Origin, client: ClientOrigin? = nil, parent: UInt64? = nil) {
    self.init(origin, client: client, parent: parent, root: nil)
  }

  private init(_ origin: Origin, client: ClientOrigin?, parent: UInt64?, root: UInt64?) {
    let other: ClientOrigin? = if case .client = origin { nil } else { client }
    let isAlone = other == nil && parent == nil && root == nil
    storage = Storage(
      Fields(
        origin: origin, cascade: isAlone ? nil : .of(parent: parent, client: other, root: root)))
  }

  public static func == (first: Cause, second: Cause) -> Bool {
    first.isTriviallyIdentical(to: second) || first.fields == second.fields
  }

  /// Whether both are copies of one: then they are equal. Equal ones need not be. O(1).
  public func isTriviallyIdentical(to other: Cause) -> Bool { storage === other.storage }

  public func hash(into hasher: inout Hasher) { hasher.combine(fields) }

  /// The cause of an action of the process that owns the store.
  public static let owner = Cause(.owner)

  /// The cause of an action that follows from the one with this sequence number.
  func following(_ sequence: UInt64, _ origin: Origin) -> Cause {
    Cause(origin, client: client, parent: sequence, root: root ?? sequence)
  }
}
