import Access
import CBOR
import Lockstep
import Values
import Wire

/// What of the state goes to clients: the scopes that they see, the patches of the past, the states
/// that are held for those who lag, and snapshots.
///
/// Invariants: between turns a live subscription has everything up to `flushed`, the revision at which
/// the last turn ended; for one that lags or joins, the state at its revision is held for its user
/// once, until it is released or too many are held; a scope is there exactly while it has subscribers
/// or is reserved; a job is there until its frames have come or cannot.
struct Publication<State: Synchronizable>: Sendable {
  let limits: Limits
  /// The parts of the state that connections see. A subscription and its scope's list of subscribers
  /// change together, in `Server.begin` and `Server.drop`.
  var scopes = ScopeTable()
  private(set) var history: History
  private(set) var held: HeldStates<State>
  private(set) var jobs: [SnapshotJobID: SnapshotJob<State>] = [:]
  private var lastJob: UInt64 = 0
  /// Differences composed in this turn: several clients may need the same.
  private var differences: [DifferenceKey: [UInt8]] = [:]
  /// The patches behind snapshots that this turn has framed.
  private var replays: [DifferenceKey: Replay] = [:]
  /// The revision at which the last turn ended.
  private(set) var flushed: UInt64
  var faults = Faults()

  private struct DifferenceKey: Hashable {
    let scope: UInt64
    let revision: UInt64
    let base: UInt64
  }

  init(_ history: History, at revision: UInt64, _ limits: Limits) {
    self.limits = limits
    self.history = history
    self.history.bound(to: limits.historyBytes)
    held = HeldStates(limits)
    flushed = revision
  }

  // MARK: Changes

  /// Note the patch of the whole state that made a revision. O(its bytes, and the scopes that it
  /// touches).
  @inline(__always)
  mutating func note(_ patch: [UInt8], revision: UInt64) {
    patch.withUnsafeBytes { history.append($0, revision: revision) }
    if !faults.dropsPatch(of: revision) {
      scopes.note(patch, revision: revision, limits: limits)
    }
  }

  /// Begin behind a change that was made before anybody could see it.
  mutating func begin(behind patch: [UInt8], revision: UInt64) {
    patch.withUnsafeBytes { history.append($0, revision: revision) }
    flushed = revision
  }

  /// Everything up to this revision has been composed.
  mutating func endTurn(at revision: UInt64) {
    scopes.endTurn()
    if !differences.isEmpty { differences.removeAll(keepingCapacity: true) }
    if !replays.isEmpty { replays.removeAll(keepingCapacity: true) }
    flushed = revision
  }

  // MARK: Holding

  /// Hold the state at the last turn's end for a connection of a user that lags behind it.
  mutating func hold(_ state: State, at revision: UInt64, by uid: UInt64) {
    held.hold(state, at: revision, by: uid)
  }

  /// Let go of what is held for a subscription that ends or catches up.
  mutating func release(_ revision: UInt64, by uid: UInt64) { held.release(revision, by: uid) }

  // MARK: Catching up

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

