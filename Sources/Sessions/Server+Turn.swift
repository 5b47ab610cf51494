import CBOR
import Lockstep
import Values
import Wire

extension Server {
  /// Compose and send what this turn brought.
  mutating func endTurn(_ commands: inout [Command]) {
    deliverNews()
    if core.hasWaiting { runWaiting() }
    if faults.startsEffectsEarly { takeOrders(&commands) }
    keepTurn(&commands)
    touchFollowers()
    shareFrames()
    // Connections may be touched while others are composed: the list can grow.
    var index = 0
    if faults.followsDictionaryOrder { touched = Array(Set(touched)) }
    while index < touched.count {
      compose(touched[index], &commands)
      index += 1
    }
    touched.removeAll(keepingCapacity: true)
    scopes.endTurn()
    if !differences.isEmpty { differences.removeAll(keepingCapacity: true) }
    if !replays.isEmpty { replays.removeAll(keepingCapacity: true) }
    flushed = core.revision
    waitingBudget = limits.waitingPerTurn
    // Behind the patches: what an effect does comes after the change that it was returned with.
    // If it is to be kept, behind that too.
    takeOrders(&commands)
    keepSnapshot(&commands)
    measureState(&commands)
    share(&commands)
    commands += unwatched.map { .unwatch($0) }
    unwatched = []
    if core.hasWaiting || !news.isEmpty { commands.append(.wake) }
  }

  /// Give every live subscriber the frames of its scopes. The bytes are shared.
  private mutating func shareFrames() {
    for index in scopes.changedPlaces {
      scopes[index: index].cut()
      let scope = scopes[index: index]
      for id in scope.subscribers {
        guard let place = connections.place(of: id) else { continue }
        share(scope, with: place)
        touch(id, at: place)
      }
    }
  }

  private mutating func share(_ scope: borrowing Scope, with place: Int) {
    let id = scope.id
    guard
      let index = connections[place: place].subscriptions.firstIndex(where: { $0.scope == id }),
      connections[place: place].subscriptions[index].progress == .live
    else { return }
    if let loss = scope.loss {
      connections[place: place].subscriptions[index].progress = .lost(loss)
      return
    }
    if connections[place: place].output.isEmpty {
      // Most see one scope: they share the list of its frames as well.
      connections[place: place].output = scope.frames
    } else {
      connections[place: place].output.append(contentsOf: scope.frames)
    }
    if faults.repeatsFrames {
      connections[place: place].output.append(contentsOf: scope.frames)
    }
    connections[place: place].counters.patches += scope.turnPatches
  }

  /// Make one connection's `send`, unless it has unsent bytes.
  private mutating func compose(_ id: ConnectionID, _ commands: inout [Command]) {
    guard let place = connections.place(of: id) else { return }
    connections[place: place].isTouched = false
    let leaving: Goodbye?
    let token: SessionToken
    switch connections[place: place].phase {
    case .left: return
    case .awaitingHello: return
    case .live(let live):
      leaving = nil
      token = live
    case .leaving(let goodbye, let session):
      leaving = goodbye
      token = session ?? SessionToken(high: 0, low: 0)
    }
    // Moved out, so that its arrays have one owner while the server changes beside it.
    var connection = ServerSession.nobody
    swap(&connection, &connections[place: place])
    if !connection.isBlocked || faults.ignoresBackPressure {
      if faults.acknowledgesEarly {
        var patches: [[UInt8]] = []
        swap(&patches, &connection.output)
        acknowledge(&connection, token)
        connection.output += patches
      }
      sayHidden(&connection)
      catchUp(&connection, &commands)
      // Before the answers, which say of all subscriptions that are not announced anew that they
      // stand at the newest revision; and after them, for those that the answers began.
      // Before a hand-over nobody begins what it could not end.
      let joins = leaving == nil && !isHandingOver
      if joins { join(&connection, &commands) }
      answer(&connection, &commands)
      if joins { join(&connection, &commands) }
      if connection.isCurrent { acknowledge(&connection, token) }
      report(&connection)
      bookmark(&connection)
    }
    if let leaving {
      counters.goodbyes += 1
      connection.phase = .left
      connection.output.append(Self.frame(.goodbye(leaving)))
    }
    if !connection.output.isEmpty {
      var frames: [[UInt8]] = []
      swap(&frames, &connection.output)
      connection.counters.bytesSent += frames.reduce(0) { $0 + UInt64($1.count) }
      connection.lastSent = now
      commands.append(.send(id, frames))
    }
    swap(&connection, &connections[place: place])
    guard let leaving else { return }
    commands.append(.close(id))
    dropSubscriptions(of: id)
    // Who takes leave does not come back for outcomes.
    if leaving.code == .done { forget(token, .goodbye) }
  }

