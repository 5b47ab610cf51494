public import Lockstep
public import Values

/// A state and its logic in one process: what a daemon and its mirrors are for several.
///
///     let store = Store(initialState: Counter.State()) { Counter() }
///     store.send(.increment)
///     print(store.count)
///
/// Any thread may send; one that finds another at work waits for it. Actions are reduced one at a
/// time, in the order in which they come; when `send` returns, the state has been replaced and
/// observers have been told. An action that is sent meanwhile by a reducer, a middleware or an
/// observer waits behind, which is reported: effects are the place to send from.
///
/// A store that is made in an actor's isolation belongs there, and says so (`StoreWarnings`) when
/// it is used elsewhere; the actions of its effects hop there by themselves.
@dynamicMemberLookup
public final class Store<R: Reducer>: ObservableStore {
  public typealias State = R.State

  private let engine: StoreEngine<R>

  /// A store with a new log, whose first actions are those that its features name for their start.
  /// Its effects end with it.
  ///
  /// `withDependencies` changes those that reducers and effects have, which begin as the live ones.
  /// With `strictThreads`, use from elsewhere stops the program.
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
    var dependencies = DependencyValues.ofLiveStore
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

  /// A store that belongs nowhere: any thread may use it, and nothing is checked.
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

  /// The state, then that behind every reduction that changed it, none left out. A reader that is
  /// slower than the store makes the stream grow. Ends with the store.
  public var changes: AsyncStream<R.State> { everyChange() }

  /// The value of a pulse each time that it is assigned from now on.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<R.State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    everyPulse(property)
  }

  /// The effects that run, in the order of their start. Not to be asked by reducers.
  public var effects: [RunningEffect] { engine.ask { $0.runningEffects } }

  /// The latest actions, with their causes. Not to be asked by reducers.
  public var log: ActionLog<R.Action> { engine.ask { $0.log } }

  // MARK: Sending

  /// Have an action done. When this returns, the state has been replaced.
  @discardableResult
  public func send(
    _ action: R.Action, calledFrom caller: (any Actor)? = #isolation
  ) -> StoreTask {
    engine.check(caller, .send(action.name))
    let ticket = engine.send(action)
    // The task keeps the store, or its effects would end with it.
    return StoreTask(
      ticket, wait: { await self.engine.finish(ticket) }, end: { self.engine.cancel(ticket) })
  }

  /// Cancel the effects that have this UUID, name or key. Returns how many there were.
  @discardableResult
  public func cancelEffects(_ text: String) -> Int { engine.cancelEffects(text) }

  // MARK: Parts

  /// A store of a part of the state, and of the actions that concern it. O(1); while nobody
  /// watches it, it costs every change a look at the part.
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

  /// A store of one entry of a map, which may come and go.
  public func scope<ID: SyncKey, Child: Synchronizable, ChildAction: Sendable>(
    state property: any KeyPath<R.State, SyncMap<ID, Child>> & Sendable, id: ID,
    action path: CaseKeyPath<R.Action, (ID, ChildAction)>,
    calledFrom caller: (any Actor)? = #isolation
  ) -> ScopedStore<Child?, ChildAction> where R.Action: CasePathable {
    engine.check(caller, .scope)
    let actions = R.Action.allCasePaths[keyPath: path]
    return ScopedStore(self, { $0[keyPath: property][id] }) { store, action, caller in
      store.send(actions.embed((id, action)), calledFrom: caller)
    }
  }
}
