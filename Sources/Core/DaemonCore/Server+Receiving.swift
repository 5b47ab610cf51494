import CBOR
import Lockstep
import Records
import Values
public import Wire

extension Server {
  /// Receive bytes from a connection: like `Event.received`, without a copy of them.
  public mutating func receive(
    _ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, at now: Instant,
    into commands: inout [Command]
  ) {
    advanceClock(to: now)
    // The decoder is moved out while its frames are read, so that nothing is copied.
    guard let place = connections.place(of: id) else { return }
    switch connections[place: place].phase {
    // Bytes after a goodbye are not even cut into frames.
    case .parting, .leaving, .left, .vacant: return
    case .awaitingHello, .live: break
    }
    charge(place, bytes.count, &commands)
    readFrames(from: id, at: place, &commands) { frames, read throws(WireError) in
      try frames.receive(bytes, read)
    }
  }

  /// Continue to read where reading was held until requests had been answered.
  mutating func releaseHeld(_ commands: inout [Command]) {
    for id in connections.takeReleasing() {
      guard let place = connections.place(of: id), connections[place: place].frames.isHeld else {
        continue
      }
      readFrames(from: id, at: place, &commands) { frames, read throws(WireError) in
        try frames.release(read)
      }
    }
  }

  /// Read a connection's frames, and pause or resume reading from it as they require.
  @inline(__always)
  private mutating func readFrames(
    from id: ConnectionID, at place: Int, _ commands: inout [Command],
    _ body: (
      inout FrameDecoder, (UnsafeRawBufferPointer) throws(WireError) -> Bool
    ) throws(WireError) -> Void
  ) {
    var frames = FrameDecoder(limit: limits.frameBytes)
    swap(&frames, &connections[place: place].frames)
    let (unfinished, wasHeld) = (frames.unfinished, frames.isHeld)
    do throws(WireError) {
      try body(&frames) { item throws(WireError) in
        try self.read(item, from: id, at: place, &commands)
      }
    } catch {
      commands.append(
        .log(
          LogLine(
            .notice, error.description, connections[id]?.logFields ?? [])))
      leave(id, Goodbye(error))
    }
    // Invariant: only `closed` removes a connection, so its index is still valid.
    let more = frames.unfinished - unfinished
    if frames.isHeld == wasHeld {
      swap(&frames, &connections[place: place].frames)
    } else {
      connections[place: place].frames = FrameDecoder(limit: limits.frameBytes, isHeld: wasHeld)
      changeReading(of: id, &commands) { swap(&frames, &$0.frames) }
    }
    if more != 0 { notePartial(more, place) }
    connections.touch(id, at: place)
  }

  /// Read one item. Returns whether the next may be read before requests have been answered.
  @inline(__always)
  private mutating func read(
    _ item: UnsafeRawBufferPointer, from id: ConnectionID, at place: Int,
    _ commands: inout [Command]
  ) throws(WireError) -> Bool {
    var decoder = CBORDecoder(item)
    switch connections[place: place].phase {
    case .parting, .leaving, .left, .vacant: return true
    case .awaitingHello(let offered, _):
      try readHello(item, from: id, offered, &commands)
      return true
    case .live(let attachment):
      let head = try MessageHead(from: &decoder)
      if head.type == .action {
        try readAction(head, &decoder, place, attachment, &commands)
        return true
      }
      return try readRequest(item, place)
    }
  }

  // MARK: Hello

  private mutating func readHello(
    _ item: UnsafeRawBufferPointer, from id: ConnectionID, _ offered: SessionToken,
    _ commands: inout [Command]
  ) throws(WireError) {
    guard case .hello(let hello) = try ClientMessage(item) else {
      throw WireError(.outOfOrder, "the first message must be hello")
    }
    guard let version = hello.versions.clamped(to: Self.versions).last,
      hello.versions.contains(version), Self.versions.contains(version)
    else {
      let (ours, theirs) = (Self.versions, hello.versions)
      throw WireError(
        .version,
        "the daemon speaks versions \(ours.lowerBound) to \(ours.upperBound), "
          + "the client \(theirs.lowerBound) to \(theirs.upperBound)")
    }
    guard let peer = connections[id]?.peer else { return }
    deliverNews()
    let resumed = hello.token.flatMap { token in sessions[token].map { (token, $0) } }
    if let (_, record) = resumed, record.uid != peer.uid {
      throw WireError(.denied, "the session belongs to another user")
    }
    let token = resumed?.0 ?? offered
    if let other = resumed?.1.connection, other != id {
      // Messages on a connection that its client has given up may be read after those on a later
      // one.
      guard (connections[other]?.origin.ordinal ?? 0) < (connections[id]?.origin.ordinal ?? 0)
      else {
        throw WireError(.replaced, "a later connection has the session")
      }
      // Claim it first: a session without a connection, even for a moment, could be evicted.
      sessions.claim(token, for: id)
      leave(other, Goodbye(.replaced, "another connection took the session over"))
    }
    guard let connection = connections[id] else { return }
    if resumed != nil {
      sessions.resume(token, on: connection, among: connections)
    } else {
      sessions.begin(
        token, on: connection, outcomes: Outcomes(limits), among: connections)
    }
    begin(id, hello, token, isResumed: resumed != nil, version, &commands)
  }

