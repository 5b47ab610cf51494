/// The tasks that a shell's effects run under names of their own (`withTaskCancellation`), and the
/// elements that wait for effects of a name (`ReactorPipe`).
///
/// Cancels nothing itself: it returns the closures that do, to be called when no lock is held.
package struct NamedTasks: Sendable {
  package typealias Cancel = @Sendable () -> Void

  /// The tasks by name, in the order in which they began.
  private var tasks: [ScopedEffectKey: [(number: UInt64, cancel: Cancel)]] = [:]
  private var inUse = ScopedEffectKeys()
  private var last: UInt64 = 0
  private var inboxes: [ScopedEffectKey: EffectInbox] = [:]

  package init() {}

  /// Record a task. Returns its unique number.
  package mutating func begin(_ name: ScopedEffectKey, cancel: @escaping Cancel) -> UInt64 {
    last += 1
    if tasks[name] == nil { inUse.insert(name) }
    tasks[name, default: []].append((last, cancel))
    return last
  }

  /// Remove a task; does nothing if it was removed already.
  package mutating func end(_ name: ScopedEffectKey, _ number: UInt64) {
    tasks[name]?.removeAll { $0.number == number }
    if tasks[name]?.isEmpty == true {
      tasks[name] = nil
      inUse.remove(name)
    }
  }

  /// The closures that cancel the tasks under a name, in its feature and in those inside, in the
  /// order in which the tasks began.
  package func cancels(of name: ScopedEffectKey) -> [Cancel] {
    inUse.reached(by: name).flatMap { tasks[$0] ?? [] }
      .sorted { $0.number < $1.number }.map(\.cancel)
  }

  /// The closures that cancel all tasks, in the order in which the tasks began.
  package var cancels: [Cancel] {
    tasks.values.joined().sorted { $0.number < $1.number }.map(\.cancel)
  }

  // MARK: Inboxes

  /// Let an element wait for the effect of a name.
  mutating func put(_ delivery: any AnyObject & Sendable, into name: ScopedEffectKey) {
    inboxes[name, default: EffectInbox()].put(delivery)
  }

  /// Take the first element that waits for the effect of a name; if there is none, `bell` is
  /// finished when there may be one.
  mutating func take(
    from name: ScopedEffectKey, orRing bell: AsyncStream<Never>.Continuation
  ) -> (any AnyObject & Sendable)? {
    let delivery = inboxes[name, default: EffectInbox()].take(orRing: bell)
    tidy(name)
    return delivery
  }

  /// Remove an element that need not be handled any more.
  mutating func withdraw(_ delivery: any AnyObject & Sendable, from name: ScopedEffectKey) {
    inboxes[name]?.withdraw(delivery)
    tidy(name)
  }

  private mutating func tidy(_ name: ScopedEffectKey) {
    if inboxes[name]?.isEmpty == true { inboxes[name] = nil }
  }
}

/// Notes the start of an operation in its scope.
typealias EffectEntry = @Sendable (inout NamedTasks, [EffectKey]) -> Void
