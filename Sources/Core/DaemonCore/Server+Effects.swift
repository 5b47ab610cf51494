import CBOR
public import Lockstep
import Values
public import Wire

extension Server {
  /// Tell the server the time of day, at the time that its events have: at the start, and now and
  /// then, for clocks are set.
  public mutating func setWallClock(_ time: Timestamp, at now: Instant) {
    clock.set(time, at: now)
    core.time = clock.timeOfDay
  }

  @inline(__always)
  mutating func advanceClock(to now: Instant) {
    clock.advance(to: now)
    core.time = clock.timeOfDay
  }

  mutating func begin(_ start: Start) {
    for action in core.reducer.composedLifecycle.actions(for: .started(start), in: core.state) {
      _ = reduce(action, from: .owner)
    }
  }

  // MARK: Actions of effects and middleware

  /// Run actions that wait, as many as this turn may.
  mutating func runWaiting() {
    while waitingBudget > 0 || faults.neverYields {
      patch.bytes.removeAll(keepingCapacity: true)
      guard let reduction = core.sendNext(patch: &patch) else { return }
      note(reduction)
      waitingBudget -= 1
    }
  }

  /// Run an action that an effect sent: `turnEnded` follows.
  public mutating func effectSent(_ action: R.Action, _ id: EffectID, at now: Instant) {
    advanceClock(to: now)
    patch.bytes.removeAll(keepingCapacity: true)
    guard let reduction = core.send(action, from: id, patch: &patch) else { return }
    note(reduction)
    if core.hasWaiting { runWaiting() }
  }

  /// An effect cancels what runs under a name: `turnEnded` follows.
  public mutating func effectCancels(_ name: ScopedEffectKey, at now: Instant) {
    advanceClock(to: now)
    core.cancelEffects(under: name)
    if core.hasWaiting { runWaiting() }
  }

  /// The task of an effect has ended, with an error that it did not catch if there was one:
  /// `turnEnded` follows.
  public mutating func effectEnded(_ id: EffectID, unhandled error: String?, at now: Instant) {
    advanceClock(to: now)
    core.finished(id, unhandled: error)
    if core.hasWaiting { runWaiting() }
  }

  /// What to run for an effect that was ordered to start; nil when it has been cancelled since.
  public func operation(of id: EffectID) -> EffectOperation<R.Action>? {
    core.operation(of: id)
  }

  /// The effects that run, in the order of their start.
  public var runningEffects: [RunningEffect] { core.runningEffects }

  mutating func takeOrders(_ commands: inout [Command]) {
    if core.hasOrders {
      // A client may have been gone when the effect was asked for that should end with it.
      for owner in core.effectOwners
      where connections.place(of: ConnectionID(owner)) == nil && !faults.leaksOwnedEffects {
        core.cancelEffects(ownedBy: owner)
      }
      let orders = core.takeOrders()
      if journaling.confirmsDurability, closedBatch, !faults.startsEffectsUncommitted {
        journaling.hold(orders)
      } else {
        commands += orders.map { .effect($0) }
      }
    }
    for warning in core.takeWarnings() { commands.append(.log(LogLine(.warning, warning))) }
  }
}
