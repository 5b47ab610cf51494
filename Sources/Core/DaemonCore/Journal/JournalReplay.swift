import CBOR
public import Lockstep
public import Records
public import Schemas
public import Values
import Wire

/// Why a state cannot be made of what was kept.
public struct JournalReplayError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Hashable, Sendable {
    /// What was kept is not what it should be.
    case damaged
    /// Another version of the feature has kept what this one cannot say.
    case otherVersion
  }

  /// The last revision that is known to be right; 0 when not even the snapshot is.
  public var lastGood: UInt64
  public var kind: Kind
  /// What is wrong with what follows.
  public var description: String

  public init(lastGood: UInt64, kind: Kind = .damaged, _ description: String) {
    self.lastGood = lastGood
    self.kind = kind
    self.description = description
  }
}

/// Makes a state of a kept snapshot and the changes behind it, and checks it against every digest
/// on the way.
///
///     var recovery = try JournalReplay(from: snapshot, bytes, …)
///     for row in rows { try recovery.apply(row, …) }
///     let server = Server(restoring: recovery.restoredState(run: …), …)
///
/// A journal of another version of the feature is translated by names, change by change. Where a
/// change cannot be (`JournalReplayError.Kind.otherVersion`), a `JournalReplay<UntypedState>` of
/// the same rows may still lead to a state that can: `init(translating:to:)`.
public struct JournalReplay<State: Synchronizable>: Sendable {
  private struct Session: Sendable {
    var session: JournalSession
    var outcomes: Outcomes
  }

  public private(set) var state: State
  public private(set) var revision: UInt64
  /// The revision of the newest change.
  public private(set) var base: UInt64
  private var sequence: UInt64
  private var sessionCount: UInt64
  private var sessions: [SessionToken: Session] = [:]
  private var history: History
  private var lastGood: UInt64

  private let seed: HashSeed
  private let limits: Limits
  /// From the schema with which the bytes were written; nil when it is this one.
  private let translation: Translation?
  /// With which the bytes were written, where they are replayed without types.
  private let untyped: Schema?

  /// Begin with the bytes of a snapshot (`PendingSnapshot.encode`), and the sessions that are known
  /// besides. Where the state has another schema by now, it is matched by name. O(the state).
  public init(
    from snapshot: JournalSnapshot, _ bytes: [UInt8], schema current: Schema, seed: HashSeed,
    sessions known: [JournalSession], limits: Limits = Limits()
  ) throws(JournalReplayError) {
    self.seed = seed
    self.limits = limits
    revision = snapshot.revision
    base = snapshot.base
    sequence = snapshot.sequence
    sessionCount = snapshot.sessionCount
    history = History(limit: limits.historyBytes, base: snapshot.revision)
    lastGood = snapshot.revision
    let numbers = [snapshot.revision, snapshot.base, snapshot.sequence, snapshot.sessionCount]
    guard numbers.allSatisfy({ $0 < Self.countLimit }), snapshot.base <= snapshot.revision else {
      throw JournalReplayError(
        lastGood: 0, "the snapshot of revision \(snapshot.revision) is numbered as none can be")
    }
    do throws(SnapshotError) {
      (state, translation, untyped) = try Self.read(bytes, current, seed)
    } catch {
      throw error.recoveryError(snapshot.revision)
    }
    state.adopt(seed: seed)
    for session in known + snapshot.sessions { add(session) }
    // The digest is that of the form which the bytes then had.
    let digest = Digest(state.digest(seed: seed))
    guard !comparesDigests || digest == snapshot.digest else {
      throw JournalReplayError(
        lastGood: 0,
        "the snapshot of revision \(snapshot.revision) has digest \(digest), and should have "
          + "\(snapshot.digest)")
    }
  }

  /// No daemon counts that far, so that what goes on counting from there never overflows.
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