  /// The patches of a scope after a revision that the history covers. O(the history after it).
  func replay(_ scope: Scope, after revision: UInt64) -> Replay {
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

  enum Difference {
    /// One patch from the old state to the newest.
    case frame([UInt8])
    /// Nothing has changed there, or it has changed back.
    case none
    /// No patch says it: a snapshot does.
    case lost(ServerMessage.Reason)
  }

  /// What leads a mirror of a scope from a held revision to the newest, based on the one that the
  /// mirror is sure to have. Made once a turn. O(the difference).
  mutating func difference(
    of place: Int, from revision: UInt64, base: UInt64, to state: State, at newest: UInt64
  ) -> Difference {
    let key = DifferenceKey(scope: scopes[index: place].id, revision: revision, base: base)
    if let frame = differences[key] { return .frame(frame) }
    guard let before = held[revision] else { return .lost(.lagged) }
    var pair = CBOREncoder()
    pair.encode(newest - base)
    switch encodeDifference(from: before, to: state, of: scopes[index: place], into: &pair) {
    case .patch, .absent: break
    case .untouched: return .none
    case .resync: return .lost(.view)
    }
    guard pair.bytes.count + 64 <= limits.frameBytes else { return .lost(.tooLarge) }
    let frame = StreamFrames.patches(pair.bytes, count: 1, scope: key.scope, from: base)
    differences[key] = frame
    return .frame(frame)
  }

  /// Append the patch that leads what is seen of a scope from an old state to the newest:
  /// `undefined` if that is nothing any more.
  private func encodeDifference(
    from before: State, to state: State, of scope: borrowing Scope,
    into encoder: inout CBOREncoder
  ) -> ViewFilter.Outcome {
    guard let filter = scope.filter, !faults.sendsWholeDifferences else {
      return state.encodeDifference(from: before, at: scope.path, into: &encoder)
        ? .patch : .untouched
    }
    var whole = CBOREncoder()
    guard state.encodeDifference(from: before, at: scope.path, into: &whole) else {
      return .untouched
    }
    let outcome = whole.bytes.withUnsafeBytes { filter.filter(patch: $0, into: &encoder) }
    if outcome == .absent { encoder.encodeUndefined() }
    return outcome
  }

  // MARK: Snapshots

  /// A snapshot of a scope that is at hand and worth its bytes, with the patches behind it.
  mutating func cachedSnapshot(
    of place: Int, at now: Instant
  ) -> (snapshot: EncodedSnapshot, replay: Replay)? {
    // A small state that changes often has more to say of its past than of itself, and a client that
    // does not read it makes us keep all of that.
    guard let cached = scopes[index: place].snapshot,
      let replay = replay(scopes[index: place], behind: cached)
    else { return nil }
    scopes[index: place].snapshot?.lastUsed = now
    return (cached, replay)
  }

  /// The frames of a snapshot of a scope that is quick to make; nil if it may not be.
  mutating func quickSnapshot(
    of place: Int, _ state: State, at revision: UInt64, _ now: Instant
  ) -> [[UInt8]]? {
    guard let size = scopes[index: place].wholeBytes, size <= limits.inlineSnapshotBytes else {
      return nil
    }
    let (frames, wholeBytes) = job(SnapshotJobID(0), place, state, at: revision).measured()
    keep(frames, wholeBytes, at: revision, of: place, now)
    return frames
  }

  /// Have a user's connection wait for a snapshot of a scope: one that is being encoded, or a new
  /// one of this state. The state is held for it until then.
  mutating func awaitSnapshot(
    of place: Int, _ state: State, at revision: UInt64, by uid: UInt64
  ) -> (id: SnapshotJobID, revision: UInt64, isNew: Bool) {
    if let id = scopes[index: place].job, let running = jobs[id], held[running.revision] != nil {
      held.hold(running.state, at: running.revision, by: uid)
      return (id, running.revision, false)
    }
    lastJob += 1
    let id = SnapshotJobID(lastJob)
    jobs[id] = job(id, place, state, at: revision)
    scopes[index: place].job = id
    held.hold(state, at: revision, by: uid)
    return (id, revision, true)
  }

  private func job(
    _ id: SnapshotJobID, _ place: Int, _ state: State, at revision: UInt64
  ) -> SnapshotJob<State> {
    let scope = scopes[index: place]
    return SnapshotJob(
      id: id, state: state, path: scope.path,
      filter: faults.sendsWholeSnapshots ? nil : scope.filter, scope: scope.id,
      revision: revision + (faults.mislabelsSnapshots ? 1 : 0),
      partBytes: limits.snapshotPartBytes)
  }

  private mutating func keep(
    _ frames: [[UInt8]], _ wholeBytes: Int?, at revision: UInt64, of place: Int, _ now: Instant
  ) {
    scopes[index: place].snapshot = EncodedSnapshot(
      revision: revision, frames: frames, lastUsed: now)
    let bytes = frames.reduce(0) { $0 + $1.count }
    scopes[index: place].snapshotBytes = bytes
    scopes[index: place].wholeBytes =
      scopes[index: place].filter == nil ? bytes : wholeBytes
  }

  /// A job is done. Returns the subscribers of its scope.
  mutating func finish(
    _ id: SnapshotJobID, _ frames: [[UInt8]], _ wholeBytes: Int?, at now: Instant
  ) -> [ConnectionID] {
    guard let (job, place) = take(id) else { return [] }
    // Jobs may finish in another order than they began. A client that waits for one whose frames are
    // not kept takes those that are.
    if scopes[index: place].snapshot.map({ $0.revision < job.revision }) ?? true {
      keep(frames, wholeBytes, at: job.revision, of: place, now)
    }
    return scopes[index: place].subscribers
  }

  /// A job cannot be done. Returns the subscribers of its scope.
  mutating func abandon(_ id: SnapshotJobID) -> [ConnectionID] {
    take(id).map { scopes[index: $0.place].subscribers } ?? []
  }

  /// Take a job, if its scope is still there.
  private mutating func take(_ id: SnapshotJobID) -> (job: SnapshotJob<State>, place: Int)? {
    guard let job = jobs.removeValue(forKey: id), let place = scopes.index(of: job.scope) else {
      return nil
    }
    if scopes[index: place].job == id { scopes[index: place].job = nil }
    return (job, place)
  }

  enum Encoding {
    case running
    case finished(EncodedSnapshot)
    /// The frames were let go before the client could take them.
    case gone
  }

  /// What became of a job that a subscription waits for.
  func encoding(_ id: SnapshotJobID, of scope: UInt64, at revision: UInt64) -> Encoding {
    if jobs[id] != nil { return .running }
    guard let place = scopes.index(of: scope), let snapshot = scopes[index: place].snapshot,
      snapshot.revision == revision
    else { return .gone }
    return .finished(snapshot)
  }

  /// Let snapshots go that nobody has taken for a second.
  mutating func forgetUnusedSnapshots(at now: Instant) {
    for index in 0..<scopes.count {
      if let used = scopes[index: index].snapshot?.lastUsed, now > used + .seconds(1) {
        scopes[index: index].snapshot = nil
      }
    }
  }
}
