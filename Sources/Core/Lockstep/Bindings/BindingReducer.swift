public import Values

/// Sets the fields that the actions of a feature may set.
///
///     var body: some Reducer<State, Action> {
///       BindingReducer()
///         .onChange(of: \.volume) { old, new in
///           Reduce { state, action in .run { [amplifier] _ in await amplifier.turn(to: new) } }
///         }
///       Reduce { state, action in … }
///     }
///
/// Reducers after it see the new value, and reject it by throwing: then the field keeps its old
/// one. O(1), besides the assignment.
public struct BindingReducer<
  State: Synchronizable, Action: SynchronizableAction, Setting: FieldSetting
>: Reducer where Setting.BoundState == State {
  public typealias Body = Never
  private let setting: @Sendable (Action) -> Setting?

  /// For an action with the case `set(State.Setting)`.
  public init() where Action: BindableAction, Action.Setting == Setting {
    setting = { $0.setting }
  }

  /// For an action with a case of another name: `BindingReducer(action: \.adjust)`.
  public init(action path: CaseKeyPath<Action, Setting>) where Action: CasePathable {
    let path = Action.allCasePaths[keyPath: path]
    setting = { path.extract(from: $0) }
  }

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    setting(action)?.apply(to: &state)
    return .none
  }
}
