/// The tasks that a shell's effects run under names of their own (`withTaskCancellation`).
///
/// Cancels nothing itself: it hands out what does, to be called when no lock is held.
package struct NamedTasks: Sendable {
  package typealias Cancel = @Sendable () -> Void

  /// Under each name, in the order in which they began.
  private var tasks: [ScopedEffectKey: [(number: UInt64, cancel: Cancel)]] = [:]
  private var inUse = ScopedEffectKeys()
  private var last: UInt64 = 0

  package init() {}

  /// Note a task. Returns its number, which no other has.
  package mutating func begin(_ name: ScopedEffectKey, cancel: @escaping Cancel) -> UInt64 {
    last += 1
    if tasks[name] == nil { inUse.insert(name) }
    tasks[name, default: []].append((last, cancel))
    return last
  }

  /// Forget a task; nothing if it is forgotten already.
  package mutating func end(_ name: ScopedEffectKey, _ number: UInt64) {
    tasks[name]?.removeAll { $0.number == number }
    if tasks[name]?.isEmpty == true {
      tasks[name] = nil
      inUse.remove(name)
    }
  }

  /// What cancels the tasks under a name, in its feature and in those inside, in the order in which
  /// they began.
  package func cancels(of name: ScopedEffectKey) -> [Cancel] {
    inUse.reached(by: name).flatMap { tasks[$0] ?? [] }
      .sorted { $0.number < $1.number }.map(\.cancel)
  }

  /// What cancels all tasks, in the order in which they began.
  package var cancels: [Cancel] {
    tasks.values.joined().sorted { $0.number < $1.number }.map(\.cancel)
  }
}
