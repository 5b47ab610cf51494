public import Values

/// Finds and resets ephemeral fields; the code of `@ObservableState` calls it for a struct's
/// fields.
public enum EphemeralFields {
  /// The paths of all ephemeral fields of a type, including those of nested structs. O(its fields).
  public static func paths<State: ObservableState>(of type: State.Type) -> [Path] {
    State.fields.flatMap { field -> [Path] in
      let key = PathKey.integer(Int64(field.number))
      if field.isEphemeral { return [Path([key])] }
      let type = Swift.type(of: field.property).valueType
      let inner = (type as? any OptionalType.Type)?.wrapped ?? type
      guard let state = inner as? any ObservableState.Type else { return [] }
      return paths(of: state).map { Path([key] + $0.keys) }
    }
  }

  /// Reset the ephemeral fields of a value to their defaults, if it is a state or an optional one.
  /// Returns whether it is. Fields of elements of collections are not reset: an entry of a map is
  /// persisted as a whole or not at all.
  @discardableResult
  public static func reset<T>(_ value: inout T) -> Bool {
    guard var state = value as? any ObservableState else { return false }
    state.resetEphemeral()
    if let state = state as? T { value = state }
    return true
  }
}

/// Gives the wrapped type of an optional.
private protocol OptionalType {
  static var wrapped: Any.Type { get }
}

extension Optional: OptionalType {
  static var wrapped: Any.Type { Wrapped.self }
}
