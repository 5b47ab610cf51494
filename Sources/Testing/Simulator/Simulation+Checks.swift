import Access
import CBOR
import ClientCore
import DaemonCore
import Lockstep
import Values
import Wire

/// The invariants that every step must keep.
extension Simulation {
  // MARK: The daemon

  /// Record the daemon's latest actions in the ledger, and check them. With `isDirect`, the first
  /// of them is an action from inside that did not wait.
  mutating func enterWork(isDirect: Bool = false) throws(SimulationFailure) {
    guard let daemon else { return }
    if hasChangedWhilePaused { throw failure("an action changed the state during a pause") }
    let entries = log.entries
    log.entries.removeAll(keepingCapacity: true)
    // The state after each reduction is the state before the next one.
    var after: [R.State?] = []
    var next = daemon.server.state
    for entry in entries.reversed() {
      after.append(entry.before == nil ? nil : next)
      if let before = entry.before { next = before }
    }
    for (index, entry) in entries.enumerated() {
      let fault = ledger.enter(
        entry.tag, entry.reduction, after: after[entries.count - 1 - index])
      if let fault { throw failure(fault) }
      if entry.tag == .inside, index > 0 || !isDirect { waited += 1 }
      if let reduction = entry.reduction { countReduction(reduction, entry.tag) }
    }
    guard daemon.server.revision == ledger.newest.newest else {
      throw failure(
        "the daemon is at revision \(daemon.server.revision), after changes it is \(ledger.newest.newest)"
      )
    }
  }

  private mutating func countReduction(_ reduction: Reduction, _ tag: Tag) {
    let side = tag == .inside ? "inside" : "clients"
    switch reduction {
    case .changed: count("\(side): changed")
    case .unchanged: count("\(side): unchanged")
    case .swallowed: count("\(side): swallowed")
    case .accepted: count("\(side): accepted")
    case .rejected: count("\(side): rejected")
    }
  }

  /// The connection that was served first is sent to first, behind those that the last turn has delayed:
  /// no order depends on hashing.
  mutating func checkOrder(_ commands: [Command]) throws(SimulationFailure) {
    guard let served else { return }
    var rank: [ConnectionID: Int] = [:]
    for id in served where rank[id] == nil { rank[id] = rank.count }
    var last = -1
    for command in commands {
      switch command {
      // A connection closed on account of another is served together with that one.
      case .close, .abort: return
      case .send(Administrator.id, _): continue
      case .send(let id, _):
        let place = rank[id] ?? Int.max
        guard place >= last else {
          throw failure("connection \(id.rawValue) was sent to in nobody's order")
        }
        last = place
      default: continue
      }
    }
  }

  mutating func checkLimits() throws(SimulationFailure) {
    guard let load = daemon?.server.load else { return }
    let limits = plan.limits
    guard load.heldStates <= limits.heldStates else {
      throw failure("\(load.heldStates) states are held, the limit is \(limits.heldStates)")
    }
    guard load.detachedSessions <= limits.detachedSessions else {
      throw failure("\(load.detachedSessions) sessions are kept for nobody")
    }
    guard load.historyBytes <= limits.historyBytes else {
      throw failure("\(load.historyBytes) bytes of history are kept")
    }
    guard load.outputFrames == 0 else {
      throw failure("\(load.outputFrames) frames wait behind the end of a turn")
    }
    guard load.connections <= links.count + (administrator.isConnected ? 1 : 0) else {
      throw failure("\(load.connections) connections are known, there are \(links.count)")
    }
  }

  /// Check the frames that the daemon sends.
  mutating func checkFrames(_ frames: Frames, to link: Link) throws(SimulationFailure) {
    // A frame may be in two pieces.
    var rest = frames.count == 1 ? frames[0][...] : Array(frames.joined())[...]
    while rest.count >= Frame.headLength {
      let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      let item = Array(rest.dropFirst(4).prefix(length))
      guard item.count == length, length <= plan.limits.frameBytes else {
        throw failure("sent a frame of \(length) bytes, \(item.count) of them")
      }
      rest = rest.dropFirst(4 + length)
      let type = MessageType(rawValue: UInt64(item[max(1, Int(item[0]) - 0x96)]))
      if !link.unsent.isEmpty && type != .goodbye && !link.isCut {
        guard catchingUp.contains(link.id) else {
          throw failure("composed \(frames.count) frames for a client that does not read")
        }
        count("rest of what was missed")
      }
      if type == .subscribed || type == .goodbye { countMessage(item) }
    }
  }

