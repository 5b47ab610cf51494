/// Called by the code of `@Action` to name a case with associated values.
public enum ActionName {
  /// The name of the case, followed by that of the action that it carries.
  public static func of(_ name: String, carrying action: some SynchronizableAction) -> String {
    "\(name).\(action.name)"
  }

  /// The name of the case, followed by that of the action that it carries, if any; this is checked
  /// at run time.
  @_disfavoredOverload
  public static func of(_ name: String, carrying value: some Any) -> String {
    guard let action = value as? any SynchronizableAction else { return name }
    return "\(name).\(action.name)"
  }

  // For the last of several values: its type, which may be spelled as an alias, selects the
  // overload.

  /// The name of the case, followed by that of the action.
  public static func of(_ name: String, ending action: some SynchronizableAction) -> String {
    "\(name).\(action.name)"
  }

  /// The name of the case, followed by that of the action, if there is one.
  public static func of<Action: SynchronizableAction>(
    _ name: String, ending action: Action?
  ) -> String {
    action.map { "\(name).\($0.name)" } ?? name
  }

  /// The name of the case alone: its last value is no action.
  @_disfavoredOverload
  public static func of(_ name: String, ending value: some Any) -> String { name }
}
