public import CBOR
public import Values

/// Why an action was rejected. A rejected action has changed nothing.
public struct Rejection: Error, Hashable, Sendable, CustomStringConvertible {
  /// The codes of `Protocols/wire.md`, section "Rejections". A peer may receive codes that it does
  /// not know; the message explains them.
  public struct Code: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The payload does not decode as the action's.
    public static let malformed = Code(rawValue: 1)
    /// The feature has no such action.
    public static let unknownAction = Code(rawValue: 2)
    /// The path names no value that the action could apply to.
    public static let badPath = Code(rawValue: 3)
    /// The value at the path is of another type than the action needs.
    public static let wrongType = Code(rawValue: 4)
    /// A `test` failed.
    public static let testFailed = Code(rawValue: 5)
    /// A number would not fit its type.
    public static let numberOutOfRange = Code(rawValue: 6)
    /// The value would nest deeper, or grow larger, than the limit allows.
    public static let limit = Code(rawValue: 7)
    /// The feature rejects the action for a reason of its own, stated in the message.
    public static let refused = Code(rawValue: 8)
    /// The client may not send this action.
    public static let denied = Code(rawValue: 9)
    /// The action asks for durability, and at present nothing can be persisted.
    public static let notDurable = Code(rawValue: 10)
    /// The action has ended the daemon's process more than once.
    public static let poisoned = Code(rawValue: 11)
    /// The daemon is paused: no action is done.
    public static let paused = Code(rawValue: 12)
  }

  public var code: Code
  /// A sentence for people, with the offending value.
  public var message: String
  /// The path in the state at which the error occurred, if there is a single one.
  public var path: Path?

  public init(_ code: Code, _ message: String, at path: Path? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The rejection with each text truncated to this many bytes, because it is kept for every
  /// session and in the log. A longer path is omitted.
  public func bounded(to bytes: Int) -> Rejection {
    let path = path.flatMap { $0.byteCount <= bytes && $0.keys.count <= bytes ? $0 : nil }
    return Rejection(code, message.prefix(bytes: bytes), at: path)
  }

  public var description: String {
    path?.named(behind: message) ?? message
  }
}

extension Rejection {
  /// The rejection of a payload that does not decode as an action of the feature.
  public init(_ error: CBORError) {
    switch error.kind {
    case .unknownCase(let number): self.init(.unknownAction, "there is no action number \(number)")
    default: self.init(.malformed, "malformed action: \(error)")
    }
  }
}
