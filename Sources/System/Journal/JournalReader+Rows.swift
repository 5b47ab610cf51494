import CBOR
import Lockstep
public import Records
import Values
public import Wire

extension JournalReader {
  /// Call `body` with the rows after a sequence number, in order. Every row's seal is checked, and
  /// that none is missing. O(their bytes); one row at a time is in memory.
  public func forEachRow(
    after sequence: UInt64, _ body: (inout JournalEntry) throws(JournalError) -> Void
  ) throws(JournalError) {
    try reading { () throws(JournalError) in
      guard let origin = try origin() else { return }
      var rows = try RowReader(self, origin, after: sequence)
      defer { rows.finish() }
      while try rows.next() { try body(&rows.entry) }
    }
  }

  /// The sessions that have not been forgotten, with the newest `window` outcomes of each: those of
  /// the snapshot, and of the rows after it, which are as durable as `mark` says.
  ///
  /// O(sessions + rows after the snapshot). A caller that reads the rows anyway saves half of that
  /// by beginning with `keptOutcomes` and noting the rows in it.
  public func sessions(window: Int, mark: Mark) throws(JournalError) -> [JournalSession] {
    try reading { () throws(JournalError) in
      guard let origin = try origin() else { return [] }
      var outcomes = try keptOutcomes(window: window, mark: mark)
      let covered = try snapshot(origin)?.head.sequence ?? origin.cutSequence
      try forEachRow(after: covered) { outcomes.note($0.row) }
      return outcomes.result
    }
  }

  /// The snapshot's outcomes of the sessions that have not been forgotten since, and the sessions
  /// that are newer than it. They are complete once the rows after the snapshot have been noted, in
  /// order. O(sessions).
  public func keptOutcomes(window: Int, mark: Mark) throws(JournalError) -> KeptOutcomes {
    try reading { () throws(JournalError) in
      guard let origin = try origin() else {
        return KeptOutcomes([], window: window, mark: mark)
      }
      let kept = try snapshot(origin)?.head
      let known = try liveSessions(origin)
      let live = Set(known.map(\.session.number))
      var outcomes = KeptOutcomes(
        kept?.sessions.filter { live.contains($0.number) } ?? [], window: window, mark: mark)
      for (session, since) in known where kept == nil || since > kept?.sequence ?? 0 {
        outcomes.add(session)
      }
      return outcomes
    }
  }

  /// The sessions that have not been forgotten, without outcomes, each with the action since which
  /// it is known.
  func liveSessions(
    _ origin: Origin
  ) throws(JournalError) -> [(session: JournalSession, since: UInt64)] {
    let all = try sessions(origin)
    if let number = all.firstLost { throw damaged("session \(number)") }
    return all.sound.filter { $0.until == nil }.map { ($0.session, $0.since) }
  }

  struct KeptSessions {
    var sound: [(session: JournalSession, since: UInt64, until: UInt64?)] = []
    var lostCount = 0
    /// The number of the first damaged one.
    var firstLost: UInt64?
  }

  /// All sessions without outcomes, each with the action since which it is known, and the one at
  /// which it was forgotten.
  func sessions(_ origin: Origin) throws(JournalError) -> KeptSessions {
    var sessions = KeptSessions()
    var seal = Seal(epoch: origin.identity.epoch)
    let statement = try connection.statement(
      """
      SELECT number, token, uid, since, seal, until FROM session ORDER BY number
      """)
    defer { statement.reset() }
    while try statement.step() {
      let (number, uid, since, until) = (
        statement.unsigned(0), statement.unsigned(2), statement.unsigned(3),
        statement.optionalUnsigned(5)
      )
      guard let token = SessionToken(statement.bytes(1)),
        Self.seal(number, token, uid, since, until, &seal) == statement.unsigned(4)
      else {
        sessions.lostCount += 1
        sessions.firstLost = sessions.firstLost ?? number
        continue
      }
      sessions.sound.append(
        (
          JournalSession(token: token, uid: uid, number: number), since, until
        ))
    }
    return sessions
  }

  // MARK: Suspects

  /// Actions during which the process died, and how often; the latest last.
  public func suspects() throws(JournalError) -> [(action: SessionAction, kills: Int)] {
    guard let origin = try origin() else { return [] }
    let suspects = try suspects(origin)
    guard suspects.lostCount == 0 else { throw damaged("a suspect action") }
    return suspects.sound
  }

  func suspects(
    _ origin: Origin
  ) throws(JournalError) -> (sound: [(action: SessionAction, kills: Int)], lostCount: Int) {
    var suspects: (sound: [(action: SessionAction, kills: Int)], lostCount: Int) = ([], 0)
    var seal = Seal(epoch: origin.identity.epoch)
    let statement = try connection.statement(
      "SELECT token, number, kills, seal FROM suspect ORDER BY rowid")
    defer { statement.reset() }
    while try statement.step() {
      let kills = Int(statement.integer(2))
      guard let token = SessionToken(statement.bytes(0)) else {
        suspects.lostCount += 1
        continue
      }
      let action = SessionAction(session: token, number: statement.unsigned(1))
      if Self.seal(action, kills: kills, &seal) == statement.unsigned(3) {
        suspects.sound.append((action, kills))
      } else {
        suspects.lostCount += 1
      }
    }
    return suspects
  }

  static func seal(_ action: SessionAction, kills: Int, _ seal: inout Seal) -> UInt64 {
    seal.begin()
    for word in [action.session.high, action.session.low, action.number] { seal.add(word) }
    seal.add(Int64(kills))
    return seal.value
  }
}
