public import Values

/// An action that names paths of the state, so that who may read and write what can be asked before
/// it is done.
public protocol PathNaming: SynchronizableAction {
  /// The names of the action and of all actions that it holds, in any order.
  var heldNames: [String] { get }

  /// Where the action looks: what stands there could show in its outcome, or come to stand where
  /// the client can see it.
  var readPaths: [Path] { get }

  /// What the action may change: all that stands at these paths. What stood there shows in its
  /// outcome, too.
  var writtenPaths: [Path] { get }
}

extension PathNaming {
  public var heldNames: [String] { [name] }
}