  // MARK: Catching up

  /// Bring the subscriptions that are behind up to now, as far as that can be done at once.
  private mutating func catchUp(
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) {
    for index in connection.subscriptions.indices {
      let subscription = connection.subscriptions[index]
      switch subscription.progress {
      case .live: continue
      case .lagging(let revision):
        connection.subscriptions[index].progress = advance(
          subscription, from: revision, &connection)
      case .joining(let job, let revision, let reason):
        switch encoding(job, subscription.scope, revision) {
        case .running: continue
        case .finished(let snapshot):
          announceSnapshot(subscription, reason, &connection)
          connection.output.append(contentsOf: snapshot.frames)
          connection.counters.snapshots += 1
          connection.subscriptions[index].progress = follow(snapshot, subscription, &connection)
        case .gone:
          held.release(revision, by: connection.peer.uid)
          connection.subscriptions[index].progress = .lost(reason)
        }
      case .lost: continue
      }
    }
  }

  /// Begin the snapshots that subscriptions need.
  private mutating func join(_ connection: inout ServerSession, _ commands: inout [Command]) {
    refuseImpossible(&connection)
    for index in connection.subscriptions.indices {
      guard case .lost(let reason) = connection.subscriptions[index].progress else { continue }
      connection.subscriptions[index].progress = snapshot(
        connection.subscriptions[index], reason, &connection, &commands)
    }
  }

  /// Send what happened since a snapshot that has just been sent: the patches themselves if they are
  /// at hand, for the difference of two large states takes longer than to copy those.
  private mutating func follow(
    _ snapshot: EncodedSnapshot, _ subscription: Subscription, _ connection: inout ServerSession
  ) -> Subscription.Progress {
    let revision = snapshot.revision
    if !faults.skipsCatchUp, let place = scopes.index(of: subscription.scope),
      let replay = replay(scopes[index: place], behind: snapshot)
    {
      held.release(revision, by: connection.peer.uid)
      append(replay, of: subscription, &connection)
      return .live
    }
    var joined = subscription
    joined.base = revision
    return advance(joined, from: revision, &connection)
  }

  /// Send one patch from a held state to the newest, and let the held state go. Whatever happens,
  /// the client then knows that the subscription stands at the newest revision.
  private mutating func advance(
    _ subscription: Subscription, from revision: UInt64, _ connection: inout ServerSession
  ) -> Subscription.Progress {
    defer { held.release(revision, by: connection.peer.uid) }
    guard revision < core.revision, !faults.skipsCatchUp else { return .live }
    guard let place = scopes.index(of: subscription.scope) else { return .live }
    let scope = scopes[index: place]
    guard scope.lastChange > revision else {
      sayCurrent(subscription, &connection)
      return .live
    }
    let base = subscription.base
    let key = DifferenceKey(scope: scope.id, revision: revision, base: base)
    if let frame = differences[key] {
      count(&connection, revision, frame)
      return .live
    }
    guard let before = held[revision] else { return .lost(.lagged) }
    var pair = CBOREncoder()
    pair.encode(core.revision - base)
    switch encodeDifference(from: before, of: scope, into: &pair) {
    case .patch, .absent: break
    case .untouched:
      // Changed and changed back. The next patch is based on a revision that the mirror would not
      // have without this.
      sayCurrent(subscription, &connection)
      return .live
    case .resync: return .lost(.view)
    }
    guard pair.bytes.count + 64 <= limits.frameBytes else { return .lost(.tooLarge) }
    let frame = StreamFrames.patches(pair.bytes, count: 1, scope: scope.id, from: base)
    differences[key] = frame
    count(&connection, revision, frame)
    return .live
  }

