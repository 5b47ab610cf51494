import Access
import CBOR
import Lockstep
import Values
import Wire

extension Server {
  /// End the turn: compose and send everything that is due.
  mutating func endTurn(_ commands: inout [Command]) {
    releaseHeld(&commands)
    deliverNews()
    if pause.holdsNews { hearHeld() }
    if core.hasWaiting { runWaiting() }
    if faults.startsEffectsEarly { takeOrders(&commands) }
    keepTurn(&commands)
    lineUpFollowers()
    shareFrames()
    grantWork()
    if faults.followsDictionaryOrder { connections.scrambleTouched() }
    while let (id, place) = connections.nextTouched() { compose(id, at: place, &commands) }
    publication.endTurn(at: core.revision)
    turn.waitingBudget = limits.waitingPerTurn
    // After the patches: an effect's work comes after the change that it was returned with. If that
    // change is to be durable, the effect starts after the commit.
    takeOrders(&commands)
    keepSnapshot(&commands)
    measureState(&commands)
    decodeLargeActions(&commands)
    let mustShare = share(&commands)
    commands += sessions.takeUnwatched().map { .unwatch($0) }
    let hasWork = core.hasWaiting || pause.holdsNews
    if hasWork && !pause.isOn || sessions.hasEvents || users.isAsking || connections.isReleasing
      || mustShare
    {
      commands.append(.wake)
    }
  }

  /// Give every live subscriber the frames of its scopes. The bytes are shared.
  private mutating func shareFrames() {
    publication.scopes.findChangedPlaces()
    for index in publication.scopes.changedPlaces {
      publication.scopes[index: index].cut()
      let turn = publication.scopes[index: index].turn
      for subscriber in publication.scopes[index: index].subscribers {
        guard let place = connections.place(of: subscriber) else { continue }
        share(turn, with: place)
        connections.touch(subscriber.id, at: place)
      }
    }
  }

  @inline(__always)
  private mutating func share(_ turn: Scope.Turn, with place: Int) {
    guard
      let index = connections[place: place].subscriptions.index(ofScope: turn.scope),
      connections[place: place].subscriptions[index].progress == .live
    else { return }
    if let loss = turn.loss {
      connections[place: place].subscriptions[index].progress = .lost(loss)
      return
    }
    if connections[place: place].client.wantsDecisions { announceDecisions(to: place) }
    connections[place: place].outbox.append(contentsOf: turn.frames)
    if faults.repeatsFrames { connections[place: place].outbox.append(contentsOf: turn.frames) }
    connections[place: place].counters.patches += turn.count
  }

  /// Announce what is decided of the actions of a connection's session, before their changes.
  @inline(never)
  private mutating func announceDecisions(to place: Int) {
    guard let attachment = connections[place: place].attachment, !faults.announcesLate else {
      return
    }
    connections[place: place].announce(sessions[place: attachment.place].outcomes)
  }

  /// Make one connection's `send`, unless it has unsent bytes.
  private mutating func compose(
    _ id: ConnectionID, at place: Int, _ commands: inout [Command]
  ) {
    var leaving: Goodbye?
    let (token, session): (SessionToken?, Int?)
    switch connections[place: place].phase {
    case .left, .awaitingHello, .vacant: return
    case .live(let attachment), .parting(let attachment):
      (token, session) = (attachment.token, attachment.place)
    case .leaving(let goodbye, let left):
      leaving = goodbye
      (token, session) = (left, left.flatMap { sessions.place(of: $0) })
    }
    // Moved out, so that it has one owner while the server changes beside it.
    var box = connections.takeOut(place)
    compose(&box.session, session, &leaving, &commands)
    connections.putBack(box, at: place)
    guard let leaving else { return finishComposing(id, at: place) }
    commands.append(.close(id))
    dropSubscriptions(of: id)
    // A client that said goodbye never resumes, so its outcomes can be dropped.
    if leaving.code == .done, let token { forget(token, from: id) }
  }

