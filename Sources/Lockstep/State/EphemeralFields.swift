/// What `@ObservableState` calls for the fields of a struct.
public enum EphemeralFields {
  /// Give the ephemeral fields of a value their defaults, if it is a state or an optional one.
  /// Returns whether it is. Not those in collections: an entry of a map is kept or not as a whole.
  @discardableResult
  public static func reset<T>(_ value: inout T) -> Bool {
    guard var state = value as? any ObservableState else { return false }
    state.resetEphemeral()
    if let state = state as? T { value = state }
    return true
  }
}
