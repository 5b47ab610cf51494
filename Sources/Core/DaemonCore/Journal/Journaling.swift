import Lockstep
import Records
import Values
import Wire

// Theory of operation
//
// While actions are reduced, rows are added to the open batch. At the turn's end the batch is given
// to the shell, which commits it on a thread of its own, and goes *in flight*. Patches do not wait
// for it; acknowledgements that promise durability do, and so do the effects of its actions.
//
//     healthy --failed--> failing --reopened--> healing --snapshotKept--> healthy
//
// Once keeping has failed, the file lacks something: nothing is recorded until it can be written
// again, and nothing is promised until a fresh snapshot has closed the gap. Batches made while
// healing follow that snapshot.

/// What the server remembers of what is being kept.
struct Journaling: Sendable {
  enum Health: Equatable, Sendable {
    case healthy
    /// Nothing can be kept, for this reason; the file is tried again at this time.
    case failing(String, retryAt: Instant)
    /// A fresh snapshot, of this revision, is on its way to the file.
    case healing(String, UInt64)
  }

  struct InFlight: Sendable {
    let number: UInt64
    let revision: UInt64
    let byteCount: Int
    /// Sessions, and the last of their actions that the batch holds.
    let sessions: [(token: SessionToken, last: UInt64)]
    /// What to do about effects once the batch is committed.
    var orders: [EffectOrder]
  }

  let durability: Durability
  private(set) var health = Health.healthy
  /// What this turn leaves to be kept.
  private(set) var batch: JournalBatch
  /// The sessions in the batch, by the last of their actions.
  private var answered: [SessionToken: UInt64] = [:]
  private(set) var inFlight: [InFlight] = []
  /// Bytes that have been given to the shell and are not committed.
  private(set) var queuedBytes = 0
  /// The revision of the newest change that was recorded.
  private(set) var base: UInt64
  /// The newest revision that survives a crash.
  private(set) var durable: UInt64
  /// Bytes of batches since the newest snapshot was begun.
  private(set) var bytesSinceSnapshot = 0
  private(set) var snapshotBytes = 0
  private(set) var snapshotIsRunning = false
  private var lastSnapshot: Instant
  /// None is begun before this time: there was no memory for the last.
  private var nextSnapshot = Instant(nanoseconds: 0)
  private var bytesBeforeSnapshot = 0
  private var isSnapshotImpossible = false
  private var wait: Duration = .seconds(1)
  private var changesSinceDigest = 0
  /// The paths of fields that are not kept.
  let ephemeral: EphemeralPaths

  init(
    _ durability: Durability, base: UInt64, revision: UInt64, ephemeral: EphemeralPaths,
    durable: UInt64? = nil, journaled: Int = 0, at now: Instant
  ) {
    bytesSinceSnapshot = journaled
    self.durability = durability
    self.base = base
    self.ephemeral = ephemeral
    self.durable = durable ?? revision
    batch = JournalBatch(number: 1, revision: revision)
    lastSnapshot = now
  }

  /// Whether what happens is recorded.
  var records: Bool {
    if durability == .none { return false }
    if case .failing = health { return false }
    return true
  }

  /// Whether an action may be promised to be durable; why not, if keeping has failed.
  var confirmsDurability: Bool { durability == .sync }
  var failure: String? {
    switch health {
    case .healthy: nil
    case .failing(let reason, _), .healing(let reason, _): reason
    }
  }

  // MARK: Recording

  /// Add a row, with the patch if the state changed by one that is kept, and the action.
  mutating func record(
    _ row: JournalRow, patch: UnsafeRawBufferPointer?, action: ((inout CBOREncoder) -> Void)?
  ) {
    var row = row
    if let patch {
      let start = batch.bytes.count
      if ephemeral.appendKept(of: patch, to: &batch.bytes) {
        row.change = JournalRow.Change(base: base, patch: start..<batch.bytes.count)
        base = row.revision
        changesSinceDigest += 1
      }
    }
    // What changed nothing that is kept need only be known if somebody may ask again.
    guard row.change != nil || row.answer != nil else { return }
    if let action {
      let start = batch.bytes.count
      var encoder = CBOREncoder()
      swap(&encoder.bytes, &batch.bytes)
      action(&encoder)
      swap(&encoder.bytes, &batch.bytes)
      row.action = start..<batch.bytes.count
    }
    if let answer = row.answer { answered[answer.session] = answer.number }
    batch.rows.append(row)
  }

  mutating func record(_ session: JournalSession) {
    if records { batch.sessions.append(session) }
  }

