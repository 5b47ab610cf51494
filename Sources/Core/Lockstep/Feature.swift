public import Values

/// A state that several processes share, and the actions that change it: what whoever mirrors the
/// one and sends the others has to know.
public protocol Feature<State, Action>: Sendable {
  associatedtype State: Synchronizable
  associatedtype Action: SynchronizableAction
}

extension Feature {
  /// What peers need to know about the types to show and send them.
  public static var schema: Schema {
    Schema(state: State.self) { Action.schemaKind(in: &$0) }
  }

  /// What peers need to know about the types to show and send them.
  public var schema: Schema { Self.schema }
}

/// Something that may happen to a state. It names the act; how it is done is the reducer's matter.
public protocol SynchronizableAction: Synchronizable {
  /// The name of the case, and of the action that it carries for a child, for people:
  /// `increment`, `counter.incrTapped`.
  var name: String { get }
}
