import Lockstep
import Synchronization

// Theory of operation
//
// The effects of a simulated daemon are tasks on an executor that runs nothing by itself. What they
// do, they do in jobs, one of which runs whenever the simulation says so; what they tell the daemon
// (an action, their end) waits here until the simulation hands it over. An effect can then only be
// in one of four places: it has a job here, it sleeps on the simulation's clock, it waits for its
// action to be reduced, or it waits for another effect. One that is in none of them does something
// that the simulation does not run, and cannot repeat: it has *escaped*.
//
// A daemon that dies takes its effects with it. None of them says anything, or wakes, any more; but
// what they have begun with actors, which others use too, comes to an end.

/// The tasks of the effects of one run of a daemon.
final class SimulatedEffects<Action: Sendable>: Sendable {
  /// Something that an effect tells the daemon.
  struct Delivery: Sendable {
    enum Content: Sendable {
      case action(Action, UnsafeContinuation<Void, Never>)
      /// What runs under a name is to be cancelled.
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

  /// The daemon's process is no more: its effects are heard of no more.
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
    storage.withLock { $0.runs[id] = Run(effect: effect) }
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

  // MARK: What effects tell

  private func deliver(_ action: Action, _ id: EffectID) async {
    await deliver(id) { .action(action, $0) }
  }

  /// Return when the daemon has been told.
  private func deliver(
    _ id: EffectID, _ content: (UnsafeContinuation<Void, Never>) -> Delivery.Content
  ) async {
    await withUnsafeContinuation { continuation in
      let isTaken = storage.withLock { storage in
        // Nobody goes on with an effect of a dead process.
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

  // MARK: What the simulation asks

  /// Whether effects run, or have not quite ended.
  var isBusy: Bool { count > 0 || executor.count > 0 }

  /// Whether an effect can go on before time passes.
  var isAwake: Bool { executor.count > 0 || deliveryCount > 0 }

  var deliveryCount: Int { storage.withLock { $0.deliveries.count } }

  /// How many effects have a task, be they cancelled or not.
  var count: Int { storage.withLock { $0.runs.count } }

  /// Take out the first of what the effect says that has the delivery at a place.
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

  /// What an effect did that it must not do; nil when all is well.
  ///
  /// With `mayWait`, an effect may wait for something that only the test brings.
  func misdeed(mayWait: Bool) -> String? {
    if let misdeed = storage.withLock({ $0.misdeed }) { return misdeed }
    let isForeign = executor.hasForeignJobs
    guard isForeign || !mayWait, !isAwake else { return nil }
    let sleeping = clock.sleepingEffects
    let (running, waiting) = storage.withLock { storage in
      (storage.runs.count, storage.runs.keys.filter { !sleeping.contains($0.rawValue) }.sorted())
    }
    // While another effect sleeps, this one may wait for it.
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

// MARK: Names inside of effects

extension SimulatedEffects: EffectHost {
  func began(
    _ name: ScopedEffectKey, cancelInFlight: Bool, cancel: @escaping @Sendable () -> Void
  ) async -> UInt64 {
    if cancelInFlight { await self.cancel(name) }
    return storage.withLock { $0.named.begin(name, cancel: cancel) }
  }

  func ended(_ name: ScopedEffectKey, _ number: UInt64) async {
    storage.withLock { $0.named.end(name, number) }
  }

  func cancel(_ name: ScopedEffectKey) async {
    let owner = SimulatedClock.owner?.effect
    guard let id = storage.withLock({ $0.runs.keys.first { $0.rawValue == owner } }) else { return }
    await deliver(id) { .cancel(name, $0) }
  }

  /// Cancel what effects run under a name inside themselves.
  func cancelTasks(_ name: ScopedEffectKey) {
    for cancel in storage.withLock({ $0.named.cancels(of: name) }) { cancel() }
  }
}