  /// Send everything that is due to a connection and its session, and the goodbye with which it
  /// leaves, if there is one now.
  private mutating func compose(
    _ connection: inout ServerSession, _ session: Int?, _ leaving: inout Goodbye?,
    _ commands: inout [Command]
  ) {
    if !connection.isBlocked || faults.ignoresBackPressure {
      if faults.acknowledgesEarly {
        let patches = connection.outbox.take(at: clock.now) ?? []
        acknowledge(&connection, session)
        connection.outbox.append(contentsOf: patches)
      }
      if connection.client.wantsDecisions, let session, !faults.announcesLate {
        connection.announce(sessions[place: session].outcomes)
      }
      if connection.owesNews { sayRevoked(&connection) }
      if !connection.isCurrent { catchUp(&connection, &commands) }
      // Before the answers: an answer implies that every subscription that is not announced anew is
      // at the newest revision.
      if case .handingOver = ending {
        // No request is begun that could not be finished here: requests go to the next process.
        answerRefused(&connection, &commands)
      } else {
        if leaving == nil, !connection.isCurrent { join(&connection, &commands) }
        if connection.requests.grant > 0, connection.subscriptions.unannounced == 0 {
          answer(&connection, &commands)
        }
      }
      if faults.announcesLate, connection.client.wantsDecisions, let session {
        connection.announce(sessions[place: session].outcomes)
      }
      if connection.isCurrent, !connection.subscriptions.areAllRevoked {
        acknowledge(&connection, session)
      }
      connection.bookmark(
        core.revision, durable: durableRevision, every: limits.bookmarkInterval, at: clock.now)
      if case .parting(let attachment) = connection.phase, hasAll(connection, attachment) {
        leaving = ServerSession.answerToGoodbye
      }
    }
    if let leaving {
      counters.goodbyes += 1
      connection.send(.goodbye(leaving))
      connection.end(leaving)
    }
    if let frames = connection.takeFrames(at: clock.now) {
      commands.append(.send(connection.id, frames))
    }
  }

  /// Whether a connection has been sent everything that is due to it.
  private func hasAll(
    _ connection: borrowing ServerSession, _ attachment: ServerSession.Attachment
  ) -> Bool {
    connection.requests.isEmpty && !connection.queries.areAsked && connection.isCurrent
      && connection.acknowledgements.last == sessions[place: attachment.place].outcomes.last
  }

  /// Queue a connection for a later turn if it still has requests, and read from it again once its
  /// request queue has room and its large action has been decoded.
  private mutating func finishComposing(_ id: ConnectionID, at place: Int) {
    lineUp(place)
    if connections[place: place].frames.isHeld, !connections[place: place].isBlocked,
      connections[place: place].requests.hasRoom(limits), !largeActions.isPending(id)
    {
      connections.release(id)
    }
  }

  // MARK: Catching up

  /// Bring lagging and joining subscriptions up to date, as far as that needs no new snapshot. O(those
  /// that lag or join).
  private mutating func catchUp(
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) {
    for ticket in connection.subscriptions.takeActive() {
      guard let index = connection.subscriptions.index(of: ticket) else { continue }
      let subscription = connection.subscriptions[index]
      connection.subscriptions[index].progress = progress(of: subscription, &connection, &commands)
      connection.subscriptions.putBack(index)
    }
  }

  /// Bring a subscription up to date, as far as that needs no new snapshot, and return how far it is.
  private mutating func progress(
    of subscription: Subscription, _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    switch subscription.progress {
    case .live, .lost: return subscription.progress
    case .lagging(let revision):
      return advance(subscription, from: revision, mayWait: true, &connection, &commands)
    case .differing(let job, let revision):
      switch publication.encoding(job, of: subscription.scope, at: revision) {
      case .running: return subscription.progress
      case .difference(let difference):
        append(difference: difference, of: subscription, &connection)
        return follow(difference, subscription, mayWait: true, &connection, &commands)
      case .snapshot, .gone:
        publication.release(revision, by: connection.peer.uid)
        return .lost(.lagged)
      }
    case .joining(let job, let revision, let reason):
      switch publication.encoding(job, of: subscription.scope, at: revision) {
      case .running: return subscription.progress
      case .snapshot(let snapshot):
        announceSnapshot(subscription, reason, &connection)
        append(snapshot.frames, &connection)
        // The announcement promises the newest revision, so what follows must not wait.
        return follow(snapshot, subscription, mayWait: false, &connection, &commands)
      case .difference, .gone:
        publication.release(revision, by: connection.peer.uid)
        return .lost(reason)
      }
    }
  }

