public import Lockstep
public import Records
public import Values
import Wire

extension JournalFile {
  /// Set the epoch and the seed of a new journal, once. One commit and a checkpoint.
  public func create(epoch: UInt64, seed: HashSeed) throws(JournalError) {
    guard state.identity == nil else { throw defect("it has an epoch already") }
    let origin = Origin(
      identity: JournalIdentity(epoch: epoch, seed: seed), cutSequence: 0, cutSeal: 0)
    try write { () throws(JournalError) in
      try connection.run(
        """
        INSERT INTO journal(one, epoch, seed, cut_sequence, cut_seal, probes, seal)
        VALUES(1, ?, ?, 0, 0, 0, ?)
        """,
        Int64(bitPattern: epoch), Int64(bitPattern: seed.rawValue), Int64(bitPattern: origin.seal))
    }
    state.identity = origin.identity
    // Losing the log must not lose the epoch: the journal would seem to be a new one.
    try checkpoint()
  }

  /// The error of a call that is a defect of the caller. Nothing was tried.
  func defect(_ what: String) -> JournalError {
    JournalError(.failed, "\(path): \(what): a defect of the program. Please report it.")
  }

  func knownIdentity() throws(JournalError) -> JournalIdentity {
    guard let identity = state.identity else { throw defect("the journal has no epoch yet") }
    return identity
  }

  // MARK: Runs

  /// Record that a run of the daemon begins with this revision, at this time, with a feature of
  /// this encoded schema. Run numbers rise. The newest thousand runs are kept. One commit.
  public func begin(
    run: JournalRun, schema: [UInt8], revision: UInt64, time: Timestamp
  ) throws(JournalError) {
    let identity = try knownIdentity()
    guard run.run > state.run?.run.run ?? 0 else {
      throw defect("run \(run.run) does not follow run \(state.run?.run.run ?? 0)")
    }
    let begun = JournalContents.Run(
      run: run, time: time, began: revision, ended: nil, schema: schema)
    try write { () throws(JournalError) in
      let id = try keep(schema: schema, identity)
      try keep(begun, schema: id, identity)
      try connection.run(
        "DELETE FROM run WHERE run <= (SELECT run FROM run ORDER BY run DESC LIMIT 1 OFFSET 1000)")
      try connection.run("DELETE FROM schema WHERE id NOT IN (SELECT schema FROM run)")
    }
    state.run = begun
    state.revision = max(state.revision, revision)
    // The commit has also synchronised everything that the log held before.
    noteDurable()
  }

  /// Record that the newest run ended cleanly, with this revision. Nothing is appended after it.
  /// One commit.
  public func endRun(revision: UInt64) throws(JournalError) {
    let identity = try knownIdentity()
    guard var run = state.run else { throw defect("no run has begun") }
    run.ended = revision
    try write { () throws(JournalError) in
      let id = try connection.number(
        "SELECT schema FROM run WHERE run = ?", Int64(bitPattern: run.run.run))
      try keep(run, schema: id ?? 0, identity)
    }
    state.run = run
  }

  private func keep(
    schema: [UInt8], _ identity: JournalIdentity
  ) throws(JournalError) -> Int64 {
    let known = try connection.statement("SELECT id FROM schema WHERE bytes = ?")
    defer { known.reset() }
    schema.withUnsafeBytes { known.bind(1, copying: $0) }
    if try known.step() { return known.integer(0) }
    let id = (try connection.number("SELECT max(id) FROM schema") ?? 0) &+ 1
    var seal = Seal(epoch: identity.epoch)
    seal.add(schema)
    let insert = try connection.statement("INSERT INTO schema(id, bytes, seal) VALUES(?, ?, ?)")
    defer { insert.reset() }
    insert.bind(1, id)
    schema.withUnsafeBytes { insert.bind(2, copying: $0) }
    insert.bind(3, seal.value)
    try insert.run()
    return id
  }

  func keep(
    _ run: JournalContents.Run, schema: Int64, _ identity: JournalIdentity
  ) throws(JournalError) {
    var seal = Seal(epoch: identity.epoch)
    try connection.run(
      """
      INSERT OR REPLACE INTO run(run, base, time, began, ended, schema, seal)
      VALUES(?, ?, ?, ?, ?, ?, ?)
      """,
      Int64(bitPattern: run.run.run), Int64(bitPattern: run.run.base), run.time.nanoseconds,
      Int64(bitPattern: run.began), run.ended.map { Int64(bitPattern: $0) }, schema,
      Int64(bitPattern: Self.seal(run, schema: schema, &seal)))
  }

