import EventLoop
import Lockstep

/// The tasks of a daemon's effects. Belongs to the loop's thread.
struct EffectTasks {
  var tasks: [EffectID: Task<Void, Never>] = [:]
  var named = NamedTasks()

  func cancel(_ id: EffectID) { tasks[id]?.cancel() }

  func cancel(_ name: ScopedEffectKey) {
    for cancel in named.cancels(of: name) { cancel() }
  }

  func cancelAll() {
    for (_, task) in tasks { task.cancel() }
    for cancel in named.cancels { cancel() }
  }
}

/// The daemon as its effects see it.
struct DaemonEffectHost: EffectHost {
  let loop: Loop
  /// Runs a body on the tasks, on the loop; does nothing when the daemon is gone.
  let access: @Sendable ((inout EffectTasks) -> Void) -> Void
  /// Cancels the effects that run under a name, on the loop.
  let cancelNamed: @Sendable (ScopedEffectKey) -> Void

  func began(
    _ name: ScopedEffectKey, cancelInFlight: Bool, cancel: @escaping @Sendable () -> Void
  ) async -> UInt64 {
    if cancelInFlight { await self.cancel(name) }
    return await onLoop { $0.named.begin(name, cancel: cancel) } ?? 0
  }

  func ended(_ name: ScopedEffectKey, _ number: UInt64) async {
    await onLoop { $0.named.end(name, number) }
  }

  func cancel(_ name: ScopedEffectKey) async {
    await withCheckedContinuation { continuation in
      loop.execute(orElse: { continuation.resume() }) {
        cancelNamed(name)
        continuation.resume()
      }
    }
  }

  @discardableResult
  private func onLoop<R: Sendable>(
    _ body: @escaping @Sendable (inout EffectTasks) -> R
  ) async -> R? {
    await withCheckedContinuation { continuation in
      loop.execute(orElse: { continuation.resume(returning: nil) }) {
        var result: R?
        access { result = body(&$0) }
        continuation.resume(returning: result)
      }
    }
  }
}
