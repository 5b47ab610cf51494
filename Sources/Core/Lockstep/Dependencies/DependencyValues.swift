/// Names a dependency: something outside of the state that a reducer or an effect uses.
///
///     private enum BackendKey: DependencyKey {
///       static let liveValue: any Backend = HTTPBackend()
///       static let testValue: any Backend = FakeBackend()
///     }
///     extension DependencyValues {
///       var backend: any Backend {
///         get { self[BackendKey.self] }
///         set { self[BackendKey.self] = newValue }
///       }
///     }
public protocol DependencyKey {
  associatedtype Value: Sendable
  /// What a daemon uses.
  static var liveValue: Value { get }
  /// What a `TestStore` uses, unless the test says otherwise.
  static var testValue: Value { get }
}

extension DependencyKey {
  public static var testValue: Value { liveValue }
}

/// The dependencies of the code that asks: of a store's reducers while they reduce, of an effect
/// while it runs.
public struct DependencyValues: Sendable {
  /// The values for the code that is running.
  @TaskLocal public static var current = DependencyValues()

  /// Whether keys without a value give their `testValue`.
  public var isTesting = false
  private var values: [ObjectIdentifier: any Sendable] = [:]
  /// The reduction that is asking, if one is.
  var reduction: ReductionContext?

  public init() {}

  /// The value of a key: the one that was set, else its live value, or its test value.
  public subscript<Key: DependencyKey>(key: Key.Type) -> Key.Value {
    get {
      if let value = values[ObjectIdentifier(key)] as? Key.Value { return value }
      return isTesting ? key.testValue : key.liveValue
    }
    set { values[ObjectIdentifier(key)] = newValue }
  }

  /// Why the action that is being reduced is in the queue; nil outside of a reduction.
  ///
  ///     @Dependency(\.cause) var cause
  ///
  /// Also nil in a reduction by a feature that says no to `Reducer.usesContext`. Nobody can set it:
  /// who a client is, the kernel says, and only the label is its own word.
  public var cause: Cause? { reduction?.cause }

  /// Who sent the action that is being reduced; nil where `cause` is.
  public var origin: Origin? { reduction?.cause.origin }

  /// The same values for work that outlives the reduction.
  var outsideReduction: DependencyValues {
    guard reduction != nil else { return self }
    var values = self
    values.reduction = nil
    return values
  }
}

/// Reads a dependency where it is used.
///
///     struct Todos: Reducer {
///       @Dependency(\.backend) var backend
@propertyWrapper
public struct Dependency<Value>: Sendable {
  private let property: any KeyPath<DependencyValues, Value> & Sendable

  public init(_ property: any KeyPath<DependencyValues, Value> & Sendable) {
    self.property = property
  }

  public var wrappedValue: Value { DependencyValues.current[keyPath: property] }
}

/// Run something with other dependencies.
public func withDependencies<R>(
  _ change: (inout DependencyValues) -> Void, _ operation: () throws -> R
) rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try DependencyValues.$current.withValue(values, operation: operation)
}

/// Run something with other dependencies.
public func withDependencies<R>(
  isolation: isolated (any Actor)? = #isolation, _ change: (inout DependencyValues) -> Void,
  _ operation: () async throws -> R
) async rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try await DependencyValues.$current.withValue(values, operation: operation)
}
