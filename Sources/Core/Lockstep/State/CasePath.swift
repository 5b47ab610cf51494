/// One case of an enumeration: embeds an associated value in the case, and extracts it.
///
/// `@Action` and `@ObservableState` generate one for every case; it is named by key path:
/// `Scope(state: \.counter, action: \.counter)`. The path of a case inside of a case is written as that of
/// a property inside of a property: `\.climate.fan`.
@dynamicMemberLookup
public struct CasePath<Root, Value>: Sendable {
  private let toRoot: @Sendable (Value) -> Root
  private let fromRoot: @Sendable (Root) -> Value?

  public init(
    embed: @escaping @Sendable (Value) -> Root, extract: @escaping @Sendable (Root) -> Value?
  ) {
    toRoot = embed
    fromRoot = extract
  }

  /// A value of the case that carries `value`.
  public func embed(_ value: Value) -> Root { toRoot(value) }

  /// The associated value of `root`, or nil when it is of another case.
  public func extract(from root: Root) -> Value? { fromRoot(root) }

  /// This case, which is declared as `todos(id: Int, action: Todo.Action)`, with its values unlabelled.
  package func unlabelled<ID, Action>() -> CasePath<Root, (ID, Action)>
  where Value == (id: ID, action: Action) {
    CasePath<Root, (ID, Action)>(
      embed: { toRoot((id: $0.0, action: $0.1)) },
      extract: { fromRoot($0).map { ($0.id, $0.action) } })
  }

  /// The actions of one row.
  package func row<ID: SyncKey, Action>(_ id: ID) -> CasePath<Root, Action>
  where Value == (ID, Action) {
    CasePath<Root, Action>(
      embed: { toRoot((id, $0)) },
      extract: { root in
        guard let (other, action) = fromRoot(root), ID.isSame(id, other) else { return nil }
        return action
      })
  }

  /// The path to a case of the associated value.
  public subscript<Inner>(
    dynamicMember path: CaseKeyPath<Value, Inner>
  ) -> CasePath<Root, Inner> where Value: CasePathable & SendableMetatype {
    let inner = Value.allCasePaths[keyPath: path]
    return CasePath<Root, Inner>(
      embed: { toRoot(inner.embed($0)) },
      extract: { root in fromRoot(root).flatMap { inner.extract(from: $0) } })
  }
}

/// An enumeration whose cases have paths.
public protocol CasePathable {
  /// A struct with a `CasePath` for every case, under the name of the case.
  associatedtype AllCasePaths: Sendable
  static var allCasePaths: AllCasePaths { get }
}

/// Names a case: `\.counter`.
public typealias CaseKeyPath<Root: CasePathable, Value> =
  any KeyPath<Root.AllCasePaths, CasePath<Root, Value>> & Sendable

extension CasePathable {
  /// The associated value if the value is of this case, else nil.
  public subscript<Value>(case path: CaseKeyPath<Self, Value>) -> Value? {
    Self.allCasePaths[keyPath: path].extract(from: self)
  }

  /// Whether the value is of this case: `action.is(\.counter)`.
  public func `is`<Value>(_ path: CaseKeyPath<Self, Value>) -> Bool { self[case: path] != nil }
}
