import EventLoop
import Lockstep

/// The tasks of a daemon's effects. Belongs to the loop's thread.
struct EffectTasks {
  var tasks: [EffectID: Task<Void, Never>] = [:]
  /// Tasks that effects run under names of their own.
  private var named: [ScopedEffectKey: [UInt64: @Sendable () -> Void]] = [:]
  private var next: UInt64 = 0

  func cancel(_ id: EffectID) { tasks[id]?.cancel() }

  func cancel(_ name: ScopedEffectKey) {
    for (_, cancel) in named[name] ?? [:] { cancel() }
  }

  func cancelAll() {
    for (_, task) in tasks { task.cancel() }
    for name in named.keys { cancel(name) }
  }

  mutating func began(_ name: ScopedEffectKey, _ cancel: @escaping @Sendable () -> Void) -> UInt64 {
    next += 1
    named[name, default: [:]][next] = cancel
    return next
  }

  mutating func ended(_ name: ScopedEffectKey, _ number: UInt64) {
    named[name]?[number] = nil
    if named[name]?.isEmpty == true { named[name] = nil }
  }
}

/// The daemon as its effects see it.
struct DaemonEffectHost: EffectHost {
  let loop: Loop
  /// Does something with the tasks, on the loop; nothing when the daemon is no more.
  let access: @Sendable ((inout EffectTasks) -> Void) -> Void

  func began(
    _ name: ScopedEffectKey, cancelInFlight: Bool, cancel: @escaping @Sendable () -> Void
  ) async -> UInt64 {
    await onLoop { tasks in
      if cancelInFlight { tasks.cancel(name) }
      return tasks.began(name, cancel)
    } ?? 0
  }

  func ended(_ name: ScopedEffectKey, _ number: UInt64) async {
    await onLoop { $0.ended(name, number) }
  }

  func cancel(_ name: ScopedEffectKey) async {
    await onLoop { $0.cancel(name) }
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
