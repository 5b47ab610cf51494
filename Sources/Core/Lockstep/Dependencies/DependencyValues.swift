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
  /// The value that a test uses, unless it sets another. The default is the live value, and its use
  /// fails the test, so that no test reaches a real device unnoticed.
  static var testValue: Value { get }
}

extension DependencyKey {
  public static var testValue: Value {
    LiveUseInTest.current?.report()
    return liveValue
  }
}

/// The dependencies of the running code: of a store's reducers while they reduce, of an effect
/// while it runs.
public struct DependencyValues: Sendable {
  /// The values for the code that is running.
  @TaskLocal public static var current = DependencyValues()

  /// Whether keys without a value give their `testValue`.
  public var isTesting: Bool {
    get { test != nil }
    set { if newValue != isTesting { test = newValue ? DependencyTest() : nil } }
  }

  /// The test that the values are for, if any.
  private var test: DependencyTest?
  private var values: [ObjectIdentifier: any Sendable] = [:]
  /// The reduction that is running, if any.
  var reduction: ReductionContext?

  public init() {}

  /// The value of a key: the one that was set, else its live value, or in tests its test value.
  ///
  /// `name` is the property that calls it, for the text of a failure.
  public subscript<Key: DependencyKey>(
    key: Key.Type, name: StaticString = #function
  ) -> Key.Value {
    get {
      if let value = values[ObjectIdentifier(key)] as? Key.Value { return value }
      return isTesting ? testValue(of: key, name) : key.liveValue
    }
    set { values[ObjectIdentifier(key)] = newValue }
  }

  private func testValue<Key: DependencyKey>(
    of key: Key.Type, _ name: StaticString
  ) -> Key.Value {
    guard let handler = test?.onLiveUse else { return key.testValue }
    let use = LiveUseInTest(key: key, name: "\(name)", handler: handler)
    return LiveUseInTest.$current.withValue(use) { key.testValue }
  }

  /// Make the values those of a test, which is told of each use of the live value of a key that has
  /// no test value: several times for a key, and from any thread.
  package mutating func test(onLiveUse handler: @escaping @Sendable (LiveUseInTest) -> Void) {
    test = DependencyTest(onLiveUse: handler)
  }

  /// Set a value. An assignment by a key path reads the former value, which is no use of it.
  mutating func set<Value>(
    _ property: any WritableKeyPath<DependencyValues, Value> & Sendable, to value: Value
  ) {
    let test = test
    if isTesting { self.test = DependencyTest() }
    self[keyPath: property] = value
    self.test = test
  }

  /// These values, and those of `defaults` for the keys that are not set here: what a new store
  /// takes from the code that makes it. Without the reduction that runs there, if any. O(the keys
  /// that are set).
  package func over(_ defaults: DependencyValues) -> DependencyValues {
    var all = defaults
    all.values.merge(values) { _, own in own }
    if test?.onLiveUse != nil || !defaults.isTesting { all.test = test }
    return all
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

  /// Run a body with these values.
  @inline(__always)
  func run<R>(_ body: () throws(Rejection) -> R) throws(Rejection) -> R {
    // A task-local value rethrows any error: the type of this one goes through a result.
    let result = Self.$current.withValue(self) {
      do throws(Rejection) {
        return Result<R, Rejection>.success(try body())
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

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

/// Run an operation with changed dependencies. A store that is made in it takes them.
///
///     let store = withDependencies {
///       $0.backend = FakeBackend()
///     } operation: {
///       Store(initialState: Todos.State()) { Todos() }
///     }
public func withDependencies<R>(
  _ change: (inout DependencyValues) -> Void, operation: () throws -> R
) rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try DependencyValues.$current.withValue(values, operation: operation)
}

/// Run an operation with changed dependencies. A store that is made in it takes them.
public func withDependencies<R>(
  isolation: isolated (any Actor)? = #isolation, _ change: (inout DependencyValues) -> Void,
  operation: () async throws -> R
) async rethrows -> R {
  var values = DependencyValues.current
  change(&values)
  return try await DependencyValues.$current.withValue(values, operation: operation)
}
