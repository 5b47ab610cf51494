public import CBOR
public import Values

/// A feature: its state, the actions that may happen, and how each changes the state.
///
/// `reduce` is pure: it reads nothing but its arguments. It is never re-entered, and the store
/// calls it for one action at a time, in the order of their arrival.
public protocol Reducer<State, Action>: Sendable {
  associatedtype State: ScopedState & Journaled
  associatedtype Action: SynchronizableAction

  /// Change the state as the action says, or throw to reject it: what had been edited is undone.
  func reduce(into state: inout State, action: Action) throws(Rejection)

  /// What peers need to know about the types to show and send them.
  var schema: Schema { get }
}

/// An action that can travel.
public protocol SynchronizableAction: Sendable {
  /// Decode an action from the payload of an `action` message. Collections hash with `seed`.
  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(ActionError)

  /// Append the payload.
  func encode(into encoder: inout CBOREncoder)

  /// The name of the case, for people: `increment`.
  var name: String { get }
}

/// Why a payload is not an action of the feature.
public enum ActionError: Error, Equatable, Sendable {
  /// The bytes are not what the case carries.
  case malformed(CBORError)
  /// No case has this number.
  case unknownCase(UInt64)

  /// The error as the reason that the sender is told.
  public var rejection: Rejection {
    switch self {
    case .malformed(let error): Rejection(.malformed, "malformed action: \(error)")
    case .unknownCase(let number): Rejection(.unknownAction, "there is no action number \(number)")
    }
  }
}

/// Why an action was not done. Nothing of it was.
public struct Rejection: Error, Hashable, Sendable, CustomStringConvertible {
  /// The codes of `Protocols/wire.md`, section "Rejections". A peer may meet codes that it does
  /// not know; the message says the rest.
  public struct Code: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The payload is not what the action carries.
    public static let malformed = Code(rawValue: 1)
    /// The feature has no such action.
    public static let unknownAction = Code(rawValue: 2)
    /// The path names nothing that the action could work on.
    public static let badPath = Code(rawValue: 3)
    /// The value at the path is of another type than the action needs.
    public static let wrongType = Code(rawValue: 4)
    /// A `test` did not hold.
    public static let testFailed = Code(rawValue: 5)
    /// A number would not fit its type.
    public static let numberOutOfRange = Code(rawValue: 6)
    /// The value would nest deeper, or grow larger, than the limit allows.
    public static let limit = Code(rawValue: 7)
    /// The feature has its own reason, and says it in the message.
    public static let refused = Code(rawValue: 8)
  }

  public var code: Code
  /// A sentence for people, with the offending value.
  public var message: String
  /// Where in the state it went wrong, if it did so at one place.
  public var path: Path?

  public init(_ code: Code, _ message: String, at path: Path? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  public var description: String {
    guard let path else { return message }
    return "\(message) (at \(path.keys.isEmpty ? "the whole document" : path.pointer))"
  }
}