  private mutating func countMessage(_ item: [UInt8]) {
    let message = item.withUnsafeBytes { try? ServerMessage($0, seed: .unseeded) }
    switch message {
    case .subscribed(let subscribed):
      count("subscribed: \(subscribed.continuation) \(subscribed.reason)")
    case .goodbye(let goodbye): count("goodbye: \(goodbye.code)")
    default: break
    }
  }

  // MARK: The clients

  /// Each mirror has a state that the daemon had at the mirror's position, and never goes back.
  mutating func checkMirrors(_ slot: Int) throws(SimulationFailure) {
    for mirror in clients[slot].session.mirrors {
      guard let position = mirror.position else { continue }
      let name = "client \(clients[slot].identity)'s mirror of \(mirror.path) at \(position)"
      try checkValue(mirror.value, at: mirror.path, position, slot, name)
      if let seen = clients[slot].seen[mirror.number], seen.epoch == position.epoch,
        seen.run == position.run, seen.revision > position.revision
      {
        throw failure("\(name) was at \(seen) before")
      }
      clients[slot].seen[mirror.number] = position
      guard mirror.isLive, let promised = clients[slot].promised else { continue }
      if promised.epoch == position.epoch, promised.run == position.run,
        promised.revision > position.revision
      {
        throw failure("\(name) does not show what was acknowledged at \(promised)")
      }
    }
  }

  func checkValue(
    _ value: MirroredValue, at path: Path, _ position: Position, _ slot: Int,
    _ name: @autoclosure () -> String
  ) throws(SimulationFailure) {
    guard let (state, seed) = ledger[position] else {
      throw failure("\(name()): the daemon was never there")
    }
    guard value.digest(seed: seed) == digest(of: state, at: path, seed, seenBy: slot) else {
      throw failure("\(name()) is not what the daemon had there")
    }
  }

  /// The part of a state that a client may see, encoded.
  private func valueForm(of state: R.State, at path: Path, seenBy slot: Int) -> [UInt8] {
    var whole = CBOREncoder()
    state.encode(at: path, into: &whole)
    guard let policy = plan.policy else { return whole.bytes }
    let view = policy.rights(uid: clients[slot].uid, gid: 1000).view
    var seen = CBOREncoder()
    let isSeen = whole.bytes.withUnsafeBytes {
      view.filter(at: path)?.filter(value: $0, into: &seen) ?? false
    }
    if !isSeen { seen.encodeUndefined() }
    return seen.bytes
  }

  private func digest(
    of state: R.State, at path: Path, _ seed: HashSeed, seenBy slot: Int
  ) -> UInt64? {
    if plan.policy == nil { return state.digest(at: path, seed: seed) }
    return valueForm(of: state, at: path, seenBy: slot).withUnsafeBytes {
      try? Digest(ofValueForm: $0, seed: seed).rawValue
    }
  }

