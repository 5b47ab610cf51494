import CBOR
import Lockstep
import Values
import Wire

extension Server {
  /// Take in bytes from a connection: as `Event.received`, without a copy of them.
  public mutating func receive(
    _ id: ConnectionID, _ bytes: UnsafeRawBufferPointer, at now: Instant,
    into commands: inout [Command]
  ) {
    tell(now)
    // The decoder is moved out while its frames are read, so that nothing is copied.
    guard let place = connections.place(of: id) else { return }
    switch connections[place: place].phase {
    // What comes after a goodbye is not even cut into frames.
    case .leaving, .left: return
    case .awaitingHello, .live: break
    }
    charge(place, bytes.count, &commands)
    var frames = FrameDecoder(limit: limits.frameBytes)
    swap(&frames, &connections[place: place].frames)
    let buffered = frames.buffered
    do throws(WireError) {
      try frames.receive(bytes) { item throws(WireError) in
        try self.read(item, from: id, at: place, &commands)
      }
    } catch {
      commands.append(
        .log(
          LogLine(
            .notice, error.description, connections[id]?.logFields ?? [])))
      leave(id, Goodbye(error))
    }
    // Invariant: only `closed` removes a connection, so it still has its place.
    swap(&frames, &connections[place: place].frames)
    let more = connections[place: place].frames.buffered - buffered
    if more != 0 { notePartial(more, place) }
    touch(id, at: place)
  }

  private mutating func read(
    _ item: UnsafeRawBufferPointer, from id: ConnectionID, at place: Int,
    _ commands: inout [Command]
  ) throws(WireError) {
    var decoder = CBORDecoder(item)
    switch connections[place: place].phase {
    case .leaving, .left: return
    case .awaitingHello(let offered, _):
      try readHello(item, from: id, offered, &commands)
    case .live:
      let head = try MessageHead(from: &decoder)
      if head.type == .action {
        try readAction(head, &decoder, place)
      } else {
        try readRequest(item, place)
      }
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
      // What a client said on a connection that it has given up may be read last of all.
      guard (connections[other]?.ordinal ?? 0) < (connections[id]?.ordinal ?? 0) else {
        throw WireError(.replaced, "a later connection has the session")
      }
      // First it is this one's: a session without a connection, for a moment, could be pushed out.
      sessions[token]?.connection = id
      leave(other, Goodbye(.replaced, "another connection took the session over"))
    }
    var record =
      resumed?.1
      ?? SessionRecord(
        uid: peer.uid, number: nextSessionNumber(), outcomes: Outcomes(window: limits.window))
    if resumed != nil, record.connection == nil {
      record.hasEnded = false
      say(.returned(session: record.number))
    }
    if let connection = connections[id] { watch(connection, for: &record, token) }
    detached.remove(token, of: peer.uid)
    record.connection = id
    record.expires = nil
    sessions[token] = record
    begin(id, hello, token, record, isResumed: resumed != nil, version, &commands)
  }

  private mutating func begin(
    _ id: ConnectionID, _ hello: ClientMessage.Hello, _ token: SessionToken,
    _ record: SessionRecord, isResumed: Bool, _ version: UInt64, _ commands: inout [Command]
  ) {
    guard var connection = connections[id], let session = sessions.place(of: token) else { return }
    connection.phase = .live(token)
    connection.session = session
    // The label goes into logs and reports: keep it short and on one line.
    connection.label = String(
      hello.label.unicodeScalars.lazy.map { $0.value < 32 ? " " : Character($0) }.prefix(64))
    // What waits for the disk is acknowledged in its turn, and not because it was sent again.
    connection.acknowledged =
      keeper.promises
      ? record.outcomes.lastToAcknowledge(after: 0, record.committed) : record.outcomes.last
    connection.cause = cause(of: connection, record)
    let welcome = ServerMessage.Welcome(
      version: version,
      position: Position(epoch: epoch, run: run, revision: flushed), seed: core.seed,
      token: token, isResumed: isResumed, lastAction: record.outcomes.last,
      window: UInt64(limits.window),
      limits: [
        .init("frameBytes", UInt64(limits.frameBytes)),
        .init("subscriptions", UInt64(limits.subscriptions)),
        .init("pathKeys", UInt64(limits.pathKeys)),
        .init("bookmarkIntervalMs", limits.bookmarkInterval.milliseconds),
      ],
      schema: hello.fingerprint == schemaFingerprint ? nil : schema,
      peer: connection.peer, durable: durableRevision, session: record.number)
    connection.output.append(Self.frame(.welcome(welcome)))
    commands.append(
      .log(
        LogLine(
          .info, isResumed ? "client returned" : "client connected", connection.logFields)))
    connections[id] = connection
  }