  // MARK: Batches

  /// Store batches as one commit: when this returns, all of them are stored. After an error, or a
  /// crash meanwhile, any number of the first may be: none, some or all, each as a whole.
  ///
  /// Rows must follow the stored ones, and every change the one before it: after batches have been
  /// lost, a snapshot must come first (`finishSnapshot`). O(bytes), and with `.sync` one
  /// synchronisation, whatever the number of rows.
  public func append(_ batches: [JournalBatch]) throws(JournalError) {
    let identity = try knownIdentity()
    try checkUsable()
    let next = try checkOrder(batches)
    if try !commitToLog(batches) {
      // The owner should have done this when no commit was waiting.
      if connection.logFrames >= 4 * checkpointFrames { try checkpointIfDue() }
      try write { () throws(JournalError) in try insert(batches, identity) }
    }
    (state.sequence, state.base) = next
    if let last = batches.last { state.revision = last.revision }
    noteDurable()
    if batches.indices.allSatisfy({ batches[$0].forgotten.isEmpty }) { return }
    let forgotten = Set(batches.lazy.flatMap(\.forgotten))
    for token in forgotten { state.numbers[token] = nil }
    state.snapshot?.pending.removeAll { forgotten.contains($0.token) }
  }

  /// Check that rows follow each other. Returns the last sequence number and change.
  private func checkOrder(
    _ batches: [JournalBatch]
  ) throws(JournalError) -> (sequence: UInt64, base: UInt64?) {
    var (sequence, base) = (state.sequence, state.base)
    // By index: a batch, and a row, is large to copy.
    for batch in batches.indices {
      for index in batches[batch].rows.indices {
        let next = batches[batch].rows[index].sequence
        guard next > sequence else {
          throw defect("action \(next) does not follow action \(sequence)")
        }
        sequence = next
        guard let change = batches[batch].rows[index].change else { continue }
        let revision = batches[batch].rows[index].revision
        guard base == nil || base == change.base else {
          throw defect(
            "the change of revision \(revision) is based on revision \(change.base), and the one "
              + "before it is of revision \(base ?? 0)")
        }
        base = revision
      }
    }
    return (sequence, base)
  }

  /// Insert batches into the log of the file, in the transaction that is open.
  func insert(
    _ batches: [JournalBatch], _ identity: JournalIdentity
  ) throws(JournalError) {
    var writer = try RowWriter(connection, epoch: identity.epoch, chain: state.chain)
    // Turns share a row only if there are many of them.
    let sharesRows = batches.count >= RowPack.worthwhile
    // A session that a batch without rows forgets may have acted in the batches before it.
    var last = state.sequence
    for index in batches.indices {
      last = batches[index].rows.last?.sequence ?? last
      try keep(
        batches[index], &writer, identity, last: last,
        packs: sharesRows || batches[index].rows.count >= RowPack.worthwhile,
        endsRow: !sharesRows || index == batches.count - 1
          || index % RowPack.turns == RowPack.turns - 1)
    }
    // After an error, all of `state` is read again.
    state.chain = writer.chain
  }

  private func keep(
    _ batch: JournalBatch, _ writer: inout RowWriter, _ identity: JournalIdentity, last: UInt64,
    packs: Bool, endsRow: Bool
  ) throws(JournalError) {
    let covered = max(state.sequence, state.snapshot?.head.sequence ?? 0)
    let since = batch.rows.first?.sequence ?? covered &+ 1
    for session in batch.sessions {
      try introduce(session, since: since, identity)
    }
    try batch.forEachRow { row, bytes, isLast throws(JournalError) in
      let session = try number(of: row.pointee.answer?.session)
      let turn = isLast ? batch.revision : nil
      // A pack has no room for a digest.
      if packs, !isLast || !endsRow && batch.digest == nil,
        writer.pack(row, bytes, session: session, turn: turn)
      {
        return true
      }
      try writer.write(
        row, bytes, session: session, turn: turn, digest: isLast ? batch.digest : nil)
      return true
    }
    for token in batch.forgotten { try forget(token, at: last) }
  }

