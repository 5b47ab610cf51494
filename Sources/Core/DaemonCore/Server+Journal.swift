import CBOR
public import Lockstep
public import Records
import Values
import Wire

// Recording to the journal, and releasing what waits for it (`Journaling`).
extension Server {
  /// Resume from a restored state: sessions wait for their clients, and ephemeral fields are reset,
  /// which is a revision of its own.
  mutating func takeUp(_ kept: RestoredState<R.State>) {
    for action in kept.log {
      core.takeUp(
        action.decoded(as: R.Action.self, seed: kept.seed), named: action.name,
        number: action.sequence, from: action.cause, at: action.time, action.reduction,
        action.revision)
    }
    for session in kept.sessions {
      var outcomes = session.outcomes
      if !journaling.confirmsDurability {
        for index in outcomes.indices { outcomes[index].mark = .applied }
      }
      var record = SessionRecord(
        uid: session.uid, number: session.number,
        outcomes: Outcomes(limits, kept: outcomes))
      record.isKept = !kept.unjournaledSessions.contains(session.token)
      record.committed = record.outcomes.last
      sessions.restore(record, session.token, at: clock.now)
    }
    // The sessions of a former process get connections, which are inherited afterwards.
    while !kept.isHandedOver, let token = sessions.surplus(),
      sessions.forget(token, nil, among: connections) != nil
    {
      journaling.forget(token)
    }
    guard timeline.hasFormerRuns, !kept.isHandedOver, !journaling.ephemeral.isEmpty else { return }
    // A mirror of a former run gets these fields whole, because its values of them are unknown.
    core.advance()
    publication.begin(
      behind: journaling.ephemeral.replacement(from: core.state), revision: core.revision)
  }

  /// The newest revision that survives a crash; nil if durability is not confirmed.
  var durableRevision: UInt64? { journaling.confirmsDurability ? journaling.durable : nil }

  /// Whether a mirror at a position has the state that this server's history had there.
  func holds(_ position: Position) -> Bool {
    timeline.holds(position) || faults.trustsFormerRuns && timeline.knows(position)
  }

  // MARK: Recording

  mutating func record(_ reduction: Reduction, _ answer: SessionAction?) {
    let isChange = if case .changed = reduction { true } else { false }
    guard isChange || answer != nil && !faults.forgetsAnswers else { return }
    let answer = answer.map {
      JournalRow.Answer(
        session: $0.session, number: $0.number, outcome: Acknowledgement.Outcome(reduction))
    }
    // Read where it is: to copy a record counts references.
    let log = core.log
    turn.patch.bytes.withUnsafeBytes { bytes in
      log.withNewest { journaling.record($0, patch: isChange ? bytes : nil, answer: answer) }
    }
  }

  /// Record a session in the journal before its first action.
  mutating func keep(_ attachment: ServerSession.Attachment) {
    let place = attachment.place
    guard journaling.records, !sessions[place: place].isKept else { return }
    sessions[place: place].isKept = true
    journaling.record(
      JournalSession(
        token: attachment.token, uid: sessions[place: place].uid,
        number: sessions[place: place].number))
  }

  /// The rejection of an action before it is reduced; nil if it may be reduced. Inlined: for a call the
  /// compiler copies the server, 3,752 bytes.
  @inline(__always)
  func refusal(of action: SessionAction, _ mark: Mark) -> Rejection? {
    if journaling.isPoisoned(action) {
      return Rejection(
        .poisoned, "this action ended the daemon's process twice and is not tried again")
    }
    if mark == .durable, journaling.confirmsDurability, let reason = journaling.failure {
      return Rejection(.notDurable, "nothing can be made durable at present: \(reason)")
    }
    if journaling.queuedBytes > limits.journalQueueBytes {
      return Rejection(
        .limit,
        "\(journaling.queuedBytes) bytes wait for the disk, and journalQueueBytes is "
          + "\(limits.journalQueueBytes)")
    }
    return nil
  }

  /// Record the outcome of an action that the store did not reduce.
  mutating func recordRefusal(
    _ action: SessionAction, _ cause: Cause, _ outcome: Acknowledgement.Outcome
  ) {
    guard journaling.records, !faults.forgetsAnswers else { return }
    core.skipSequence()
    journaling.record(
      refusal: JournalRow(
        sequence: core.sequence, time: core.time, cause: cause, name: "", action: nil,
        revision: core.revision, change: nil,
        answer: .init(session: action.session, number: action.number, outcome: outcome)))
  }

