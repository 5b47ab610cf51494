import CBOR
import Dispatch
import Glibc
import Lockstep
import Synchronization
import Values

// Theory of operation
//
// Every operation on the store enters one queue. A thread that finds the queue without a drainer
// drains it (`drain`), for all other threads too; a thread whose entry is run by another waits for
// it. So `send` is synchronous, actions are reduced in the order of arrival, and nothing recurses:
// an action that the draining thread sends meanwhile is appended to the queue.
//
//     queue -> reduce -> publish -> tell observers -> start effects -> next
//
// Actions that wait inside the core (from `send` effects, or from middleware) and those of the
// queue alternate. No lock is held while observers are notified. The core's lock is held while
// reducers and middleware run; a thread that is inside them must not take it again, so anything
// that they could ask for is published outside the lock, or refused.
final class StoreEngine<R: Reducer>: Sendable {
  typealias Core = StoreCore<R>

  struct Entry: Sendable {
    let run: @Sendable (inout Core, inout CBOREncoder) -> Void
    let done: @Sendable () -> Void
  }

  private struct Queue: Sendable {
    var entries: [Entry] = []
    var first = 0
    /// The thread that drains the queue.
    var drainer: pthread_t?
    /// The action that was reduced last.
    var lastAction = ""

    var next: Entry? {
      mutating get {
        guard first < entries.count else {
          entries.removeAll(keepingCapacity: true)
          first = 0
          return nil
        }
        defer { first += 1 }
        return entries[first]
      }
    }
  }

  private struct Tasks: Sendable {
    var tasks: [EffectID: Task<Void, Never>] = [:]
    var named = NamedTasks()
  }

  let check: ThreadCheck
  let delivery: EffectDelivery
  let observers = StateObservers<R.State>()
  private let queue = Mutex(Queue())
  private let core: Mutex<Core>
  /// The time of actions: read while no lock is held, because it may be user code.
  private let date: DateGenerator
  /// The thread that is inside the core, or 0.
  private let inside = Atomic<UInt>(0)
  private let published: Mutex<R.State>
  private let tasks = Mutex(Tasks())
  /// The tasks that wait for the end of an action's cascade.
  private let waiters = Mutex<[(ticket: StoreTicket, wake: CheckedContinuation<Void, Never>)]>([])

  init(_ core: consuming Core, check: ThreadCheck, delivery: EffectDelivery) {
    self.check = check
    self.delivery = delivery
    published = Mutex(core.state)
    date = core.dependencies.date
    self.core = Mutex(core)
  }

  // MARK: Reading

  /// The state after the last reduction.
  var state: R.State { published.withLock { $0 } }

  /// Read from the core. Must not be called from within it (precondition).
  func ask<T: Sendable>(_ body: (inout Core) -> T) -> T {
    precondition(
      inside.load(ordering: .relaxed) != pthread_self(),
      "A reducer, or a middleware, asks the store that runs it for more than its state.")
    return core.withLock { body(&$0) }
  }

  // MARK: The queue

  /// Send an action, and return when it has been reduced, or at once if this very thread is the
  /// drainer.
  func send(_ action: R.Action) -> StoreTicket {
    let ticket = StoreTicket()
    let name = action.name
    let isNested = perform { core, patch in
      let reduction = core.send(action, patch: &patch)
      ticket.reduced(core.sequence, reduction)
      if ticket.isCancelled { core.cancelCascade(of: core.sequence) }
    }
    if isNested { check.warnings.report(nestingText(name)) }
    return ticket
  }

  private func nestingText(_ action: String) -> String {
    let rest = "It waits until that is done. Send it from an effect."
    if inside.load(ordering: .relaxed) == pthread_self() {
      return "The action \(action) was sent by a reducer or a middleware while it ran. \(rest)"
    }
    let last = queue.withLock { $0.lastAction }
    return "The action \(action) was sent by an observer of what \(last) changed. \(rest)"
  }

