import CBOR
import Lockstep
import Synchronization
import Values

// Theory of operation
//
// The engine runs the store ahead of the assertions: an action of an effect is reduced at once and
// recorded, with the state after it, until the test receives it. Effects run as tasks on an
// executor that knows when it is idle, so that "nothing more can be received" is a condition and
// not a guess about time.

/// A store and its effects, under a test.
final class TestStoreEngine<R: Reducer>: Sendable {
  /// An action that the test did not send.
  struct Received: Sendable {
    let action: R.Action
    let state: R.State
    let reduction: Reduction
  }

  /// The result of an action of the test.
  struct Sent: Sendable {
    let sequence: UInt64
    let state: R.State
    let reduction: Reduction
  }

  struct Storage: Sendable {
    var core: StoreCore<R>
    var received: [Received] = []
    var tasks: [EffectID: Task<Void, Never>] = [:]
    var named = NamedTasks()
  }

  let clock: TestClock
  let executor = TestStoreExecutor()
  let storage: Mutex<Storage>

  init(_ core: StoreCore<R>, clock: TestClock) {
    self.clock = clock
    storage = Mutex(Storage(core: core))
    clock.onSettle { [weak self] in await self?.executor.settle() }
  }

  func withLock<T>(_ body: (inout sending Storage) -> sending T) -> sending T {
    storage.withLock(body)
  }

  // MARK: Actions

  /// Perform an action of the test, and everything that follows from it without waiting.
  func send(_ action: R.Action, from cause: Cause) -> Sent {
    change { storage in
      var patch = CBOREncoder()
      let reduction = storage.core.send(action, from: cause, patch: &patch)
      return Sent(
        sequence: storage.core.sequence, state: storage.core.state, reduction: reduction)
    }
  }

  /// Perform the life-cycle actions for an event, as a server does, and everything that follows
  /// from them without waiting. Returns the state before what follows.
  func tell(_ event: LifecycleEvent) -> (state: R.State, rejected: [(R.Action, Rejection)]) {
    change { storage in
      var rejected: [(R.Action, Rejection)] = []
      let lifecycle = storage.core.reducer.composedLifecycle
      for action in lifecycle.actions(for: event, in: storage.core.state) {
        var patch = CBOREncoder()
        let reduction = storage.core.send(action, patch: &patch)
        if case .rejected(let rejection) = reduction { rejected.append((action, rejection)) }
      }
      return (storage.core.state, rejected)
    }
  }

  /// Perform an action of an effect.
  private func deliver(_ action: R.Action, from effect: EffectID) {
    change { storage in
      var patch = CBOREncoder()
      if let reduction = storage.core.send(action, from: effect, patch: &patch) {
        note(reduction, &storage)
      }
    }
  }

  private func finished(_ effect: EffectID, _ error: String?) {
    change { storage in
      storage.tasks[effect] = nil
      storage.core.finished(effect, unhandled: error)
    }
  }

  /// Call the store, and perform everything that follows without waiting.
  private func change<T: Sendable>(_ body: (inout Storage) -> T) -> T {
    let (result, cancels) = storage.withLock { storage in
      storage.core.time = clock.timestamp
      let result = body(&storage)
      return (result, goOn(&storage))
    }
    // The lock is free, because a task's cancellation handler may call the store.
    for cancel in cancels { cancel() }
    return result
  }

  private func note(_ reduction: Reduction, _ storage: inout Storage) {
    guard let action = storage.core.log.newest?.action else { return }
    storage.received.append(
      Received(action: action, state: storage.core.state, reduction: reduction))
  }

  /// Perform the queued actions, then start the due effects. Returns the cancel closures of others.
  private func goOn(_ storage: inout Storage) -> [NamedTasks.Cancel] {
    var patch = CBOREncoder()
    while let reduction = storage.core.sendNext(patch: &patch) { note(reduction, &storage) }
    var cancels: [NamedTasks.Cancel] = []
    for order in storage.core.takeOrders() {
      switch order {
      case .start(let id):
        if let operation = storage.core.operation(of: id) {
          operation.enter(&storage.named)
          storage.tasks[id] = start(operation)
        }
      case .cancel(let id):
        if let task = storage.tasks.removeValue(forKey: id) { cancels.append(task.cancel) }
      case .cancelTasks(let name): cancels += storage.named.cancels(of: name)
      }
    }
    return cancels
  }

  private func start(_ operation: EffectOperation<R.Action>) -> Task<Void, Never> {
    Task(executorPreference: executor, priority: operation.priority) { [self] in
      let error = await operation.run(host: self) { [self] in deliver($0, from: operation.id) }
      finished(operation.id, error)
    }
  }

  // MARK: Effects

  /// Cancel the cascade of an action of the test.
  func cancelCascade(of sequence: UInt64) {
    change { $0.core.cancelCascade(of: sequence) }
  }

  /// Cancel every effect. Returns those that were running.
  func cancelAll() -> [RunningEffect] {
    let running = change { storage in
      let running = storage.core.runningEffects
      // Cancelling a part lets the next part of a sequence start.
      while storage.core.effectCount > 0 {
        for effect in storage.core.runningEffects {
          _ = storage.core.cancelEffects(effect.id.description)
        }
      }
      return running
    }
    for task in storage.withLock({ Array($0.tasks.values) }) { task.cancel() }
    return running
  }

  // MARK: Waiting

  /// Return when no effect can continue by itself.
  func settle() async { await executor.settle() }

  /// Wait until `condition` holds. Returns false if it does not within `timeout` and no effect can
  /// continue by itself.
  func wait(
    _ timeout: Duration, until condition: @Sendable (Storage) -> Bool
  ) async -> Bool {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: timeout)
    while true {
      await settle()
      if storage.withLock({ condition($0) }) { return true }
      if clock.now >= deadline { return false }
      try? await clock.sleep(for: .milliseconds(1))
    }
  }
}

extension TestStoreEngine: EffectHost {
  var effectExecutor: (any TaskExecutor)? { executor }

  func withNamedTasks<T: Sendable>(
    _ body: @escaping @Sendable (inout NamedTasks) -> T
  ) async -> T? {
    storage.withLock { body(&$0.named) }
  }

  func withState<T: Sendable>(
    _ body: @escaping @Sendable (any Sendable) -> T
  ) async -> T? {
    body(storage.withLock { $0.core.state })
  }

  func cancel(_ name: ScopedEffectKey) async { change { $0.core.cancelEffects(under: name) } }
}

extension TestClock {
  /// The clock's time as a wall-clock time: the clock starts in 1970.
  var timestamp: Timestamp { Timestamp(nanoseconds: 0) + now.offset }
}
