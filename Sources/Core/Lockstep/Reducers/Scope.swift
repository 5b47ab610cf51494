public import Values

/// Runs a child's reducer on a part of the parent's state, for the actions that are the child's:
/// what *pullback* is in Redux and in the first version of The Composable Architecture.
///
///     Scope(state: \.counter, action: \.counter) { Counter() }
///
/// Two scopes of one feature have nothing in common: the names of a child's effects are its own. O(1),
/// whatever the state holds.
public struct Scope<
  State: Synchronizable, Action: SynchronizableAction & CasePathable, Child: Reducer
>:
  Reducer
{
  public typealias Body = Never
  let property: any WritableKeyPath<State, Child.State> & Sendable
  let actions: CaseKeyPath<Action, Child.Action>
  let child: Child

  // The child's types have names of their own, so that they follow from the paths: here and
  // wherever else a child is built.
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
  /// This reducer for a part of a larger state, and for the larger action of which its own are a
  /// case: `Scope` in the words of Redux.
  public func pullback<State, Action: SynchronizableAction & CasePathable>(
    state property: any WritableKeyPath<State, Self.State> & Sendable,
    action actions: CaseKeyPath<Action, Self.Action>
  ) -> Scope<State, Action, Self> {
    Scope(state: property, action: actions) { self }
  }
}