  private mutating func begin(
    _ id: ConnectionID, _ hello: ClientMessage.Hello, _ token: SessionToken, isResumed: Bool,
    _ version: UInt64, _ commands: inout [Command]
  ) {
    guard let place = connections.place(of: id), let session = sessions.place(of: token) else {
      return
    }
    let record = sessions[place: session]
    // The label goes into logs and reports: keep it short and on one line.
    let label = String(
      hello.label.unicodeScalars.lazy.map { $0.value < 32 ? " " : Character($0) }.prefix(64))
    // An action that waits for the disk is acknowledged in order, and not because it was resent.
    let acknowledged =
      journaling.confirmsDurability
      ? record.outcomes.lastToAcknowledge(after: 0, record.committed) : record.outcomes.last
    connections[place: place].attach(
      .init(token: token, place: session), number: record.number, label: label, version: version,
      acknowledged: acknowledged)
    let welcome = ServerMessage.Welcome(
      version: version,
      position: timeline.position(at: publication.flushed), seed: core.seed,
      token: token, isResumed: isResumed, lastAction: record.outcomes.last,
      window: UInt64(limits.window),
      limits: limits.announced,
      schema: hello.fingerprint == facts.schemaFingerprint ? nil : schema,
      peer: connections[place: place].peer, durable: durableRevision, session: record.number)
    connections[place: place].send(.welcome(welcome))
    commands.append(
      .log(
        LogLine(
          .info, isResumed ? "client returned" : "client connected",
          connections[place: place].logFields)))
  }

  // MARK: Actions

  @inline(__always)
  private mutating func readAction(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ place: Int,
    _ attachment: ServerSession.Attachment, _ commands: inout [Command]
  ) throws(WireError) {
    let number: UInt64
    let mark: Mark
    let decoded: Result<R.Action, ActionFailure>
    let byteCount: Int
    let cost: Int?
    do throws(CBORError) {
      let action = try ActionHead(from: &decoder)
      number = action.number
      mark = action.mark
      byteCount = decoder.remaining
      cost = scarceMemoryCost(of: decoder)
      decoded = try decodeAction(&decoder, head, cost)
    } catch {
      throw .malformed(error)
    }
    let session = attachment.place
    let expected = sessions[place: session].outcomes.last + 1
    guard number == expected else {
      return try repeatAction(number, expected, place, decoded)
    }
    let waiting = expected - 1 - connections[place: place].acknowledgements.last
    guard waiting < UInt64(limits.window) else {
      throw WireError(
        .limit, "more unacknowledged actions than the window allows",
        limit: LimitBreach("window", limit: limits.window, observed: Int(clamping: waiting + 1)))
    }
    connections[place: place].counters.actions += 1
    let outcome: Acknowledgement.Outcome
    var sequence: UInt64?
    if let rejection = judge(
      decoded, number, mark, byteCount, cost, attachment, at: place, &commands)
    {
      outcome = reject(number, rejection, attachment, at: place)
    } else {
      sequence = core.sequence &+ 1
      let before = counters.changedBytes
      outcome = perform(decoded, number, byteCount, attachment, at: place)
      charge(changedBytes: counters.changedBytes &- before, at: place)
    }
    sessions[place: session].outcomes.append(
      outcome, revision: core.revision,
      mark: mark == .durable && journaling.confirmsDurability && journaling.failure == nil
        ? .durable : .applied,
      sequence: sequence)
  }

  /// About how much memory it takes to decode an action and to perform it; nil if there is enough
  /// memory for any action of this size.
  @inline(__always)
  private func scarceMemoryCost(of decoder: CBORDecoder) -> Int? {
    memory.budget.isAmple(for: decoder.remaining) ? nil : memoryCost(of: decoder)
  }

  private func memoryCost(of decoder: CBORDecoder) -> Int? {
    var decoder = decoder
    return (try? decoder.rawItem()).map { MemoryBudget.cost(of: $0) }
  }

  /// The rejection of an action for lack of memory; nil if it may run.
  private func memoryRefusal(of action: R.Action, _ count: Int, cost: Int) -> Rejection? {
    let footprint = (action as? any FootprintTelling)?.footprint
    let paths = footprint == .same ? (action as? any PathNaming)?.writtenPaths : nil
    let isReplacing = paths?.allSatisfy { core.state.isPresent(at: $0) } ?? false
    return memory.budget.refusal(
      ofActionWith: count, footprint, isReplacing: isReplacing, cost: cost)
  }

