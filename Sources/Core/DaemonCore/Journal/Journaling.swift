import Lockstep
import Records
import Values
import Wire

// Theory of operation
//
// While actions are reduced, rows are added to the open batch. At the turn's end the batch is given
// to the shell, which commits it on a thread of its own, and is then *in flight*. Patches do not
// wait for it; acknowledgements that promise durability do, and so do the effects of its actions.
//
//     healthy --failed--> failing --reopened--> healing --snapshotKept--> healthy
//
// After a failed write, the file has a gap: nothing is recorded until it can be written again, and
// nothing is promised until a fresh snapshot has closed the gap. Batches made while healing follow
// that snapshot.

/// The server's state of the journal.
struct Journaling: Sendable {
  enum Health: Equatable, Sendable {
    case healthy
    /// Nothing can be written, for this reason; the file is retried at this time, and then after
    /// this wait.
    case failing(String, retryAt: Instant, wait: Duration)
    /// A fresh snapshot, of this revision, is being written to the file.
    case healing(String, UInt64, wait: Duration)

    /// Failing for another time, with exponential back-off.
    func failed(_ reason: String, at now: Instant) -> Health {
      let wait: Duration =
        switch self {
        case .healthy: .seconds(1)
        case .failing(_, _, let wait), .healing(_, _, let wait): wait
        }
      return .failing(reason, retryAt: now + wait, wait: min(wait * 2, .seconds(30)))
    }
  }

  struct InFlight: Sendable {
    let number: UInt64
    let revision: UInt64
    let byteCount: Int
    /// Sessions, and the number of the last of their actions in the batch.
    let sessions: [(token: SessionToken, last: UInt64)]
    /// The effect orders to carry out when the batch is committed.
    var orders: [EffectOrder]
  }

  let durability: Durability
  private(set) var health = Health.healthy
  /// The open batch of this turn.
  private(set) var batch: JournalBatch
  /// The sessions in the batch, with the number of the last action of each; except for the one that
  /// acted last.
  private var answered: [SessionToken: UInt64] = [:]
  /// That one: most actions come from the session that the action before came from.
  private var answeredLast: SessionAction?
  private(set) var inFlight: [InFlight] = []
  /// Bytes that have been given to the shell and are not committed.
  private(set) var queuedBytes = 0
  /// The revision of the newest change that was recorded.
  private(set) var base: UInt64
  /// The newest revision that survives a crash.
  private(set) var durable: UInt64
  private var snapshots: SnapshotSchedule
  /// Whether the turn that ended last left a batch.
  private(set) var hasClosedBatch = false
  /// Actions that ended the process twice, and are not reduced again.
  private let poisoned: Set<SessionAction>
  /// Actions during which the process ended once.
  private let suspects: Set<SessionAction>
  /// Notes a client's action before it is reduced; nil if no such memory outlives the process.
  private let marker: InFlightActionMarker?
  private var changesSinceDigest = 0
  /// The paths of fields that are not journaled.
  let ephemeral: EphemeralPaths
  /// What former versions of the feature kept and this one does not know: for every snapshot.
  let leftOut: [LeftOut]

  init(
    _ durability: Durability, base: UInt64, revision: UInt64, ephemeral: EphemeralPaths,
    leftOut: [LeftOut] = [], durable: UInt64? = nil, journaled: Int = 0,
    poisoned: Set<SessionAction> = [],
    suspects: Set<SessionAction> = [], marker: InFlightActionMarker? = nil, at now: Instant
  ) {
    snapshots = SnapshotSchedule(journaled: journaled, at: now)
    self.poisoned = poisoned
    self.suspects = suspects
    self.marker = marker
    self.durability = durability
    self.base = base
    self.ephemeral = ephemeral
    self.leftOut = leftOut
    self.durable = durable ?? revision
    batch = JournalBatch(number: 1, revision: revision)
  }

  /// Whether rows are recorded.
  var records: Bool {
    if durability == .none { return false }
    if case .failing = health { return false }
    return true
  }

  /// Whether acknowledgements and effects wait for the commit, so that durability can be promised.
  var confirmsDurability: Bool { durability == .sync }
  /// The reason that nothing can be made durable at present; nil if the journal is healthy.
  var failure: String? {
    switch health {
    case .healthy: nil
    case .failing(let reason, _, _), .healing(let reason, _, _): reason
    }
  }

  /// Whether a snapshot is being made.
  var snapshotIsRunning: Bool { snapshots.isRunning }

  // MARK: Recording

  @inline(__always)
  func isPoisoned(_ action: SessionAction) -> Bool {
    !poisoned.isEmpty && poisoned.contains(action)
  }