  mutating func checkNotice(
    _ notice: ClientSession.Notice, _ slot: Int
  ) throws(SimulationFailure) {
    switch notice {
    case .acknowledged(let range, let acknowledgement, _):
      try checkAnswer(range, acknowledgement, slot)
    case .revised(let number, let value, let revision, _):
      guard let mirror = clients[slot].session.mirror(number), var position = mirror.position
      else { return }
      position.revision = revision
      try checkValue(
        value, at: mirror.path, position, slot, "mirror \(number)'s revision \(revision)")
    case .diverged(let number, let why):
      count("divergences")
      guard plan.toleratesDivergence else {
        throw failure("client \(clients[slot].identity)'s mirror \(number) diverged: \(why)")
      }
    case .unreadable(let number, let goodbye):
      throw failure(
        "client \(clients[slot].identity) cannot read its mirror \(number): \(goodbye.message)")
    case .digest(let number, let revision, let digest):
      guard let digest, let mirror = clients[slot].session.mirror(number),
        let welcome = clients[slot].session.welcome
      else { return }
      var position = welcome.position
      position.revision = revision
      guard let (state, seed) = ledger[position],
        self.digest(of: state, at: mirror.path, seed, seenBy: slot) == digest.rawValue
      else { throw failure("the daemon says that \(mirror.path) was \(digest) at \(position)") }
    case .connection(.closed(let goodbye)): try checkEnd(goodbye, slot)
    case .connection(.stale(_, let goodbye)):
      clients[slot].promised = nil
      if let goodbye { count("told: \(goodbye.code)") }
    case .connection, .changed, .refused, .pong, .report, .schema, .patched: break
    }
  }

  /// No client's session ends for good without a fault of the client.
  private func checkEnd(_ goodbye: Goodbye, _ slot: Int) throws(SimulationFailure) {
    let client = clients[slot]
    guard goodbye.code == .done || client.isGhost && goodbye.code == .replaced else {
      throw failure("client \(client.identity) was ended: \(goodbye)")
    }
    guard client.isGhost || client.answered == client.sent else {
      throw failure("client \(client.identity) ended without all answers")
    }
  }

  /// Each action is answered once, in order, and truthfully.
  private mutating func checkAnswer(
    _ range: ClosedRange<ActionID>, _ acknowledgement: Acknowledgement, _ slot: Int
  ) throws(SimulationFailure) {
    // The ghost's answers go to its clone too.
    if clients[slot].isGhost { return }
    let client = clients[slot]
    guard range.lowerBound.rawValue == client.answered + 1,
      range.upperBound.rawValue <= client.sent
    else {
      throw failure("client \(client.identity) is answered \(range) after \(client.answered)")
    }
    clients[slot].answered = range.upperBound.rawValue
    for number in range.lowerBound.rawValue...range.upperBound.rawValue {
      let tag = Tag(client: client.identity, number: number)
      count("answers")
      if isDriven { clients[slot].outcomes.append(acknowledgement.outcome) }
      try checkAnswer(tag, acknowledgement, slot)
      switch acknowledgement.outcome {
      case .rejected, .outcomeUnknown: clients[slot].failed.insert(number)
      case .reduced, .unchanged, .swallowed, .accepted:
        if acknowledgement.outcome == .swallowed { clients[slot].failed.insert(number) }
        let (refused, teller) = (client.refused[number], client.session.welcome?.position)
        if let refused, refused.epoch == teller?.epoch, refused.run == teller?.run {
          throw failure("\(tag) disappeared, and was done")
        }
      }
    }
    guard let welcome = client.session.welcome, acknowledgement.revision > 0 else { return }
    var promised = welcome.position
    promised.revision = max(acknowledgement.revision, client.promised?.revision ?? 0)
    clients[slot].promised = promised
  }

  private mutating func checkAnswer(
    _ tag: Tag, _ acknowledgement: Acknowledgement, _ slot: Int
  ) throws(SimulationFailure) {
    let client = clients[slot]
    let told = client.session.welcome?.position
    let application = ledger.application(
      of: tag, toldBy: .init(epoch: told?.epoch ?? 0, run: told?.run ?? 0))
    func expect(_ condition: Bool, _ what: String) throws(SimulationFailure) {
      if !condition { throw failure("\(tag) is answered \(acknowledgement.outcome), \(what)") }
    }
    switch acknowledgement.outcome {
    case .reduced, .unchanged, .swallowed, .accepted:
      let outcome = application?.outcome
      let isTrue = outcome == Ledger<R.State>.Application.Outcome(acknowledgement.outcome)
      try expect(isTrue, "and was \(outcome.map { "\($0)" } ?? "not done")")
      try expect(
        application.map { $0.revision <= acknowledgement.revision } ?? false,
        "at \(acknowledgement.revision), before it was done")
      let position = client.session.welcome?.position
      let isKept = plan.durability != .none
      try expect(
        application?.run.epoch == position?.epoch
          && (isKept || application?.run.run == position?.run),
        "by another run than the one that did it")
      guard acknowledgement.mark == .durable else { break }
      count("durable answers")
      try expect(plan.durability == .sync, "as durable, and nothing is")
      let kept = disk.contents?.order ?? 0
      try expect(application.map { $0.order <= kept } ?? false, "as durable, before it was kept")
    case .rejected(let rejection):
      // Code 0 comes from the client itself: its session ended before it sent the action.
      let wasSeen = rejection.code != 0 && !isRefusal(rejection)
      let wasDone = wasSeen && !client.malformed.contains(tag.number)
      try expect(wasDone == (application?.outcome == .rejected), "and was not")
      try expect(wasDone || application == nil, "and was done")
    case .outcomeUnknown:
      let limits = plan.limits
      let mayBeLost =
        starts > client.starts || limits.sessionGrace < .seconds(1000)
        || limits.detachedSessions < 50
      try expect(mayBeLost || client.session.hasEnded, "though nothing was lost")
    }
  }

