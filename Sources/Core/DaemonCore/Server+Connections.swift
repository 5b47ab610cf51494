import Access
import CBOR
import Lockstep
import Values
import Wire

extension Server {
  mutating func open(
    _ id: ConnectionID, _ peer: Peer, _ token: SessionToken, _ commands: inout [Command]
  ) {
    counters.connections += 1
    var connection = ServerSession(
      id: id, peer: peer, ordinal: counters.connections, offered: token, limits: limits,
      at: clock.now)
    let (rights, denial) = admission(of: peer)
    connection.rights = rights
    let crowded = admit(&connection)
    if denial != nil { logDenial(of: .connect, "client denied", connection, &commands) }
    let stopping: Goodbye? = if case .stopping(let goodbye) = ending { goodbye } else { nil }
    let account = connection.account
    connections.insert(connection)
    if let goodbye = denial ?? stopping ?? crowded { return leave(id, goodbye) }
    users.noteArrival(at: account, clock.now)
  }

  mutating func closed(_ id: ConnectionID, _ commands: inout [Command]) {
    guard let connection = connections.remove(id) else { return }
    if let jump = jumping.pending, jump.connection == id {
      // Its state may be the last that has what others have removed meanwhile.
      turn.remains.add(jump)
      jumping.pending = nil
    }
    users.remove(connection, at: clock.now)
    if let action = largeActions.remove(id) { turn.remains.add(action) }
    remember(connection)
    // The connection never had a session, or lost it.
    if watchesSessions, !sessions.watches(id), !connection.origin.hasExited {
      commands.append(.unwatch(id))
    }
    departures.add(connection.subscriptions.all, uid: connection.peer.uid)
    if !faults.leaksOwnedEffects { core.cancelEffects(ownedBy: id.rawValue) }
    guard let token = connection.token else { return }
    // A client that said goodbye never resumes, even if it is gone before our goodbye.
    if case .parting = connection.phase {
      forget(token, from: id)
    } else {
      detach(token, from: id)
    }
    commands.append(
      .log(
        LogLine(
          .info, "client gone",
          connection.logFields + [.init("actions", connection.counters.actions)])))
  }

  /// End all subscriptions of a connection: it gets nothing more.
  mutating func dropSubscriptions(of id: ConnectionID) {
    guard let place = connections.place(of: id) else { return }
    depart(connections[place: place].subscriptions.removeAll(), place)
  }

  /// Have subscriptions that were removed from a connection leave their scopes.
  mutating func depart(_ subscriptions: [Subscription], _ place: Int) {
    users.countSubscription(-subscriptions.count, at: connections[place: place].account)
    departures.add(subscriptions, uid: connections[place: place].peer.uid)
  }

  /// Have some of the subscriptions that have ended leave their scopes, in about a millisecond: more than
  /// may begin in a turn, so that no user can have any number of them by ending connections.
  mutating func takeDepartures() {
    var left = 500 + limits.requestWorkPerTurn
    while left > 0, let (subscription, uid) = departures.next() {
      left -= Request.leaveWork(publication.scopes.path(of: subscription.scope))
      drop(subscription, uid: uid)
    }
  }

  /// End a subscription that was removed from its connection.
  mutating func end(_ subscription: Subscription, of connection: ServerSession) {
    users.countSubscription(-1, at: connection.account)
    drop(subscription, uid: connection.peer.uid)
  }

  /// Release the state held for a subscription, and leave its scope.
  mutating func drop(_ subscription: Subscription, uid: UInt64) {
    switch subscription.progress {
    case .lagging(let revision), .joining(_, let revision, _), .differing(_, let revision, _),
      .resuming(_, held: let revision?, _, _):
      if !faults.leaksHeldStates { publication.release(revision, by: uid) }
    case .live, .lost, .resuming(_, held: nil, _, _): break
    }
    publication.scopes.remove(subscription)
  }

  /// Keep a session without its connection, so that its client can resume it.
  mutating func detach(
    _ token: SessionToken, from id: ConnectionID, for goodbye: GoodbyeCode? = nil
  ) {
    if let surplus = sessions.detach(token, from: id, for: goodbye, at: clock.now) {
      forget(surplus, .graceOver)
    }
  }

