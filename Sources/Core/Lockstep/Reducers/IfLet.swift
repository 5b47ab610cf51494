extension Reducer {
  /// Run a child's reducer while an optional part of the state is not nil.
  ///
  /// The child reduces before the parent. When the parent sets the child to nil or replaces it (by
  /// one with another `id`, if it has one), the child's effects are cancelled. An action for an
  /// absent child is ignored, with a warning.
  public func ifLet<ChildState, ChildAction, Child: Reducer<ChildState, ChildAction>>(
    _ property: any WritableKeyPath<State, ChildState?> & Sendable,
    action actions: CaseKeyPath<Action, ChildAction>,
    @ReducerBuilder<ChildState, ChildAction> _ child: () -> Child
  ) -> IfLetReducer<Self, Child> where Action: CasePathable {
    IfLetReducer(base: self, property: property, actions: actions, child: child())
  }
}

/// The reducer that `ifLet` returns.
public struct IfLetReducer<Base: Reducer, Child: Reducer>: Reducer
where Base.Action: CasePathable {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let property: any WritableKeyPath<Base.State, Child.State?> & Sendable
  let actions: CaseKeyPath<Base.Action, Child.Action>
  let child: Child

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    let step = EffectKey(child: property)
    let path = Base.Action.allCasePaths[keyPath: actions]
    var effect = Effect<Base.Action>.none
    if let own = path.extract(from: action) {
      let inner = try state[keyPath: property].modify { (state) throws(Rejection) in
        try child.reduce(into: &state, action: own, as: step)
      }
      if let inner {
        effect = inner.map { path.embed($0) }
      } else {
        ReductionContext.warnOfAbsentChild(action.name)
      }
    }
    let before = state[keyPath: property].map(Identity.init)
    let outer = try base.reduce(into: &state, action: action)
    guard let before, before != state[keyPath: property].map(Identity.init) else {
      return .merge(effect, outer)
    }
    return .merge(effect, outer, .cancelScope(step))
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    let path = Base.Action.allCasePaths[keyPath: actions]
    return .merge(
      .children(child) { [property] state, tell in
        if let state = state[keyPath: property] { tell(state) { path.embed($0) } }
      }, base.composedLifecycle)
  }
}

extension Reducer {
  /// Run a child's reducer while the state, an enumeration, is of one case.
  ///
  /// As `ifLet`: the child reduces first, and its effects are cancelled when the state leaves the
  /// case.
  public func ifCaseLet<ChildState, ChildAction, Child: Reducer<ChildState, ChildAction>>(
    _ states: CaseKeyPath<State, ChildState>,
    action actions: CaseKeyPath<Action, ChildAction>,
    @ReducerBuilder<ChildState, ChildAction> _ child: () -> Child
  ) -> IfCaseLetReducer<Self, Child> where State: CasePathable, Action: CasePathable {
    IfCaseLetReducer(base: self, states: states, actions: actions, child: child())
  }
}

/// The reducer that `ifCaseLet` returns.
public struct IfCaseLetReducer<Base: Reducer, Child: Reducer>: Reducer
where Base.State: CasePathable, Base.Action: CasePathable {
  public typealias State = Base.State
  public typealias Action = Base.Action
  public typealias Body = Never
  let base: Base
  let states: CaseKeyPath<Base.State, Child.State>
  let actions: CaseKeyPath<Base.Action, Child.Action>
  let child: Child

  public func reduce(
    into state: inout Base.State, action: Base.Action
  ) throws(Rejection) -> Effect<Base.Action> {
    let step = EffectKey(child: states, of: Base.State.self)
    let states = Base.State.allCasePaths[keyPath: states]
    let path = Base.Action.allCasePaths[keyPath: actions]
    var effect = Effect<Base.Action>.none
    if let own = path.extract(from: action) {
      if var inner = states.extract(from: state) {
        effect = try child.reduce(into: &inner, action: own, as: step).map { path.embed($0) }
        state = states.embed(inner)
      } else {
        ReductionContext.warnOfAbsentChild(action.name)
      }
    }
    let before = states.extract(from: state).map(Identity.init)
    let outer = try base.reduce(into: &state, action: action)
    guard let before, before != states.extract(from: state).map(Identity.init) else {
      return .merge(effect, outer)
    }
    return .merge(effect, outer, .cancelScope(step))
  }

  public var composedLifecycle: Lifecycle<State, Action> {
    let states = Base.State.allCasePaths[keyPath: states]
    let path = Base.Action.allCasePaths[keyPath: actions]
    return .merge(
      .children(child) { state, tell in
        if let state = states.extract(from: state) { tell(state) { path.embed($0) } }
      }, base.composedLifecycle)
  }
}

extension Optional {
  /// Change the value in place, if there is one. It is moved out during the change, so that it
  /// stays uniquely referenced.
  mutating func modify<R, E: Error>(
    _ body: (inout Wrapped) throws(E) -> R
  ) throws(E) -> R? {
    guard var value = self else { return nil }
    self = nil
    defer { self = value }
    return try body(&value)
  }
}

extension Reducer {
  /// Reduce as a child: its effects have names in a scope of their own.
  func reduce(
    into state: inout State, action: Action, as step: @autoclosure () -> EffectKey
  ) throws(Rejection) -> Effect<Action> {
    guard let context = ReductionContext.current, !context.children.isEmpty else {
      let effect = try reduce(into: &state, action: action)
      return effect.node == nil ? effect : effect.scoped(to: step())
    }
    let step = step()
    return try context.enter(step) { () throws(Rejection) in
      try reduce(into: &state, action: action)
    }.scoped(to: step)
  }
}

extension ReductionContext {
  static func warnOfAbsentChild(_ action: String) {
    current?.warn(
      "An action was sent to a child that is not there, and is ignored by it: \(action).")
  }
}
