import CBOR
import Lockstep
import Records
import Values
import Wire

extension JournalReader {
  struct PendingSnapshot {
    var id: Int64
    var head: JournalSnapshot
    var partCount: Int64
    var byteCount: Int

    func seal(epoch: UInt64, sessionRows: Int64) -> UInt64 {
      var seal = Seal(epoch: epoch)
      for word in [
        head.revision, head.base, head.sequence, head.digest.rawValue, head.sessionCount,
      ] { seal.add(word) }
      for word in [id, head.time.nanoseconds, sessionRows, partCount, Int64(byteCount)] {
        seal.add(word)
      }
      return seal.value
    }
  }

  /// The newest complete snapshot. O(its sessions).
  ///
  /// With `isLenient`, damaged sessions are skipped.
  func snapshot(
    _ origin: Origin, isLenient: Bool = false
  ) throws(JournalError) -> PendingSnapshot? {
    let statement = try connection.statement(
      """
      SELECT id, revision, base, sequence, time, digest, session_count, parts, bytes, sessions, seal
      FROM snapshot ORDER BY id DESC LIMIT 1
      """)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    var snapshot = PendingSnapshot(
      id: statement.integer(0),
      head: JournalSnapshot(
        revision: statement.unsigned(1), base: statement.unsigned(2),
        sequence: statement.unsigned(3), time: Timestamp(nanoseconds: statement.integer(4)),
        digest: Digest(statement.unsigned(5)), sessions: [], sessionCount: statement.unsigned(6)),
      partCount: statement.integer(7), byteCount: Int(statement.integer(8)))
    let sessionRows = statement.integer(9)
    guard
      snapshot.seal(epoch: origin.identity.epoch, sessionRows: sessionRows)
        == statement.unsigned(10)
    else { throw damaged("the snapshot of revision \(snapshot.head.revision)") }
    snapshot.head.sessions = try sessions(of: snapshot, origin, isLenient: isLenient)
    guard isLenient || snapshot.head.sessions.count == sessionRows else {
      throw contradiction(
        "the snapshot of revision \(snapshot.head.revision) has \(sessionRows) sessions, and "
          + "\(snapshot.head.sessions.count) are there")
    }
    return snapshot
  }

  private func sessions(
    of snapshot: PendingSnapshot, _ origin: Origin, isLenient: Bool
  ) throws(JournalError) -> [JournalSession] {
    var sessions: [JournalSession] = []
    var seal = Seal(epoch: origin.identity.epoch)
    let statement = try connection.statement(
      """
      SELECT outcomes.number, token, uid, since, session.seal, runs, outcomes.seal, until
      FROM outcomes JOIN session ON session.number = outcomes.number
      WHERE outcomes.snapshot = ? ORDER BY outcomes.number
      """)
    defer { statement.reset() }
    statement.bind(1, snapshot.id)
    while try statement.step() {
      let number = statement.unsigned(0)
      let name = "session \(number) of the snapshot of revision \(snapshot.head.revision)"
      guard let token = SessionToken(statement.bytes(1)),
        Self.seal(
          number, token, statement.unsigned(2), statement.unsigned(3),
          statement.optionalUnsigned(7), &seal) == statement.unsigned(4),
        Self.seal(snapshot.id, Int64(bitPattern: number), statement.bytes(5), &seal)
          == statement.unsigned(6)
      else {
        if isLenient { continue }
        throw damaged(name)
      }
      guard let runs = OutcomesFormat.decode(statement.bytes(5)) else {
        throw contradiction("what is kept of \(name) cannot be read")
      }
      sessions.append(
        JournalSession(token: token, uid: statement.unsigned(2), number: number, outcomes: runs))
    }
    return sessions
  }

  static func seal(
    _ number: UInt64, _ token: SessionToken, _ uid: UInt64, _ since: UInt64, _ until: UInt64?,
    _ seal: inout Seal
  ) -> UInt64 {
    seal.begin()
    for word in [number, token.high, token.low, uid, since] { seal.add(word) }
    seal.add(until)
    return seal.value
  }

  /// The seal of a part, or of a session's outcomes.
  static func seal(
    _ snapshot: Int64, _ number: Int64, _ bytes: UnsafeRawBufferPointer, _ seal: inout Seal
  ) -> UInt64 {
    seal.begin()
    seal.add(snapshot)
    seal.add(number)
    seal.add(bytes)
    return seal.value
  }

  // MARK: Bytes

  /// The state of the newest snapshot, encoded. O(its bytes).
  public func snapshotBytes() throws(JournalError) -> [UInt8] {
    var bytes: [UInt8] = []
    try forEachPart { bytes += $0 }
    return bytes
  }

  /// Call `body` with the state of the newest snapshot, in the parts in which it was stored. At
  /// most one of them is in memory. O(its bytes).
  public func forEachPart(
    _ body: (ArraySlice<UInt8>) throws(JournalError) -> Void
  ) throws(JournalError) {
    try reading { () throws(JournalError) in
      guard let origin = try origin(), let snapshot = try snapshot(origin) else { return }
      try forEachPart(of: snapshot, origin, body)
    }
  }

  func forEachPart(
    of snapshot: PendingSnapshot, _ origin: Origin,
    _ body: (ArraySlice<UInt8>) throws(JournalError) -> Void
  ) throws(JournalError) {
    let statement = try connection.prepare(
      "SELECT number, bytes, seal FROM part WHERE snapshot = ? ORDER BY number")
    defer { statement.finish() }
    statement.bind(1, snapshot.id)
    var seal = Seal(epoch: origin.identity.epoch)
    var (count, byteCount): (Int64, Int) = (0, 0)
    while try statement.step() {
      let part = statement.bytes(1)
      guard statement.integer(0) == count,
        Self.seal(snapshot.id, count, part, &seal) == statement.unsigned(2)
      else {
        throw damaged("part \(count) of the snapshot of revision \(snapshot.head.revision)")
      }
      count += 1
      byteCount += part.count
      try body(ArraySlice(part))
    }
    guard count == snapshot.partCount, byteCount == snapshot.byteCount else {
      throw contradiction(
        "the snapshot of revision \(snapshot.head.revision) has \(snapshot.partCount) parts of "
          + "\(snapshot.byteCount) bytes, and \(count) of \(byteCount) bytes are there")
    }
  }
}

extension SessionToken {
  /// A token of 16 bytes, the most significant first; nil when there are not 16.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 16 else { return nil }
    self.init(
      high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
      low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
  }

  /// The 16 bytes, the most significant first.
  func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { body($0) }
  }
}
