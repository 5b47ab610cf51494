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
  /// The value that a daemon uses.
  static var liveValue: Value { get }
  /// The value that a `TestStore` uses, unless the test sets another.
  static var testValue: Value { get }
}

extension DependencyKey {
  public static var testValue: Value { liveValue }
}

/// The dependencies of the running code: of a store's reducers while they reduce, of an effect
/// while it runs.
public struct DependencyValues: Sendable {
  /// The values for the code that is running.
  @TaskLocal public static var current = DependencyValues()

  /// Whether keys without a value give their `testValue`.
  public var isTesting = false
  private var values: [ObjectIdentifier: any Sendable] = [:]
  /// The reduction that is running, if any.
  var reduction: ReductionContext?

  public init() {}

  /// The value of a key: the one that was set, else its live value, or in tests its test value.
  public subscript<Key: DependencyKey>(key: Key.Type) -> Key.Value {
    get {
      if let value = values[ObjectIdentifier(key)] as? Key.Value { return value }
      return isTesting ? key.testValue : key.liveValue
    }
    set { values[ObjectIdentifier(key)] = newValue }
  }

  /// The cause of the action that is being reduced; nil outside of a reduction.
  ///
  ///     @Dependency(\.cause) var cause
  ///
  /// Also nil in a reduction by a feature whose `Reducer.usesContext` is false. It cannot be set:
  /// the client's credentials come from the kernel, and only the label comes from the client.
  public var cause: Cause? { reduction?.cause }

  /// The sender of the action that is being reduced; nil where `cause` is.
  public var origin: Origin? { reduction?.cause.origin }

  /// The same values without the reduction, for work that outlives it.
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

/// Run an operation with changed dependencies.
public func withDependencies<R>(
  _ change: (inout DependencyValues) -> Void, _ operation: () throws -> R
) rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try DependencyValues.$current.withValue(values, operation: operation)
}

/// Run an operation with changed dependencies.
public func withDependencies<R>(
  isolation: isolated (any Actor)? = #isolation, _ change: (inout DependencyValues) -> Void,
  _ operation: () async throws -> R
) async rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try await DependencyValues.$current.withValue(values, operation: operation)
}
