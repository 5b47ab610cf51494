import Access
import CBOR
import Lockstep
import Values
import Wire

extension Server {
  /// End the turn: compose and send everything that is due.
  mutating func endTurn(_ commands: inout [Command]) {
    connections.catchUpWork = limits.requestWorkPerTurn
    releaseHeld(&commands)
    // Before the news, which may be of sessions that end.
    if rounds.haveGone { rounds.haveGone = false } else { goRound(&commands) }
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
    let areDelayed = connections.touchDelayed()
    takeDepartures()
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
      || mustShare || areDelayed || rounds.areRunning || !departures.isEmpty
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
      let subscribers = publication.scopes[index: index].subscribers.all
      for position in subscribers.indices {
        let subscriber = subscribers[position]
        guard let place = connections.place(of: subscriber.connection) else { continue }
        let slot = share(turn, with: place, lastAt: subscriber.slot)
        if slot != subscriber.slot {
          publication.scopes[index: index].subscribers.note(slot: slot, at: position)
        }
        connections.touch(subscriber.connection.id, at: place)
      }
    }
  }

  /// Give a subscriber the frames of a scope. Returns the index of its subscription, which was this one
  /// the last time.
  @inline(__always)
  private mutating func share(_ turn: Scope.Turn, with place: Int, lastAt slot: Int) -> Int {
    guard
      let index = connections[place: place].subscriptions.index(ofScope: turn.scope, lastAt: slot)
    else { return slot }
    guard connections[place: place].subscriptions[index].progress.isLive else { return index }
    if let loss = turn.loss {
      connections[place: place].subscriptions[index].progress = .lost(loss)
      return index
    }
    if connections[place: place].client.wantsDecisions { announceDecisions(to: place) }
    connections[place: place].outbox.append(contentsOf: turn.frames, count: turn.byteCount)
    if faults.repeatsFrames {
      connections[place: place].outbox.append(contentsOf: turn.frames, count: turn.byteCount)
    }
    connections[place: place].counters.patches += turn.count
    return index
  }

  /// Announce what is decided of the actions of a connection's session, before their changes.
  @inline(never)
  private mutating func announceDecisions(to place: Int) {
    guard let attachment = connections[place: place].attachment, !faults.announcesLate else {
      return
    }
    connections[place: place].announce(sessions[place: attachment.place].outcomes)
  }

  /// Make one connection's `send`, unless it is held back.
  private mutating func compose(
    _ id: ConnectionID, at place: Int, _ commands: inout [Command]
  ) {
    let (token, session, isLeaving): (SessionToken?, Int?, Bool)
    switch connections[place: place].phase {
    case .left, .awaitingHello, .vacant: return
    case .live(let attachment), .parting(let attachment):
      (token, session, isLeaving) = (attachment.token, attachment.place, false)
    case .leaving(_, let left):
      (token, session, isLeaving) = (left, left.flatMap { sessions.place(of: $0) }, true)
    }
    // Moved out, so that it has one owner while the server changes beside it.
    var box = connections.takeOut(place)
    let goodbye = compose(&box.session, session, isLeaving: isLeaving, &commands)
    connections.putBack(box, at: place)
    guard let goodbye else { return finishComposing(id, at: place) }
    commands.append(.close(id))
    dropSubscriptions(of: id)
    // A client that said goodbye never resumes, so its outcomes can be dropped.
    if goodbye == .done, let token { forget(token, from: id) }
  }

  /// Send everything that is due to a connection and its session; or what of it is at hand, and the goodbye
  /// with which it leaves, whose code this returns.
  private mutating func compose(
    _ connection: inout ServerSession, _ session: Int?, isLeaving: Bool,
    _ commands: inout [Command]
  ) -> GoodbyeCode? {
    var isLeaving = isLeaving
    if !connection.flow.isHeldBack || faults.ignoresBackPressure {
      if faults.acknowledgesEarly {
        let patches = connection.outbox.take(at: clock.now) ?? .none
        acknowledge(&connection, session)
        connection.outbox.append(contentsOf: patches)
      }
      if connection.client.wantsDecisions, let session, !faults.announcesLate {
        connection.announce(sessions[place: session].outcomes)
      }
      if connection.owesNews { sayRevoked(&connection) }
      let isHandingOver = if case .handingOver = ending { true } else { false }
      var (hadWork, joined) = (false, false)
      if !connection.isCurrent, !isLeaving || ending.isNear {
        hadWork = connections.catchUpWork > 0
        catchUp(&connection, isLast: ending.isNear, &commands)
      }
      // Before the answers: an answer implies that every subscription that is not announced anew is
      // at the newest revision.
      if isHandingOver {
        // No request is begun that could not be finished here: requests go to the next process.
        answerRefused(&connection, &commands)
      } else {
        if !isLeaving, !connection.isCurrent,
          !connection.isBlocked || connection.subscriptions.activeCount == 0
        {
          joined = connections.catchUpWork > 0
          join(&connection, &commands)
        }
        if connection.requests.grant > 0, connection.subscriptions.mayBeTold {
          answer(&connection, &commands)
        }
      }
      if faults.announcesLate, connection.client.wantsDecisions, let session {
        connection.announce(sessions[place: session].outcomes)
      }
      if connection.isCurrent {
        connection.flow.isDelayed = false
        if !connection.subscriptions.areAllRevoked { acknowledge(&connection, session) }
      } else if !isLeaving {
        delayIfUnfinished(&connection, hadWork: hadWork, joined: joined)
      }
      connection.bookmark(
        core.revision, durable: durableRevision, every: limits.bookmarkInterval, at: clock.now)
      if case .parting(let attachment) = connection.phase, hasAll(connection, attachment) {
        isLeaving = true
      }
      if connection.flow.isHeldBack, !isLeaving, !faults.ignoresBackPressure {
        holdBack(&connection, isKnown: true)
      }
    }
    // Its code alone: to hand on an optional goodbye takes 170 instructions each time, mostly for nil.
    let goodbye = isLeaving ? sayGoodbye(to: &connection) : nil
    if let frames = connection.takeFrames(at: clock.now) {
      commands.append(.send(connection.id, frames))
    }
    return goodbye
  }

  /// Send the goodbye with which a connection leaves. Nothing is sent after it.
  @inline(never)
  private mutating func sayGoodbye(to connection: inout ServerSession) -> GoodbyeCode? {
    guard let goodbye = connection.goodbye else { return nil }
    counters.goodbyes += 1
    connection.send(.goodbye(goodbye))
    connection.end(goodbye)
    return goodbye.code
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
    if hasQuestions(place), connections[place: place].subscriptions.mayBeTold {
      lineUp(place)
    }
    releaseIfPossible(id, at: place)
  }

  /// Read from a connection again if nothing is in the way.
  @inline(__always)
  mutating func releaseIfPossible(_ id: ConnectionID, at place: Int) {
    if connections[place: place].frames.isHeld, !connections[place: place].isBlocked,
      connections[place: place].requests.hasRoom(limits), !largeActions.isPending(id)
    {
      connections.release(id)
    }
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
