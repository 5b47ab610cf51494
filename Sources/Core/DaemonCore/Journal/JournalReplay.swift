import CBOR
public import Lockstep
public import Records
public import Schemas
public import Values
import Wire

/// The reason that a state cannot be restored from a journal.
public struct JournalReplayError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Hashable, Sendable {
    /// The journal's contents are not as they should be.
    case damaged
    /// Another version of the feature has written values that this one cannot represent.
    case otherVersion
  }

  /// The last revision that is known to be right; 0 if not even the snapshot is.
  public var lastGood: UInt64
  public var kind: Kind
  /// The fault after that revision.
  public var description: String

  public init(lastGood: UInt64, kind: Kind = .damaged, _ description: String) {
    self.lastGood = lastGood
    self.kind = kind
    self.description = description
  }
}

/// Restores a state from a journal's snapshot and the changes after it, and checks it against every
/// digest on the way.
///
///     var recovery = try JournalReplay(from: snapshot, bytes, …)
///     for row in rows { try recovery.apply(row, …) }
///     let server = Server(restoring: recovery.restoredState(run: …), …)
///
/// The journal of another version of the feature is translated by names, change by change. If a
/// change cannot be translated (`JournalReplayError.Kind.otherVersion`), a
/// `JournalReplay<UntypedState>` of the same rows may still lead to a state that can:
/// `init(translating:to:)`.
public struct JournalReplay<State: Synchronizable>: Sendable {
  private struct Session: Sendable {
    var session: JournalSession
    var outcomes: Outcomes
  }

  public private(set) var state: State
  /// The bytes of the snapshot and of the patches: the state's value form has no more.
  private var stateBytes: Int
  public private(set) var revision: UInt64
  /// The revision of the newest change.
  public private(set) var base: UInt64
  private var sequence: UInt64
  private var sessionCount: UInt64
  private var sessions: [SessionToken: Session] = [:]
  private var history: History
  private var marks: PastMarks
  var log: ReplayedLog
  private var lastGood: UInt64

  private let seed: HashSeed
  private let limits: Limits
  /// Translates from the schema with which the bytes were written; nil if that is the current one.
  private let translation: Translation?
  /// The schema with which the bytes were written, if they are replayed without types.
  private let untyped: Schema?
  /// What former versions kept and this one does not know.
  public private(set) var leftOut: [LeftOut]
  private var carrying = Carrying()

  /// Begin with the bytes of a snapshot (`PendingSnapshot.encode`), and the sessions that have not
  /// been forgotten until the last row; nil for those of the snapshot. If the state's schema has
  /// changed since, it is matched by name. `last` is the number of the last action, if it is known:
  /// then none is noted for the log that will not be in it. O(the state).
  @_optimize(size)
  public init(
    from snapshot: JournalSnapshot, _ bytes: [UInt8], schema current: Schema, seed: HashSeed,
    sessions live: [JournalSession]? = nil, through last: UInt64? = nil, limits: Limits = Limits()
  ) throws(JournalReplayError) {
    self.seed = seed
    self.limits = limits
    stateBytes = bytes.count
    revision = snapshot.revision
    base = snapshot.base
    sequence = snapshot.sequence
    sessionCount = snapshot.sessionCount
    history = History(limit: limits.historyBytes, base: snapshot.revision)
    marks = PastMarks(limit: limits.historyBytes, stateBytes: bytes.count)
    log = ReplayedLog(capacity: limits.logEntries, last: last)
    lastGood = snapshot.revision
    let numbers = [snapshot.revision, snapshot.base, snapshot.sequence, snapshot.sessionCount]
    guard numbers.allSatisfy({ $0 < Self.countLimit }), snapshot.base <= snapshot.revision else {
      throw JournalReplayError(
        lastGood: 0, "the snapshot of revision \(snapshot.revision) is numbered as none can be")
    }
    do throws(SnapshotError) {
      (state, translation, untyped, leftOut) = try Self.read(bytes, current, seed)
    } catch {
      throw error.recoveryError(snapshot.revision)
    }
    state.adopt(seed: seed)
    if comparesDigests { marks.note(state, at: snapshot.revision, history) }
    for session in snapshot.sessions { add(session) }
    if let live {
      // A session that the snapshot has, and that was forgotten since, does not come back.
      let kept = sessions
      sessions = [:]
      for session in live { add(kept[session.token]?.session ?? session) }
    }
    // The digest is that of the form which the bytes had when they were written.
    let digest = Digest(state.digest(seed: seed))
    guard !comparesDigests || digest == snapshot.digest else {
      throw JournalReplayError(
        lastGood: 0,
        "the snapshot of revision \(snapshot.revision) has digest \(digest), and should have "
          + "\(snapshot.digest)")
    }
  }

