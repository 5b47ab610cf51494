import CBOR
public import Lockstep
import Values
import Wire

extension Server {
  mutating func setWallClock(_ time: Timestamp) {
    clock.set(time, at: clock.now)
    core.time = clock.timeOfDay
  }

  @inline(__always)
  mutating func advanceClock(to now: Instant) {
    clock.advance(to: now)
    core.time = clock.timeOfDay
  }

  mutating func begin(_ start: Start, _ commands: inout [Command]) {
    // So that what a user does first can be undone. A large state waits for a second: clients come
    // first.
    if start == .first, isSmall { measureState(isTime: true, &commands) }
    for action in core.reducer.composedLifecycle.actions(for: .started(start), in: core.state) {
      _ = reduce(action, from: .owner)
    }
  }

  // MARK: Actions of effects and middleware

  /// Run waiting actions, up to the limit of this turn.
  mutating func runWaiting() {
    if pause.isOn { return }
    while turn.waitingBudget > 0 || faults.neverYields {
      turn.patch.bytes.removeAll(keepingCapacity: true)
      guard let reduction = core.sendNext(patch: &turn.patch) else { return }
      note(reduction)
      turn.waitingBudget -= 1
    }
  }

  mutating func effectSent(_ action: R.Action, _ id: EffectID) {
    turn.patch.bytes.removeAll(keepingCapacity: true)
    guard let reduction = core.send(action, from: id, patch: &turn.patch) else { return }
    note(reduction)
    if core.hasWaiting { runWaiting() }
  }

  mutating func effectCancelled(_ name: ScopedEffectKey) {
    core.cancelEffects(under: name)
    if core.hasWaiting { runWaiting() }
  }

  mutating func effectEnded(_ id: EffectID, unhandled error: String?) {
    core.finished(id, unhandled: error)
    if core.hasWaiting { runWaiting() }
  }

  /// The operation of an effect that was ordered to start; nil if it has been cancelled since.
  public func operation(of id: EffectID) -> EffectOperation<R.Action>? {
    core.operation(of: id)
  }

  /// The name with these texts, if effects run under it. O(effects).
  func runningName(of texts: [String]) -> ScopedEffectKey? { core.runningName(of: texts) }

  /// The running effects, in the order of their start.
  public var runningEffects: [RunningEffect] { core.runningEffects }

  package var effectCount: Int { core.effectCount }

  mutating func takeOrders(_ commands: inout [Command]) {
    if core.hasOrders {
      // A client may have gone before an effect that should end with it was requested.
      for owner in core.effectOwners
      where connections.place(of: ConnectionID(owner)) == nil && !faults.leaksOwnedEffects {
        core.cancelEffects(ownedBy: owner)
      }
      let orders = core.takeOrders()
      if journaling.confirmsDurability, journaling.hasClosedBatch, !faults.startsEffectsUncommitted
      {
        journaling.hold(orders)
      } else {
        commands += orders.map { .effect($0) }
      }
    }
    for warning in core.takeWarnings() { commands.append(.log(LogLine(.warning, warning))) }
  }
}