  /// Forget a session at its client's goodbye.
  mutating func forget(_ token: SessionToken, from id: ConnectionID) {
    detach(token, from: id, for: .done)
    forget(token, .goodbye)
  }

  /// Forget a session without a connection.
  mutating func forget(_ token: SessionToken, _ reason: SessionEvent.EndReason) {
    if sessions.forget(token, reason, among: connections)?.isKept == true {
      journaling.forget(token)
    }
  }

  mutating func blocked(
    _ id: ConnectionID, _ unsent: Int, _ commands: inout [Command]
  ) {
    guard let place = connections.place(of: id) else { return }
    noteUnsent(unsent, at: place)
    // If it was blocked already, a goodbye followed, or the rest of what it had missed.
    if !connections[place: place].isBlocked {
      changeReading(of: id, &commands) { [now = clock.now] in $0.flow.blockedSince = now }
      if connections[place: place].flow.isHeldBack {
        var box = connections.takeOut(place)
        // If the shell reports it late, the state that the client has is gone: it gets a snapshot.
        holdBack(&box.session, isKnown: core.revision == publication.flushed)
        connections.putBack(box, at: place)
      }
    }
    limitUnsent(id)
  }

  /// Have a connection wait until its bytes have been sent: what it mirrors lags behind this revision, if the
  /// state is known that it has. O(its subscriptions).
  mutating func holdBack(_ connection: inout ServerSession, isKnown: Bool) {
    let count = connection.subscriptions.lag(
      behind: core.revision, isKnown: isKnown, in: publication.scopes)
    if isKnown, !faults.forgetsHeldStates {
      publication.hold(core.state, at: core.revision, by: connection.peer.uid, count: count)
    }
  }

  /// Record a connection's number of unsent bytes.
  private mutating func noteUnsent(_ bytes: Int, at place: Int) {
    users.countUnsent(
      bytes - connections[place: place].flow.unsentBytes, at: connections[place: place].account)
    connections[place: place].flow.unsentBytes = bytes
  }

  /// Close a connection whose user leaves too many bytes unread.
  private mutating func limitUnsent(_ id: ConnectionID) {
    guard let place = connections.place(of: id) else { return }
    let uid = connections[place: place].peer.uid
    let observed = users[place: connections[place: place].account].unsentBytes
    guard observed > limits.unsentBytesPerUser else { return }
    leave(
      id,
      Goodbye(
        .limit, "the user \(uid) leaves \(observed) bytes unread",
        limit: LimitBreach(
          "unsentBytesPerUser", limit: limits.unsentBytesPerUser, observed: observed),
        retryAfter: 1000))
  }

  mutating func drained(_ id: ConnectionID, _ commands: inout [Command]) {
    guard let place = connections.place(of: id), connections[place: place].isBlocked else { return }
    changeReading(of: id, &commands) { $0.flow.blockedSince = nil }
    noteUnsent(0, at: place)
    lineUp(place)
    connections.touch(id, at: place)
  }

  mutating func tick(_ commands: inout [Command]) {
    let now = clock.now
    measureState(isTime: true, &commands)
    keepPast(&commands)
    if pause.isOver(at: now) { resume("its time is up", &commands) }
    if journaling.shouldRetry(at: now) { commands.append(.reopenJournal) }
    publication.forgetUnusedDifferences(at: now)
    users.forgetFormer(at: now)
    rounds.begin()
    goRound(&commands)
    rounds.haveGone = true
  }

  /// Go on with what is looked at once a second.
  mutating func goRound(_ commands: inout [Command]) {
    if !rounds.areRunning { return }
    var left = 512
    while left > 0, let place = rounds.connections.next(of: connections.placeCount) {
      left -= connections.isTaken(place) ? look(at: place, &commands) : 1
    }
    for place in rounds.sessions.next(256, of: sessions.placeCount) {
      if let token = sessions.expired(place, at: clock.now) { forget(token, .graceOver) }
    }
    for index in rounds.scopes.next(2048, of: publication.scopes.count) {
      publication.forgetUnusedSnapshot(of: index, at: clock.now)
    }
  }