  /// Whether the process has ended while this action was done or foreseen.
  func isSuspect(_ action: SessionAction) -> Bool {
    suspects.contains(action) || isPoisoned(action)
  }

  /// Note an action that is foreseen, likewise, until the next or until it is cleared.
  func noteForeseen(_ action: SessionAction) { marker?.noteForeseen(action) }

  func clearForeseen() { marker?.clearForeseen() }

  /// Note an action before it is reduced, in memory that survives the end of the process.
  @inline(__always)
  func noteInFlight(_ action: SessionAction) { marker?.note(action) }

  /// Add the row of an action, with the patch if it changed journaled fields, and with the outcome if a
  /// client of a session sent it. The record is read where it is, and not kept.
  mutating func record<Action: SynchronizableAction>(
    _ record: UnsafePointer<ActionRecord<Action>>, patch: UnsafeRawBufferPointer?,
    answer: JournalRow.Answer?
  ) {
    var change: JournalRow.Change?
    if let patch {
      let start = batch.bytes.count
      if ephemeral.appendKept(of: patch, to: &batch.bytes) {
        change = JournalRow.Change(base: base, patch: start..<batch.bytes.count)
        base = record.pointee.revision
        changesSinceDigest += 1
      }
    }
    // A row without a journaled change is needed only if a client may resend its action.
    guard change != nil || answer != nil else { return }
    let action = record.pointee.action
    let kept = append(action)
    if let answer { noteAnswered(answer) }
    // The name of a new record is that of its action, which is at hand.
    batch.rows.append(
      JournalRow(
        sequence: record.pointee.sequence, time: record.pointee.time, cause: record.pointee.cause,
        name: action?.name ?? record.pointee.name, action: kept, revision: record.pointee.revision,
        change: change, answer: answer))
  }

  /// The range of the batch's bytes that an action has.
  private mutating func append<Action: SynchronizableAction>(_ action: Action?) -> Range<Int>? {
    guard let action else { return nil }
    let start = batch.bytes.count
    var encoder = CBOREncoder()
    swap(&encoder.bytes, &batch.bytes)
    action.encode(into: &encoder)
    swap(&encoder.bytes, &batch.bytes)
    return start..<batch.bytes.count
  }

  /// Add the row of an action that the store did not reduce.
  mutating func record(refusal row: JournalRow) {
    if let answer = row.answer { noteAnswered(answer) }
    batch.rows.append(row)
  }

  private mutating func noteAnswered(_ answer: JournalRow.Answer) {
    let action = SessionAction(session: answer.session, number: answer.number)
    if let last = answeredLast, last.session != action.session {
      answered[last.session] = last.number
    }
    answeredLast = action
  }

  /// Take the sessions in the batch, in an order that depends on nothing else.
  private mutating func takeAnswered() -> [(token: SessionToken, last: UInt64)] {
    guard let last = answeredLast else { return [] }
    answeredLast = nil
    if answered.isEmpty { return [(last.session, last.number)] }
    answered[last.session] = last.number
    defer { answered.removeAll(keepingCapacity: true) }
    return answered.map { (token: $0.key, last: $0.value) }
      .sorted { ($0.token.high, $0.token.low) < ($1.token.high, $1.token.low) }
  }

  mutating func record(_ session: JournalSession) {
    if records { batch.sessions.append(session) }
  }

  mutating func forget(_ token: SessionToken) {
    if records { batch.forgotten.append(token) }
  }

  /// Whether the open batch should have a digest: not always, because it costs what has changed
  /// since the last.
  func wantsDigest(every changes: Int) -> Bool { changesSinceDigest >= changes }

  /// Close the batch of a turn that ends at this revision. Nil if it is empty.
  mutating func close(
    at revision: UInt64, digest: Digest?
  ) -> JournalBatch? {
    hasClosedBatch = !batch.isEmpty
    guard hasClosedBatch else { return nil }
    var closed = JournalBatch(number: batch.number + 1, revision: revision)
    swap(&closed, &batch)
    closed.revision = revision
    closed.digest = digest
    if digest != nil { changesSinceDigest = 0 }
    // A row costs about as much as its patch: its names and numbers.
    let byteCount = closed.bytes.count + 128 * closed.rows.count
    inFlight.append(
      InFlight(
        number: closed.number, revision: revision, byteCount: byteCount,
        sessions: takeAnswered(), orders: []))
    queuedBytes += byteCount
    snapshots.bytesSince += byteCount
    return closed
  }

