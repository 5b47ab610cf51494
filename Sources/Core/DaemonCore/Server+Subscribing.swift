import Access
import Lockstep
import Values
import Wire

// A subscription begins: the client's mirror is resumed from its position if the history has the
// patches since, else it gets a snapshot (`Server+Snapshots`).
extension Server {
  /// Begin a subscription at the turn's end: resume from the client's position if the history has
  /// the patches since, else from a snapshot. Returns the bytes of patches that were read for that.
  mutating func subscribe(
    _ number: UInt64, _ path: Path, _ position: Position?, _ connection: inout ServerSession,
    _ commands: inout [Command]
  ) -> Int {
    let sight = sight(of: path, with: connection.rights)
    if let reason = refusal(ofSubscription: number, path, sight, connection) {
      refuse(number, reason, &connection)
      return 0
    }
    guard case .shown(let filter) = sight else {
      logDenial(of: .read(path), "subscription denied", connection, &commands)
      refuse(number, .denied, &connection)
      return 0
    }
    let place = scope(of: path, by: filter)
    var subscription = Subscription(
      number: number, scope: publication.scopes[index: place].id, progress: .live)
    let (resumption, read) = resume(position, at: place, connection, &commands)
    switch resumption {
    case .current:
      say(
        .init(
          subscription: number, scope: subscription.scope, .current, .none,
          revision: core.revision), &connection)
    case .patches(let missed):
      say(
        .init(
          subscription: number, scope: subscription.scope, .patch, .none,
          revision: core.revision), &connection)
      append(missed, of: subscription, &connection)
    case .waiting(let job):
      // Those that it has missed, up to now or to a later revision.
      say(
        .init(
          subscription: number, scope: subscription.scope, .patch, .none,
          revision: core.revision), &connection)
      subscription.progress = .resuming(
        job, held: nil, after: position?.revision ?? core.revision, behind: nil)
    case .snapshot(let reason):
      subscription.progress = .lost(reason)
    }
    users.countSubscription(1, at: connection.account)
    connection.begin(subscription, &publication.scopes[index: place])
    return read
  }

  /// The reason that a connection gets no further subscription; nil if it does, unless nothing is
  /// visible there.
  private func refusal(
    ofSubscription number: UInt64, _ path: Path, _ sight: Sight, _ connection: ServerSession
  ) -> ServerMessage.Reason? {
    if connection.subscriptions.index(ofNumber: number) != nil { return .duplicate }
    if case .shown(let filter) = sight, let place = publication.scopes.index(of: path, by: filter),
      connection.subscriptions.index(ofScope: publication.scopes[index: place].id) != nil
    {
      return .duplicate
    }
    guard connection.subscriptions.count < limits.subscriptions,
      users.maySubscribe(at: connection.account)
    else { return .limit }
    return nil
  }

  func refuse(
    _ number: UInt64, _ reason: ServerMessage.Reason, _ connection: inout ServerSession
  ) {
    say(
      .init(subscription: number, scope: 0, .refused, reason, revision: core.revision), &connection)
  }

  func say(_ subscribed: ServerMessage.Subscribed, _ connection: inout ServerSession) {
    connection.send(.subscribed(subscribed))
  }

  /// Tell a client that its mirror of a subscription is current.
  func sayCurrent(_ subscription: Subscription, _ connection: inout ServerSession) {
    say(
      .init(
        subscription: subscription.number, scope: subscription.scope, .current, .none,
        revision: core.revision), &connection)
  }

  /// Tell a client that a snapshot follows, and that after it and the patches behind it the
  /// subscription is at the newest revision.
  func announceSnapshot(
    _ subscription: Subscription, _ reason: ServerMessage.Reason,
    _ connection: inout ServerSession
  ) {
    say(
      .init(
        subscription: subscription.number, scope: subscription.scope, .snapshot, reason,
        revision: core.revision), &connection)
  }

  private enum Resumption {
    case current
    case patches(MissedPatches)
    /// The patches are found beside the loop.
    case waiting(SnapshotJobID)
    case snapshot(ServerMessage.Reason)
  }

  /// How to bring a mirror at `position` up to date, and the bytes of patches that are read to find
  /// that. Takes the place of its scope: to pass a scope that is stored in `self`, the compiler would
  /// copy the server.
  private mutating func resume(
    _ position: Position?, at place: Int, _ connection: borrowing ServerSession,
    _ commands: inout [Command]
  ) -> (resumption: Resumption, read: Int) {
    guard let position else { return (.snapshot(.noPosition), 0) }
    guard position.epoch == timeline.epoch else { return (.snapshot(.epoch), 0) }
    guard holds(position) || faults.forgetsRun else { return (.snapshot(.ahead), 0) }
    guard position.revision <= core.revision || faults.forgetsRun else {
      return (.snapshot(.ahead), 0)
    }
    guard authority.covers(position, timeline.run) else { return (.snapshot(.view), 0) }
    if position.revision >= core.revision { return (.current, 0) }
    guard publication.history.covers(position.revision) else { return (.snapshot(.history), 0) }
    let isSmaller = publication.isSmaller(
      place, core.state, at: core.revision, thanPatchesAfter: position.revision, clock.now)
    if isSmaller {
      return (.snapshot(.history), 0)
    }
    let read = publication.history.byteCount(after: position.revision)
    if publication.isLong(after: position.revision) {
      guard connection.subscriptions.joining < limits.concurrentSnapshots else {
        return (.snapshot(.history), 0)
      }
      let id = awaitMissed(
        of: place, behind: BegunPatches(after: position.revision), &commands)
      return (.waiting(id), read)
    }
    let missed = publication.missed(
      of: place, after: position.revision, base: position.revision)
    if let loss = missed.loss { return (.snapshot(loss), read) }
    return (missed.count == 0 ? .current : .patches(missed), read)
  }

  /// Have the patches of a scope found beside the loop that are behind those that have been found.
  mutating func awaitMissed(
    of place: Int, behind begun: BegunPatches, _ commands: inout [Command]
  ) -> SnapshotJobID {
    let wait = publication.awaitMissed(
      of: place, behind: begun, core.state, at: core.revision)
    if wait.isNew { commands.append(.encodeSnapshot(wait.id)) }
    return wait.id
  }

  /// Send the patches that a mirror lacks. It is then at the newest revision, and is told so.
  func append(
    _ missed: MissedPatches, of subscription: Subscription, _ connection: inout ServerSession
  ) {
    connection.outbox.append(contentsOf: missed.frames)
    connection.counters.patches += UInt64(missed.count)
    if missed.reached < core.revision { sayCurrent(subscription, &connection) }
  }
}
