import Values

/// Finds a child in its parent's state, by the property that holds it. A type and no closure,
/// because every reduction of a child makes a step to it.
protocol ChildFinder {
  static func child(in parent: Any, _ property: AnyKeyPath, _ id: AnyHashable?) -> Any?
}

/// Finds the child that a property always holds.
enum PropertyFinder<Root, Value>: ChildFinder {
  static func child(in parent: Any, _ property: AnyKeyPath, _ id: AnyHashable?) -> Any? {
    guard let parent = parent as? Root, let property = property as? KeyPath<Root, Value> else {
      return nil
    }
    return parent[keyPath: property]
  }
}

/// Finds the child that a property may hold.
enum OptionalFinder<Root, Value>: ChildFinder {
  static func child(in parent: Any, _ property: AnyKeyPath, _ id: AnyHashable?) -> Any? {
    guard let parent = parent as? Root, let property = property as? KeyPath<Root, Value?> else {
      return nil
    }
    return parent[keyPath: property]
  }
}

/// Finds the child in a case of an enumeration.
enum CaseFinder<Root: CasePathable, Value>: ChildFinder {
  static func child(in parent: Any, _ property: AnyKeyPath, _ id: AnyHashable?) -> Any? {
    guard let parent = parent as? Root,
      let property = property as? KeyPath<Root.AllCasePaths, CasePath<Root, Value>>
    else { return nil }
    return Root.allCasePaths[keyPath: property].extract(from: parent)
  }
}

/// Finds one of several children.
enum ElementFinder<Root, Children: KeyedChildren>: ChildFinder {
  static func child(in parent: Any, _ property: AnyKeyPath, _ id: AnyHashable?) -> Any? {
    guard let parent = parent as? Root, let property = property as? KeyPath<Root, Children>,
      let id = id?.base as? Children.ChildID
    else { return nil }
    return parent[keyPath: property].child(id)
  }
}

/// Distinguishes a child from its replacement: by its `id`, if it has one.
struct Identity: Equatable {
  let id: AnyHashable?

  init<State>(_ state: State) {
    id = (state as? any Identifiable).map { Self.id(of: $0) }
  }

  private static func id<T: Identifiable>(of value: T) -> AnyHashable { AnyHashable(value.id) }
}