  // MARK: Turns

  /// Give the shell the batch that the turn leaves for the journal.
  mutating func keepTurn(_ commands: inout [Command]) {
    guard journaling.records else { return journaling.skipTurn() }
    let digest = keptDigest(&commands)
    guard let batch = journaling.close(at: core.revision, digest: digest) else { return }
    commands.append(.keep(batch))
  }

  /// Begin a snapshot of the journal if one is due.
  mutating func keepSnapshot(_ commands: inout [Command]) {
    // Without a journal it is not even asked: the question copies all limits.
    guard journaling.durability != .none, journaling.wantsSnapshot(limits, at: clock.now) else {
      return
    }
    journaling.beginSnapshot(at: clock.now)
    commands.append(.keepSnapshot(heals: false))
  }

  /// The present state as a snapshot for the journal, with its head. O(sessions).
  public var pendingSnapshot: PendingSnapshot<R.State> {
    var state = core.state
    if !journaling.ephemeral.isEmpty { EphemeralFields.reset(&state) }
    let kept = sessions.pairs.map { pair in
      JournalSession(
        token: pair.key, uid: pair.value.uid, number: pair.value.number,
        outcomes: pair.value.outcomes.kept)
    }
    return PendingSnapshot(
      state: state, seed: core.seed, schema: schema,
      head: JournalSnapshot(
        revision: core.revision, base: journaling.base, sequence: core.sequence, time: core.time,
        digest: Digest(0), sessions: kept,
        sessionCount: sessions.total),
      leftOut: journaling.leftOut, expectedBytes: memory.expectedBytes)
  }

  // MARK: News

  mutating func hear(_ news: JournalEvent, _ commands: inout [Command]) {
    switch news {
    case .committed(let number):
      for batch in journaling.committed(through: number) { release(batch, &commands) }
    case .failed(let reason):
      let wasHealthy = journaling.failure == nil
      giveUp(journaling.failed(reason, at: clock.now), reason, &commands)
      if wasHealthy {
        commands.append(
          .log(
            LogLine(
              .error, "nothing is durable until it can be written again",
              [
                .init("reason", reason), .init("durable", journaling.durable),
                .init("revision", core.revision),
              ])))
      }
    case .reopened:
      guard !journaling.records else { return }
      journaling.beginSnapshot(at: clock.now, heals: core.revision)
      for place in sessions.pairs.map(\.key).compactMap({ sessions.place(of: $0) }) {
        sessions[place: place].isKept = true
      }
      commands.append(.keepSnapshot(heals: true))
    case .stillFailing(let reason): journaling.stillFailing(reason, at: clock.now)
    case .snapshotKept(let bytes):
      guard journaling.snapshotKept(bytes: bytes) else { return }
      commands.append(
        .log(LogLine(.notice, "changes are durable again", [.init("revision", core.revision)]))
      )
    case .snapshotImpossible(let reason):
      let (lost, isNews) = journaling.snapshotImpossible(reason, at: clock.now)
      if let lost { giveUp(lost, reason, &commands) }
      guard isNews else { return }
      commands.append(
        .log(
          LogLine(
            .error, "the journal grows until a snapshot can be made", [.init("reason", reason)])))
    }
  }

  /// Release everything that waited for batches that are lost.
  private mutating func giveUp(
    _ lost: [Journaling.InFlight], _ reason: String, _ commands: inout [Command]
  ) {
    for place in sessions.pairs.map(\.key).compactMap({ sessions.place(of: $0) }) {
      sessions[place: place].outcomes.fail(after: sessions[place: place].committed, reason)
    }
    for batch in lost { release(batch, &commands) }
    for id in connections.idsInOrder { connections.touch(id) }
  }

  /// Release everything that waited for a batch: acknowledgements, and effects.
  private mutating func release(_ batch: Journaling.InFlight, _ commands: inout [Command]) {
    for (token, last) in batch.sessions {
      guard let place = sessions.place(of: token) else { continue }
      sessions[place: place].committed = max(sessions[place: place].committed, last)
      if let id = sessions[place: place].connection { connections.touch(id) }
    }
    commands += batch.orders.map { .effect($0) }
  }
}