  /// The rejection of an action before the store sees it; nil if it is to be performed.
  @inline(__always)
  private mutating func judge(
    _ decoded: borrowing Result<R.Action, ActionFailure>, _ number: UInt64, _ mark: Mark,
    _ byteCount: Int, _ cost: Int?, _ attachment: ServerSession.Attachment, at place: Int,
    _ commands: inout [Command]
  ) -> Rejection? {
    if let rejection = overuse(place) ?? memory.size.refusal(ofActionWith: byteCount) {
      return rejection
    }
    switch copy decoded {
    case .failure(let failure): return failure.rejection
    case .success(let action):
      if connections[place: place].rights != nil,
        let rejection = denial(of: action, at: place, &commands)
      {
        return rejection
      }
      if let cost, let rejection = memoryRefusal(of: action, byteCount, cost: cost) {
        return rejection
      }
    }
    if journaling.durability == .none { return nil }
    return refusal(of: SessionAction(session: attachment.token, number: number), mark)
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
    _ decoded: borrowing Result<R.Action, ActionFailure>, _ number: UInt64, _ byteCount: Int,
    _ attachment: ServerSession.Attachment, at place: Int
  ) -> Acknowledgement.Outcome {
    guard case .success(let action) = copy decoded else { return .outcomeUnknown }
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

  /// Decode the rest of a message after the head of an action. An item that is no action is
  /// skipped, if it is CBOR at all: only the action is rejected.
  @inline(__always)
  private func decodeAction(
    _ decoder: inout CBORDecoder, _ head: MessageHead, _ cost: Int?
  ) throws(CBORError) -> Result<R.Action, ActionFailure> {
    if let cost, let refusal = memory.budget.refusal(ofBytes: decoder.remaining, cost: cost) {
      try decoder.skip()
      try head.finish(&decoder)
      guard decoder.isAtEnd else {
        throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
      }
      return .failure(.noMemory(refusal))
    }
    if decoder.remaining > limits.actionMemoryBytes / MemoryEstimate.mostPerByte,
      let failure = try excess(of: decoder)
    {
      return .failure(failure)
    }
    var attempt = decoder
    let result: Result<R.Action, ActionFailure>
    do throws(CBORError) {
      result = .success(try R.Action(from: &attempt, seed: core.seed))
      decoder = attempt
    } catch {
      try decoder.skip()
      result = .failure(.undecodable(error))
    }
    try head.finish(&decoder)
    guard decoder.isAtEnd else {
      throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
    }
    return result
  }

  /// The failure of an action whose values would take too much memory, so that it is not decoded;
  /// nil if it may be. Bytes after the point where that is known are not examined.
  private func excess(of decoder: CBORDecoder) throws(CBORError) -> ActionFailure? {
    var decoder = decoder
    var estimate = MemoryEstimate(limit: limits.actionMemoryBytes)
    try estimate.addValue(&decoder)
    return estimate.isExceeded ? .tooLarge(limit: limits.actionMemoryBytes) : nil
  }

  /// Handle an action whose number is not the next: a duplicate of a decided action is acknowledged
  /// again.
  private mutating func repeatAction(
    _ number: UInt64, _ expected: UInt64, _ place: Int,
    _ decoded: Result<R.Action, ActionFailure>
  ) throws(WireError) {
    guard number < expected, number > 0 else {
      throw WireError(
        .outOfOrder, "action \(number) came where number \(expected) was expected")
    }
    if faults.appliesTwice, case .success(let action) = decoded {
      _ = reduce(action, from: connections[place: place].client.cause, isLogged: false, at: place)
    }
    if faults.losesRepeatedAcknowledgements { return }
    connections[place: place].acknowledgements.repeat(number)
  }

  // MARK: Requests

  /// Read a request. Returns whether the next item may be read before requests have been answered.
  private mutating func readRequest(
    _ item: UnsafeRawBufferPointer, _ place: Int
  ) throws(WireError) -> Bool {
    guard let request = try request(item) else {
      // A goodbye, since actions are read elsewhere.
      part(place)
      return true
    }
    connections[place: place].requests.append(request)
    lineUp(place)
    return !connections[place: place].requests.isFull(limits)
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

/// The reason that an action message has no usable action.
enum ActionFailure: Error {
  case undecodable(CBORError)
  /// The decoded action would take more memory than this limit.
  case tooLarge(limit: Int)
  /// There is not enough memory to decode it now.
  case noMemory(Rejection)

  var rejection: Rejection {
    switch self {
    case .undecodable(let error): Rejection(error)
    case .noMemory(let rejection): rejection
    case .tooLarge(let limit):
      Rejection(
        .limit,
        "the values of the action would take more memory than actionMemoryBytes, which is \(limit)")
    }
  }
}
