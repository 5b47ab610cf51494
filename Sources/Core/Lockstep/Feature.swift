public import CBOR
public import Values

/// A state that several processes share, and the actions that change it: the types that a client
/// needs to mirror the state and to send the actions.
public protocol Feature<State, Action>: Sendable {
  associatedtype State: Synchronizable
  associatedtype Action: SynchronizableAction
}

extension Feature {
  /// The description of both types that peers need to display and send their values.
  public static var schema: Schema {
    Schema(state: State.self) { Action.schemaKind(in: &$0) }
  }

  /// The description of both types that peers need to display and send their values.
  public var schema: Schema { Self.schema }
}

/// A request to change a state. It names the change; the reducer implements it.
public protocol SynchronizableAction: Synchronizable {
  /// A readable name: that of the case, followed by that of the child's action it carries, if any:
  /// `increment`, `counter.incrTapped`.
  var name: String { get }

  /// Decode an action as `init(from:seed:)`. `spare` is one over which the daemon's log was written, if
  /// there is one: the memory that it has to itself may be used again, so that an action with an array
  /// allocates nothing. It is of no other use, whatever it is afterwards. The default leaves it alone.
  init(
    from decoder: inout CBORDecoder, seed: HashSeed, reusing spare: inout Self?
  ) throws(CBORError)
}

extension SynchronizableAction {
  @inlinable
  public init(
    from decoder: inout CBORDecoder, seed: HashSeed, reusing spare: inout Self?
  ) throws(CBORError) {
    try self.init(from: &decoder, seed: seed)
  }
}
