public import Lockstep
public import Values

/// A state and its logic in one process: the counterpart of a daemon and its mirrors.
///
///     let store = Store(initialState: Counter.State()) { Counter() }
///     store.send(.increment)
///     print(store.count)
///
/// Any thread may send; a thread that finds another one reducing waits for it. Actions are reduced
/// one at a time, in the order of arrival; when `send` returns, the state has been replaced and
/// observers have been notified. An action that is sent meanwhile by a reducer, a middleware or an
/// observer is queued, with a warning: send from effects instead.
///
/// A store that is made in an actor's isolation belongs there, and warns (`StoreWarnings`) when it
/// is used elsewhere; the actions of its effects hop there automatically.
@dynamicMemberLookup
public final class Store<R: Reducer>: ObservableStore {
  public typealias State = R.State

  private let engine: StoreEngine<R>

  /// A store with a new log, whose first actions are the start actions of its features
  /// (`Lifecycle.onStart`). Its effects are cancelled when it is released.
  ///
  /// `withDependencies` changes the dependencies of reducers and effects: those that are set for
  /// the code that makes the store, and the live ones for the other keys. With `strictThreads`, use
  /// outside of the store's isolation stops the program.
  public convenience init<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    isolation: (any Actor)? = #isolation, calledFrom caller: (any Actor)? = #isolation,
    strictThreads: Bool = false, delivery: EffectDelivery = .hopping,
    warnings: StoreWarnings = .standardError,
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R,
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) where R: Reducer<FeatureState, FeatureAction> {
    let check = ThreadCheck(isolation, isStrict: strictThreads, warnings: warnings)
    check(caller, .initialize)
    self.init(initialState, reducer(), middleware, check, delivery, change)
  }

  private init(
    _ state: R.State, _ reducer: R, _ middleware: [any Middleware<R.State, R.Action>],
    _ check: ThreadCheck, _ delivery: EffectDelivery, _ change: (inout DependencyValues) -> Void
  ) {
    var dependencies = DependencyValues.current.over(.ofLiveStore)
    change(&dependencies)
    var random = SystemRandomNumberGenerator()
    let core = StoreCore(
      state, reducer: reducer, middleware: middleware, seed: HashSeed(random.next()),
      dependencies: dependencies)
    engine = StoreEngine(core, check: check, delivery: delivery)
    for start in reducer.composedLifecycle.actions(for: .started(.first), in: state) {
      _ = engine.send(start)
    }
  }

  /// A store without an isolation: any thread may use it, and nothing is checked.
  public static func unchecked<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    warnings: StoreWarnings = .standardError,
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R,
    withDependencies change: (inout DependencyValues) -> Void = { _ in }
  ) -> Store where R: Reducer<FeatureState, FeatureAction> {
    let check = ThreadCheck(nil, isStrict: false, warnings: warnings)
    return Store(initialState, reducer(), middleware, check, .inPlace, change)
  }

  deinit {
    engine.cancelAll()
    engine.observers.end()
  }

  // MARK: Reading

  public var state: R.State { engine.state }

  public var stateObservers: StateObservers<R.State> { engine.observers }

  /// The state, then the state after every reduction that changed it, without omissions. A reader
  /// that is slower than the store makes the stream grow. Ends with the store.
  public var changes: AsyncStream<R.State> { everyChange() }

  /// The value of a pulse each time it is assigned from now on.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<R.State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    everyPulse(property)
  }

  /// The running effects, in the order of their start. Reducers must not read it.
  public var effects: [RunningEffect] { engine.ask { $0.runningEffects } }

  /// The latest actions, with their causes. Reducers must not read it.
  public var log: ActionLog<R.Action> { engine.ask { $0.log } }

  // MARK: Sending

  /// Send an action. When this returns, the state has been replaced.
  @discardableResult
  public func send(
    _ action: R.Action, calledFrom caller: (any Actor)? = #isolation
  ) -> StoreTask {
    engine.check(caller, .send(action.name))
    let ticket = engine.send(action)
    // The task retains the store, whose release would cancel its effects.
    return StoreTask(
      ticket, wait: { await self.engine.finish(ticket) }, end: { self.engine.cancel(ticket) })
  }

  /// Cancel the effects that have this UUID, name or key. Returns how many there were.
  @discardableResult
  public func cancelEffects(_ text: String) -> Int { engine.cancelEffects(text) }

  // MARK: Parts

  /// A store of a part of the state, and of the actions that concern it. O(1); even without
  /// observers, every change then costs two looks at the part.
  public func scope<Child: Synchronizable, ChildAction: Sendable>(
    state property: any KeyPath<R.State, Child> & Sendable,
    action path: CaseKeyPath<R.Action, ChildAction>,
    calledFrom caller: (any Actor)? = #isolation
  ) -> ScopedStore<Child, ChildAction> where R.Action: CasePathable {
    engine.check(caller, .scope)
    let actions = R.Action.allCasePaths[keyPath: path]
    return ScopedStore(self, { $0[keyPath: property] }) { store, action, caller in
      store.send(actions.embed(action), calledFrom: caller)
    }
  }

  /// A store of one entry of a map, or one row of an array, which may appear and disappear.
  public func scope<Children: KeyedChildren, ChildAction: Sendable>(
    state property: any KeyPath<R.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<R.Action, (Children.ChildID, ChildAction)>,
    calledFrom caller: (any Actor)? = #isolation
  ) -> ScopedStore<Children.ChildState?, ChildAction> where R.Action: CasePathable {
    row(property, id, R.Action.allCasePaths[keyPath: path], caller)
  }

  /// The same for actions that are sent in a case with labels: `todos(id: Todo.ID, action: Todo.Action)`.
  public func scope<Children: KeyedChildren, ChildAction: Sendable>(
    state property: any KeyPath<R.State, Children> & Sendable, id: Children.ChildID,
    action path: CaseKeyPath<R.Action, (id: Children.ChildID, action: ChildAction)>,
    calledFrom caller: (any Actor)? = #isolation
  ) -> ScopedStore<Children.ChildState?, ChildAction> where R.Action: CasePathable {
    row(property, id, R.Action.allCasePaths[keyPath: path].unlabelled(), caller)
  }

  private func row<Children: KeyedChildren, ChildAction: Sendable>(
    _ property: any KeyPath<R.State, Children> & Sendable, _ id: Children.ChildID,
    _ actions: CasePath<R.Action, (Children.ChildID, ChildAction)>, _ caller: (any Actor)?
  ) -> ScopedStore<Children.ChildState?, ChildAction> {
    engine.check(caller, .scope)
    return ScopedStore(self, { $0[keyPath: property].child(id) }) { store, action, caller in
      store.send(actions.embed((id, action)), calledFrom: caller)
    }
  }
}
