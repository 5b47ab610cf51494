import Access
import CBOR
import Lockstep
import Values
import Wire

/// What is sent of the state: the scopes that clients see, the patch history, the states held for
/// lagging clients, and snapshots.
///
/// Invariants: between turns a live subscription has everything up to `flushed`, the revision at
/// which the last turn ended. For one that lags or joins, the state at its revision is held for its
/// user once, until it is released or evicted. A scope exists exactly while it has subscribers or
/// is reserved. A job exists until its frames have arrived or cannot be made.
struct Publication<State: Synchronizable>: Sendable {
  let limits: Limits
  private var frameLimits: FrameLimits { @inline(__always) get { FrameLimits(limits) } }
  /// The parts of the state that connections see. A subscription is in its scope's list of subscribers from
  /// `Server.begin` until `Server.drop`, which may be some turns after its end (`Departures`).
  var scopes = ScopeTable()
  private(set) var history: History
  private(set) var held: HeldStates<State>
  private(set) var jobs: [SnapshotJobID: SnapshotJob<State>] = [:]
  private var lastJob: UInt64 = 0
  /// The jobs that encode differences, by what they begin with.
  private var differenceJobs: [DifferenceKey: SnapshotJobID] = [:]
  /// The jobs that find the patches that mirrors have missed, by the revision that these have.
  private var missedJobs: [DifferenceKey: SnapshotJobID] = [:]
  /// Differences and missed patches that were made beside the loop, for those that wait for them.
  private var encoded: [SnapshotJobID: EncodedSnapshot] = [:]
  private var remains = Remains(areKept: false)
  /// Differences composed in this turn: several clients may need the same one.
  private var differences: [DifferenceKey: Difference] = [:]
  /// Missed patches that this turn has framed, by what they follow.
  private var missed: [DifferenceKey: MissedPatches] = [:]
  /// The revision at which the last turn ended.
  private(set) var flushed: UInt64
  /// The bytes that were encoded on the loop for snapshots in this turn.
  private(set) var encodedThisTurn = 0
  /// The bytes of patches that were read on the loop in this turn to find what mirrors have missed.
  private(set) var readThisTurn = 0
  #if FAULTS
    var faults = Faults()
  #else
    /// None, and no code for them.
    var faults: Faults { @inline(__always) get { Faults() } }
  #endif

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
    history.append(patch, revision: revision)
    if !faults.dropsPatch(of: revision) {
      scopes.note(patch, revision: revision, limits: frameLimits)
    }
  }

  /// Note a patch of the whole state of which it was foreseen how it changes the scopes.
  @inline(never)
  mutating func note(_ patch: [UInt8], _ foreseen: ForeseenScopes, revision: UInt64) {
    history.append(patch, revision: revision)
    if !faults.dropsPatch(of: revision) {
      scopes.note(patch, foreseen, revision: revision, limits: frameLimits)
    }
  }

  /// The scopes as they are now, to foresee a patch. O(1).
  var views: ScopeViews {
    var views = scopes.views(frameLimits)
    if faults.sendsWholeForeseen { views.filters = views.filters.mapValues { _ in .everything } }
    return views
  }

  /// Begin after a change that was made before any client could see it.
  mutating func begin(behind patch: [UInt8], revision: UInt64) {
    history.append(patch, revision: revision)
    flushed = revision
  }

  /// End the turn: everything up to this revision has been composed.
  mutating func endTurn(at revision: UInt64) {
    scopes.endTurn()
    if !differences.isEmpty { differences.removeAll(keepingCapacity: true) }
    if !missed.isEmpty { missed.removeAll(keepingCapacity: true) }
    flushed = revision
    (encodedThisTurn, readThisTurn) = (0, 0)
  }

  // MARK: Holding

  /// Hold the state at the last turn's end for so many subscriptions of a user that lag behind it.
  mutating func hold(_ state: State, at revision: UInt64, by uid: UInt64, count: Int) {
    held.hold(state, at: revision, by: uid, count: count)
  }

  /// Release the state that is held for a subscription that ends or catches up.
  mutating func release(_ revision: UInt64, by uid: UInt64) { held.release(revision, by: uid) }

  // MARK: Remains

  mutating func keepRemains() {
    remains = Remains()
    held.remains = Remains()
  }

  /// Take the old states that are no longer used.
  @inline(__always)
  mutating func takeRemains() -> Remains {
    remains.add(held.remains.take())
    return remains.take()
  }

  // MARK: Catching up

  /// The patches of a scope after a revision that the history covers, based on the revision that the mirror
  /// has. All clients that need them in one turn share them. O(the history after it).
  mutating func missed(
    of place: Int, after revision: UInt64, base: UInt64
  ) -> MissedPatches {
    let scope = scopes[index: place]
    let key = DifferenceKey(scope: scope.id, revision: revision, base: base)
    if let found = missed[key] { return found }
    readThisTurn += history.byteCount(after: revision)
    let found = MissedPatches(
      of: scope.id, at: scope.path, by: scope.filter, in: history, after: revision, base: base,
      frameLimits)
    missed[key] = found
    return found
  }

  /// Whether so much has changed after a revision that the patches of a scope are to be found beside the
  /// loop: more than takes about a millisecond.
  func isLong(after revision: UInt64) -> Bool {
    history.byteCount(after: revision) > 8 * limits.inlineDifferenceBytes
  }

  /// Have a connection wait for the patches of a scope after a revision that the history covers, which are
  /// found beside the loop: those up to the newest revision, or that at which others began to wait. Some
  /// may have been found already.
  mutating func awaitMissed(
    of place: Int, behind begun: BegunPatches, _ state: State, at newest: UInt64
  ) -> (id: SnapshotJobID, isNew: Bool) {
    let key = DifferenceKey(
      scope: scopes[index: place].id, revision: begun.revision, base: begun.position)
    if let id = missedJobs[key], let running = jobs[id] {
      if !begun.snapshot.isEmpty { jobs[id] = running.behind(begun) }
      return (id, false)
    }
    let id = beginJob(
      of: place, state, at: newest, from: .history(history, frameLimits), behind: begun)
    missedJobs[key] = id
    return (id, true)
  }

  /// The patches after a snapshot or a difference, if the history has them, and they are neither longer than
  /// it nor to be found beside the loop.
  mutating func missed(of place: Int, behind snapshot: EncodedSnapshot) -> MissedPatches? {
    let revision = snapshot.revision
    guard hasPatches(after: revision, ofAtMost: snapshot.byteCount), !isLong(after: revision) else {
      return nil
    }
    let found = missed(of: place, after: revision, base: revision)
    return found.loss == nil ? found : nil
  }

  /// Whether the history has the patches of a scope that are still to be found behind a snapshot, they are
  /// not longer than the snapshot, and they can be sent. Long ones are not looked at, and taken to be so.
  mutating func hasPatches(of place: Int, behind begun: BegunPatches) -> Bool {
    let bytes = begun.snapshot.reduce(0) { $0 + $1.count }
    return hasPatches(after: begun.revision, ofAtMost: bytes)
      && (isLong(after: begun.revision)
        || missed(of: place, after: begun.revision, base: begun.reached).loss == nil)
  }

  func hasPatches(after revision: UInt64, ofAtMost bytes: Int) -> Bool {
    history.covers(revision) && history.byteCount(after: revision) <= bytes
  }

  enum Difference {
    /// One patch from the old state to the newest.
    case frame([UInt8])
    /// Nothing has changed there, or it has changed back.
    case none
    /// No patch can express it, so the client needs a snapshot.
    case lost(ServerMessage.Reason)
  }

  /// The patch that takes a mirror of a scope from a held revision to the newest, based on the
  /// revision that the mirror is sure to have. Computed once a turn. O(the difference).
  mutating func difference(
    of place: Int, from revision: UInt64, base: UInt64, to state: State, at newest: UInt64
  ) -> Difference {
    let key = DifferenceKey(scope: scopes[index: place].id, revision: revision, base: base)
    if let difference = differences[key] { return difference }
    guard let before = held[revision] else { return .lost(.lagged) }
    let difference = self.difference(
      of: place, from: before, base: base, to: state, at: newest)
    differences[key] = difference
    return difference
  }

  private func difference(
    of place: Int, from before: State, base: UInt64, to state: State, at newest: UInt64
  ) -> Difference {
    var pair = CBOREncoder()
    pair.encode(newest - base)
    let filter = faults.sendsWholeDifferences ? nil : scopes[index: place].filter
    switch state.encodeDifference(
      from: before, at: scopes[index: place].path, by: filter, into: &pair)
    {
    case .patch, .absent: break
    case .untouched: return .none
    case .resync: return .lost(.view)
    }
    guard pair.bytes.count + 64 <= limits.frameBytes else { return .lost(.tooLarge) }
    return .frame(
      StreamFrames.patches(pair.bytes, count: 1, scope: scopes[index: place].id, from: base))
  }

  /// Have a user's connection wait for that patch, if so much has changed, and not only elsewhere, that it
  /// is encoded beside the loop: until then the newest state is held for the user. Nil if it is to be made
  /// now. `begun` is what a client gets before it that begins with a snapshot.
  @inline(never)
  mutating func awaitDifference(
    of place: Int, from revision: UInt64, base: UInt64, behind begun: BegunPatches? = nil,
    to state: State, at newest: UInt64, by uid: UInt64
  ) -> (id: SnapshotJobID, revision: UInt64, isNew: Bool)? {
    let isShort =
      history.covers(revision)
      && history.byteCount(after: revision) <= limits.inlineDifferenceBytes
    let key = DifferenceKey(scope: scopes[index: place].id, revision: revision, base: base)
    guard !isShort, differences[key] == nil, let before = held[revision] else { return nil }
    if let id = differenceJobs[key], let running = jobs[id], held[running.revision] != nil,
      running.mayServe(begun)
    {
      if let begun { jobs[id] = running.behind(begun) }
      held.hold(running.state, at: running.revision, by: uid)
      return (id, running.revision, false)
    }
    if isSmall(before, at: place), isSmall(state, at: place) { return nil }
    let id = beginJob(
      of: place, state, at: newest,
      from: .state(before, at: revision, base: base, frameBytes: limits.frameBytes), behind: begun)
    differenceJobs[key] = id
    held.hold(state, at: newest, by: uid)
    return (id, newest, true)
  }

  /// Whether a scope has so little in a state that the patch from it or to it is made at once, whatever
  /// else has changed. O(so many bytes).
  private mutating func isSmall(_ state: State, at place: Int) -> Bool {
    if let known = scopes[index: place].wholeBytes, known > limits.inlineSnapshotBytes {
      return false
    }
    var encoder = CBOREncoder(upTo: limits.inlineDifferenceBytes)
    state.encode(at: scopes[index: place].path, into: &encoder)
    encodedThisTurn += encoder.bytes.count
    return !encoder.isOver
  }

  // MARK: Snapshots

  /// A cached snapshot of a scope with the patches after it, if these are fewer bytes than the
  /// snapshot.
  mutating func cachedSnapshot(
    of place: Int, at now: Instant
  ) -> (snapshot: EncodedSnapshot, missed: MissedPatches)? {
    // A small state that changes often has more bytes of patches than of snapshot, and all of them
    // would have to be stored for a client that does not read.
    guard let cached = scopes[index: place].snapshot,
      let missed = missed(of: place, behind: cached)
    else { return nil }
    scopes[index: place].snapshot?.lastUsed = now
    return (cached, missed)
  }

  /// Whether a snapshot of a scope is fewer bytes than the patches after a revision, which are all read
  /// to find the scope's: a connection may have thousands of small scopes. False where that takes long to
  /// find. A snapshot that was made for that is cached.
  mutating func isSmaller(
    _ place: Int, _ state: State, at newest: UInt64, thanPatchesAfter revision: UInt64,
    _ now: Instant
  ) -> Bool {
    let count = history.byteCount(after: revision)
    if let size = scopes[index: place].snapshotBytes { return count > size }
    guard count > limits.inlineDifferenceBytes else { return false }
    let most = min(count, limits.inlineSnapshotBytes)
    if let known = scopes[index: place].wholeBytes, known > most { return false }
    return makeSnapshot(of: place, state, at: newest, upTo: most, now) != nil
  }

  /// The frames of a snapshot of a scope that is small enough to encode on the loop; nil if it is not.
  mutating func quickSnapshot(
    of place: Int, _ state: State, at revision: UInt64, _ now: Instant
  ) -> [[UInt8]]? {
    let limit = limits.inlineSnapshotBytes
    if let known = scopes[index: place].wholeBytes, known > limit { return nil }
    return makeSnapshot(of: place, state, at: revision, upTo: limit, now)
  }

  /// The frames of a snapshot of a scope whose whole value has at most so many bytes, if that is not
  /// known already, and keep them; nil if it has more, or this turn has encoded much. O(so many bytes).
  private mutating func makeSnapshot(
    of place: Int, _ state: State, at revision: UInt64, upTo limit: Int, _ now: Instant
  ) -> [[UInt8]]? {
    if encodedThisTurn > max(4 * limits.inlineSnapshotBytes, 64 << 10) { return nil }
    var encoder =
      scopes[index: place].wholeBytes == nil ? CBOREncoder(upTo: limit) : CBOREncoder()
    state.encode(at: scopes[index: place].path, into: &encoder)
    encodedThisTurn += encoder.bytes.count
    // Absence is small, whatever the limit is.
    if encoder.isOver, encoder.bytes != [0xf7] {
      if limit == limits.inlineSnapshotBytes { scopes[index: place].wholeBytes = limit + 1 }
      return nil
    }
    let frames = job(SnapshotJobID(0), place, state, at: revision).frames(of: encoder.bytes)
    keep(frames, encoder.bytes.count, at: revision, of: place, now)
    return frames
  }

  /// Have a user's connection wait for a snapshot of a scope: one that is being encoded, or a new
  /// one of this state, which may take so many bytes. Until then the state is held for the user.
  mutating func awaitSnapshot(
    of place: Int, _ state: State, expecting count: Int, at revision: UInt64, by uid: UInt64
  ) -> (id: SnapshotJobID, revision: UInt64, isNew: Bool) {
    if let id = scopes[index: place].job, let running = jobs[id], held[running.revision] != nil {
      held.hold(running.state, at: running.revision, by: uid)
      return (id, running.revision, false)
    }
    let id = beginJob(of: place, state, at: revision, from: .nothing(expectedBytes: count))
    scopes[index: place].job = id
    held.hold(state, at: revision, by: uid)
    return (id, revision, true)
  }

  private mutating func beginJob(
    of place: Int, _ state: State, at revision: UInt64, from origin: SnapshotJob<State>.Origin,
    behind begun: BegunPatches? = nil
  ) -> SnapshotJobID {
    lastJob += 1
    let id = SnapshotJobID(lastJob)
    jobs[id] = job(id, place, state, at: revision, from: origin, behind: begun)
    return id
  }

  private func job(
    _ id: SnapshotJobID, _ place: Int, _ state: State, at revision: UInt64,
    from origin: SnapshotJob<State>.Origin = .nothing(expectedBytes: 0),
    behind begun: BegunPatches? = nil
  ) -> SnapshotJob<State> {
    let scope = scopes[index: place]
    return SnapshotJob(
      id: id, state: state, path: scope.path,
      filter: faults.sendsWholeSnapshots ? nil : scope.filter, scope: scope.id,
      revision: revision + (faults.mislabelsSnapshots ? 1 : 0),
      partBytes: limits.snapshotPartBytes, from: origin, behind: begun)
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

  /// Store the result of a job. Returns the subscribers of its scope.
  mutating func finish(
    _ id: SnapshotJobID, _ frames: [[UInt8]], _ wholeBytes: Int?, at now: Instant
  ) -> [Subscriber] {
    guard let (job, place) = take(id) else { return [] }
    let revision = job.revision
    switch job.origin {
    case .nothing:
      // Jobs may finish in another order than they began. A client that waits for a job whose frames
      // are not stored takes the stored ones.
      if scopes[index: place].snapshot.map({ $0.revision < revision }) ?? true {
        keep(frames, wholeBytes, at: revision, of: place, now)
      }
    case .state, .history:
      guard let wholeBytes else { break }
      let begun: BegunPatches? =
        if case .state = job.origin {
          job.begun?.adding(difference: frames.first, through: revision)
        } else {
          job.begun.map {
            $0.adding(
              frames, reaching: $0.reached &+ UInt64(clamping: wholeBytes), through: revision)
          }
        }
      encoded[id] = EncodedSnapshot(
        revision: revision, frames: frames, lastUsed: now, missed: begun)
    }
    return scopes[index: place].subscribers.all
  }

  /// Remove a job that cannot be done. Returns the subscribers of its scope.
  mutating func abandon(_ id: SnapshotJobID) -> [Subscriber] {
    take(id).map { scopes[index: $0.place].subscribers.all } ?? []
  }

  /// Remove a job, and return it if its scope still exists.
  private mutating func take(_ id: SnapshotJobID) -> (job: SnapshotJob<State>, place: Int)? {
    guard let job = jobs.removeValue(forKey: id) else { return nil }
    remains.add(job.state)
    switch job.origin {
    case .nothing: break
    case .state(let former, let revision, let base, _):
      remains.add(former)
      let key = DifferenceKey(scope: job.scope, revision: revision, base: base)
      if differenceJobs[key] == id { differenceJobs[key] = nil }
    case .history:
      guard let begun = job.begun else { break }
      let key = DifferenceKey(scope: job.scope, revision: begun.revision, base: begun.position)
      if missedJobs[key] == id { missedJobs[key] = nil }
    }
    guard let place = scopes.index(of: job.scope) else { return nil }
    if scopes[index: place].job == id { scopes[index: place].job = nil }
    return (job, place)
  }

  enum Encoding {
    case running
    case snapshot(EncodedSnapshot)
    /// One frame, or none if nothing differs.
    case difference(EncodedSnapshot)
    /// The frames were evicted before the client could take them.
    case gone
  }

  /// The status of a job that a subscription waits for.
  func encoding(_ id: SnapshotJobID, of scope: UInt64, at revision: UInt64) -> Encoding {
    if jobs[id] != nil { return .running }
    if let difference = encoded[id] { return .difference(difference) }
    guard let place = scopes.index(of: scope), let snapshot = scopes[index: place].snapshot,
      snapshot.revision == revision
    else { return .gone }
    return .snapshot(snapshot)
  }

  /// The patches, or the difference, that a `resuming` subscription waits for, with what leads to them; nil
  /// if they are being found, or there are none.
  func found(_ id: SnapshotJobID) -> (isRunning: Bool, patches: BegunPatches?) {
    (jobs[id] != nil, encoded[id]?.missed)
  }

  /// What has been found with the difference to the newest state, which is made now; nil if there is none,
  /// or the state that it leads from is not held.
  @inline(never)
  mutating func adding(
    differenceTo state: State, at newest: UInt64, of place: Int, behind begun: BegunPatches
  ) -> BegunPatches? {
    switch difference(
      of: place, from: begun.revision, base: begun.reached, to: state, at: newest)
    {
    case .frame(let frame): begun.adding(difference: frame, through: newest)
    case .none: begun.addingNothing(through: newest)
    case .lost: nil
    }
  }

  /// Evict the snapshot of a scope: there are no patches that lead on from it.
  mutating func dropSnapshot(of place: Int, at revision: UInt64) {
    if scopes[index: place].snapshot?.revision == revision { scopes[index: place].snapshot = nil }
  }

  /// Evict differences that no client has used for a second.
  mutating func forgetUnusedDifferences(at now: Instant) {
    if !encoded.isEmpty { encoded = encoded.filter { now < $0.value.lastUsed + .seconds(1) } }
  }

  /// Evict the snapshot of a scope if no client has used it for a second.
  mutating func forgetUnusedSnapshot(of index: Int, at now: Instant) {
    if let used = scopes[index: index].snapshot?.lastUsed, now > used + .seconds(1) {
      scopes[index: index].snapshot = nil
    }
  }
}