  private static func read(
    _ bytes: [UInt8], _ current: Schema, _ seed: HashSeed
  ) throws(SnapshotError) -> (State, Translation?, Schema?) {
    let (schema, ours, value): (Schema, State?, [UInt8])
    do throws(CBORError) {
      (schema, ours, value) = try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        let start = decoder.offset
        guard try decoder.array() == 2 else {
          throw CBORError(.notAllowed("a snapshot is [schema, value]"), at: start)
        }
        defer { decoder.close() }
        let schema = try Schema(from: &decoder)
        if isUntyped || schema.fingerprint == current.fingerprint {
          return (schema, try State(from: &decoder, seed: seed), [])
        }
        return (schema, nil, [UInt8](try decoder.rawItem()))
      }
    } catch {
      throw .unreadable(error)
    }
    if let ours { return (ours, nil, isUntyped ? schema : nil) }
    let (state, translation) = try translate(value, from: schema, to: current, seed)
    return (state, translation, nil)
  }

  private static var isUntyped: Bool { State.self is UntypedState.Type }

  private static func decode(_ value: [UInt8], _ seed: HashSeed) throws(CBORError) -> State {
    try CBORDecoder.read(value) { (decoder) throws(CBORError) in
      try State(from: &decoder, seed: seed)
    }
  }

  private static func translate(
    _ value: [UInt8], from schema: Schema, to current: Schema, _ seed: HashSeed
  ) throws(SnapshotError) -> (State, Translation) {
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
      return (try decode(encoder.bytes, seed), translation)
    } catch {
      guard let what = translation.unknownCase(error) else { throw .unreadable(error) }
      throw .otherVersion("holds \(what)")
    }
  }

  /// What a recovery without types has led to, in the terms of the schema of today. O(the state).
  public init(
    translating former: JournalReplay<UntypedState>, to current: Schema
  ) throws(JournalReplayError) {
    // Invariant: a recovery without types has read the schema of its snapshot.
    let schema = former.untyped.unsafelyUnwrapped
    do throws(SnapshotError) {
      (state, translation) = try Self.translate(
        former.state.encoded, from: schema, to: current, former.seed)
    } catch {
      throw error.recoveryError(former.revision)
    }
    state.adopt(seed: former.seed)
    (seed, limits, untyped) = (former.seed, former.limits, nil)
    (revision, base, sequence) = (former.revision, former.base, former.sequence)
    sessionCount = former.sessionCount
    sessions = former.sessions.mapValues { Session(session: $0.session, outcomes: $0.outcomes) }
    history = History(limit: limits.historyBytes, base: base)
    lastGood = former.lastGood
  }

  /// Whether the state had another schema when it was kept: the journal then needs a fresh snapshot
  /// before anything is added to it.
  public var isTranslated: Bool { translation != nil }

  /// The names of what the schema of then has and that of today has not: it is left out.
  public var dropped: [String] { translation?.dropped ?? [] }

  /// Whether the state is in the form of which the journal has digests.
  private var comparesDigests: Bool { translation == nil && untyped == nil }

  private mutating func add(_ session: JournalSession) {
    sessionCount = max(sessionCount, session.number)
    sessions[session.token] = Session(
      session: session, outcomes: Outcomes(limits, kept: session.outcomes))
  }

  // MARK: What followed

  /// Apply a row that follows; `patch` holds the bytes of its change. O(the change).
  public mutating func apply(
    _ row: JournalRow, patch: UnsafeRawBufferPointer?
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
    // What clients that come back may lack; but the numbers of fields may have changed.
    if comparesDigests {
      history.append(patch, revision: row.revision)
    } else {
      history = History(limit: limits.historyBytes, base: row.revision)
    }
  }

  /// Returns false when no patch of ours says what this one does.
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
    state.adopt(seed: seed)
    return true
  }

  private mutating func note(_ answer: JournalRow.Answer, _ row: JournalRow) {
    // One without a name was rejected before it came to the log.
    let sequence = row.name.isEmpty ? nil : row.sequence
    // A session that was forgotten since is not known any more.
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

  /// Check the state against the digest that it had at the revision to which the rows have led.
  /// O(what has changed since the last check).
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

  /// The state as it stands, to be kept in its present form.
  public func snapshot(schema: Schema, time: Timestamp) -> PendingSnapshot<State> {
    PendingSnapshot(
      state: state, seed: seed, schema: schema,
      head: JournalSnapshot(
        revision: revision, base: base, sequence: sequence, time: time, digest: Digest(0),
        sessions: keptSessions, sessionCount: sessionCount),
      partBytes: 1 << 20)
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

  /// Go on from here as a new run of an epoch.
  ///
  /// `runs` are those before, and `revision` is where the last of them ended, if it said so.
  public func restoredState(
    epoch: UInt64, runs: [JournalRun], revision ended: UInt64?
  ) -> RestoredState<State> {
    let revision = max(revision, ended ?? 0)
    let run = (runs.last?.run ?? 0) + 1
    var kept = RestoredState(
      state: state, epoch: epoch, seed: seed, run: run,
      runs: runs + [JournalRun(run: run, base: revision)], revision: revision, base: base,
      sequence: sequence, sessionCount: sessionCount)
    kept.sessions = keptSessions
    kept.history = history
    return kept
  }

  /// What was kept by another version is right as far as it has been read.
  private func fail(_ what: String, _ kind: JournalReplayError.Kind = .damaged)
    -> JournalReplayError
  {
    JournalReplayError(lastGood: kind == .otherVersion ? revision : lastGood, kind: kind, what)
  }
}
