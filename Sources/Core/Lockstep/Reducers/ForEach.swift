import Values

extension Reducer {
  /// Run a child's reducer on the entry of a map, or the row of an array, that an action names.
  ///
  ///     var todos: SyncIdentifiedArray<Todo> = []     // in the state
  ///     @Action enum Action { case todos(Todo.ID, TodoRow.Action) }
  ///     var body: some Reducer<State, Action> {
  ///       Reduce { … }.forEach(\.todos, action: \.todos) { TodoRow() }
  ///     }
  ///
  /// A child is known by its id: inserting, moving and removing others leaves its effects and their
  /// names alone. The child reduces before the parent. When the child is gone after the parent has
  /// reduced, its effects are cancelled; one that the parent removed and inserted again in the same
  /// action keeps them. An action for a missing child is ignored, with a warning. O(log n) for n
  /// children, and O(children with running effects) when the parent changes the collection.
  public func forEach<
    Children: KeyedChildren, ChildAction, Child: Reducer<Children.ChildState, ChildAction>
  >(
    _ property: any WritableKeyPath<State, Children> & Sendable,
    action actions: CaseKeyPath<Action, (Children.ChildID, ChildAction)>,
    @ReducerBuilder<Children.ChildState, ChildAction> _ child: () -> Child
  ) -> ForEachReducer<Self, Children, Child> where Action: CasePathable {
    let path = Action.allCasePaths[keyPath: actions]
    return ForEachReducer(base: self, property: property, path: path, child: child())
  }

  /// Run a child's reducer on the entry of a map, or the row of an array, that an action names, as
  /// `case todos(id: Todo.ID, action: TodoRow.Action)`.
  public func forEach<
    Children: KeyedChildren, ChildAction, Child: Reducer<Children.ChildState, ChildAction>
  >(
    _ property: any WritableKeyPath<State, Children> & Sendable,
    action actions: CaseKeyPath<Action, (id: Children.ChildID, action: ChildAction)>,
    @ReducerBuilder<Children.ChildState, ChildAction> _ child: () -> Child
  ) -> ForEachReducer<Self, Children, Child> where Action: CasePathable {
    let path = Action.allCasePaths[keyPath: actions].unlabelled()
    return ForEachReducer(base: self, property: property, path: path, child: child())
  }
}

/// The reducer that `forEach` returns.
public struct ForEachReducer<Base: Reducer, Children: KeyedChildren, Child: Reducer>: Reducer
where Base.Action: CasePathable, Children.ChildState == Child.State {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  typealias ID = Children.ChildID
  let base: Base
  let property: any WritableKeyPath<Base.State, Children> & Sendable
  let path: CasePath<Base.Action, (Children.ChildID, Child.Action)>
  let child: Child

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    var effect = Effect<Base.Action>.none
    var begun: ID?
    if let (id, own) = path.extract(from: action) {
      let inner = try state[keyPath: property].modifyChild(id) {
        (state) throws(Rejection) in
        try child.reduce(into: &state, action: own, as: EffectKey(child: property, id))
      }
      if let inner {
        effect = inner.map { [path] in path.embed((id, $0)) }
        if inner != .none { begun = id }
      } else {
        ReductionContext.warnOfAbsentChild("\(action.name) of \(id)")
      }
    }
    let running = ReductionContext.current?.runningChildren
    // Held only if there are effects that may have to be cancelled.
    let before = running == nil && begun == nil ? nil : state[keyPath: property]
    let outer = try base.reduce(into: &state, action: action)
    guard let before, !state[keyPath: property].hasIdenticalChildren(to: before) else {
      return .merge(effect, outer)
    }
    var ids = Set(running?.compactMap { $0.child(of: property, as: ID.self) } ?? [])
    if let begun { ids.insert(begun) }
    let gone = ids.filter { !state[keyPath: property].hasChild($0) }
      .sorted { ID.precedes($0, $1) }
    return .merge(
      [effect, outer] + gone.map { .cancelScope(EffectKey(child: property, $0)) })
  }

  /// O(children) for an event that the child has a hook for.
  public var composedLifecycle: Lifecycle<State, Action> {
    .merge(
      .children(child) { [property, path] state, tell in
        state[keyPath: property].forEachChild { id, state in
          tell(state) { path.embed((id, $0)) }
        }
      }, base.composedLifecycle)
  }
}
