import Access
import CBOR
public import Lockstep
import Values
import Wire

extension Server {
  // MARK: Subscribing

  /// Begin a subscription, at the turn's end: from the position that the client names if its
  /// patches are still there, else from a snapshot.
  mutating func subscribe(
    _ number: UInt64, _ path: Path, _ position: Position?, _ connection: inout ServerSession,
    _ commands: inout [Command]
  ) {
    let sight = sight(of: path, with: connection.rights)
    if let reason = refusal(ofSubscription: number, path, sight, connection) {
      return refuse(number, reason, &connection)
    }
    guard case .shown(let filter) = sight else {
      logDenial(of: .read(path), "subscription denied", connection, &commands)
      return refuse(number, .denied, &connection)
    }
    let place = scope(of: path, by: filter)
    var subscription = Subscription(
      number: number, scope: scopes[index: place].id, progress: .live)
    switch resume(position, scopes[index: place]) {
    case .current:
      say(
        .init(
          subscription: number, scope: subscription.scope, .current, .none,
          revision: core.revision), &connection)
    case .patches(let replay):
      say(
        .init(
          subscription: number, scope: subscription.scope, .patch, .none,
          revision: core.revision), &connection)
      append(replay, of: subscription, &connection)
    case .snapshot(let reason):
      subscription.progress = .lost(reason)
    }
    Self.begin(subscription, of: &connection, &users, &scopes[index: place])
  }

  /// Why a connection gets no other subscription; nil if it does, unless nothing may be seen there.
  private func refusal(
    ofSubscription number: UInt64, _ path: Path, _ sight: Sight, _ connection: ServerSession
  ) -> ServerMessage.Reason? {
    if connection.subscriptions.index(ofNumber: number) != nil { return .duplicate }
    if case .shown(let filter) = sight, let place = scopes.index(of: path, by: filter),
      connection.subscriptions.index(ofScope: scopes[index: place].id) != nil
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
    connection.output.append(Self.frame(.subscribed(subscribed)))
  }

  /// Tell a client that what it has of a subscription is what stands there now.
  func sayCurrent(_ subscription: Subscription, _ connection: inout ServerSession) {
    say(
      .init(
        subscription: subscription.number, scope: subscription.scope, .current, .none,
        revision: core.revision), &connection)
  }

