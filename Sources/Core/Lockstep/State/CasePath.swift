/// One case of an enumeration: how to make a value of it, and how to get at what it carries.
///
/// Written by `@Action` and `@ObservableState` for every case, and found by key path:
/// `Scope(state: \.counter, action: \.counter)`.
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

  /// What `root` carries, or nil when it is of another case.
  public func extract(from root: Root) -> Value? { fromRoot(root) }
}

/// An enumeration whose cases have paths.
public protocol CasePathable {
  /// A struct with a `CasePath` for every case, of the name of the case.
  associatedtype AllCasePaths: Sendable
  static var allCasePaths: AllCasePaths { get }
}

/// Names a case: `\.counter`.
public typealias CaseKeyPath<Root: CasePathable, Value> =
  any KeyPath<Root.AllCasePaths, CasePath<Root, Value>> & Sendable

extension CasePathable {
  /// What the value carries if it is of this case.
  public subscript<Value>(case path: CaseKeyPath<Self, Value>) -> Value? {
    Self.allCasePaths[keyPath: path].extract(from: self)
  }

  /// Whether the value is of this case: `action.is(\.counter)`.
  public func `is`<Value>(_ path: CaseKeyPath<Self, Value>) -> Bool { self[case: path] != nil }
}
