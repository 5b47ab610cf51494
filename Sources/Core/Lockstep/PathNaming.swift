public import Values

/// An action that names the paths it reads and writes, so that access rights can be checked before
/// it is reduced.
public protocol PathNaming: SynchronizableAction {
  /// The names of the action and of all actions nested in it, in any order.
  var heldNames: [String] { get }

  /// The paths that the action reads: a value there could show in its outcome, or be copied to
  /// where the client can see it.
  var readPaths: [Path] { get }

  /// The paths whose values the action may change, including everything below them. The former
  /// values show in its outcome, too.
  var writtenPaths: [Path] { get }
}

extension PathNaming {
  public var heldNames: [String] { [name] }
}
