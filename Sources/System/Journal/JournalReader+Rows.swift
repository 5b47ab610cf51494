import CBOR
import Lockstep
public import Records
import Values
import Wire

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

  /// Call `body` with the rows after one sequence number and up to another, in order. They are of no
  /// use but for people: a damaged row is left out, and where one cannot be read at all, those behind it
  /// are, too. O(their bytes); one row at a time is in memory.
  public func forEachLoggedRow(
    after sequence: UInt64, through last: UInt64, _ body: (JournalEntry) -> Void
  ) throws(JournalError) {
    do throws(JournalError) {
      try reading { () throws(JournalError) in
        guard let origin = try origin() else { return }
        var rows = try RowReader(self, origin, after: sequence, isLenient: true)
        defer { rows.finish() }
        while try rows.step(), rows.position.sequence <= last {
          guard rows.isIntact else { continue }
          try rows.read()
          body(rows.entry)
        }
      }
    } catch {
      if error.kind != .corrupt { throw error }
    }
  }

  /// The sessions that have not been forgotten, without their outcomes: those of the journal's
  /// snapshot, and those that began after it. Sessions that only an unfinished snapshot has are
  /// left out. The outcomes are in the snapshot and in the rows after it. O(sessions).
  public func sessions(
    from snapshot: JournalSnapshot?
  ) throws(JournalError) -> [JournalSession] {
    try reading { () throws(JournalError) in
      guard let origin = try origin() else { return [] }
      let live = try liveSessions(origin)
      guard let snapshot else { return live.map(\.session) }
      let covered = Set(snapshot.sessions.map(\.number))
      return live.filter { $0.since > snapshot.sequence || covered.contains($0.session.number) }
        .map(\.session)
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
