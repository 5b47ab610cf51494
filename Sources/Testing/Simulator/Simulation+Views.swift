import CBOR
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
      if view == nil { predictions[Tag(client: client.identity, number: mirror.number)] = nil }
      guard let position = view?.position ?? mirror.position else { continue }
      if let view {
        count("views")
        try checkValue(
          view.confirmed, at: mirror.path, position, slot,
          "client \(client.identity)'s basis of \(mirror.path) at \(position)")
        try checkPrediction(view, at: position, slot, mirror.number)
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

  /// What a program shows, which reduces only what it has not reduced before, is the state that the daemon
  /// had, with the waiting actions reduced on it, each by the reducer alone.
  private mutating func checkPrediction(
    _ view: OptimisticView, at position: Position, _ slot: Int, _ mirror: UInt64
  ) throws(SimulationFailure) {
    guard view.confirmed.isOf(R.State.self), let welcome = clients[slot].session.welcome
    else { return }
    let place = Tag(client: clients[slot].identity, number: mirror)
    guard let shown = predict(view, welcome, place) else { return }
    predictions[place] = shown
    // What a test's reducer makes of an action may depend on when it is reduced.
    if isDriven { return }
    // A client that sees a part reduces on that part.
    let basis =
      plan.policy == nil ? ledger[position]?.state : view.confirmed.value(as: R.State.self)
    guard var expected = basis else { return }
    for (_, payload) in view.actions {
      var next = expected
      guard let action = Self.action(payload, welcome),
        (try? feature.reducer.reduce(into: &next, action: action)) != nil
      else { continue }
      next.adopt(seed: welcome.seed)
      expected = next
    }
    guard shown.state.digest(seed: welcome.seed) == expected.digest(seed: welcome.seed) else {
      throw failure(
        "client \(place.client) shows \(view.actions.count) actions on \(position) wrongly")
    }
    count("predictions")
  }

  /// What a program shows, as `Predictor` works it out.
  mutating func predict(
    _ view: OptimisticView, _ welcome: ServerMessage.Welcome, _ place: Tag
  ) -> PredictedState<R.State>? {
    let prediction = Prediction(
      of: feature.reducer, dependencies: clientDependencies ?? dependencies)
    let cause = Cause(
      .client(
        ClientOrigin(
          connection: 0, pid: welcome.peer.pid, uid: welcome.peer.uid, gid: welcome.peer.gid,
          label: "client \(place.client)", session: welcome.session ?? 0)))
    var reduced = 0
    var shown = PredictedState<R.State>(view, after: predictions[place]) { id, payload, state in
      reduced += 1
      guard let action = Self.action(payload, welcome) else { return }
      prediction.reduce(action, into: &state, from: cause, number: id.rawValue, seed: welcome.seed)
    }
    if shown != nil, reduced < view.actions.count { count("predictions continued") }
    #if FAULTS
      shown?.ignoresLineage = plan.ignoresLineage
    #endif
    return shown
  }

  private static func action(
    _ payload: [UInt8], _ welcome: ServerMessage.Welcome
  ) -> R.Action? {
    try? CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try Tagged<R.Action>(from: &decoder, seed: welcome.seed)
    }.action
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
