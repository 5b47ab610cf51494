/// What `@Action` calls for the name of a case that carries something.
public enum ActionName {
  /// The name of the case, with that of the action which it carries behind it.
  public static func of(_ name: String, carrying action: some SynchronizableAction) -> String {
    "\(name).\(action.name)"
  }

  /// The name of the case; whether it carries an action is found out at run time.
  @_disfavoredOverload
  public static func of(_ name: String, carrying value: some Any) -> String {
    guard let action = value as? any SynchronizableAction else { return name }
    return "\(name).\(action.name)"
  }

  // Of the last of several values: whether it is an action, its type says, which may be an alias.

  /// The name of the case, with that of the action behind it.
  public static func of(_ name: String, ending action: some SynchronizableAction) -> String {
    "\(name).\(action.name)"
  }

  /// The name of the case, with that of the action behind it, if there is one.
  public static func of<Action: SynchronizableAction>(
    _ name: String, ending action: Action?
  ) -> String {
    action.map { "\(name).\($0.name)" } ?? name
  }

  /// The name of the case, whose last value is no action.
  @_disfavoredOverload
  public static func of(_ name: String, ending value: some Any) -> String { name }
}
