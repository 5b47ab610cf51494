/// The use of a live dependency in a test: the key has no test value, and the test set no value.
package struct LiveUseInTest: Sendable {
  /// The use whose value is being made; nil outside of tests.
  @TaskLocal static var current: LiveUseInTest?

  /// Identifies the key.
  package let key: ObjectIdentifier
  /// The dependency, and how a test sets it.
  private let name, setting: String
  private let value: String
  private let handler: @Sendable (LiveUseInTest) -> Void

  init<Key: DependencyKey>(
    key: Key.Type, name: String, handler: @escaping @Sendable (LiveUseInTest) -> Void
  ) {
    self.key = ObjectIdentifier(key)
    // The name of a function has parentheses: it uses the key, and no property.
    let isDirect = name.contains("(")
    self.name = isDirect ? "The dependency \(key)" : "@Dependency(\\.\(name))"
    setting = isDirect ? "$0[\(key).self]" : "$0.\(name)"
    value = "\(Key.Value.self)"
    self.handler = handler
  }

  func report() { handler(self) }

  /// The failure of the test, with what to do about it.
  package var text: String {
    """
    \(name) has no test implementation, but was used in a test.

    The live value, a \(value), was used. Give the store another one ("withDependencies: { \
    \(setting) = … }"), or the key a "testValue".
    """
  }
}

/// The test that dependencies are for.
final class DependencyTest: Sendable {
  /// Called for each use of a live dependency; nil to allow them.
  let onLiveUse: (@Sendable (LiveUseInTest) -> Void)?

  init(onLiveUse: (@Sendable (LiveUseInTest) -> Void)? = nil) { self.onLiveUse = onLiveUse }
}
