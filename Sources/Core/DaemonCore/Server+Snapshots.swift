public import Lockstep
import Values
import Wire

extension Server {
  /// Give a subscription a snapshot: at once if one is cached, with fewer bytes of patches since
  /// than its own, or is quick to make; else after it has been encoded off the loop.
  mutating func snapshot(
    _ subscription: Subscription, _ reason: ServerMessage.Reason,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    guard let place = publication.scopes.index(of: subscription.scope) else { return .live }
    announceSnapshot(subscription, reason, &connection)
    if let cached = publication.scopes[index: place].snapshot,
      publication.isLong(after: cached.revision),
      publication.hasPatches(after: cached.revision, ofAtMost: cached.byteCount)
    {
      let begun = BegunPatches(after: cached.revision, behind: cached.frames)
      let id = awaitMissed(of: place, behind: begun, &commands)
      return .resuming(id, held: nil, after: cached.revision, behind: reason)
    }
    if let (cached, missed) = publication.cachedSnapshot(of: place, at: clock.now) {
      append(cached.frames, &connection)
      append(missed, of: subscription, &connection)
      return .live
    }
    if let frames = publication.quickSnapshot(
      of: place, core.state, at: core.revision, clock.now)
    {
      append(frames, &connection)
      return .live
    }
    let (id, revision, isNew) = publication.awaitSnapshot(
      of: place, core.state, expecting: memory.expectedBytes, at: core.revision,
      by: connection.peer.uid)
    if isNew { commands.append(.encodeSnapshot(id)) }
    return .joining(id, revision, reason)
  }

  /// What a subscription waits for if so much has changed behind a snapshot, and the patches that have been
  /// found behind it, that the difference is encoded beside the loop: the state at that revision is held. Nil
  /// if the patches can be sent, or a difference be made, at once.
  @inline(never)
  mutating func waitBehind(
    _ begun: BegunPatches, _ reason: ServerMessage.Reason, of place: Int, by uid: UInt64,
    _ commands: inout [Command]
  ) -> Subscription.Progress? {
    guard begun.rounds < Self.mostRounds, !faults.skipsCatchUp,
      let wait = publication.awaitDifference(
        of: place, from: begun.revision, base: begun.reached, behind: begun, to: core.state,
        at: core.revision, by: uid)
    else { return nil }
    if wait.isNew { commands.append(.encodeSnapshot(wait.id)) }
    return .resuming(wait.id, held: wait.revision, after: begun.position, behind: reason)
  }

  /// So often is what a mirror lacks made beside the loop, each time behind the last. Each takes less time than
  /// the one before, unless the state changes as fast as that: then the last is made at once, so that the
  /// client is answered in the end.
  static var mostRounds: Int { 8 }

  /// Send the frames of a snapshot.
  mutating func append(_ frames: [[UInt8]], _ connection: inout ServerSession) {
    connection.outbox.append(contentsOf: Frames(frames))
    connection.counters.snapshots += 1
    counters.snapshots += 1
  }

  /// The job to encode; nil if it has ended.
  public func snapshot(for id: SnapshotJobID) -> SnapshotJob<R.State>? { publication.jobs[id] }

  mutating func snapshotEncoded(
    _ id: SnapshotJobID, _ frames: [[UInt8]], _ wholeBytes: Int?
  ) {
    guard let scope = publication.jobs[id]?.scope else { return }
    for subscriber in publication.finish(id, frames, wholeBytes, at: clock.now) {
      guard let place = connections.place(of: subscriber.connection),
        let index = connections[place: place].subscriptions.index(
          ofScope: scope, lastAt: subscriber.slot)
      else { continue }
      if connections[place: place].subscriptions.jobEnded(id, for: index) {
        connections.touch(subscriber.connection.id, at: place)
      }
    }
  }

  /// End a job for lack of memory: the clients that wait for it are refused, and may retry; those that
  /// follow already, or have a mirror of a former connection, need a snapshot. Those that have one, and
  /// wait for the difference behind it, wait for the patches instead, if the history has them: these take
  /// less.
  mutating func snapshotImpossible(_ id: SnapshotJobID, _ commands: inout [Command]) {
    guard let job = publication.jobs[id] else { return }
    let bytes = memory(for: id)
    for subscriber in publication.abandon(id) {
      guard let place = connections.place(of: subscriber.connection),
        let index = connections[place: place].subscriptions.index(ofScope: job.scope)
      else { continue }
      switch connections[place: place].subscriptions[index].progress {
      case .joining(id, let revision, _):
        publication.release(revision, by: connections[place: place].peer.uid)
        connections[place: place].subscriptions[index].progress = .lost(.memory)
      case .differing(id, let revision, _):
        publication.release(revision, by: connections[place: place].peer.uid)
        connections[place: place].subscriptions[index].progress = .lost(.lagged)
      case .resuming(id, let held, let position, let reason):
        if let held { publication.release(held, by: connections[place: place].peer.uid) }
        if held != nil, reason != nil, let begun = job.begun,
          publication.history.covers(begun.revision),
          let scope = publication.scopes.index(of: job.scope)
        {
          let patches = awaitMissed(of: scope, behind: begun, &commands)
          connections[place: place].subscriptions[index].progress =
            .resuming(patches, held: nil, after: position, behind: reason)
          continue
        }
        connections[place: place].subscriptions[index].progress =
          .lost(reason == nil ? .history : .memory)
      default: continue
      }
      connections.touch(subscriber.connection.id, at: place)
      commands.append(
        .log(
          LogLine(
            .error, "no memory for a client's snapshot",
            connections[place: place].logFields + [.init("bytes", bytes)])))
    }
  }

  /// End a subscription whose snapshot there is no memory for.
  mutating func refuseImpossible(_ index: Int, _ connection: inout ServerSession) {
    let subscription = connection.subscriptions.remove(at: index)
    end(subscription, of: connection)
    refuse(subscription.number, .memory, &connection)
  }

  /// About how many bytes of memory a job takes.
  public func memory(for id: SnapshotJobID) -> Int {
    guard let job = publication.jobs[id], case .history(let history, _) = job.origin,
      let begun = job.begun
    else { return snapshotMemory }
    return 2 * history.byteCount(after: begun.revision)
  }

  /// About how many bytes of memory it takes to encode a snapshot of the whole state.
  public var snapshotMemory: Int { memory.snapshotBytes }

  /// How many bytes of memory several jobs beside the loop may take together, so that what actions may
  /// take meanwhile is there, too.
  public var jobMemory: Int { memory.budget.jobBytes }

  /// An upper bound of the state's size, as far as it is known.
  public var knownSize: StateMeasure {
    StateMeasure(encoded: memory.size.encoded, memory: memory.size.memory)
  }
}
