import CBOR
import Lockstep
import Records
import Values
import Wire

// An action of a client: decoded, judged, and rejected or performed. Whatever comes of it is recorded
// in the session's outcomes.
extension Server {
  /// Read an action: decide about it at once, and acknowledge it at the turn's end. A large one has
  /// been decoded (`Turn.known`); before another that takes long, it stops.
  @inline(__always)
  mutating func readAction(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ place: Int,
    _ attachment: ServerSession.Attachment, isDecoded: Bool = false,
    _ commands: inout [Command]
  ) throws(WireError) -> FrameDecoder.Step {
    let sent: ActionHead
    do throws(CBORError) {
      sent = try ActionHead(from: &decoder)
    } catch {
      throw .malformed(error)
    }
    let byteCount = decoder.remaining
    let cost: Int?
    // It has one owner, and is not copied on its way into the log.
    let action: R.Action
    do throws(ReadFailure) {
      if isDecoded, let known = turn.takeKnown() {
        cost = known.cost ?? memory.budget.scarceCost(ofRestOf: decoder)
        action = try known.get()
      } else {
        cost = memory.budget.scarceCost(ofRestOf: decoder)
        action = try ActionJob<R>.decode(
          &decoder, head, cost, memory.budget, limit: limits.actionMemoryBytes, seed: core.seed,
          reusing: &core.spare)
      }
    } catch {
      switch error {
      case .malformed(let error): throw .malformed(error)
      case .rejected(let failure):
        try reject(sent, failure, byteCount, attachment, at: place)
        return .goOn
      }
    }
    if byteCount > Self.largeAction { turn.remains.add(action) }
    guard try admit(sent.number, attachment, at: place) else {
      if faults.appliesTwice {
        _ = reduce(action, from: connections[place: place].client.cause, isLogged: false, at: place)
      }
      return .goOn
    }
    if !isDecoded, core.takesLong(action) {
      return stop(before: place)
    }
    if !isDecoded, mustWait(action, at: place) {
      return postpone(place)
    }
    let outcome: Acknowledgement.Outcome
    var sequence: UInt64?
    var mustRest = false
    if let rejection = excess(of: byteCount, at: place)
      ?? judge(action, sent.number, sent.mark, byteCount, cost, attachment, at: place, &commands)
    {
      outcome = reject(sent.number, rejection, attachment, at: place)
    } else {
      sequence = core.sequence &+ 1
      let (before, looked) = (counters.changedBytes, publication.scopes.looked)
      outcome = perform(consume action, sent.number, byteCount, attachment, at: place)
      // When a recording is done again, what was foreseen need not be.
      mustRest = charge(
        changedBytes: counters.changedBytes &- before,
        looked: isDecoded ? 0 : publication.scopes.looked &- looked, at: place)
    }
    record(outcome, sent.mark, sequence, attachment, at: place)
    return mustRest ? .rest : .goOn
  }

  /// Admit an action if its number is that of the session's next one. Returns false if it is a duplicate of a
  /// decided one, which is acknowledged again. Throws if it is out of order, or beyond the window.
  @inline(__always)
  private mutating func admit(
    _ number: UInt64, _ attachment: ServerSession.Attachment, at place: Int
  ) throws(WireError) -> Bool {
    let expected = sessions[place: attachment.place].outcomes.last + 1
    guard number == expected else {
      try repeatAction(number, expected, place)
      return false
    }
    let waiting = expected - 1 - connections[place: place].acknowledgements.last
    guard waiting < UInt64(limits.window) else {
      throw WireError(
        .limit, "more unacknowledged actions than the window allows",
        limit: LimitBreach("window", limit: limits.window, observed: Int(clamping: waiting + 1)))
    }
    return true
  }

  /// Reject an action that cannot be performed, whatever it is: it could not be decoded, or what it does could
  /// not be worked out.
  @inline(never)
  private mutating func reject(
    _ sent: ActionHead, _ failure: ActionFailure, _ byteCount: Int,
    _ attachment: ServerSession.Attachment, at place: Int
  ) throws(WireError) {
    guard try admit(sent.number, attachment, at: place) else { return }
    let rejection = excess(of: byteCount, at: place) ?? failure.rejection
    record(
      reject(sent.number, rejection, attachment, at: place), sent.mark, nil, attachment, at: place)
  }

  /// Record the outcome of a session's next action.
  @inline(__always)
  private mutating func record(
    _ outcome: Acknowledgement.Outcome, _ mark: Mark, _ sequence: UInt64?,
    _ attachment: ServerSession.Attachment, at place: Int
  ) {
    connections[place: place].counters.actions += 1
    sessions[place: attachment.place].outcomes.append(
      outcome, revision: core.revision,
      mark: mark == .durable && journaling.confirmsDurability && journaling.failure == nil
        ? .durable : .applied,
      sequence: sequence)
  }

