public import Values

/// Runs a child's reducer on a part of the parent's state, for the child's actions: *pullback* in
/// Redux and in the first version of The Composable Architecture.
///
///     Scope(state: \.counter, action: \.counter) { Counter() }
///
/// Two scopes of one feature share nothing: each child's effects have names of their own. O(1),
/// whatever the size of the state.
public struct Scope<
  State: Synchronizable, Action: SynchronizableAction & CasePathable, Child: Reducer
>:
  Reducer
{
  public typealias Body = Never
  let property: any WritableKeyPath<State, Child.State> & Sendable
  let actions: CaseKeyPath<Action, Child.Action>
  let child: Child

  // The child's types are generic parameters of their own, so that they are inferred from the
  // paths: here and wherever else a child is built.
  public init<ChildState, ChildAction>(
    state property: any WritableKeyPath<State, ChildState> & Sendable,
    action actions: CaseKeyPath<Action, ChildAction>,
    @ReducerBuilder<ChildState, ChildAction> _ child: () -> Child
  ) where Child: Reducer<ChildState, ChildAction> {
    self.property = property
    self.actions = actions
    self.child = child()
  }

  public func reduce(
    into state: inout State, action: Action
  ) throws(Rejection) -> Effect<Action> {
    let path = Action.allCasePaths[keyPath: actions]
    guard let action = path.extract(from: action) else { return .none }
    return try child.reduce(
      into: &state[keyPath: property], action: action,
      as: EffectKey(child: property, actions: actions)
    ).map { path.embed($0) }
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    let path = Action.allCasePaths[keyPath: actions]
    return .part(child, at: property) { path.embed($0) }
  }
}

extension Reducer {
  /// This reducer on a part of a larger state, for a larger action of which its own actions are a
  /// case: `Scope` under its Redux name.
  public func pullback<State, Action: SynchronizableAction & CasePathable>(
    state property: any WritableKeyPath<State, Self.State> & Sendable,
    action actions: CaseKeyPath<Action, Self.Action>
  ) -> Scope<State, Action, Self> {
    Scope(state: property, action: actions) { self }
  }
}