  private mutating func count(
    _ connection: inout ServerSession, _ revision: UInt64, _ frame: [UInt8]
  ) {
    connection.output.append(frame)
    connection.counters.patches += 1
    connection.counters.coalesced += core.revision - revision - 1
    counters.coalesced += core.revision - revision - 1
  }

  // MARK: Acknowledgements

  /// Say what became of the actions that are not acknowledged yet.
  private mutating func acknowledge(_ connection: inout ServerSession, _ token: SessionToken) {
    let place = connection.token == nil ? sessions.place(of: token) : connection.session
    guard let place else { return }
    let first = connection.acknowledged + 1
    let outcomes = sessions[place: place].outcomes
    let last =
      keeper.promises && !faults.acknowledgesUncommitted
      ? outcomes.lastToAcknowledge(after: connection.acknowledged, sessions[place: place].committed)
      : outcomes.last
    guard first <= last || connection.repeated != nil else { return }
    var encoder = CBOREncoder()
    func say(_ acknowledgement: Acknowledgement) {
      Frame.append(to: &encoder) {
        ServerMessage.acknowledgement(acknowledgement).encode(into: &$0)
      }
    }
    if let repeated = connection.repeated {
      // Those that are not acknowledged yet will be in their turn.
      outcomes.forEach(
        from: repeated.lowerBound, through: min(repeated.upperBound, first - 1), say)
      connection.repeated = nil
    }
    outcomes.forEach(from: first, through: last, say)
    connection.acknowledged = max(connection.acknowledged, last)
    if !encoder.bytes.isEmpty { connection.output.append(encoder.bytes) }
  }

  /// Tell an idle client the newest revision.
  private mutating func bookmark(_ connection: inout ServerSession) {
    guard connection.output.isEmpty, connection.isCurrent, connection.token != nil,
      !(now < connection.lastSent + limits.bookmarkInterval)
    else { return }
    connection.output.append(
      Self.frame(.bookmark(revision: core.revision, durable: durableRevision)))
  }

  // MARK: Answers

  private mutating func answer(
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) {
    guard !connection.requests.isEmpty else { return }
    var requests: [Request] = []
    swap(&requests, &connection.requests)
    for request in requests {
      switch request {
      case .subscribe(let number, let path, let position):
        subscribe(number, path, position, &connection, &commands)
      case .unsubscribe(let number):
        guard let index = connection.subscriptions.firstIndex(where: { $0.number == number })
        else { continue }
        drop(
          connection.subscriptions.remove(at: index), of: connection.id,
          by: connection.peer.uid)
        accounts[connection.peer.uid]?.subscriptions -= 1
      case .ping(let value):
        connection.output.append(Self.frame(.pong(value, revision: core.revision)))
      case .digest(let number): answerDigest(number, &connection)
      case .query(let number, let name, let arguments):
        // Reports look at all connections.
        connections[connection.id] = connection
        let answer =
          refusal(ofReport: name, to: connection.rights)
          ?? actionReport(name, arguments, number, &connection) ?? report(name, asking: connection)
        var frame = Self.frame(.report(number: number, answer))
        if frame.count > limits.frameBytes {
          frame = Self.frame(
            .report(
              number: number, ["error": "the report is larger than a frame may be"]))
        }
        connection.output.append(frame)
      }
    }
  }

  /// The digest of a subscription that is current; one that is not gets none: its stream would not
  /// stand where the digest is true.
  private mutating func answerDigest(_ number: UInt64, _ connection: inout ServerSession) {
    guard let subscription = connection.subscriptions.first(where: { $0.number == number }),
      subscription.progress == .live, let index = scopes.index(of: subscription.scope),
      let digest = digest(of: scopes[index: index])
    else { return }
    connection.output.append(
      Self.frame(.digest(subscription: number, revision: core.revision, digest)))
  }
}