  /// The length of an action from which on it may take long to release it.
  private static var largeAction: Int { 16 << 10 }

  /// The rejection of an action for lack of memory; nil if it may run.
  private func memoryRefusal(of action: R.Action, _ count: Int, cost: Int) -> Rejection? {
    let footprint = (action as? any FootprintTelling)?.footprint
    let paths = footprint == .same ? (action as? any PathNaming)?.writtenPaths : nil
    let isReplacing = paths?.allSatisfy { core.state.isPresent(at: $0) } ?? false
    return memory.budget.refusal(
      ofActionWith: count, footprint, isReplacing: isReplacing, cost: cost)
  }

  /// The rejection of a decoded action before the store sees it; nil if it is to be performed.
  @inline(__always)
  private mutating func judge(
    _ action: R.Action, _ number: UInt64, _ mark: Mark, _ byteCount: Int, _ cost: Int?,
    _ attachment: ServerSession.Attachment, at place: Int, _ commands: inout [Command]
  ) -> Rejection? {
    if connections[place: place].isRestricted,
      let rejection = denial(of: action, at: place, &commands)
    {
      return rejection
    }
    if let cost, let rejection = memoryRefusal(of: action, byteCount, cost: cost) {
      return rejection
    }
    if journaling.durability == .none { return nil }
    return refusal(of: SessionAction(session: attachment.token, number: number), mark)
  }

  /// The rejection of an action, of this many bytes, while none may be done, or one that exceeds what
  /// its user or the state may take; nil if none.
  @inline(__always)
  private mutating func excess(of byteCount: Int, at place: Int) -> Rejection? {
    if let rejection = overuse(place) { return rejection }
    return pause.isOn && !faults.actsWhilePaused
      ? .paused : memory.size.refusal(ofActionWith: byteCount)
  }

  /// The rejection of an action that exceeds its user's rate or the limit of effects; nil if
  /// neither.
  private mutating func overuse(_ place: Int) -> Rejection? {
    if core.effectCount > limits.effects {
      return Rejection(
        .limit, "\(core.effectCount) effects run, and effects is \(limits.effects)")
    }
    if !users.takeAction(at: connections[place: place].account, clock.now) {
      let uid = connections[place: place].peer.uid
      return Rejection(
        .limit, "the user \(uid) sends more than \(limits.actionsPerSecond) actions a second")
    }
    return nil
  }

  /// Reject an action that the store does not see. Only here is such a rejection counted and
  /// recorded.
  private mutating func reject(
    _ number: UInt64, _ rejection: Rejection, _ attachment: ServerSession.Attachment,
    at place: Int
  ) -> Acknowledgement.Outcome {
    counters.actions += 1
    counters.rejected += 1
    let outcome = Acknowledgement.Outcome.rejected(
      RejectionMessage(rejection.bounded(to: limits.textBytes)))
    if journaling.durability != .none {
      keep(attachment)
      recordRefusal(
        SessionAction(session: attachment.token, number: number),
        connections[place: place].client.cause, outcome)
    }
    return outcome
  }

  /// Perform an action that was not rejected, and record its outcome if there is a journal.
  @inline(__always)
  private mutating func perform(
    _ action: consuming R.Action, _ number: UInt64, _ byteCount: Int,
    _ attachment: ServerSession.Attachment, at place: Int
  ) -> Acknowledgement.Outcome {
    var answer: SessionAction?
    if journaling.durability != .none {
      let own = SessionAction(session: attachment.token, number: number)
      keep(attachment)
      journaling.noteInFlight(own)
      answer = own
    }
    return Acknowledgement.Outcome(
      reduce(
        action, from: connections[place: place].client.cause,
        isLogged: byteCount <= limits.logActionBytes, for: answer, at: place))
  }

  /// Handle an action whose number is not the next: a duplicate of a decided action is acknowledged
  /// again.
  private mutating func repeatAction(
    _ number: UInt64, _ expected: UInt64, _ place: Int
  ) throws(WireError) {
    guard number < expected, number > 0 else {
      throw WireError(
        .outOfOrder, "action \(number) came where number \(expected) was expected")
    }
    if faults.losesRepeatedAcknowledgements { return }
    connections[place: place].acknowledgements.repeat(number)
  }
}

extension Acknowledgement.Outcome {
  init(_ reduction: Reduction) {
    switch reduction {
    case .changed: self = .reduced
    case .unchanged: self = .unchanged
    case .swallowed: self = .swallowed
    case .accepted: self = .accepted
    case .rejected(let rejection): self = .rejected(RejectionMessage(rejection))
    }
  }
}

extension RejectionMessage {
  init(_ rejection: Rejection) {
    self.init(code: rejection.code.rawValue, message: rejection.message, path: rejection.path)
  }
}
