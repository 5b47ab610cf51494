/// Names an effect, so that it can be cancelled. Equal values of different types are different
/// names.
public struct EffectKey: Hashable, Sendable, CustomStringConvertible {
  /// Unchecked: made of a Sendable value only, and never changed.
  private struct Name: Hashable, @unchecked Sendable { let value: AnyHashable }

  private let type: ObjectIdentifier
  private let name: Name

  public init<ID: Hashable & Sendable>(_ id: ID) {
    type = ObjectIdentifier(ID.self)
    name = Name(value: AnyHashable(id))
  }

  public var description: String { "\(name.value.base)" }

  /// Whether only the text is known, as in a recording.
  var isRecorded: Bool { name.value.base is RecordedName }

  /// The text that distinguishes the key from others: its type and its value, or the property of a
  /// child.
  var text: String {
    guard let child = name.value.base as? Child else {
      return (name.value.base as? RecordedName)?.description
        ?? "\(Swift.type(of: name.value.base)) \(description)"
    }
    return "\(child.property) \(child.actions.map { "\($0)" } ?? "") \(child)"
  }
}

/// A name whose value is unknown, except for its text: no effect runs under it.
struct RecordedName: Hashable, Sendable, CustomStringConvertible {
  let description: String
}

// MARK: Children

/// A child: the property that holds it, its actions if several children may share the property, and
/// the identifier if it is one of several.
///
/// Unchecked: the key paths capture nothing but Sendable values (they are made from ones that say
/// so), and the identifier is one.
private struct Child: Hashable, @unchecked Sendable, CustomStringConvertible {
  let property: AnyKeyPath
  var actions: AnyKeyPath?
  var id: AnyHashable?
  /// Finds the child; follows from the property.
  let finder: any ChildFinder.Type

  var description: String { id.map { "\($0.base)" } ?? "child" }

  static func == (first: Self, second: Self) -> Bool {
    first.property == second.property && first.actions == second.actions && first.id == second.id
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(property)
    hasher.combine(actions)
    hasher.combine(id)
  }
}

extension EffectKey {
  /// The step to the child that a property holds while it is not nil.
  init<Root, Value>(child property: any KeyPath<Root, Value?> & Sendable) {
    self.init(Child(property: property, finder: OptionalFinder<Root, Value>.self))
  }

  /// The step to the child that a case holds.
  init<Root: CasePathable, Value>(
    child property: CaseKeyPath<Root, Value>, of root: Root.Type
  ) {
    self.init(Child(property: property, finder: CaseFinder<Root, Value>.self))
  }

  /// The step to a child that always exists: one of those to which the property may belong.
  init<Root, Value, Actions, Action>(
    child property: any KeyPath<Root, Value> & Sendable,
    actions: any KeyPath<Actions, Action> & Sendable
  ) {
    self.init(
      Child(property: property, actions: actions, finder: PropertyFinder<Root, Value>.self))
  }

  /// The step to one of the children that a property holds.
  init<Root, Children: KeyedChildren>(
    child property: any KeyPath<Root, Children> & Sendable, _ id: some Hashable & Sendable
  ) {
    self.init(
      Child(
        property: property, id: AnyHashable(id), finder: ElementFinder<Root, Children>.self))
  }

  /// The child to which the step leads in a state of its parent; nil if it is absent, or the step
  /// leads to no child. O(1), or O(log n) among n children.
  func child(in parent: Any) -> Any? {
    guard let child = name.value.base as? Child else { return nil }
    return child.finder.child(in: parent, child.property, child.id)
  }

  /// Whether the step leads to one of several children, which are added and removed by themselves.
  var isToOneOfSeveral: Bool { (name.value.base as? Child)?.id != nil }

  /// Whether the step leads to a child that another may replace, which is told by its own identifier.
  var isToReplaceable: Bool {
    guard let child = name.value.base as? Child else { return false }
    return child.id == nil && child.actions == nil
  }

  /// The identifier of the child of a property to which the step leads; nil if it leads elsewhere.
  func child<ID: Hashable, Root, Value>(
    of property: any KeyPath<Root, Value> & Sendable, as type: ID.Type
  ) -> ID? {
    guard let child = name.value.base as? Child, child.property == property else { return nil }
    return child.id?.base as? ID
  }
}

/// Names an effect that a store runs.
public struct EffectID: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let rawValue: UInt64
  /// Distinguishes the store's effects from those of other stores: its hash seed.
  let salt: UInt64

  package init(_ rawValue: UInt64, salt: UInt64) {
    self.rawValue = rawValue
    self.salt = salt
  }

  public static func < (first: EffectID, second: EffectID) -> Bool {
    first.rawValue < second.rawValue
  }

  /// A UUID (RFC 9562, version 8), derived from the store and the number.
  public var uuid: UniqueID { UniqueID(from: salt, rawValue) }

  public var description: String { uuid.description }
}
