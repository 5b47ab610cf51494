import CBOR
import Lockstep
import Values
import Wire

// A connection that was blocked, or that needs snapshots, catches up: each of its subscriptions gets one
// patch from the revision that it has to the newest, or a snapshot. It may have ten thousand of them, so
// that is done over several turns, each of which has so much work for all that are behind
// (`Limits.requestWorkPerTurn`); the connections have it in turn. Until all are done the client is told of
// no newer revision: no answers, no acknowledgements.
//
// One that is made to leave meanwhile is sent no more of it: its client comes back with the position that it
// has, if at all. Before the process ends there is no later turn, and all are brought up to date.
//
// A connection that is blocked once more before it is done is sent the rest all the same, and held back
// then. If it were held back at once, what it has already would be behind again as soon as it changes, and a
// client that reads slowly might never be answered. What it is sent meanwhile counts as unsent bytes of its
// user.
extension Server {
  /// Bring subscriptions that lag, or whose job has ended, up to date, as far as that needs no new
  /// snapshot and the turn's work allows; all of them if there is no later turn. O(these).
  mutating func catchUp(
    _ connection: inout ServerSession, isLast: Bool, _ commands: inout [Command]
  ) {
    // Those that are listed again meanwhile are for another turn.
    var left = connection.subscriptions.activeCount
    while left > 0, isLast || connections.catchUpWork > 0,
      let index = connection.subscriptions.nextActive()
    {
      left -= 1
      let before = work(for: connection)
      let subscription = connection.subscriptions[index]
      connection.subscriptions[index].progress = progress(of: subscription, &connection, &commands)
      connection.subscriptions.putBack(index)
      countCatchUp(before, connection)
    }
  }

  /// The bytes that have been put out for a connection, and those that have been encoded, and read of the
  /// history, for all in this turn.
  private func work(
    for connection: borrowing ServerSession
  ) -> (sent: Int, encoded: Int, read: Int) {
    (connection.outbox.byteCount, publication.encodedThisTurn, publication.readThisTurn)
  }

  /// Note the work of one subscription since then: about four microseconds, and one for 64 bytes; one in all
  /// if nothing had changed.
  private mutating func countCatchUp(
    _ before: (sent: Int, encoded: Int, read: Int), _ connection: borrowing ServerSession
  ) {
    let now = work(for: connection)
    // What is encoded on the loop is sent.
    let bytes = max(now.sent - before.sent, now.encoded - before.encoded) + now.read - before.read
    connections.catchUpWork -= bytes == 0 ? 1 : 4 + bytes / 64
  }

  /// Have a connection that is not current composed again in the next turn, if this one's work is used up:
  /// in front of others if it had none of it, so that all have it in turn. If there is work left, it only
  /// waits for jobs. `joined` says whether there was some for snapshots: if it is blocked, that is all of
  /// them until it has read.
  mutating func delayIfUnfinished(
    _ connection: inout ServerSession, hadWork: Bool, joined: Bool
  ) {
    connection.flow.isDelayed =
      connections.catchUpWork <= 0 && !(connection.isBlocked && joined)
    guard connection.flow.isDelayed else { return }
    connections.delay(
      ConnectionPlace(id: connection.id, place: connection.place), isFirst: !hadWork)
  }

  /// Bring a subscription up to date, as far as that needs no new snapshot, and return how far it is.
  private mutating func progress(
    of subscription: Subscription, _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    switch subscription.progress {
    case .live, .lost: return subscription.progress
    case .lagging(let revision):
      return advance(subscription, from: revision, &connection, &commands)
    case .differing(let job, let revision, let rounds):
      switch publication.encoding(job, of: subscription.scope, at: revision) {
      case .running: return subscription.progress
      case .difference(let difference):
        append(difference: difference, of: subscription, &connection)
        return follow(difference, rounds, subscription, &connection, &commands)
      case .snapshot, .gone:
        publication.release(revision, by: connection.peer.uid)
        return .lost(.lagged)
      }
    case .resuming(let job, let held, let position, let reason):
      let (isRunning, patches) = publication.found(job)
      if isRunning { return subscription.progress }
      let progress = resume(
        subscription, after: position, behind: reason, patches, &connection, &commands)
      if let held { publication.release(held, by: connection.peer.uid) }
      return progress
    case .joining(let job, let revision, let reason):
      switch publication.encoding(job, of: subscription.scope, at: revision) {
      case .running: return subscription.progress
      case .snapshot(let snapshot):
        let progress = resume(
          subscription, after: revision, behind: reason,
          BegunPatches(after: revision, behind: snapshot.frames), &connection, &commands)
        publication.release(revision, by: connection.peer.uid)
        return progress
      case .difference, .gone:
        publication.release(revision, by: connection.peer.uid)
        return .lost(reason)
      }
    }
  }

