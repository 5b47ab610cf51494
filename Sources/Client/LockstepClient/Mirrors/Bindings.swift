public import Lockstep
import Synchronization
public import Values

/// Tasks that live as long as a connection and the owner of a binding: ReactorKit's dispose bag.
public final class Bindings<F: Feature>: Sendable {
  private struct Contents: Sendable {
    var tasks: [Task<Void, Never>] = []
    var hasEnded = false
  }

  private weak let mirror: MirrorStore<F>?
  private let owner: WeakReference
  private let contents = Mutex(Contents())

  init(_ mirror: MirrorStore<F>, _ owner: WeakReference) {
    self.mirror = mirror
    self.owner = owner
  }

  /// Call a handler with the value of a property now, and with each later value that differs; a
  /// slow handler skips intermediate values.
  public func observe<T: Synchronizable>(
    _ property: any KeyPath<F.State, T> & Sendable,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (T) -> Void
  ) {
    guard let values = mirror?.observe(property) else { return }
    forward(values, handler)
  }

  /// Call a handler with what a selector selects now, and with each later value that differs; a slow
  /// handler skips intermediate values.
  public func observe<T: Equatable>(
    _ selector: Selector<F.State, T>,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (T) -> Void
  ) {
    guard let values = mirror?.observe(selector) else { return }
    forward(values, handler)
  }

  /// Call a handler with the value of a pulse each time it is assigned.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<F.State, Pulse<T>> & Sendable,
    @_inheritActorContext _ handler: @escaping @isolated(any) @Sendable (T) -> Void
  ) {
    guard let values = mirror?.pulses(property) else { return }
    forward(values, handler)
  }

  /// Post the actions of a sequence. An `AsyncStream` ends when the task that reads it is
  /// cancelled, which happens when the bag ends: make a new stream for every binding.
  public func send<Actions: AsyncSequence & Sendable>(_ actions: Actions)
  where Actions.Element == F.Action, Actions.Failure == Never {
    add(
      Task { [weak mirror] in
        for await action in actions {
          if Task.isCancelled { return }
          mirror?.post(action)
        }
      })
  }

  /// Add a task that is cancelled, and awaited, when the bag ends.
  public func add(_ task: Task<Void, Never>) {
    let isLate = contents.withLock { contents in
      if !contents.hasEnded { contents.tasks.append(task) }
      return contents.hasEnded
    }
    if isLate { task.cancel() }
  }

  private func forward<T: Sendable>(
    _ values: AsyncStream<T>, _ handler: @escaping @isolated(any) @Sendable (T) -> Void
  ) {
    add(
      Task { [owner] in
        for await value in values {
          if Task.isCancelled || !owner.isAlive { return }
          await handler(value)
        }
      })
  }

  /// Cancel all tasks in the bag, and return when none of them runs any more.
  func end() async {
    let tasks = contents.withLock { contents in
      contents.hasEnded = true
      defer { contents.tasks = [] }
      return contents.tasks
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
