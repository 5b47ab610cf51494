import ClientCore
import DaemonCore
import Lockstep
import Values
import Wire

/// What optimistic mirrors show: a state that the daemon had, and exactly the actions that are not
/// in it.
extension Simulation {
  mutating func checkViews(_ slot: Int) throws(SimulationFailure) {
    let client = clients[slot]
    guard !client.optimistic.isEmpty, !client.isGhost, !client.session.hasEnded else { return }
    for mirror in client.session.mirrors where client.session.isOptimistic(mirror.number) {
      let view = client.session.optimisticView(of: mirror.number)
      guard let position = view?.position ?? mirror.position else { continue }
      if let view {
        count("views")
        try checkValue(
          view.confirmed, at: mirror.path, position, slot,
          "client \(client.identity)'s basis of \(mirror.path) at \(position)")
      }
      let shown = Set(view?.actions.map(\.id.rawValue) ?? [])
      for number in shown.sorted() { try checkShown(number, slot, at: position) }
      if let number = shown.intersection(client.failed).min() {
        throw failure("action \(number) of client \(client.identity) shows, and was rejected")
      }
      // A mirror that arrives while actions are on their way need not show them.
      let before = client.shown[mirror.number] ?? []
      for number in before.subtracting(shown).subtracting(client.failed).sorted() {
        try checkGone(number, slot, at: position)
      }
      // One that is not acknowledged shows again, if a crash lost it.
      clients[slot].shown[mirror.number] = shown.union(before.filter { $0 > client.answered })
    }
  }

  /// The action of an optimistic send shows where others do.
  mutating func checkShowsAtOnce(_ tag: Tag, _ slot: Int) throws(SimulationFailure) {
    let session = clients[slot].session
    for mirror in session.mirrors where session.isOptimistic(mirror.number) {
      guard let view = session.optimisticView(of: mirror.number) else { continue }
      guard view.actions.last?.id.rawValue == tag.number else {
        throw failure("\(tag) does not show at once")
      }
      count("shown at once")
    }
  }

  /// No action shows on top of a state that has its change.
  private func checkShown(
    _ number: UInt64, _ slot: Int, at position: Position
  ) throws(SimulationFailure) {
    let tag = Tag(client: clients[slot].identity, number: number)
    guard let application = application(of: tag, at: position), application.outcome == .reduced
    else { return }
    if ledger.includes(application, at: position) == true {
      throw failure("\(tag) shows twice at \(position)")
    }
  }

  /// An action that showed is in the state, or it never will be.
  private mutating func checkGone(
    _ number: UInt64, _ slot: Int, at position: Position
  ) throws(SimulationFailure) {
    let tag = Tag(client: clients[slot].identity, number: number)
    guard let application = application(of: tag, at: position) else {
      // It was refused, as its answer must say, unless another run gives it, to which a crash left
      // nothing of the refusal. Or it was answered, and a crash lost it.
      if number > clients[slot].answered {
        clients[slot].refused[number] = position
      }
      return
    }
    if application.outcome == .reduced, ledger.includes(application, at: position) == false {
      throw failure("\(tag) disappears at \(position)")
    }
  }

  private func application(of tag: Tag, at position: Position) -> Ledger<R.State>.Application? {
    ledger.application(of: tag, toldBy: .init(epoch: position.epoch, run: position.run))
  }
}
