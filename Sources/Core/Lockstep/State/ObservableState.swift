public import Values

/// A struct whose fields travel one by one, so that a change costs what it touched, and an observer
/// of one field is not notified of others. `@ObservableState` generates the conformance.
public protocol ObservableState: Synchronizable {
  /// The fields that travel, in the order of their numbers.
  static var fields: [StateField<Self>] { get }

  /// A state made of the defaults; nil when a field has none.
  static var initialValue: Self? { get }

  /// Reset the fields that are not persisted (`@Ephemeral`) to their defaults, in nested structs,
  /// too.
  mutating func resetEphemeral()
}

extension ObservableState {
  public mutating func resetEphemeral() {}

  /// The numbers of the fields that differ. O(fields), and O(1) for each that shares storage.
  public func changedFields(from old: Self) -> [Int] {
    Self.fields.compactMap { $0.isSame(self, old) ? nil : $0.number }
  }

  /// The path of a key path that leads through fields of structs; nil for any other, such as
  /// computed properties. O(the fields of the type and of the types in it).
  public static func path(of property: PartialKeyPath<Self>) -> Path? {
    if property == \Self.self { return .root }
    var found: Path?
    search(for: property, behind: \Self.self, .root, &found)
    return found
  }

  private static func search(
    for searched: AnyKeyPath, behind prefix: AnyKeyPath, _ path: Path, _ found: inout Path?
  ) {
    for field in fields where found == nil {
      guard let whole = prefix.appending(path: field.property) else { continue }
      let place = Path(path.keys + [.integer(Int64(field.number))])
      if whole == searched { return found = place }
      let inner = type(of: whole).valueType as? any ObservableState.Type
      inner?.search(for: searched, behind: whole, place, &found)
    }
  }
}

/// Describes a field of an `ObservableState`.
public struct StateField<Root>: Sendable {
  /// The number of the field on the wire: never reused for another name.
  public let number: Int
  public let name: String
  public let property: any PartialKeyPath<Root> & Sendable
  /// Not persisted: a daemon that restarts begins with the default.
  public let isEphemeral: Bool
  let isSame: @Sendable (Root, Root) -> Bool

  /// The field of a stored property.
  public init<T: Synchronizable>(
    _ number: Int, _ name: String, _ property: any KeyPath<Root, T> & Sendable,
    isEphemeral: Bool = false
  ) {
    self.number = number
    self.name = name
    self.property = property
    self.isEphemeral = isEphemeral
    isSame = { $0[keyPath: property].isSame(as: $1[keyPath: property]) }
  }

  /// Never called: see `Values/Types/UncheckedFields.swift`.
  @_disfavoredOverload
  public init<T>(
    _ number: Int, _ name: String, _ property: any KeyPath<Root, T> & Sendable,
    isEphemeral: Bool = false
  ) {
    StructureCoding.unreachable()
  }
}
