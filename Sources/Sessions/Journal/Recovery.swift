import CBOR
public import Lockstep
public import Values
import Wire

/// Why a state cannot be made of what was kept.
public struct RecoveryError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The last revision that is known to be right.
  public var lastGood: UInt64
  /// What is wrong with what follows.
  public var description: String

  public init(lastGood: UInt64, _ description: String) {
    self.lastGood = lastGood
    self.description = description
  }
}

/// Makes a state of a kept snapshot and the changes behind it, and checks it against every digest
/// on the way.
///
///     var recovery = try Recovery(from: snapshot, bytes, …)
///     for row in rows { try recovery.apply(row, …) }
///     let server = Server(restoring: recovery.restoration(run: …), …)
public struct Recovery<State: Synchronizable>: Sendable {
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

  /// Begin with the bytes of a snapshot (`KeptSnapshot.encode`), and the sessions that are known
  /// besides. Where the state has another schema by now, it is matched by name. O(the state).
  public init(
    from snapshot: JournalSnapshot, _ bytes: [UInt8], schema current: Schema, seed: HashSeed,
    sessions known: [JournalSession], limits: Limits = Limits()
  ) throws(RecoveryError) {
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
      throw RecoveryError(
        lastGood: 0, "the snapshot of revision \(snapshot.revision) is numbered as none can be")
    }
    do throws(CBORError) {
      (state, translation) = try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        try Self.read(&decoder, current, seed)
      }
    } catch {
      throw RecoveryError(
        lastGood: 0, "the snapshot of revision \(snapshot.revision) cannot be read: \(error)")
    }
    state.adopt(seed: seed)
    for session in known + snapshot.sessions { add(session) }
    // The digest is that of the form which the bytes then had.
    let digest = Digest(state.digest(seed: seed))
    guard translation != nil || digest == snapshot.digest else {
      throw RecoveryError(
        lastGood: 0,
        "the snapshot of revision \(snapshot.revision) has digest \(digest), and should have "
          + "\(snapshot.digest)")
    }
  }

  /// No daemon counts that far, so that what goes on counting from there never overflows.
  private static var countLimit: UInt64 { 1 << 62 }

  private static func read(
    _ decoder: inout CBORDecoder, _ current: Schema, _ seed: HashSeed
  ) throws(CBORError) -> (State, Translation?) {
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("a snapshot is [schema, value]"), at: start)
    }
    defer { decoder.close() }
    let schema = try Schema(from: &decoder)
    if schema.fingerprint == current.fingerprint {
      return (try State(from: &decoder, seed: seed), nil)
    }
    let translation: Translation
    do throws(SchemaMismatch) {
      translation = try Translation(from: schema, to: .schema(current), root: .state)
    } catch {
      throw CBORError(.notAllowed("it is of another kind of state: \(error)"), at: start)
    }
    var encoder = CBOREncoder()
    try translation.value(from: &decoder, into: &encoder)
    let state = try CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      try State(from: &decoder, seed: seed)
    }
    return (state, translation)
  }

  /// Whether the state had another schema when it was kept: the journal then needs a fresh snapshot
  /// before anything is added to it.
  public var isTranslated: Bool { translation != nil }

  private mutating func add(_ session: JournalSession) {
    sessionCount = max(sessionCount, session.number)
    sessions[session.token] = Session(
      session: session, outcomes: Outcomes(limits, kept: session.outcomes))
  }

  // MARK: What followed

  /// Apply a row that follows; `patch` holds the bytes of its change. O(the change).
  public mutating func apply(
    _ row: JournalRow, patch: UnsafeRawBufferPointer?
  ) throws(RecoveryError) {
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
    do throws(CBORError) {
      try apply(patch)
    } catch {
      throw fail("the change to revision \(row.revision) does not apply: \(error)")
    }
    base = row.revision
    revision = max(revision, row.revision)
    // What clients that come back may lack; but the numbers of fields may have changed.
    if translation == nil {
      history.append(patch, revision: row.revision)
    } else {
      history = History(limit: limits.historyBytes, base: row.revision)
    }
  }

  private mutating func apply(_ patch: UnsafeRawBufferPointer) throws(CBORError) {
    var bytes = [UInt8](patch)
    if let translation {
      var encoder = CBOREncoder()
      var decoder = CBORDecoder(patch)
      guard try translation.patch(at: translation.place(at: .root), from: &decoder, into: &encoder)
      else {
        throw CBORError(
          .notAllowed(
            "a value became absent that now has a default. Start the former version once more and "
              + "let it keep a snapshot: lockstepd --keep-snapshot"), at: 0)
      }
      bytes = encoder.bytes
    }
    let seed = seed
    try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
      try state.apply(patch: &decoder, seed: seed)
    }
    state.adopt(seed: seed)
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
  ) throws(RecoveryError) {
    guard revision < Self.countLimit else { throw fail("there is no revision \(revision)") }
    defer { self.revision = max(self.revision, revision) }
    guard translation == nil else { return }
    let ours = Digest(state.digest(seed: seed))
    guard ours == digest else {
      throw fail("the state of revision \(revision) has digest \(ours), and should have \(digest)")
    }
    lastGood = revision
  }

  /// The state as it stands, to be kept in its present form.
  public func snapshot(schema: Schema, time: Timestamp) -> KeptSnapshot<State> {
    KeptSnapshot(
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
  public func restoration(
    epoch: UInt64, runs: [JournalRun], revision ended: UInt64?
  ) -> Restoration<State> {
    let revision = max(revision, ended ?? 0)
    let run = (runs.last?.run ?? 0) + 1
    var kept = Restoration(
      state: state, epoch: epoch, seed: seed, run: run,
      runs: runs + [JournalRun(run: run, base: revision)], revision: revision, base: base,
      sequence: sequence, sessionCount: sessionCount)
    kept.sessions = keptSessions
    kept.history = history
    return kept
  }

  private func fail(_ what: String) -> RecoveryError { RecoveryError(lastGood: lastGood, what) }
}
