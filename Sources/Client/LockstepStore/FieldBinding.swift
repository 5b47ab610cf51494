public import Lockstep
public import Values

/// A field of a store that can be read and set; setting it sends the action `set`.
///
///     let volume = store.binding(\.volume)
///     volume.wrappedValue += 1
@propertyWrapper
public struct FieldBinding<Value: Sendable>: Sendable {
  private let read: @Sendable () -> Value
  private let write: @Sendable (Value) -> Void

  package init(
    read: @escaping @Sendable () -> Value, write: @escaping @Sendable (Value) -> Void
  ) {
    self.read = read
    self.write = write
  }

  /// The newest value that the store shows. Reading it is observed.
  public var wrappedValue: Value {
    get { read() }
    nonmutating set { write(newValue) }
  }

  public var projectedValue: FieldBinding { self }
}

extension Store where R.Action: BindableAction, R.Action.Setting.BoundState == R.State {
  /// A field that may be set (`@Settable`). When setting it returns, the state has been replaced.
  /// The binding retains the store, and belongs to the isolation in which it is made.
  public func binding<Value: Synchronizable>(
    _ field: SettableKeyPath<R.Action.Setting, Value>,
    calledFrom caller: (any Actor)? = #isolation
  ) -> FieldBinding<Value> {
    let field = R.Action.Setting.allFields[keyPath: field]
    return FieldBinding(
      read: { self[dynamicMember: field.property] },
      write: { self.send(.set(field.setting($0)), calledFrom: caller) })
  }
}
