public import Lockstep
public import Values

/// A part of a store: shows only the part of the state, and accepts only the part's actions.
@dynamicMemberLookup
public final class ScopedStore<State: Synchronizable, Action: Sendable>: ObservableStore {
  public let stateObservers = StateObservers<State>()
  private let read: @Sendable () -> State
  private let forward: @Sendable (Action, (any Actor)?) -> StoreTask
  private let stop: @Sendable () -> Void

  init<Parent: ObservableStore>(
    _ parent: Parent, _ part: @escaping @Sendable (Parent.State) -> State,
    _ send: @escaping @Sendable (Parent, Action, (any Actor)?) -> StoreTask
  ) {
    read = { part(parent.state) }
    forward = { send(parent, $0, $1) }
    let observers = stateObservers
    let number = parent.stateObservers.follow(onEnd: { observers.end() }) { old, new in
      observers.tell(from: part(old), to: part(new))
    }
    stop = {
      if let number { parent.stateObservers.unfollow(number) }
      observers.end()
    }
  }

  deinit { stop() }

  public var state: State { read() }

  /// The state, then the state after every reduction that changed it, without omissions. A reader
  /// that is slower than the store makes the stream grow. Ends with this store.
  public var changes: AsyncStream<State> { everyChange() }

  /// The value of a pulse each time it is assigned from now on.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    everyPulse(property)
  }

  /// Send an action of the part. When this returns, the state has been replaced.
  @discardableResult
  public func send(
    _ action: Action, calledFrom caller: (any Actor)? = #isolation
  ) -> StoreTask {
    forward(action, caller)
  }

  /// A store of a part of this part.
  public func scope<Child: Synchronizable, ChildAction: Sendable>(
    state property: any KeyPath<State, Child> & Sendable,
    action path: CaseKeyPath<Action, ChildAction>
  ) -> ScopedStore<Child, ChildAction> where Action: CasePathable {
    let actions = Action.allCasePaths[keyPath: path]
    return ScopedStore<Child, ChildAction>(self, { $0[keyPath: property] }) {
      $0.send(actions.embed($1), calledFrom: $2)
    }
  }

  /// A store of one entry of a map, or one row of an array, of this part; it may appear and disappear.
  public func scope<Children: KeyedChildren, ChildAction: Sendable>(
    state property: any KeyPath<State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<Action, (Children.ChildID, ChildAction)>
  ) -> ScopedStore<Children.ChildState?, ChildAction> where Action: CasePathable {
    row(property, id, Action.allCasePaths[keyPath: path])
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<Children: KeyedChildren, ChildAction: Sendable>(
    state property: any KeyPath<State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<Action, (id: Children.ChildID, action: ChildAction)>
  ) -> ScopedStore<Children.ChildState?, ChildAction> where Action: CasePathable {
    row(property, id, Action.allCasePaths[keyPath: path].unlabelled())
  }

  private func row<Children: KeyedChildren, ChildAction: Sendable>(
    _ property: any KeyPath<State, Children> & Sendable, _ id: Children.ChildID,
    _ actions: CasePath<Action, (Children.ChildID, ChildAction)>
  ) -> ScopedStore<Children.ChildState?, ChildAction> {
    ScopedStore<Children.ChildState?, ChildAction>(self, { $0[keyPath: property].child(id) }) {
      $0.send(actions.embed((id, $1)), calledFrom: $2)
    }
  }
}