  /// Send what has been found: a snapshot that is needed for a reason, or nothing, and patches behind it; and
  /// then the patches since. If these are many, they are found beside the loop, too, before any is sent: the
  /// client may know already of later revisions than those of the former ones, and must not see its mirror
  /// follow at these. Each time there are fewer, or it is done at once in the end (`mostRounds`). Behind a
  /// snapshot they may be one difference.
  private mutating func resume(
    _ subscription: Subscription, after position: UInt64, behind reason: ServerMessage.Reason?,
    _ found: BegunPatches?, _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    guard let place = publication.scopes.index(of: subscription.scope) else { return .live }
    var found = found
    if let begun = found, publication.scopes[index: place].lastChange <= begun.revision {
      // All of it is elsewhere, or hidden: to look for it would take as long as it is large.
      found = begun.addingNothing(through: core.revision)
    } else if let reason, let begun = found, !publication.hasPatches(of: place, behind: begun) {
      let uid = connection.peer.uid
      if let wait = waitBehind(begun, reason, of: place, by: uid, &commands) {
        return wait
      } else {
        found =
          publication.adding(
            differenceTo: core.state, at: core.revision, of: place, behind: begun) ?? begun
      }
    }
    guard let found, publication.history.covers(found.revision) else {
      publication.dropSnapshot(of: place, at: position)
      return .lost(reason ?? .history)
    }
    if publication.isLong(after: found.revision), found.rounds < Self.mostRounds {
      let id = awaitMissed(of: place, behind: found, &commands)
      return .resuming(id, held: nil, after: position, behind: reason)
    }
    let missed = publication.missed(of: place, after: found.revision, base: found.reached)
    if let loss = missed.loss {
      publication.dropSnapshot(of: place, at: position)
      return .lost(loss)
    }
    if let reason {
      announceSnapshot(subscription, reason, &connection)
      append(found.snapshot, &connection)
    }
    connection.outbox.append(contentsOf: Frames(found.frames))
    connection.counters.patches += found.count
    count(&connection, coalesced: found.coalesced)
    if !faults.skipsCatchUp { append(missed, of: subscription, &connection) }
    return .live
  }

  /// Send or begin the snapshots that subscriptions need, as many as may be encoded at a time and the
  /// turn's work allows. What a request takes is counted as the request's.
  mutating func join(
    _ connection: inout ServerSession, isRequested: Bool = false, _ commands: inout [Command]
  ) {
    // A request is for one: the others have their turn's work.
    var left = isRequested ? 1 : connection.subscriptions.behind
    while left > 0, connection.subscriptions.joining < limits.concurrentSnapshots,
      isRequested || connections.catchUpWork > 0, let index = connection.subscriptions.nextLost(),
      case .lost(let reason) = connection.subscriptions[index].progress
    {
      left -= 1
      if reason == .memory {
        refuseImpossible(index, &connection)
      } else {
        let before = work(for: connection)
        connection.subscriptions[index].progress = snapshot(
          connection.subscriptions[index], reason, &connection, &commands)
        if isRequested { continue }
        countCatchUp(before, connection)
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
    join(&connection, isRequested: true, &commands)
  }

  /// Send the changes since a difference that has just been sent: the patches themselves if the
  /// history has them, because computing the difference of two large states takes longer than
  /// copying patches.
  private mutating func follow(
    _ difference: EncodedSnapshot, _ rounds: Int, _ subscription: Subscription,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    let revision = difference.revision
    if !faults.skipsCatchUp, let place = publication.scopes.index(of: subscription.scope),
      let missed = publication.missed(of: place, behind: difference)
    {
      publication.release(revision, by: connection.peer.uid)
      append(missed, of: subscription, &connection)
      return .live
    }
    var joined = subscription
    joined.base = revision
    return advance(joined, from: revision, behind: rounds + 1, &connection, &commands)
  }

  /// Send one patch from a held state to the newest, and release the held state; or have the patch
  /// encoded beside the loop, if much has changed, and that was not done `mostRounds` times already. Unless
  /// the result is `lost`, the mirror is then at the newest revision, or will be when the patch has been
  /// sent: if nothing has changed there, nothing is sent, and the client takes it to be at the next revision
  /// that it is told of.
  private mutating func advance(
    _ subscription: Subscription, from revision: UInt64, behind rounds: Int = 0,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    defer { publication.release(revision, by: connection.peer.uid) }
    guard revision < core.revision, !faults.skipsCatchUp else { return .live }
    guard let place = publication.scopes.index(of: subscription.scope) else { return .live }
    guard publication.scopes[index: place].lastChange > revision else { return .live }
    if rounds < Self.mostRounds,
      let wait = publication.awaitDifference(
        of: place, from: revision, base: subscription.base, to: core.state, at: core.revision,
        by: connection.peer.uid)
    {
      if wait.isNew { commands.append(.encodeSnapshot(wait.id)) }
      return .differing(wait.id, wait.revision, rounds: rounds)
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
    count(&connection, coalesced: revisions - 1)
  }

  private mutating func count(_ connection: inout ServerSession, coalesced: UInt64) {
    connection.counters.coalesced += coalesced
    counters.coalesced += coalesced
  }
}
