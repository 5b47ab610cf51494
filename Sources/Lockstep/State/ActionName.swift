/// What `@Action` calls for the name of a case with one value.
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
}
