public import Values

/// A new value for one of the fields of a state that may be set without an action for each: a case
/// for every field under `@Settable`, of which `@ObservableState` makes `State.Setting`.
///
///     @ObservableState struct State: Equatable {
///       @Settable var volume: Int = 5
///       @Settable var title = ""
///       var listeners = 0  // No action sets it.
///     }
///     @Action enum Action: Equatable {
///       case set(State.Setting)
///       case join
///     }
///
/// It travels and is named like any other action, `set.volume`, in the log, in policies, on the
/// command line (`lockstep send set.volume 7`) and in other languages. The number of a case is its
/// position among the fields under `@Settable`.
public protocol FieldSetting: SynchronizableAction, SynchronizableScalar, Equatable {
  associatedtype BoundState: Synchronizable
  /// A struct with a `SettableField` for every field, under the name of the field.
  associatedtype AllFields: Sendable
  static var allFields: AllFields { get }

  /// Set the field.
  func apply(to state: inout BoundState)
}

extension FieldSetting {
  /// Whether both set the same field to values that encode to the same bytes.
  public static func == (first: Self, second: Self) -> Bool { first.isSame(as: second) }
}

/// A field that may be set: its property, and the setting that carries a value for it.
public struct SettableField<Setting: FieldSetting, Value: Sendable>: Sendable {
  public let property: any WritableKeyPath<Setting.BoundState, Value> & Sendable
  private let make: @Sendable (Value) -> Setting

  public init(
    _ property: any WritableKeyPath<Setting.BoundState, Value> & Sendable,
    _ make: @escaping @Sendable (Value) -> Setting
  ) {
    self.property = property
    self.make = make
  }

  /// The setting that sets the field to `value`.
  public func setting(_ value: Value) -> Setting { make(value) }
}

/// Names a field that may be set: `\.volume`. Other fields do not compile.
public typealias SettableKeyPath<Setting: FieldSetting, Value: Sendable> =
  any KeyPath<Setting.AllFields, SettableField<Setting, Value>> & Sendable

/// An action whose case `set` sets fields. `@Action` adds the conformance to an enumeration with
/// the case `set(State.Setting)`.
public protocol BindableAction: SynchronizableAction {
  associatedtype Setting: FieldSetting

  static func set(_ setting: Setting) -> Self

  /// The setting that the action carries; nil for other actions.
  var setting: Setting? { get }
}

extension BindableAction {
  /// The action that sets a field: `store.send(.set(\.volume, 7))`.
  public static func set<Value>(
    _ field: SettableKeyPath<Setting, Value>, _ value: Value
  ) -> Self {
    .set(Setting.allFields[keyPath: field].setting(value))
  }
}