  /// No daemon counts that far, so that continuing to count from a number that was read never
  /// overflows.
  private static var countLimit: UInt64 { 1 << 62 }

  private enum SnapshotError: Error {
    case unreadable(CBORError)
    case otherVersion(String)

    func recoveryError(_ revision: UInt64) -> JournalReplayError {
      switch self {
      case .unreadable(let error):
        JournalReplayError(
          lastGood: 0, "the snapshot of revision \(revision) cannot be read: \(error)")
      case .otherVersion(let what):
        JournalReplayError(
          lastGood: 0, kind: .otherVersion, "the state of revision \(revision) \(what)")
      }
    }
  }

  @_optimize(size)
  private static func read(
    _ bytes: [UInt8], _ current: Schema, _ seed: HashSeed
  ) throws(SnapshotError) -> (State, Translation?, Schema?, [LeftOut]) {
    let (schema, ours, value): (Schema, State?, [UInt8])
    var leftOut: [LeftOut] = []
    do throws(CBORError) {
      (schema, ours, value) = try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        let start = decoder.offset
        let items = try decoder.array()
        guard items == 2 || items == 3 else {
          throw CBORError(.notAllowed("a snapshot has 2 or 3 items, not \(items)"), at: start)
        }
        defer { decoder.close() }
        let schema = try Schema(from: &decoder)
        var (ours, value): (State?, [UInt8]) = (nil, [])
        if isUntyped || schema.fingerprint == current.fingerprint {
          ours = try State(from: &decoder, seed: seed)
        } else {
          value = [UInt8](try decoder.rawItem())
        }
        if items == 3 {
          leftOut = try decoder.list { decoder throws(CBORError) in try LeftOut(from: &decoder) }
        }
        return (schema, ours, value)
      }
    } catch {
      throw .unreadable(error)
    }
    if let ours { return (ours, nil, isUntyped ? schema : nil, leftOut) }
    let (bytes, translation) = try translate(value, from: schema, to: current)
    do throws(CBORError) {
      return (try decode(bytes, seed), translation, nil, leftOut)
    } catch {
      throw .unreadable(error)
    }
  }

  private static var isUntyped: Bool { State.self is UntypedState.Type }

  private static func decode(_ value: [UInt8], _ seed: HashSeed) throws(CBORError) -> State {
    try CBORDecoder.read(value) { (decoder) throws(CBORError) in
      try State(from: &decoder, seed: seed)
    }
  }

  @_optimize(size)
  private static func translate(
    _ value: [UInt8], from schema: Schema, to current: Schema
  ) throws(SnapshotError) -> ([UInt8], Translation) {
    let translation: Translation
    do throws(SchemaMismatch) {
      translation = try Translation(from: schema, to: .schema(current), root: .state)
    } catch {
      throw .otherVersion("is of another kind: \(error)")
    }
    do throws(CBORError) {
      var encoder = CBOREncoder()
      try CBORDecoder.read(value) { (decoder) throws(CBORError) in
        try translation.value(from: &decoder, into: &encoder)
      }
      return (encoder.bytes, translation)
    } catch {
      guard let what = translation.unknownCase(error) else { throw .unreadable(error) }
      throw .otherVersion("holds \(what)")
    }
  }

  /// Translate the result of an untyped recovery to the current schema. What a former version kept
  /// and this one knows is put back; what this one does not know is left out, for the next that does.
  /// O(the state).
  @_optimize(size)
  public init(
    translating former: JournalReplay<UntypedState>, to current: Schema
  ) throws(JournalReplayError) {
    // Invariant: an untyped recovery has read the schema of its snapshot.
    let schema = former.untyped.unsafelyUnwrapped
    let bytes = former.state.encoded
    leftOut = former.leftOut
    do throws(SnapshotError) {
      var (value, translation) = try Self.translate(bytes, from: schema, to: current)
      do throws(CBORError) {
        carrying = try leftOut.carry(
          from: bytes, of: schema, by: translation, into: &value, of: current,
          ephemeral: EphemeralPaths(of: State.self))
        state = try Self.decode(value, former.seed)
        stateBytes = value.count
      } catch {
        throw SnapshotError.unreadable(error)
      }
      self.translation = translation
    } catch {
      throw error.recoveryError(former.revision)
    }
    state.adopt(seed: former.seed)
    (seed, limits, untyped) = (former.seed, former.limits, nil)
    (revision, base, sequence) = (former.revision, former.base, former.sequence)
    sessionCount = former.sessionCount
    sessions = former.sessions.mapValues { Session(session: $0.session, outcomes: $0.outcomes) }
    history = History(limit: limits.historyBytes, base: base)
    marks = PastMarks(limit: limits.historyBytes, stateBytes: 0)
    log = former.log
    lastGood = former.lastGood
  }

  /// Whether the state was written with another schema: the journal then needs a fresh snapshot
  /// before anything is appended to it.
  public var isTranslated: Bool { translation != nil }

  /// The names in former schemas that the current one does not have, and whose values cannot be kept:
  /// they are dropped.
  public var dropped: [String] { (translation?.dropped ?? []) + carrying.lost }

  /// Whether something that a former version had left out was put back.
  public var hasPutBack: Bool { carrying.hasPutBack }

  /// The names of the fields of the former schema that the current one does not have, and whose values
  /// are kept (`leftOut`).
  public var leftOutNames: [String] { translation?.leftOut ?? [] }

  /// Whether anything of another version is left out, or may be put back, which only an untyped
  /// recovery does (`init(translating:to:)`).
  public var needsUntyped: Bool {
    translation.map { !$0.isLossless || !leftOut.isEmpty } ?? false
  }

  /// Whether the state has the form whose digests the journal has.
  var comparesDigests: Bool { translation == nil && untyped == nil }

  private mutating func add(_ session: JournalSession) {
    sessionCount = max(sessionCount, session.number)
    sessions[session.token] = Session(
      session: session, outcomes: Outcomes(limits, kept: session.outcomes))
  }

  // MARK: Applying rows

  /// Apply the next row; `patch` holds the bytes of its change, and `action` what it did, if that was
  /// kept. O(the change).
  public mutating func apply(
    _ row: JournalRow, patch: UnsafeRawBufferPointer?, action: ArraySlice<UInt8>? = nil
  ) throws(JournalReplayError) {
    guard row.sequence < Self.countLimit, row.revision < Self.countLimit,
      row.answer.map({ $0.number < Self.countLimit }) ?? true
    else {
      throw fail("action \(row.sequence), revision \(row.revision) are numbers that none can have")
    }
    guard row.sequence > sequence else {
      throw fail("action \(row.sequence) follows action \(sequence)")
    }
    sequence = row.sequence
    if let answer = row.answer { note(answer, row) }
    log.note(row, action: comparesDigests ? action : nil)
    guard let change = row.change, let patch else { return }
    guard change.base == base, row.revision > base else {
      throw fail(
        "the change to revision \(row.revision) is based on \(change.base), not on \(base)")
    }
    let isApplied: Bool
    do throws(CBORError) {
      isApplied = try apply(patch)
    } catch {
      guard let what = translation?.unknownCase(error) else {
        throw fail("the change to revision \(row.revision) does not apply: \(error)")
      }
      throw fail("the state of revision \(row.revision) holds \(what)", .otherVersion)
    }
    guard isApplied else {
      throw fail(
        "a value became absent in revision \(row.revision) that now has a default", .otherVersion)
    }
    base = row.revision
    revision = max(revision, row.revision)
    // Store the patch for clients that resume. But if the schema has changed, the numbers of fields
    // may have changed too.
    if comparesDigests {
      history.append(patch, revision: row.revision)
      marks.note(patch.count)
      if marks.isDue { marks.note(state, at: row.revision, history) }
    } else {
      history = History(limit: limits.historyBytes, base: row.revision)
    }
  }

  /// Apply a patch. Returns false if no patch in the current schema can express it.
  private mutating func apply(_ patch: UnsafeRawBufferPointer) throws(CBORError) -> Bool {
    var bytes = [UInt8](patch)
    if let translation {
      var encoder = CBOREncoder()
      var decoder = CBORDecoder(patch)
      let place = translation.place(at: .root)
      guard try translation.patch(at: place, from: &decoder, into: &encoder) else { return false }
      bytes = encoder.bytes
    }
    let seed = seed
    try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      try state.apply(patch: &decoder, seed: seed)
    }
    stateBytes += bytes.count
    state.adopt(seed: seed)
    return true
  }

  private mutating func note(_ answer: JournalRow.Answer, _ row: JournalRow) {
    // An action without a name was rejected before it came to the log.
    let sequence = row.name.isEmpty ? nil : row.sequence
    // A session that was forgotten since is unknown.
    guard var session = sessions.removeValue(forKey: answer.session) else { return }
    if answer.number == session.outcomes.last + 1 {
      session.outcomes.append(
        answer.outcome, revision: row.revision, mark: .durable, sequence: sequence)
    } else if answer.number > session.outcomes.last {
      session.outcomes = Outcomes(
        limits,
        kept: [
          Acknowledgement(
            first: answer.number, last: answer.number, revision: row.revision, mark: .durable,
            answer.outcome, sequence: sequence)
        ])
    }
    sessions[answer.session] = session
  }

  /// Check the state against its digest at the revision that the rows have reached. O(everything
  /// changed since the last check).
  public mutating func check(
    _ digest: Digest, at revision: UInt64
  ) throws(JournalReplayError) {
    guard revision < Self.countLimit else { throw fail("there is no revision \(revision)") }
    defer { self.revision = max(self.revision, revision) }
    guard comparesDigests else { return }
    let ours = Digest(state.digest(seed: seed))
    guard ours == digest else {
      throw fail("the state of revision \(revision) has digest \(ours), and should have \(digest)")
    }
    lastGood = revision
  }

  /// The present state as a snapshot for the journal, in its current form.
  public func snapshot(schema: Schema, time: Timestamp) -> PendingSnapshot<State> {
    PendingSnapshot(
      state: state, seed: seed, schema: schema,
      head: JournalSnapshot(
        revision: revision, base: base, sequence: sequence, time: time, digest: Digest(0),
        sessions: keptSessions, sessionCount: sessionCount),
      leftOut: leftOut)
  }

  private var keptSessions: [JournalSession] {
    sessions.values
      .map { session in
        var kept = session.session
        kept.outcomes = session.outcomes.kept
        return kept
      }
      .sorted { $0.number < $1.number }
  }

  /// The restored state for a new run of an epoch.
  ///
  /// `runs` are the runs before, and `revision` is the one at which the last of them ended, if the
  /// journal has it.
  public func restoredState(
    epoch: UInt64, runs: [JournalRun], revision ended: UInt64?
  ) -> RestoredState<State> {
    let revision = max(revision, ended ?? 0)
    let run = (runs.last?.run ?? 0) + 1
    var kept = RestoredState(
      state: state, epoch: epoch, seed: seed, run: run,
      runs: runs + [JournalRun(run: run, base: revision)], revision: revision, base: base,
      sequence: sequence, sessionCount: sessionCount)
    kept.stateBytes = stateBytes
    kept.sessions = keptSessions
    kept.leftOut = leftOut
    kept.history = history
    kept.past = marks.past(in: history)
    kept.log = log.latest
    return kept
  }

  /// The error for a fault at this row. A journal of another version is right as far as it has been
  /// read.
  private func fail(_ what: String, _ kind: JournalReplayError.Kind = .damaged)
    -> JournalReplayError
  {
    JournalReplayError(lastGood: kind == .otherVersion ? revision : lastGood, kind: kind, what)
  }
}
