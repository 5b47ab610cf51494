public import CBOR

/// A fault of a peer that ends its connection. The peer is told; other peers are not affected.
public struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
  public var code: GoodbyeCode
  /// A sentence with the offending value.
  public var message: String
  public var limit: LimitBreach?

  public init(_ code: GoodbyeCode, _ message: String, limit: LimitBreach? = nil) {
    self.code = code
    self.message = message
    self.limit = limit
  }

  /// The error for a message whose bytes do not have the form of its type.
  public static func malformed(_ error: CBORError) -> WireError {
    WireError(.malformed, "malformed message: \(error)")
  }

  public var description: String { "\(code): \(message)" }
}

/// A limit that was exceeded, with the observed value.
public struct LimitBreach: Hashable, Sendable {
  /// The limit's name, as in `Limits`.
  public var name: String
  public var limit: UInt64
  public var observed: UInt64

  public init(_ name: String, limit: Int, observed: Int) {
    self.name = name
    self.limit = UInt64(clamping: limit)
    self.observed = UInt64(clamping: observed)
  }
}

/// The reason for which a connection ends. Every close has one; the numbers are those of
/// `Protocols/wire.md`, section "Goodbyes".
public struct GoodbyeCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt64
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The peer is done.
  public static let done = GoodbyeCode(rawValue: 0)
  /// Bytes that are not a message.
  public static let malformed = GoodbyeCode(rawValue: 1)
  /// A frame over the limit.
  public static let frameTooLarge = GoodbyeCode(rawValue: 2)
  /// No protocol version in common.
  public static let version = GoodbyeCode(rawValue: 3)
  /// A message at the wrong time.
  public static let outOfOrder = GoodbyeCode(rawValue: 4)
  /// A message type that this version does not have.
  public static let unknownMessage = GoodbyeCode(rawValue: 5)
  /// The daemon stops or restarts: reconnect later.
  public static let stopping = GoodbyeCode(rawValue: 6)
  /// Another connection took over the session.
  public static let replaced = GoodbyeCode(rawValue: 7)
  /// The client did not read for too long.
  public static let stalled = GoodbyeCode(rawValue: 8)
  /// A limit of the daemon was exceeded.
  public static let limit = GoodbyeCode(rawValue: 9)
  /// The peer may not do this: a session of another user, for example.
  public static let denied = GoodbyeCode(rawValue: 10)
  /// The peers' schemas are incompatible.
  public static let schema = GoodbyeCode(rawValue: 11)
  /// The daemon's process ends and another is about to replace it: reconnect, and the session
  /// continues.
  public static let restarting = GoodbyeCode(rawValue: 12)

  public var description: String {
    switch self {
    case .done: "done"
    case .malformed: "malformed"
    case .frameTooLarge: "frameTooLarge"
    case .version: "version"
    case .outOfOrder: "outOfOrder"
    case .unknownMessage: "unknownMessage"
    case .stopping: "stopping"
    case .replaced: "replaced"
    case .stalled: "stalled"
    case .limit: "limit"
    case .denied: "denied"
    case .schema: "schema"
    case .restarting: "restarting"
    default: "code \(rawValue)"
    }
  }
}

/// The last message of a connection, from either side.
public struct Goodbye: Error, Hashable, Sendable, CustomStringConvertible {
  public var code: GoodbyeCode
  public var message: String
  public var limit: LimitBreach?
  /// The time after which reconnecting makes sense, in milliseconds; nil if it does not.
  public var retryAfter: UInt64?

  public init(
    _ code: GoodbyeCode, _ message: String, limit: LimitBreach? = nil, retryAfter: UInt64? = nil
  ) {
    self.code = code
    self.message = message
    self.limit = limit
    self.retryAfter = retryAfter
  }

  public init(_ error: WireError) { self.init(error.code, error.message, limit: error.limit) }

  public var description: String { "\(code): \(message)" }
}