  /// Look whether a deadline of a connection is over, or it should be told the revision. Returns how long
  /// that takes, compared with a connection for which there is nothing to do: to send takes a few
  /// microseconds, and the end of a connection some twenty.
  private mutating func look(at place: Int, _ commands: inout [Command]) -> Int {
    let (id, now) = (connections[place: place].id, clock.now)
    connections[place: place].trim()
    if case .awaitingHello(_, let deadline) = connections[place: place].phase, now > deadline {
      let limit = limits.helloDeadline.milliseconds
      let breach = LimitBreach(
        "helloDeadlineMs", limit: Int(clamping: limit),
        observed: Int(clamping: now.milliseconds(since: deadline) + limit))
      leave(
        id,
        Goodbye(.limit, "no hello within \(breach.limit) ms", limit: breach, retryAfter: 1000))
      return 32
    }
    if let since = connections[place: place].flow.blockedSince {
      guard now > since + limits.stallDeadline else { return 1 }
      abandon(connections[place: place], since, &commands)
      return 32
    }
    guard connections[place: place].isBookmarkDue(every: limits.bookmarkInterval, at: now) else {
      return 1
    }
    connections.touch(id, at: place)
    return 4
  }

  mutating func measureState(isTime: Bool = false, _ commands: inout [Command]) {
    commands += memory.measurements(isTime: isTime)
  }

  /// Abort the connection of a client that does not read, and so cannot be told.
  private mutating func abandon(
    _ connection: ServerSession, _ since: Instant, _ commands: inout [Command]
  ) {
    counters.goodbyes += 1
    let waited = clock.now.milliseconds(since: since)
    let goodbye = Goodbye(
      .stalled, "nothing read for \(waited) ms",
      limit: LimitBreach(
        "stallDeadlineMs", limit: Int(clamping: limits.stallDeadline.milliseconds),
        observed: Int(clamping: waited)))
    // A client that was sent goodbye already is not sent it again.
    if !connection.hasLeft {
      commands.append(.send(connection.id, [Self.frame(.goodbye(goodbye))]))
      commands.append(.log(LogLine(.warning, goodbye.description, connection.logFields)))
    }
    connections[connection.id]?.end(goodbye)
    // The next deadline runs from here, should the shell be slow to report the end.
    connections[connection.id]?.flow.blockedSince = clock.now
    dropSubscriptions(of: connection.id)
    if let token = connection.token {
      detach(token, from: connection.id)
      if case .parting = connection.phase { forget(token, .goodbye) }
    }
    commands.append(.abort(connection.id))
  }

  mutating func stop(_ retryAfter: UInt64?, _ commands: inout [Command]) {
    endPause("the daemon stops", &commands)
    let goodbye = Goodbye(.stopping, "the daemon stops", retryAfter: retryAfter)
    ending = .stopping(goodbye)
    for id in connections.idsInOrder { leave(id, goodbye) }
  }

  /// Answer a client's goodbye with ours, after everything that is due.
  mutating func part(_ place: Int) {
    guard connections[place: place].part() else { return }
    let id = connections[place: place].id
    connections.unfollow(id)
    connections.touch(id, at: place)
  }

  /// Say goodbye at the turn's end.
  mutating func leave(_ id: ConnectionID, _ goodbye: Goodbye) {
    guard let place = connections.place(of: id),
      let left = connections[place: place].leave(goodbye)
    else { return }
    if let session = left.session { detach(session, from: id, for: left.goodbye) }
    connections.touch(id, at: place)
  }

  static func frame(_ message: ServerMessage) -> [UInt8] {
    Frame.encode { message.encode(into: &$0) }
  }
}

extension ServerSession {
  var logFields: [LogLine.Field] {
    [
      .init("connection", id.rawValue), .init("pid", peer.pid), .init("uid", peer.uid),
      .init("label", client.label),
    ]
  }
}