  /// Whether the daemon rejected an action unseen, because of the disk, the policy or a pause.
  private func isRefusal(_ rejection: RejectionMessage) -> Bool {
    plan.policy != nil && rejection.code == Rejection.Code.denied.rawValue
      || plan.isAdministered && rejection.code == Rejection.Code.paused.rawValue
      || plan.durability != .none
        && (rejection.code == Rejection.Code.notDurable.rawValue
          || rejection.message.contains("journalQueueBytes"))
  }

  // MARK: At rest

  /// Whether nothing is pending, for all clients but one.
  func isAtRest(excluding slot: Int?) -> Bool {
    guard daemon != nil, changesAt == nil, jobs.isEmpty, decodings.isEmpty, strangers.isEmpty,
      !isWoken, !administrator.isConnected,
      !effects.isAwake, disk.isIdle, !disk.isBroken, !(daemon?.server.isKeeping ?? false)
    else { return false }
    for (index, client) in clients.enumerated() where index != slot {
      guard !client.isGhost, client.session.isLive, client.session.unacknowledged == 0,
        client.session.mirrors.allSatisfy(\.isLive), let place = client.link.flatMap(place)
      else { return false }
      let link = links[place]
      guard link.daemonIsOpen, !link.isCut, link.toDaemon.isEmpty, link.toClient.isEmpty,
        link.unsent.isEmpty, !link.isBlocked
      else { return false }
    }
    return slot != nil || links.count == clients.count
  }

  /// Every client's mirror equals the state, byte for byte, and the daemon holds nothing for any
  /// client.
  mutating func checkRest(excluding slot: Int?) throws(SimulationFailure) {
    guard let daemon else { return }
    for (index, client) in clients.enumerated() where index != slot {
      for mirror in client.session.mirrors {
        var theirs = CBOREncoder()
        mirror.value.encode(into: &theirs)
        guard theirs.bytes == valueForm(of: daemon.server.state, at: mirror.path, seenBy: index)
        else {
          throw failure("at rest, client \(client.identity)'s mirror of \(mirror.path) is wrong")
        }
        guard
          mirror.value.digest(seed: daemon.server.seed)
            == digest(of: daemon.server.state, at: mirror.path, daemon.server.seed, seenBy: index)
        else { throw failure("at rest, a digest of \(mirror.path) is wrong") }
        guard client.session.optimisticView(of: mirror.number) == nil else {
          throw failure("at rest, an action still shows at \(mirror.path)")
        }
      }
      guard client.answered == client.sent else {
        throw failure("at rest, client \(client.identity) lacks answers")
      }
    }
    guard slot == nil else { return }
    guard isDriven || daemon.server.runningEffects.isEmpty else {
      throw failure("at rest, effects run that have no task: \(runningEffects)")
    }
    let load = daemon.server.load
    guard load.heldStates == 0, load.jobs == 0, load.blocked == 0, load.behind == 0,
      load.connections == clients.count, load.sessions == load.detachedSessions + clients.count
    else { throw failure("at rest, something is kept: \(load)") }
  }
}
