import EventLoop
import Lockstep

/// The tasks of a daemon's effects. Belongs to the loop's thread.
struct EffectTasks {
  var tasks: [EffectID: Task<Void, Never>] = [:]
  var named = NamedTasks()
  /// Lets effects go on, when the daemon has heard what they have told it: it may be paused.
  var unheard: [@Sendable () -> Void] = []

  func cancel(_ id: EffectID) { tasks[id]?.cancel() }

  func cancel(_ name: ScopedEffectKey) {
    for cancel in named.cancels(of: name) { cancel() }
  }

  mutating func letGoOn() {
    let waiting = unheard
    unheard = []
    for goOn in waiting { goOn() }
  }

  mutating func cancelAll() {
    letGoOn()
    for (_, task) in tasks { task.cancel() }
    for cancel in named.cancels { cancel() }
  }
}

extension EffectOperation {
  /// Run the operation on the global pool, where it cannot block the loop.
  ///
  /// `deliver` passes an action to the daemon, and calls the closure that it gets when that has been heard;
  /// `ended` gets the error that the operation did not catch.
  func start(
    host: DaemonEffectHost,
    deliver: @escaping @Sendable (Action, _ goOn: @escaping @Sendable () -> Void) -> Void,
    ended: @escaping @Sendable (String?) -> Void
  ) -> Task<Void, Never> {
    Task.detached(priority: priority) {
      let error = await run(host: host) { action in
        await withCheckedContinuation { continuation in
          deliver(action) { continuation.resume() }
        }
      }
      ended(error)
    }
  }
}

/// The daemon as its effects see it.
struct DaemonEffectHost: EffectHost {
  let loop: Loop
  /// Runs a body on the tasks, on the loop; does nothing when the daemon is gone.
  let access: @Sendable ((inout EffectTasks) -> Void) -> Void
  /// Cancels the effects that run under a name, on the loop, and then calls a closure.
  let cancelNamed: @Sendable (ScopedEffectKey, _ goOn: @escaping @Sendable () -> Void) -> Void
  /// The state, on the loop; nil when the daemon is gone.
  let state: @Sendable () -> (any Sendable)?

  func withNamedTasks<T: Sendable>(
    _ body: @escaping @Sendable (inout NamedTasks) -> T
  ) async -> T? {
    await withCheckedContinuation { continuation in
      loop.execute(orElse: { continuation.resume(returning: nil) }) {
        var result: T?
        access { result = body(&$0.named) }
        continuation.resume(returning: result)
      }
    }
  }

  func withState<T: Sendable>(
    _ body: @escaping @Sendable (any Sendable) -> T
  ) async -> T? {
    await withCheckedContinuation { continuation in
      loop.execute(orElse: { continuation.resume(returning: nil) }) {
        continuation.resume(returning: state().map(body))
      }
    }
  }

  func cancel(_ name: ScopedEffectKey) async {
    await withCheckedContinuation { continuation in
      loop.execute(orElse: { continuation.resume() }) {
        cancelNamed(name) { continuation.resume() }
      }
    }
  }
}