  /// Run an operation on the core after those that are queued, and return when it is done. On the
  /// draining thread it is only queued, and the result is true.
  @discardableResult
  private func perform(
    _ run: @escaping @Sendable (inout Core, inout CBOREncoder) -> Void
  ) -> Bool {
    let me = pthread_self()
    let turn = queue.withLock { queue -> Turn in
      switch queue.drainer {
      case nil:
        queue.entries.append(Entry(run: run, done: {}))
        queue.drainer = me
        return .work
      case me:
        queue.entries.append(Entry(run: run, done: {}))
        return .nested
      case _?:
        let semaphore = DispatchSemaphore(value: 0)
        queue.entries.append(Entry(run: run, done: { semaphore.signal() }))
        return .wait(semaphore)
      }
    }
    switch turn {
    case .work: drain()
    case .nested: return true
    case .wait(let semaphore): semaphore.wait()
    }
    return false
  }

  private enum Turn: Sendable {
    case work
    case nested
    case wait(DispatchSemaphore)
  }

  /// Run an operation on the core after those that are queued, in an isolation, for callers that
  /// can suspend instead of blocking a thread.
  private func perform(
    isolation: isolated (any Actor)?,
    _ run: @escaping @Sendable (inout Core, inout CBOREncoder) -> Void
  ) async {
    await withCheckedContinuation(isolation: isolation) { continuation in
      let drains = queue.withLock { queue in
        queue.entries.append(Entry(run: run, done: { continuation.resume() }))
        guard queue.drainer == nil else { return false }
        queue.drainer = pthread_self()
        return true
      }
      if drains { drain() }
    }
  }

  /// Run all entries of the queue.
  private func drain() {
    while true {
      while step({ core, patch in core.sendNext(patch: &patch) != nil }) {
        // Alternate with the entries of the queue.
        if let entry = queue.withLock({ $0.next }) { run(entry) }
      }
      let entry = queue.withLock { queue in
        let next = queue.next
        if next == nil { queue.drainer = nil }
        return next
      }
      guard let entry else { return }
      run(entry)
    }
  }

  private func run(_ entry: Entry) {
    _ = step { core, patch in
      entry.run(&core, &patch)
      return true
    }
    entry.done()
  }

  // MARK: One step

  /// The result of a step of the core.
  private struct Outcome: Sendable {
    var state: R.State
    var isChanged: Bool
    var orders: [(EffectOrder, EffectOperation<R.Action>?)]
    var warnings: [String]
    var action: String?
  }

  /// Run a body on the core, then publish the state, notify observers and execute the orders.
  /// Returns whether the body did anything.
  private func step(_ body: (inout Core, inout CBOREncoder) -> Bool) -> Bool {
    let time = date.now
    inside.store(pthread_self(), ordering: .relaxed)
    let outcome = core.withLock { core -> Outcome? in
      core.time = time
      let revision = core.revision
      var patch = CBOREncoder()
      guard body(&core, &patch) else { return nil }
      var orders: [(EffectOrder, EffectOperation<R.Action>?)] = []
      for order in core.takeOrders() {
        if case .start(let id) = order {
          orders.append((order, core.operation(of: id)))
        } else {
          orders.append((order, nil))
        }
      }
      return Outcome(
        state: core.state, isChanged: core.revision != revision, orders: orders,
        warnings: core.takeWarnings(),
        action: core.log.newest?.name)
    }
    inside.store(0, ordering: .relaxed)
    guard let outcome else { return false }
    if let action = outcome.action { queue.withLock { $0.lastAction = action } }
    publish(outcome.state, isChanged: outcome.isChanged)
    for (order, operation) in outcome.orders { execute(order, operation) }
    for warning in outcome.warnings { check.warnings.report(warning) }
    wakeWaiters()
    return true
  }

  /// Publish a state, and notify observers if its revision changed.
  private func publish(_ new: R.State, isChanged: Bool) {
    let old = published.withLock { state in
      let old = state
      state = new
      return old
    }
    if isChanged { observers.tell(from: old, to: new) }
  }

  // MARK: Effects

  private func execute(_ order: EffectOrder, _ operation: EffectOperation<R.Action>?) {
    switch order {
    case .start(let id):
      guard let operation else { return }
      // Under the lock, so that the end of the effect finds it in the table.
      tasks.withLock { tasks in
        operation.enter(&tasks.named)
        tasks.tasks[id] = start(operation)
      }
    case .cancel(let id): tasks.withLock { $0.tasks.removeValue(forKey: id) }?.cancel()
    case .cancelTasks(let name): cancelTasks(name)
    }
  }

