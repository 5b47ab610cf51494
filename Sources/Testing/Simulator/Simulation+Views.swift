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
        try checkPrediction(view, at: mirror.path, position, slot, mirror.number)
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
  /// had, with the waiting actions reduced on it, each by the whole feature's reducer.
  private mutating func checkPrediction(
    _ view: OptimisticView, at path: Path, _ position: Position, _ slot: Int, _ mirror: UInt64
  ) throws(SimulationFailure) {
    let place = Tag(client: clients[slot].identity, number: mirror)
    if let part = feature.part, !path.keys.isEmpty {
      try checkPrediction(view, of: part, at: path, position, slot, place)
    } else {
      try checkPrediction(
        view, of: WholeState(reducer: feature.reducer), at: path, position, slot, place)
    }
  }

  private mutating func checkPrediction<P: SimulatedPart<R.Action>>(
    _ view: OptimisticView, of kind: P, at path: Path, _ position: Position, _ slot: Int,
    _ place: Tag
  ) throws(SimulationFailure) {
    guard let welcome = clients[slot].session.welcome,
      let (child, actions) = kind.part(at: path), view.confirmed.isOf(P.Child.State.self),
      let shown = predict(view, welcome, place, by: child, actions)
    else { return }
    predictions[place] = shown
    // What a test's reducer makes of an action may depend on when it is reduced.
    if isDriven { return }
    // A client that may not see everything reduces on what it sees.
    let basis =
      plan.policy == nil ? ledger[position]?.state : view.confirmed.value(as: R.State.self)
    guard var expected = basis else { return }
    let prediction = prediction(by: feature.reducer)
    let cause = cause(welcome, place)
    for (id, payload) in view.actions {
      // In a copy: what a rejected action edited must not show, however that is undone.
      var next = expected
      guard let action = Self.action(payload, welcome), kind.isOfParts(action),
        prediction.reduce(action, into: &next, from: cause, number: id.rawValue, seed: welcome.seed)
      else { continue }
      expected = next
    }
    let seen = plan.policy == nil ? path : .root
    guard
      shown.state.digest(seed: welcome.seed) == expected.digest(at: seen, seed: welcome.seed)
    else {
      throw failure(
        "client \(place.client) shows \(view.actions.count) actions on \(path) at \(position) wrongly"
      )
    }
    count(path.keys.isEmpty ? "predictions" : "predictions of parts")
  }

  /// What a program shows of the whole, as `Predictor` works it out.
  mutating func predict(
    _ view: OptimisticView, _ welcome: ServerMessage.Welcome, _ place: Tag
  ) -> PredictedState<R.State>? {
    predict(
      view, welcome, place, by: feature.reducer, CasePath(embed: { $0 }, extract: { $0 }))
  }

  private mutating func predict<Child: Reducer>(
    _ view: OptimisticView, _ welcome: ServerMessage.Welcome, _ place: Tag, by child: Child,
    _ actions: CasePath<R.Action, Child.Action>
  ) -> PredictedState<Child.State>? {
    let prediction = prediction(by: child)
    let cause = cause(welcome, place)
    let former = predictions[place] as? PredictedState<Child.State>
    let drawsAnew = plan.drawsAnew
    var reduced = 0
    var shown = PredictedState<Child.State>(view, after: former) { id, payload, state in
      reduced += 1
      guard let action = Self.action(payload, welcome).flatMap(actions.extract) else { return }
      prediction.reduce(
        action, into: &state, from: cause, number: drawsAnew ? view.version : id.rawValue,
        seed: welcome.seed)
    }
    if shown != nil, reduced < view.actions.count { count("predictions continued") }
    #if FAULTS
      shown?.ignoresLineage = plan.ignoresLineage
    #endif
    return shown
  }

  private func prediction<Child: Reducer>(by child: Child) -> Prediction<Child> {
    Prediction(of: child, dependencies: clientDependencies ?? dependencies)
  }

  private func cause(_ welcome: ServerMessage.Welcome, _ place: Tag) -> Cause {
    Cause(
      .client(
        ClientOrigin(
          connection: 0, pid: welcome.peer.pid, uid: welcome.peer.uid, gid: welcome.peer.gid,
          label: "client \(place.client)", session: welcome.session ?? 0)))
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