  /// Send or begin the snapshots that subscriptions need, as many as may be encoded at a time.
  private mutating func join(_ connection: inout ServerSession, _ commands: inout [Command]) {
    var left = connection.subscriptions.behind
    while left > 0, connection.subscriptions.joining < limits.concurrentSnapshots,
      let index = connection.subscriptions.nextLost(),
      case .lost(let reason) = connection.subscriptions[index].progress
    {
      left -= 1
      if reason == .memory {
        refuseImpossible(index, &connection)
      } else {
        connection.subscriptions[index].progress = snapshot(
          connection.subscriptions[index], reason, &connection, &commands)
      }
    }
  }

  /// Send or begin the snapshot of a subscription that has just begun, if it needs one and no other is
  /// before it.
  mutating func join(
    _ number: UInt64, _ connection: inout ServerSession, _ commands: inout [Command]
  ) {
    guard let index = connection.subscriptions.index(ofNumber: number),
      case .lost = connection.subscriptions[index].progress, connection.token != nil
    else { return }
    join(&connection, &commands)
  }

  /// Send the changes since a snapshot that has just been sent: the patches themselves if the
  /// history has them, because computing the difference of two large states takes longer than
  /// copying patches.
  private mutating func follow(
    _ snapshot: EncodedSnapshot, _ subscription: Subscription, mayWait: Bool,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    let revision = snapshot.revision
    if !faults.skipsCatchUp, let place = publication.scopes.index(of: subscription.scope),
      let replay = publication.replay(publication.scopes[index: place], behind: snapshot)
    {
      publication.release(revision, by: connection.peer.uid)
      append(replay, of: subscription, &connection)
      return .live
    }
    var joined = subscription
    joined.base = revision
    return advance(joined, from: revision, mayWait: mayWait, &connection, &commands)
  }

  /// Send one patch from a held state to the newest, and release the held state; or have the patch
  /// encoded beside the loop, if much has changed and the client `mayWait`. Unless the result is
  /// `lost`, the client then knows that the subscription is at the newest revision, or will know when
  /// the patch has been sent.
  private mutating func advance(
    _ subscription: Subscription, from revision: UInt64, mayWait: Bool,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    defer { publication.release(revision, by: connection.peer.uid) }
    guard revision < core.revision, !faults.skipsCatchUp else { return .live }
    guard let place = publication.scopes.index(of: subscription.scope) else { return .live }
    guard publication.scopes[index: place].lastChange > revision else {
      sayCurrent(subscription, &connection)
      return .live
    }
    if mayWait,
      let wait = publication.awaitDifference(
        of: place, from: revision, base: subscription.base, to: core.state, at: core.revision,
        by: connection.peer.uid)
    {
      if wait.isNew { commands.append(.encodeSnapshot(wait.id)) }
      return .differing(wait.id, wait.revision)
    }
    switch publication.difference(
      of: place, from: revision, base: subscription.base, to: core.state, at: core.revision)
    {
    case .frame(let frame): count(&connection, core.revision - revision, frame)
    case .none:
      // Changed and changed back. The next patch has a base revision that the mirror would not have
      // reached without this.
      sayCurrent(subscription, &connection)
    case .lost(let reason): return .lost(reason)
    }
    return .live
  }

  /// Send a difference that was encoded beside the loop.
  private mutating func append(
    difference: EncodedSnapshot, of subscription: Subscription, _ connection: inout ServerSession
  ) {
    guard let frame = difference.frames.first else {
      // Changed and changed back, as above.
      return say(
        .init(
          subscription: subscription.number, scope: subscription.scope, .current, .none,
          revision: difference.revision), &connection)
    }
    count(&connection, max(difference.revision, subscription.base + 1) - subscription.base, frame)
  }

  private mutating func count(
    _ connection: inout ServerSession, _ revisions: UInt64, _ frame: [UInt8]
  ) {
    connection.outbox.append(frame)
    connection.counters.patches += 1
    connection.counters.coalesced += revisions - 1
    counters.coalesced += revisions - 1
  }

  // MARK: Acknowledgements

  /// Send the outcomes of the actions of a session that are not acknowledged yet.
  private mutating func acknowledge(_ connection: inout ServerSession, _ session: Int?) {
    guard let session else { return }
    let last =
      journaling.confirmsDurability && !faults.acknowledgesUncommitted
      ? sessions[place: session].outcomes.lastToAcknowledge(
        after: connection.acknowledgements.last, sessions[place: session].committed)
      : sessions[place: session].outcomes.last
    guard connection.acknowledgements.areDue(through: last) else { return }
    connection.acknowledge(sessions[place: session].outcomes, through: last)
  }
}