  private func start(_ operation: EffectOperation<R.Action>) -> Task<Void, Never> {
    Task.detached(priority: operation.priority) { [self] in
      let id = operation.id
      let error = await operation.run(host: self) { [self] action in
        await effectSent(action, id, isolation: landing)
      }
      await effectEnded(id, error, isolation: landing)
    }
  }

  /// The isolation in which the effects' actions reach the store.
  private var landing: (any Actor)? { delivery == .hopping ? check.place : nil }

  private func effectSent(
    _ action: R.Action, _ id: EffectID, isolation: isolated (any Actor)?
  ) async {
    check(isolation, act(of: id, sending: action.name))
    await perform(isolation: isolation) { core, patch in
      _ = core.send(action, from: id, patch: &patch)
    }
  }

  private func effectEnded(
    _ id: EffectID, _ error: String?, isolation: isolated (any Actor)?
  ) async {
    check(isolation, act(of: id, sending: nil))
    await perform(isolation: isolation) { core, _ in core.finished(id, unhandled: error) }
    tasks.withLock { $0.tasks[id] = nil }
  }

  /// A description of what an effect does, for a warning.
  private func act(of id: EffectID, sending action: String?) -> ThreadCheck.Act {
    let effect = ask { core in core.runningEffects.first { $0.id == id } }
    let (name, place, origin) = effect.map { ($0.name, $0.place, $0.action) } ?? ("", "", "")
    guard let action else { return .effectEnd(effect: name, place: place, from: origin) }
    return .effectAction(action, effect: name, place: place, from: origin)
  }

  private func cancelTasks(_ name: ScopedEffectKey) {
    for cancel in tasks.withLock({ $0.named.cancels(of: name) }) { cancel() }
  }

  // MARK: Cascades

  /// Return when the cascade of an action has ended.
  func finish(_ ticket: StoreTicket) async {
    await withCheckedContinuation { continuation in
      let isDone = waiters.withLock { waiters in
        if self.isDone(ticket) { return true }
        waiters.append((ticket, continuation))
        return false
      }
      if isDone { continuation.resume() }
    }
  }

  private func isDone(_ ticket: StoreTicket) -> Bool {
    guard let sequence = ticket.sequence else { return false }
    return ask { $0.isDone(sequence) }
  }

  private func wakeWaiters() {
    let done = waiters.withLock { waiters in
      if waiters.isEmpty { return [CheckedContinuation<Void, Never>]() }
      let done = waiters.filter { isDone($0.ticket) }.map(\.wake)
      waiters.removeAll { isDone($0.ticket) }
      return done
    }
    for wake in done { wake.resume() }
  }

  /// Cancel the cascade of an action.
  func cancel(_ ticket: StoreTicket) {
    guard let sequence = ticket.sequence else { return }
    perform { core, _ in core.cancelCascade(of: sequence) }
  }

  /// Cancel the effects that have this UUID, name or key. Returns how many there were; 0 on the
  /// draining thread, where they are cancelled afterwards.
  func cancelEffects(_ text: String) -> Int {
    let count = Guarded(0)
    perform { core, _ in
      let cancelled = core.cancelEffects(text)
      count.withLock { $0 = cancelled }
    }
    return count.withLock { $0 }
  }

  /// Cancel every effect, because the store is released.
  func cancelAll() {
    let (all, cancels) = tasks.withLock { (Array($0.tasks.values), $0.named.cancels) }
    for task in all { task.cancel() }
    for cancel in cancels { cancel() }
  }
}

extension StoreEngine: EffectHost {
  func withNamedTasks<T: Sendable>(
    _ body: @escaping @Sendable (inout NamedTasks) -> T
  ) async -> T? {
    tasks.withLock { body(&$0.named) }
  }

  func withState<T: Sendable>(
    _ body: @escaping @Sendable (any Sendable) -> T
  ) async -> T? {
    body(state)
  }

  func cancel(_ name: ScopedEffectKey) async { await cancel(name, isolation: landing) }

  private func cancel(_ name: ScopedEffectKey, isolation: isolated (any Actor)?) async {
    await perform(isolation: isolation) { core, _ in core.cancelEffects(under: name) }
  }
}