  /// Why the actions of a connection are in the queue: as the kernel names it.
  func cause(of connection: ServerSession, _ record: SessionRecord) -> Cause {
    Cause(
      .client(
        ClientOrigin(
          connection: connection.id.rawValue, pid: connection.peer.pid, uid: connection.peer.uid,
          gid: connection.peer.gid, label: connection.label, session: record.number)))
  }

  // MARK: Actions

  @inline(__always)
  private mutating func readAction(
    _ head: MessageHead, _ decoder: inout CBORDecoder, _ place: Int
  ) throws(WireError) {
    let number: UInt64
    let mark: Mark
    let decoded: Result<R.Action, CBORError>
    let byteCount: Int
    do throws(CBORError) {
      let action = try ActionHead(from: &decoder)
      number = action.number
      mark = action.mark
      let start = decoder.offset
      decoded = try decodeAction(&decoder)
      byteCount = decoder.offset - start
      try head.finish(&decoder)
      guard decoder.isAtEnd else {
        throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
      }
    } catch {
      throw .malformed(error)
    }
    let session = connections[place: place].session
    let expected = sessions[place: session].outcomes.last + 1
    guard number == expected else {
      return try repeatAction(number, expected, place, decoded)
    }
    let waiting = expected - 1 - connections[place: place].acknowledged
    guard waiting < UInt64(limits.window) else {
      throw WireError(
        .limit, "more unacknowledged actions than the window allows",
        limit: LimitBreach("window", limit: limits.window, observed: Int(clamping: waiting + 1)))
    }
    connections[place: place].counters.actions += 1
    let isLogged = byteCount <= limits.logActionBytes
    let outcome: Acknowledgement.Outcome
    if let rejection = overuse(place) ?? size.refusal(ofActionWith: byteCount) {
      outcome = .rejected(RejectionMessage(rejection))
      counters.actions += 1
      counters.rejected += 1
      noteRefusal(number, place, outcome)
    } else if connections[place: place].rights != nil,
      let denial = denial(of: decoded, at: place)
    {
      outcome = deny(denial, number, at: place)
    } else if keeper.durability == .none {
      outcome = perform(decoded, place, isLogged: isLogged)
    } else {
      outcome = performKept(decoded, number, mark, place, isLogged: isLogged)
    }
    sessions[place: session].outcomes.append(
      outcome, revision: core.revision,
      mark: mark == .durable && keeper.promises && keeper.failure == nil ? .durable : .applied)
  }

  /// Keep, where anything is kept, that an action was rejected unseen.
  private mutating func noteRefusal(
    _ number: UInt64, _ place: Int, _ outcome: Acknowledgement.Outcome
  ) {
    guard keeper.durability != .none, let token = connections[place: place].token else { return }
    keep(token, at: connections[place: place].session)
    recordRefusal(
      SessionAction(session: token, number: number), connections[place: place].cause, outcome)
  }

  /// Perform an action of which is kept what became of it; or reject it unseen.
  private mutating func performKept(
    _ decoded: Result<R.Action, CBORError>, _ number: UInt64, _ mark: Mark, _ place: Int,
    isLogged: Bool
  ) -> Acknowledgement.Outcome {
    guard let token = connections[place: place].token else { return .outcomeUnknown }
    let action = SessionAction(session: token, number: number)
    keep(token, at: connections[place: place].session)
    if let rejection = refusal(of: action, mark) {
      counters.actions += 1
      counters.rejected += 1
      let outcome = Acknowledgement.Outcome.rejected(RejectionMessage(rejection))
      recordRefusal(action, connections[place: place].cause, outcome)
      return outcome
    }
    stands?(action)
    let outcome = perform(decoded, place, isLogged: isLogged, for: action)
    if case .failure = decoded {
      recordRefusal(action, connections[place: place].cause, outcome)
    }
    return outcome
  }

