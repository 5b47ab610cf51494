public import Values

extension Reducer {
  /// Run a child's reducer on the entry of a map that an action names.
  ///
  ///     @Action enum Action { case todos(Todo.ID, TodoRow.Action) }
  ///     var body: some Reducer<State, Action> {
  ///       Reduce { … }.forEach(\.todos, action: \.todos) { TodoRow() }
  ///     }
  ///
  /// The child reduces before the parent. When an entry is removed, its effects are cancelled. An
  /// action for a missing entry is ignored, with a warning. O(log n) for n entries, and O(entries
  /// with running effects) when the parent changes the map.
  public func forEach<
    ID: SyncKey, ChildState, ChildAction, Child: Reducer<ChildState, ChildAction>
  >(
    _ property: any WritableKeyPath<State, SyncMap<ID, ChildState>> & Sendable,
    action actions: CaseKeyPath<Action, (ID, ChildAction)>,
    @ReducerBuilder<ChildState, ChildAction> _ child: () -> Child
  ) -> ForEachReducer<Self, ID, Child> where Action: CasePathable {
    let path = Action.allCasePaths[keyPath: actions]
    return ForEachReducer(base: self, property: property, path: path, child: child())
  }

  /// Run a child's reducer on the entry of a map that an action names, as
  /// `case todos(id: Todo.ID, action: TodoRow.Action)`.
  public func forEach<
    ID: SyncKey, ChildState, ChildAction, Child: Reducer<ChildState, ChildAction>
  >(
    _ property: any WritableKeyPath<State, SyncMap<ID, ChildState>> & Sendable,
    action actions: CaseKeyPath<Action, (id: ID, action: ChildAction)>,
    @ReducerBuilder<ChildState, ChildAction> _ child: () -> Child
  ) -> ForEachReducer<Self, ID, Child> where Action: CasePathable {
    let labelled = Action.allCasePaths[keyPath: actions]
    let path = CasePath<Action, (ID, Child.Action)>(
      embed: { labelled.embed((id: $0.0, action: $0.1)) },
      extract: { labelled.extract(from: $0).map { ($0.id, $0.action) } })
    return ForEachReducer(base: self, property: property, path: path, child: child())
  }
}

/// The reducer that `forEach` returns.
public struct ForEachReducer<Base: Reducer, ID: SyncKey, Child: Reducer>: Reducer
where Base.Action: CasePathable {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let property: any WritableKeyPath<Base.State, SyncMap<ID, Child.State>> & Sendable
  let path: CasePath<Base.Action, (ID, Child.Action)>
  let child: Child

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    var effect = Effect<Base.Action>.none
    var begun: ID?
    if let (id, own) = path.extract(from: action) {
      let inner = try state[keyPath: property].modifyValue(forKey: id) {
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
    guard let before, !state[keyPath: property].isIdentical(to: before) else {
      return .merge(effect, outer)
    }
    var ids = Set(running?.compactMap { $0.child(of: property, as: ID.self) } ?? [])
    if let begun { ids.insert(begun) }
    let gone = ids.filter { !state[keyPath: property].contains($0) }
      .sorted { ID.precedes($0, $1) }
    return .merge(
      [effect, outer] + gone.map { .cancelScope(EffectKey(child: property, $0)) })
  }

  /// O(entries) for an event that the child has a hook for.
  public var composedLifecycle: Lifecycle<State, Action> {
    .merge(
      .children(child) { [property, path] state, tell in
        state[keyPath: property].forEachEntry { id, state in
          tell(state) { path.embed((id, $0)) }
        }
      }, base.composedLifecycle)
  }
}