  /// End a turn without a batch, since nothing is recorded.
  mutating func skipTurn() { hasClosedBatch = false }

  /// Hold effect orders until the last closed batch is committed.
  mutating func hold(_ orders: [EffectOrder]) {
    inFlight[inFlight.count - 1].orders += orders
  }

  // MARK: News

  /// Remove and return the batches up to a number, which are committed.
  mutating func committed(through number: UInt64) -> [InFlight] {
    let count = inFlight.firstIndex { $0.number > number } ?? inFlight.count
    let done = Array(inFlight[..<count])
    inFlight.removeFirst(count)
    for batch in done {
      queuedBytes -= batch.byteCount
      durable = max(durable, batch.revision)
    }
    return done
  }

  /// Note that writing failed, and retry with exponential back-off. Returns the batches that are
  /// lost to the file.
  mutating func failed(_ reason: String, at now: Instant) -> [InFlight] {
    let lost = inFlight
    inFlight = []
    queuedBytes = 0
    snapshots.isRunning = false
    // The rows of the current turn would follow a gap.
    let number = batch.number
    batch = JournalBatch(number: number, revision: batch.revision)
    _ = takeAnswered()
    health = health.failed(reason, at: now)
    return lost
  }

  /// Whether it is time to retry the file.
  mutating func shouldRetry(at now: Instant) -> Bool {
    guard case .failing(let reason, let time, let wait) = health, !(now < time) else {
      return false
    }
    // Retry once: the answer sets the next time.
    health = .failing(reason, retryAt: Instant(nanoseconds: .max), wait: wait)
    return true
  }

  mutating func stillFailing(_ reason: String, at now: Instant) {
    guard case .failing = health else { return }
    health = health.failed(reason, at: now)
  }

  // MARK: Snapshots

  /// Whether enough has been recorded since the last snapshot for a new one.
  func wantsSnapshot(_ limits: Limits, at now: Instant) -> Bool {
    durability != .none && health == .healthy && snapshots.isTime(limits, at: now)
  }

  /// Begin a snapshot, after the batches in flight; one that heals has this revision.
  mutating func beginSnapshot(at now: Instant, heals revision: UInt64? = nil) {
    if let revision, case .failing(let reason, _, let wait) = health {
      health = .healing(reason, revision, wait: wait)
    }
    snapshots.begin(at: now)
  }

  /// Note that the snapshot cannot be made. It is retried later; a gap that it was to close stays.
  /// Returns the batches that are lost to the file, nil if none can be, and whether the failure is
  /// new.
  mutating func snapshotImpossible(
    _ reason: String, at now: Instant
  ) -> (lost: [InFlight]?, isNews: Bool) {
    let isNews = snapshots.noteImpossible()
    if case .healing = health { return (failed(reason, at: now), isNews) }
    snapshots.postpone(at: now)
    return (nil, isNews)
  }

  /// Note that a snapshot is written. Returns whether it healed the journal.
  mutating func snapshotKept(bytes: Int) -> Bool {
    snapshots.end(bytes: bytes)
    guard case .healing(_, let revision, _) = health else { return false }
    health = .healthy
    durable = max(durable, revision)
    return true
  }
}

/// When the next snapshot is due.
private struct SnapshotSchedule: Sendable {
  /// Bytes of batches since the newest snapshot was begun.
  var bytesSince: Int
  var isRunning = false
  /// The bytes of the newest snapshot.
  private var bytes = 0
  private var bytesBefore = 0
  private var last: Instant
  /// No snapshot begins before this time, because there was no memory for the last.
  private var next = Instant(nanoseconds: 0)
  private var isImpossible = false

  init(journaled: Int, at now: Instant) {
    bytesSince = journaled
    last = now
  }

  func isTime(_ limits: Limits, at now: Instant) -> Bool {
    guard !isRunning, bytesSince > 0, !(now < next) else { return false }
    return bytesSince > max(limits.journalBytes, 2 * bytes) || now > last + limits.journalAge
  }

  mutating func begin(at now: Instant) {
    isRunning = true
    bytesBefore = bytesSince
    bytesSince = 0
    last = now
  }

  /// Note that a snapshot is impossible. Returns whether that is new.
  mutating func noteImpossible() -> Bool {
    defer { isImpossible = true }
    return !isImpossible
  }

  mutating func postpone(at now: Instant) {
    isRunning = false
    bytesSince += bytesBefore
    bytesBefore = 0
    next = now + .seconds(10)
  }

  mutating func end(bytes: Int) {
    isRunning = false
    isImpossible = false
    self.bytes = bytes
  }
}