  mutating func forget(_ token: SessionToken) {
    if records { batch.forgotten.append(token) }
  }

  /// Whether the open batch should say the digest: now and then, for it costs what has changed.
  func wantsDigest(every changes: Int) -> Bool { changesSinceDigest >= changes }

  /// Close the batch of a turn that ends at this revision. Nil when it left nothing.
  mutating func close(
    at revision: UInt64, digest: Digest?
  ) -> JournalBatch? {
    guard !batch.isEmpty else { return nil }
    var closed = JournalBatch(number: batch.number + 1, revision: revision)
    swap(&closed, &batch)
    closed.revision = revision
    closed.digest = digest
    if digest != nil { changesSinceDigest = 0 }
    // A row costs about as much as its patch: its names and numbers.
    let byteCount = closed.bytes.count + 128 * closed.rows.count
    let sessions = answered.map { (token: $0.key, last: $0.value) }
      .sorted { ($0.token.high, $0.token.low) < ($1.token.high, $1.token.low) }
    answered.removeAll(keepingCapacity: true)
    inFlight.append(
      InFlight(
        number: closed.number, revision: revision, byteCount: byteCount, sessions: sessions,
        orders: []))
    queuedBytes += byteCount
    bytesSinceSnapshot += byteCount
    return closed
  }

  /// Let orders wait for the batch that was closed last.
  mutating func hold(_ orders: [EffectOrder]) {
    inFlight[inFlight.count - 1].orders += orders
  }

  // MARK: News

  /// Batches up to a number are committed: returns them.
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

  /// Keeping failed: returns the batches that are lost to the file.
  mutating func failed(_ reason: String, at now: Instant) -> [InFlight] {
    let lost = inFlight
    inFlight = []
    queuedBytes = 0
    snapshotIsRunning = false
    // What the turn has recorded so far would follow a gap.
    let number = batch.number
    batch = JournalBatch(number: number, revision: batch.revision)
    answered.removeAll(keepingCapacity: true)
    health = .failing(reason, retryAt: now + wait)
    wait = min(wait * 2, .seconds(30))
    return lost
  }

  /// Whether it is time to try the file again.
  mutating func shouldRetry(at now: Instant) -> Bool {
    guard case .failing(let reason, let time) = health, !(now < time) else { return false }
    // Once: the answer brings the next.
    health = .failing(reason, retryAt: Instant(nanoseconds: .max))
    return true
  }

  mutating func stillFailing(_ reason: String, at now: Instant) {
    guard case .failing = health else { return }
    health = .failing(reason, retryAt: now + wait)
    wait = min(wait * 2, .seconds(30))
  }

  // MARK: Snapshots

  /// Whether enough has been recorded since the last snapshot for the next.
  func wantsSnapshot(_ limits: Limits, at now: Instant) -> Bool {
    guard durability != .none, health == .healthy, !snapshotIsRunning, bytesSinceSnapshot > 0,
      !(now < nextSnapshot)
    else { return false }
    return bytesSinceSnapshot > max(limits.journalBytes, 2 * snapshotBytes)
      || now > lastSnapshot + limits.journalAge
  }

  /// A snapshot begins, behind what is in flight; one that heals, of this revision.
  mutating func beginSnapshot(at now: Instant, heals revision: UInt64? = nil) {
    if let revision, case .failing(let reason, _) = health {
      health = .healing(reason, revision)
    }
    snapshotIsRunning = true
    bytesBeforeSnapshot = bytesSinceSnapshot
    bytesSinceSnapshot = 0
    lastSnapshot = now
  }

  /// The snapshot that was begun cannot be made. It is tried again later; what it was to heal
  /// waits. Returns the batches that are lost to the file, nil if none can be, and whether that is
  /// news.
  mutating func snapshotImpossible(
    _ reason: String, at now: Instant
  ) -> (lost: [InFlight]?, isNews: Bool) {
    defer { isSnapshotImpossible = true }
    if case .healing = health { return (failed(reason, at: now), !isSnapshotImpossible) }
    snapshotIsRunning = false
    bytesSinceSnapshot += bytesBeforeSnapshot
    nextSnapshot = now + .seconds(10)
    return (nil, !isSnapshotImpossible)
  }

  /// A snapshot is kept. Returns whether it healed what had failed.
  mutating func snapshotKept(bytes: Int) -> Bool {
    snapshotIsRunning = false
    isSnapshotImpossible = false
    snapshotBytes = bytes
    guard case .healing(_, let revision) = health else { return false }
    health = .healthy
    wait = .seconds(1)
    durable = max(durable, revision)
    return true
  }
}
