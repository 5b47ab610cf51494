import Access
import CBOR
public import Lockstep
import Records
import Values
import Wire

// One process ends, the next continues with the same sockets (`HandOver`). Before that, every
// connection gets everything that is due, even if it does not read: bytes that its socket does not
// take are handed over.
extension Server {
  /// Compose everything that is due and tell clients that the daemon restarts.
  mutating func prepareHandOver(
    retryAfter: UInt64, at now: Instant, into commands: inout [Command]
  ) {
    // What effects have told is not told again: it must not be lost with the process.
    endPause("another process takes over", &commands)
    // No request is begun from here on: what it led to could not be ended.
    ending = .handingOver
    handle(.turnEnded, at: now, into: &commands)
    for id in connections.idsInOrder {
      guard let place = connections.place(of: id), connections[place: place].token != nil else {
        continue
      }
      // Treat everything as written: the state that the client has is about to go.
      connections[place: place].flow.blockedSince = nil
      connections.touch(id, at: place)
    }
    endReports()
    handle(.turnEnded, at: now, into: &commands)
    ending = .handedOver
    for id in connections.idsInOrder where connections[id]?.token != nil {
      commands.append(.send(id, [Self.frame(.restarting(retryAfter: retryAfter))]))
    }
  }

  /// Everything that the next process needs. O(sessions + connections + the history).
  public var handOver: HandOver<R.State> {
    var kept = RestoredState(
      state: core.state, epoch: timeline.epoch, seed: core.seed, run: timeline.run,
      runs: timeline.runs, revision: core.revision, base: journaling.base, sequence: core.sequence,
      sessions: pendingSnapshot.head.sessionsInOrder, sessionCount: sessions.total)
    kept.leftOut = journaling.leftOut
    kept.history = publication.history
    kept.past = past.handedOver(at: counters.changedBytes)
    kept.log = core.log.all.map(LoggedAction.init)
    let handed = connections.idsInOrder.compactMap { id in connections[id].flatMap(hand) }
    return HandOver(kept: kept, connections: handed, connectionCount: counters.connections)
  }

  private func hand(_ connection: ServerSession) -> HandedConnection? {
    let offered: SessionToken
    switch connection.phase {
    case .leaving, .left, .vacant: return nil
    case .live(let attachment), .parting(let attachment): offered = attachment.token
    case .awaitingHello(let token, _): offered = token
    }
    return HandedConnection(
      id: connection.id.rawValue, peer: connection.peer, ordinal: connection.origin.ordinal,
      token: connection.token, offered: offered, label: connection.client.label,
      acknowledged: connection.acknowledgements.last, follows: connection.queries.following?.query,
      subscriptions: connection.subscriptions.all.compactMap(hand),
      version: connection.client.version, wantsDecisions: connection.client.wantsDecisions,
      unparsed: unread(connection))
  }

  /// The bytes that the next process must read, or read again. After a goodbye the client says
  /// nothing.
  private func unread(_ connection: ServerSession) -> [UInt8] {
    let requests = connection.requests.unanswered
    guard case .parting = connection.phase else { return requests + connection.frames.unparsed }
    return requests + Frame.encode { ClientMessage.goodbye(.done, "").encode(into: &$0) }
  }

  private func hand(_ subscription: Subscription) -> HandedConnection.Subscribed? {
    guard let place = publication.scopes.index(of: subscription.scope) else { return nil }
    return HandedConnection.Subscribed(
      number: subscription.number, scope: subscription.scope,
      path: publication.scopes[index: place].path,
      view: publication.scopes[index: place].filter?.signature,
      lastChange: publication.scopes[index: place].lastChange,
      isCurrent: subscription.progress == .live)
  }

  // MARK: The next process

  /// Continue a connection of the former process.
  mutating func takeOver(
    _ handed: HandedConnection, isTranslated: Bool, _ commands: inout [Command]
  ) {
    counters.connections = max(counters.connections, handed.ordinal)
    var connection = ServerSession(
      id: ConnectionID(handed.id), peer: handed.peer, ordinal: handed.ordinal,
      offered: handed.offered, limits: limits, at: clock.now)
    connection.frames = FrameDecoder(limit: limits.frameBytes, unparsed: handed.unparsed)
    _ = admit(&connection)
    let (rights, denial) = admission(of: handed.peer)
    connection.rights = rights
    connections.insert(connection)
    if connection.frames.isHeld {
      commands.append(.pauseReading(connection.id))
      connections.release(connection.id)
    }
    if let denial { return leave(connection.id, denial) }
    guard let token = handed.token else { return }
    guard sessions[token]?.connection == nil, sessions[token] != nil else {
      return leave(
        connection.id, Goodbye(.restarting, "the session is not known any more", retryAfter: 0))
    }
    sessions.attach(token, to: connection, among: connections)
    guard let place = connections.place(of: connection.id),
      let session = sessions.place(of: token)
    else { return }
    connections[place: place].attach(
      .init(token: token, place: session), number: sessions[place: session].number,
      label: handed.label, version: handed.version, wantsDecisions: handed.wantsDecisions,
      acknowledged: handed.acknowledged)
    if let query = handed.follows {
      connections[place: place].queries.following = Following(
        query: query, sequence: core.sequence, isBehind: false)
      connections.follow(connection.id)
      ceaseFollowing(place)
    }
    if isTranslated { connections[place: place].send(.schema(schema)) }
    connections[place: place].send(.restarted(position))
    for subscription in handed.subscriptions { takeOver(subscription, place, isTranslated) }
    connections.touch(connection.id, at: place)
  }

  /// End the reports that are being sent: their remaining pages would be of another process.
  private mutating func endReports() {
    for id in connections.idsInOrder {
      guard let place = connections.place(of: id) else { continue }
      let queries =
        (connections[place: place].requests.report.map { [$0.query] } ?? [])
        + connections[place: place].queries.takeAsked()
      if queries.isEmpty { continue }
      connections[place: place].requests.report = nil
      for query in queries {
        connections[place: place].send(
          .report(
            number: query,
            ReportError(
              .restarting, "the daemon restarts in the middle of this report: ask again"
            ).report))
      }
      connections.touch(id, at: place)
    }
  }

  private mutating func takeOver(
    _ handed: HandedConnection.Subscribed, _ place: Int, _ isTranslated: Bool
  ) {
    let path = handed.path
    // A hand-over of ours never has a number twice.
    guard connections[place: place].subscriptions.index(ofNumber: handed.number) == nil else {
      return
    }
    guard case .shown(let filter) = sight(of: path, with: connections[place: place].rights) else {
      return connections[place: place].subscriptions.revoke(handed.number)
    }
    let isSame = filter?.signature == handed.view
    let index =
      publication.scopes.index(of: path, by: filter)
      ?? publication.scopes.add(
        path, by: filter, id: isSame ? handed.scope : nil, lastChange: handed.lastChange,
        isPresent: core.state.isPresent(at: path))
    guard
      connections[place: place].subscriptions.index(ofScope: publication.scopes[index: index].id)
        == nil
    else { return }
    let isCurrent =
      handed.isCurrent && !isTranslated && isSame
      && publication.scopes[index: index].id == handed.scope
    let subscription = Subscription(
      number: handed.number, scope: publication.scopes[index: index].id,
      progress: isCurrent ? .live : .lost(isSame ? .history : .view), isTrusted: true)
    users.countSubscription(1, at: connections[place: place].account)
    connections[place: place].begin(subscription, &publication.scopes[index: index])
  }
}
