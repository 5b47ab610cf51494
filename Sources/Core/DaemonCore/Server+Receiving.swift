import CBOR
import Lockstep
import Records
import Values
public import Wire

// Bytes of a connection become frames, and frames a hello, actions (`Server+Actions`) and requests
// (`Server+Requests`).
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

  /// Continue to read where reading was held, until requests had been answered or an action was decoded:
  /// what was read of a user, up to a share in a turn, for thousands of connections may have waited for the
  /// same.
  @inline(__always)
  mutating func releaseHeld(_ commands: inout [Command]) {
    if connections.isReleasing { releaseAll(&commands) }
  }

  @inline(never)
  private mutating func releaseAll(_ commands: inout [Command]) {
    // How much may still be read is noted for each user.
    users.beginReleasing()
    for id in connections.takeReleasing() {
      guard let place = connections.place(of: id), connections[place: place].frames.isHeld else {
        continue
      }
      let account = connections[place: place].account
      let isBeforeFrame = connections[place: place].frames.isBeforeFrame
      guard users.mayRelease(at: account, isBeforeFrame: isBeforeFrame, clock.now) else {
        connections.release(id)
        continue
      }
      let held = connections[place: place].frames.buffered
      defer {
        users.noteReleased(
          held - connections[place: place].frames.buffered, of: id, at: account)
      }
      // A large frame, which takes a while to release.
      if isBeforeFrame {
        turn.remains.add(connections[place: place].frames.unparsed)
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
      inout FrameDecoder, (UnsafeRawBufferPointer) throws(WireError) -> FrameDecoder.Step
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

  /// Read one item. Says to stop before an action that is to be decoded beside the loop, and behind a
  /// request if requests must be answered before the next.
  @inline(__always)
  private mutating func read(
    _ item: UnsafeRawBufferPointer, from id: ConnectionID, at place: Int,
    _ commands: inout [Command]
  ) throws(WireError) -> FrameDecoder.Step {
    var decoder = CBORDecoder(item)
    switch connections[place: place].phase {
    case .parting, .leaving, .left, .vacant: return .goOn
    case .awaitingHello(let offered, _):
      try readHello(item, from: id, offered, &commands)
      return .goOn
    case .live(let attachment):
      let head = try MessageHead(from: &decoder)
      if head.type == .action {
        if item.count >= limits.largeActionBytes || largeActions.isKnown(id) {
          return try readLargeAction(head, &decoder, place, attachment, &commands)
        }
        return try readAction(head, &decoder, place, attachment, &commands)
      }
      return try readRequest(item, place) ? .goOn : .stopBehind
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
      wantsDecisions: hello.wantsDecisions, acknowledged: acknowledged)
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

  // MARK: Requests

  /// Read a request. Returns whether the next item may be read before requests have been answered.
  private mutating func readRequest(
    _ item: UnsafeRawBufferPointer, _ place: Int
  ) throws(WireError) -> Bool {
    guard let request = try Request.read(item, limits) else {
      // A goodbye, since actions are read elsewhere.
      part(place)
      return true
    }
    connections[place: place].requests.append(request)
    lineUp(place)
    return !connections[place: place].requests.isFull(limits)
  }
}