  /// The number of the session that a row answers.
  func number(of session: SessionToken?) throws(JournalError) -> UInt64? {
    guard let session else { return nil }
    if let last = state.lastNumber, last.token == session { return last.number }
    guard let number = state.numbers[session] else {
      throw defect("a row names session \(session), which no batch has introduced")
    }
    state.lastNumber = (session, number)
    return number
  }

  /// Store a session, in place of any with the same number.
  private func introduce(
    _ session: JournalSession, since: UInt64, _ identity: JournalIdentity
  ) throws(JournalError) {
    try keep(session, since: since, identity, "INSERT OR REPLACE")
  }

  func keep(
    _ session: JournalSession, since: UInt64, until: UInt64? = nil, _ identity: JournalIdentity,
    _ verb: String
  ) throws(JournalError) {
    var seal = Seal(epoch: identity.epoch)
    let statement = try connection.statement(
      "\(verb) INTO session(number, token, uid, since, until, seal) VALUES(?, ?, ?, ?, ?, ?)")
    defer { statement.reset() }
    statement.bind(1, session.number)
    session.token.withBytes { statement.bind(2, copying: $0) }
    statement.bind(3, session.uid)
    statement.bind(4, since)
    statement.bind(5, until.map { Int64(bitPattern: $0) })
    statement.bind(
      6, Self.seal(session.number, session.token, session.uid, since, until, &seal))
    try statement.run()
    // After an error, all of `state` is read again.
    if until == nil { state.numbers[session.token] = session.number }
  }

  private func forget(_ token: SessionToken, at sequence: UInt64) throws(JournalError) {
    guard let number = state.numbers[token] else { return }
    try close(session: number, until: sequence)
    let suspects = try connection.statement("DELETE FROM suspect WHERE token = ?")
    defer { suspects.reset() }
    token.withBytes { suspects.bind(1, copying: $0) }
    try suspects.run()
  }

  /// Record that a session was forgotten.
  func close(session number: UInt64, until sequence: UInt64) throws(JournalError) {
    let identity = try knownIdentity()
    let known = try connection.statement("SELECT token, uid, since FROM session WHERE number = ?")
    defer { known.reset() }
    known.bind(1, number)
    guard try known.step(), let token = SessionToken(known.bytes(0)) else { return }
    try keep(
      JournalSession(token: token, uid: known.unsigned(1), number: number),
      since: known.unsigned(2), until: sequence, identity, "REPLACE")
  }

  // MARK: Suspects

  /// Record that the process died during an action. Returns how often it has so far. At most a
  /// thousand actions are remembered; they are forgotten with their session. One commit.
  public func noteKill(_ action: SessionAction) throws(JournalError) -> Int {
    let identity = try knownIdentity()
    return try write { () throws(JournalError) in
      let kills = 1 + (try kills(of: action))
      try keep(action, kills: kills, identity)
      try connection.run(
        """
        DELETE FROM suspect WHERE rowid <=
          (SELECT rowid FROM suspect ORDER BY rowid DESC LIMIT 1 OFFSET 1000)
        """)
      return kills
    }
  }

  private func kills(of action: SessionAction) throws(JournalError) -> Int {
    let statement = try connection.statement(
      "SELECT kills FROM suspect WHERE token = ? AND number = ?")
    defer { statement.reset() }
    action.session.withBytes { statement.bind(1, copying: $0) }
    statement.bind(2, action.number)
    return try statement.step() ? min(max(0, Int(statement.integer(0))), 1 << 30) : 0
  }

  func keep(
    _ action: SessionAction, kills: Int, _ identity: JournalIdentity
  ) throws(JournalError) {
    var seal = Seal(epoch: identity.epoch)
    let insert = try connection.statement(
      "REPLACE INTO suspect(token, number, kills, seal) VALUES(?, ?, ?, ?)")
    defer { insert.reset() }
    action.session.withBytes { insert.bind(1, copying: $0) }
    insert.bind(2, action.number)
    insert.bind(3, Int64(kills))
    insert.bind(4, Self.seal(action, kills: kills, &seal))
    try insert.run()
  }
}