  /// Tell a client that a snapshot comes, and that with what is behind it the subscription will
  /// stand at the newest revision.
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
    case patches(Replay)
    case snapshot(ServerMessage.Reason)
  }

  /// How a mirror at `position` comes up to now.
  private func resume(_ position: Position?, _ scope: Scope) -> Resumption {
    guard let position else { return .snapshot(.noPosition) }
    guard position.epoch == timeline.epoch else { return .snapshot(.epoch) }
    guard holds(position) || faults.forgetsRun else { return .snapshot(.ahead) }
    guard position.revision <= core.revision || faults.forgetsRun else {
      return .snapshot(.ahead)
    }
    guard authority.covers(position, timeline.run) else { return .snapshot(.view) }
    if position.revision >= core.revision { return .current }
    guard history.covers(position.revision) else { return .snapshot(.history) }
    if let size = scope.snapshotBytes, history.byteCount(after: position.revision) > size {
      return .snapshot(.history)
    }
    let replay = replay(scope, after: position.revision)
    if let loss = replay.loss { return .snapshot(loss) }
    return replay.count == 0 ? .current : .patches(replay)
  }

  /// The patches of a scope after a revision.
  struct Replay: Sendable {
    var frames: [[UInt8]]
    /// How many patches they hold.
    var count: Int
    /// The revision of the last patch.
    var reached: UInt64
    /// Why they cannot be sent, if so.
    var loss: ServerMessage.Reason?
  }

  /// The patches behind a snapshot, if the history has them and they are fewer bytes than it is.
  /// All that come in one turn share them.
  mutating func replay(_ scope: Scope, behind snapshot: EncodedSnapshot) -> Replay? {
    let revision = snapshot.revision
    guard history.covers(revision), history.byteCount(after: revision) <= snapshot.byteCount else {
      return nil
    }
    let key = DifferenceKey(scope: scope.id, revision: revision, base: revision)
    let found = replays[key] ?? replay(scope, after: revision)
    replays[key] = found
    return found.loss == nil ? found : nil
  }

  /// Send what a mirror lacks. Then it stands at the newest revision, and is told so.
  func append(_ replay: Replay, of subscription: Subscription, _ connection: inout ServerSession) {
    connection.output.append(contentsOf: replay.frames)
    connection.counters.patches += UInt64(replay.count)
    if replay.reached < core.revision { sayCurrent(subscription, &connection) }
  }

  /// O(the history after the revision).
  private func replay(_ scope: Scope, after revision: UInt64) -> Replay {
    // A scope of its own collects them, as a turn's would be. It cannot know whether anything
    // stood at the path then; saying once more that nothing does is harmless.
    var scope = Scope(
      id: scope.id, path: scope.path, filter: scope.filter, lastChange: revision, isPresent: true)
    var count = 0
    history.forEach(after: revision) { made, patch in
      if scope.note(patch, revision: made, limits: limits) { count += 1 }
    }
    scope.cut()
    return Replay(
      frames: scope.frames, count: count, reached: scope.lastChange, loss: scope.loss)
  }

  // MARK: Snapshots

  /// Give a subscription a snapshot: at once if one is at hand, with fewer bytes of patches since
  /// than its own, or quick to make; else when it has been encoded beside the loop.
  mutating func snapshot(
    _ subscription: Subscription, _ reason: ServerMessage.Reason,
    _ connection: inout ServerSession, _ commands: inout [Command]
  ) -> Subscription.Progress {
    guard let place = scopes.index(of: subscription.scope) else { return .live }
    let scope = scopes[index: place]
    announceSnapshot(subscription, reason, &connection)
    // A small state that changes often has more to say of its past than of itself, and whoever does
    // not read it makes us keep all of that.
    if let cached = scope.snapshot, let replay = replay(scope, behind: cached) {
      scopes[index: place].snapshot?.lastUsed = clock.now
      connection.output.append(contentsOf: cached.frames)
      connection.counters.snapshots += 1
      counters.snapshots += 1
      append(replay, of: subscription, &connection)
      return .live
    }
    if let size = scope.wholeBytes, size <= limits.inlineSnapshotBytes {
      let (frames, wholeBytes) = job(SnapshotJobID(0), scope).measured()
      keep(frames, wholeBytes, at: core.revision, of: place)
      connection.output.append(contentsOf: frames)
      connection.counters.snapshots += 1
      counters.snapshots += 1
      return .live
    }
    if let id = scope.job, let running = jobs[id], held[running.revision] != nil {
      held.hold(running.state, at: running.revision, by: connection.peer.uid)
      return .joining(id, running.revision, reason)
    }
    nextJob += 1
    let id = SnapshotJobID(nextJob)
    jobs[id] = job(id, scope)
    scopes[index: place].job = id
    held.hold(core.state, at: core.revision, by: connection.peer.uid)
    commands.append(.encodeSnapshot(id))
    return .joining(id, core.revision, reason)
  }

  private func job(_ id: SnapshotJobID, _ scope: Scope) -> SnapshotJob<R.State> {
    let revision = core.revision + (faults.mislabelsSnapshots ? 1 : 0)
    return SnapshotJob(
      id: id, state: core.state, path: scope.path,
      filter: faults.sendsWholeSnapshots ? nil : scope.filter, scope: scope.id,
      revision: revision, partBytes: limits.snapshotPartBytes)
  }

  /// The job to encode; nil when nobody waits for it any more.
  public func snapshot(for id: SnapshotJobID) -> SnapshotJob<R.State>? { jobs[id] }

  private mutating func keep(
    _ frames: [[UInt8]], _ wholeBytes: Int?, at revision: UInt64, of place: Int
  ) {
    scopes[index: place].snapshot = EncodedSnapshot(
      revision: revision, frames: frames, lastUsed: clock.now)
    let bytes = frames.reduce(0) { $0 + $1.count }
    scopes[index: place].snapshotBytes = bytes
    scopes[index: place].wholeBytes =
      scopes[index: place].filter == nil ? bytes : wholeBytes
  }

  mutating func snapshotEncoded(
    _ id: SnapshotJobID, _ frames: [[UInt8]], _ wholeBytes: Int?
  ) {
    guard let job = jobs.removeValue(forKey: id) else { return }
    guard let place = scopes.index(of: job.scope) else { return }
    if scopes[index: place].job == id { scopes[index: place].job = nil }
    // Jobs may finish in another order than they began. Who waits for one whose frames are not
    // kept takes those that are.
    if scopes[index: place].snapshot.map({ $0.revision < job.revision }) ?? true {
      keep(frames, wholeBytes, at: job.revision, of: place)
    }
    for subscriber in scopes[index: place].subscribers { connections.touch(subscriber) }
  }

  /// A job that no memory is there for: who waits for it is refused, and may come again.
  mutating func snapshotImpossible(_ id: SnapshotJobID, _ commands: inout [Command]) {
    guard let job = jobs.removeValue(forKey: id), let place = scopes.index(of: job.scope) else {
      return
    }
    if scopes[index: place].job == id { scopes[index: place].job = nil }
    for subscriber in scopes[index: place].subscribers {
      guard let place = connections.place(of: subscriber) else { continue }
      for index in connections[place: place].subscriptions.indices {
        guard
          case .joining(id, let revision, _) = connections[place: place].subscriptions[index]
            .progress
        else { continue }
        held.release(revision, by: connections[place: place].peer.uid)
        connections[place: place].subscriptions[index].progress = .lost(.memory)
        connections.touch(subscriber, at: place)
        commands.append(
          .log(
            LogLine(
              .error, "no memory for a client's snapshot",
              connections[place: place].logFields + [.init("bytes", snapshotMemory)])))
      }
    }
  }

  /// End the subscriptions for whose snapshots there is no memory.
  mutating func refuseImpossible(_ connection: inout ServerSession) {
    // From the end, for one that is removed leaves its index to the last.
    for index in connection.subscriptions.indices.reversed()
    where connection.subscriptions[index].progress == .lost(.memory) {
      let subscription = connection.subscriptions.remove(at: index)
      end(subscription, of: connection)
      refuse(subscription.number, .memory, &connection)
    }
  }

  /// About how many bytes it takes to encode a snapshot of everything: the bytes, the array in
  /// which they grow, and their frames.
  public var snapshotMemory: Int { 3 * size.encoded }

  /// How large the state is at the most, as far as that is known.
  public var knownSize: StateMeasure {
    StateMeasure(encoded: size.encoded, memory: size.memory)
  }

  enum Encoding {
    case running
    case finished(EncodedSnapshot)
    /// The frames were let go before the client could take them.
    case gone
  }

  /// What became of a job that a subscription waits for.
  mutating func encoding(_ id: SnapshotJobID, _ scope: UInt64, _ revision: UInt64) -> Encoding {
    if jobs[id] != nil { return .running }
    guard let place = scopes.index(of: scope), let snapshot = scopes[index: place].snapshot,
      snapshot.revision == revision
    else { return .gone }
    counters.snapshots += 1
    return .finished(snapshot)
  }
}
