public import Values

/// A part of a state that holds children under keys, on which `forEach` runs a reducer: a `SyncMap`
/// or a `SyncIdentifiedArray`.
///
/// A `SyncArray` is none: it would find a child by its id in O(n) only, and a child's path would
/// change with its position. An array of identified elements is a `SyncIdentifiedArray`.
public protocol KeyedChildren: Synchronizable {
  associatedtype ChildID: SyncKey
  associatedtype ChildState: Synchronizable

  /// The child under a key, or nil. O(log n).
  func child(_ id: ChildID) -> ChildState?

  /// Whether a child has the key. O(log n).
  func hasChild(_ id: ChildID) -> Bool

  /// Change a child in place. Returns nil, without calling `body`, when there is none. O(log n).
  mutating func modifyChild<R, E: Error>(
    _ id: ChildID, _ body: (inout ChildState) throws(E) -> R
  ) throws(E) -> R?

  /// Pass every child to `body`, in the order of the collection. O(n).
  func forEachChild(_ body: (ChildID, ChildState) -> Void)

  /// Pass each child that differs from the one in `old` to `body`, with both, nil where there is none.
  /// A move is no change of a child. O(changes · log n) for collections of one lineage, else O(n).
  func forEachChange(
    from old: Self, _ body: (ChildID, _ old: ChildState?, _ new: ChildState?) -> Void)

  /// Whether both share the storage of their children, and so have the same keys. O(1).
  func hasIdenticalChildren(to other: Self) -> Bool

  /// The way from the collection to a child, as in `Path`.
  static func path(to id: ChildID) -> [PathKey]
}

extension SyncMap: KeyedChildren {
  public typealias ChildID = Key
  public typealias ChildState = Value

  @inlinable
  public func child(_ id: Key) -> Value? { self[id] }

  @inlinable
  public func hasChild(_ id: Key) -> Bool { contains(id) }

  @inlinable
  public mutating func modifyChild<R, E: Error>(
    _ id: Key, _ body: (inout Value) throws(E) -> R
  ) throws(E) -> R? {
    try modifyValue(forKey: id, body)
  }

  /// Pass every child to `body`, in trie order. O(n).
  @inlinable
  public func forEachChild(_ body: (Key, Value) -> Void) { forEachEntry(body) }

  @inlinable
  public func forEachChange(from old: SyncMap, _ body: (Key, _ old: Value?, _ new: Value?) -> Void)
  {
    trie.forEachChange(from: old.trie, body)
  }

  @inlinable
  public func hasIdenticalChildren(to other: SyncMap) -> Bool { isIdentical(to: other) }

  @inlinable
  public static func path(to id: Key) -> [PathKey] { [id.pathKey] }
}

extension SyncIdentifiedArray: KeyedChildren {
  public typealias ChildID = Element.ID
  public typealias ChildState = Element

  @inlinable
  public func child(_ id: ID) -> Element? { self[id: id] }

  @inlinable
  public func hasChild(_ id: ID) -> Bool { contains(id: id) }

  @inlinable
  public mutating func modifyChild<R, E: Error>(
    _ id: ID, _ body: (inout Element) throws(E) -> R
  ) throws(E) -> R? {
    try modifyElement(id: id, body)
  }

  @inlinable
  public func forEachChild(_ body: (ID, Element) -> Void) {
    for element in self { body(element.id, element) }
  }

  @inlinable
  public func forEachChange(
    from old: SyncIdentifiedArray, _ body: (ID, _ old: Element?, _ new: Element?) -> Void
  ) {
    rows.forEachChange(from: old.rows) { body($0, $1?.element, $2?.element) }
  }

  @inlinable
  public func hasIdenticalChildren(to other: SyncIdentifiedArray) -> Bool {
    hasIdenticalRows(to: other)
  }

  @inlinable
  public static func path(to id: ID) -> [PathKey] { [.integer(0), id.pathKey] }
}

/// Two fields, so that key paths through them have paths: `\.cards.rows` and `\.cards.ids`, whose
/// name on the wire is `order`.
extension SyncIdentifiedArray: ObservableState {
  public static var fields: [StateField<Self>] {
    [StateField(0, "rows", \.rows), StateField(1, "order", \.ids)]
  }

  public static var initialValue: Self? { Self() }
}
