import Lockstep
import Synchronization

// Theory of operation
//
// The effects of a simulated daemon are tasks on an executor that runs nothing by itself. They
// consist of jobs, each of which runs when the simulation says so; their messages to the daemon (an
// action, their end) wait here until the simulation delivers them. So an effect is always in one of
// four places: it has a job here, it sleeps on the simulation's clock, it waits for its action to
// be reduced, or it waits for another effect. An effect in none of them does something that the
// simulation neither runs nor can repeat: it has *escaped*.
//
// The effects of a dead daemon send nothing and never wake. But their calls of actors, which others
// use too, complete.

/// The tasks of the effects of one run of a daemon.
final class SimulatedEffects<Action: Sendable>: Sendable {
  /// A message of an effect to the daemon.
  struct Delivery: Sendable {
    enum Content: Sendable {
      case action(Action, UnsafeContinuation<Void, Never>)
      /// The state is to be read.
      case read(@Sendable (any Sendable) -> Void, UnsafeContinuation<Void, Never>)
      /// A named task is to be cancelled.
      case cancel(ScopedEffectKey, UnsafeContinuation<Void, Never>)
      /// With the error that the effect did not catch.
      case end(String?)
    }

    let id: EffectID
    let content: Content
  }

  private struct Run: Sendable {
    let effect: RunningEffect
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private struct Storage: Sendable {
    var runs: [EffectID: Run] = [:]
    var deliveries: [Delivery] = []
    var misdeed: String?
    var named = NamedTasks()
    var isOver = false
  }

  let executor: SeededExecutor
  private let clock: SimulatedClock
  private let run: Int
  private let storage = Mutex(Storage())

  init(run: Int, on executor: SeededExecutor, clock: SimulatedClock) {
    self.run = run
    self.executor = executor
    self.clock = clock
    clock.begin(run: run)
  }

  /// Abandon the effects of a daemon whose process is gone.
  func abandon() {
    let tasks = storage.withLock { storage in
      storage.isOver = true
      storage.deliveries = []
      defer { storage.runs = [:] }
      return storage.runs.sorted { $0.key < $1.key }.compactMap(\.value.task)
    }
    for task in tasks { task.cancel() }
  }

  // MARK: Orders

  func start(_ operation: EffectOperation<Action>, _ effect: RunningEffect) {
    let id = operation.id
    storage.withLock { storage in
      storage.runs[id] = Run(effect: effect)
      operation.enter(&storage.named)
    }
    let task = Task(executorPreference: executor, priority: operation.priority) { [self] in
      await SimulatedClock.$owner.withValue(.init(run: run, effect: id.rawValue)) {
        let error = await operation.run(host: self) { [self] in await deliver($0, id) }
        end(id, error)
      }
    }
    storage.withLock { $0.runs[id]?.task = task }
  }

  func cancel(_ id: EffectID) {
    let task = storage.withLock { storage in
      storage.runs[id]?.isCancelled = true
      return storage.runs[id]?.task
    }
    task?.cancel()
  }

  // MARK: Deliveries

  private func deliver(_ action: Action, _ id: EffectID) async {
    await deliver(id) { .action(action, $0) }
  }

  /// Return when the simulation has delivered the message.
  private func deliver(
    _ id: EffectID, _ content: (UnsafeContinuation<Void, Never>) -> Delivery.Content
  ) async {
    await withUnsafeContinuation { continuation in
      let isTaken = storage.withLock { storage in
        // An effect of a dead process never continues.
        if storage.isOver { return true }
        guard executor.isEntered else {
          storage.misdeed = storage.misdeed ?? storage.runs[id].map { Self.escape($0.effect) }
          return false
        }
        storage.deliveries.append(Delivery(id: id, content: content(continuation)))
        return true
      }
      if !isTaken { continuation.resume() }
    }
  }

  private func end(_ id: EffectID, _ error: String?) {
    storage.withLock { storage in
      if !storage.isOver { storage.deliveries.append(Delivery(id: id, content: .end(error))) }
    }
  }

  // MARK: Queries of the simulation

  /// Whether effects run, or have not completely ended.
  var isBusy: Bool { count > 0 || executor.count > 0 }

  /// Whether an effect can continue before time passes.
  var isAwake: Bool { executor.count > 0 || deliveryCount > 0 }

  var deliveryCount: Int { storage.withLock { $0.deliveries.count } }

  /// The number of effects with a task, cancelled or not.
  var count: Int { storage.withLock { $0.runs.count } }

  /// Remove the first message of the effect that sent the message at this index.
  func takeDelivery(at place: Int) -> (delivery: Delivery, isCancelled: Bool) {
    storage.withLock { storage in
      let id = storage.deliveries[place].id
      let first = storage.deliveries.firstIndex { $0.id == id } ?? place
      let delivery = storage.deliveries.remove(at: first)
      let isCancelled = storage.runs[id]?.isCancelled ?? true
      if case .end = delivery.content { storage.runs[id] = nil }
      return (delivery, isCancelled)
    }
  }

  /// The description of a forbidden act of an effect; nil if there is none.
  ///
  /// With `mayWait`, an effect may wait for input that only the test provides.
  func misdeed(mayWait: Bool) -> String? {
    if let misdeed = storage.withLock({ $0.misdeed }) { return misdeed }
    let isForeign = executor.hasForeignJobs
    guard isForeign || !mayWait, !isAwake else { return nil }
    let sleeping = clock.sleepingEffects
    let (running, waiting) = storage.withLock { storage in
      (storage.runs.count, storage.runs.keys.filter { !sleeping.contains($0.rawValue) }.sorted())
    }
    // This effect may wait for another one that sleeps.
    guard let first = waiting.first, isForeign || waiting.count == running else { return nil }
    return storage.withLock { $0.runs[first].map { Self.escape($0.effect) } }
  }

  private static func name(_ effect: RunningEffect) -> String {
    "the effect \"\(effect.name)\" (\(effect.place), returned for \(effect.action))"
  }

  private static func escape(_ effect: RunningEffect) -> String {
    """
    \(name(effect)) has escaped the simulation: it does, or waits for, something that no seed \
    decides. Let it wait on the clock of its dependencies (@Dependency(\\.clock)), not on \
    ContinuousClock or Task.sleep; do work side by side in `async let` or task groups, not in \
    Task.detached or Task { }; and reach what is outside through dependencies, which the test \
    replaces.
    """
  }
}

// MARK: Named tasks

extension SimulatedEffects: EffectHost {
  var effectExecutor: (any TaskExecutor)? { executor }

  func withNamedTasks<T: Sendable>(
    _ body: @escaping @Sendable (inout NamedTasks) -> T
  ) async -> T? {
    storage.withLock { body(&$0.named) }
  }

  func withState<T: Sendable>(
    _ body: @escaping @Sendable (any Sendable) -> T
  ) async -> T? {
    guard let id = caller else { return nil }
    let result = Mutex<T?>(nil)
    await deliver(id) { continuation in
      .read({ state in result.withLock { $0 = body(state) } }, continuation)
    }
    return result.withLock { $0 }
  }

  func cancel(_ name: ScopedEffectKey) async {
    guard let id = caller else { return }
    await deliver(id) { .cancel(name, $0) }
  }

  /// The effect that calls; nil if it has ended.
  private var caller: EffectID? {
    let owner = SimulatedClock.owner?.effect
    return storage.withLock { $0.runs.keys.first { $0.rawValue == owner } }
  }

  /// Cancel the tasks with this name inside effects.
  func cancelTasks(_ name: ScopedEffectKey) {
    for cancel in storage.withLock({ $0.named.cancels(of: name) }) { cancel() }
  }
}