  /// Decode an action behind its head. An item that is no action is skipped, if it is CBOR at all:
  /// only the action is rejected.
  @inline(__always)
  private func decodeAction(
    _ decoder: inout CBORDecoder
  ) throws(CBORError) -> Result<R.Action, CBORError> {
    var attempt = decoder
    do throws(CBORError) {
      let action = try R.Action(from: &attempt, seed: core.seed)
      decoder = attempt
      return .success(action)
    } catch {
      try decoder.skip()
      return .failure(error)
    }
  }

  @inline(__always)
  private mutating func perform(
    _ decoded: Result<R.Action, CBORError>, _ place: Int, isLogged: Bool,
    for answer: SessionAction? = nil
  ) -> Acknowledgement.Outcome {
    switch decoded {
    case .success(let action):
      return Acknowledgement.Outcome(
        reduce(
          action, from: connections[place: place].cause, isLogged: isLogged, for: answer, at: place)
      )
    case .failure(let error):
      counters.actions += 1
      counters.rejected += 1
      return .rejected(RejectionMessage(Rejection(error)))
    }
  }

  /// An action whose number is not the next: one that was decided before is acknowledged anew.
  private mutating func repeatAction(
    _ number: UInt64, _ expected: UInt64, _ place: Int,
    _ decoded: Result<R.Action, CBORError>
  ) throws(WireError) {
    guard number < expected, number > 0 else {
      throw WireError(
        .outOfOrder, "action \(number) came where number \(expected) was expected")
    }
    if faults.appliesTwice {
      _ = perform(decoded, place, isLogged: false)
    }
    if faults.losesRepeatedAcknowledgements { return }
    let repeated = connections[place: place].repeated
    connections[place: place].repeated =
      min(repeated?.lowerBound ?? number, number)...max(repeated?.upperBound ?? number, number)
  }

  // MARK: Requests

  private mutating func readRequest(
    _ item: UnsafeRawBufferPointer, _ place: Int
  ) throws(WireError) {
    let request: Request
    switch try ClientMessage(item) {
    case .hello: throw WireError(.outOfOrder, "hello was said already")
    case .subscribe(let number, let path, let position):
      guard path.keys.count <= limits.pathKeys else {
        throw WireError(
          .limit, "a subscribed path of \(path.keys.count) keys",
          limit: LimitBreach("pathKeys", limit: limits.pathKeys, observed: path.keys.count))
      }
      let byteCount = path.keys.reduce(0) { $0 + $1.byteCount }
      guard byteCount <= limits.pathBytes else {
        throw WireError(
          .limit, "a subscribed path of \(byteCount) bytes",
          limit: LimitBreach("pathBytes", limit: limits.pathBytes, observed: byteCount))
      }
      request = .subscribe(number: number, path, position)
    case .unsubscribe(let number): request = .unsubscribe(number: number)
    case .ping(let value): request = .ping(value)
    case .digestRequest(let number): request = .digest(subscription: number)
    case .query(let number, let name, let arguments):
      request = .query(number: number, name, arguments)
    case .goodbye(_, _):
      return leave(connections[place: place].id, Goodbye(.done, "goodbye"))
    case .action: return
    }
    let count = connections[place: place].requests.count
    guard count < limits.requestsPerTurn else {
      throw WireError(
        .limit, "too many requests at once",
        limit: LimitBreach(
          "requestsPerTurn", limit: limits.requestsPerTurn, observed: count + 1))
    }
    connections[place: place].requests.append(request)
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

extension PathKey {
  /// About how many bytes it takes.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .integer: 9
    }
  }
}
