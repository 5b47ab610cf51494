import CBOR
import Lockstep
import Records
import Values
import Wire

/// Reads rows of the log in order, and checks that each is the one written after the row before.
struct RowReader {
  /// The row that was read last.
  var entry = JournalEntry(
    row: JournalRow(
      sequence: 0, time: Timestamp(nanoseconds: 0), cause: .owner, name: "",
      action: nil, revision: 0, change: nil, answer: nil),
    bytes: [])
  private let reader: JournalReader
  private let statement: Statement
  private let salt: UInt64
  /// Whether answers to missing sessions are skipped.
  private let isLenient: Bool
  private var seal: Seal
  /// The seal of the row before.
  private var chain: UInt64
  /// Rows up to this number are passed over.
  private let after: UInt64
  /// The pack of the row at which the statement is. Its actions come before the row's own.
  private var pack = RowPackReader()
  /// Whether the present row is one of the pack.
  private var isPacked = false
  /// The tokens of sessions that packs name; nil for one that is missing.
  private var tokens: [UInt64: SessionToken?] = [:]

  init(
    _ reader: JournalReader, _ origin: JournalReader.Origin, after sequence: UInt64,
    isLenient: Bool = false
  ) throws(JournalError) {
    self.reader = reader
    self.isLenient = isLenient
    self.after = sequence
    salt = origin.identity.seed.rawValue
    seal = Seal(epoch: origin.identity.epoch)
    let after = Int64(bitPattern: sequence)
    chain =
      try reader.connection.number(
        "SELECT seal FROM log WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1", after
      ).map { UInt64(bitPattern: $0) } ?? origin.cutSeal
    let packs = try reader.connection.hasPacks() ? "packed, changed, pack" : "NULL, NULL, NULL"
    statement = try reader.connection.prepare(
      """
      SELECT sequence, revision, turn, digest, time, kind, actor, effect, connection, pid,
        log.uid, gid, label, name, action, base, patch, log.session, log.number, outcome,
        code, reason, place, log.seal, token, \(packs)
      FROM log LEFT JOIN session ON session.number = log.session
      WHERE sequence > ? ORDER BY sequence
      """)
    statement.bind(1, after)
  }

  func finish() { statement.finish() }

  /// Read the next row. Returns false when there is none.
  mutating func next() throws(JournalError) -> Bool {
    guard try step() else { return false }
    guard isIntact else { throw damage }
    try read()
    return true
  }

  // In two steps, for callers that continue after a damaged row.

  /// Go to the next row. Returns false when there is none.
  mutating func step() throws(JournalError) -> Bool {
    repeat {
      if try !stepOnce() { return false }
      // One that is asked for may be packed behind some that are not.
    } while isPacked && pack.row.sequence <= after
    return true
  }

  private mutating func stepOnce() throws(JournalError) -> Bool {
    if pack.left == 0 {
      // After the pack, the row's own action.
      if isPacked {
        isPacked = false
        return true
      }
      guard try stepRow() else { return false }
      guard isIntact, !statement.isNull(25) else { return true }
      let count = statement.unsigned(25)
      pack.begin(statement.bytes(27), count: Int(clamping: count))
      if count == 0 { return true }
    }
    isPacked = true
    do throws(CBORError) {
      try pack.next()
    } catch {
      isPacked = false
      throw unreadable("has a pack that cannot be read: \(error)")
    }
    return true
  }

  private mutating func stepRow() throws(JournalError) -> Bool {
    guard try statement.step() else { return false }
    isIntact = seal(of: statement) == statement.unsigned(23)
    chain = statement.unsigned(23)
    return true
  }

  /// Whether the row is as it was written, after the row before.
  private(set) var isIntact = true

  /// The position that the row states.
  var position: (sequence: UInt64, revision: UInt64) {
    isPacked
      ? (pack.row.sequence, pack.row.revision) : (statement.unsigned(0), statement.unsigned(1))
  }

  /// The number of the session that the row answers.
  var session: UInt64? { isPacked ? pack.session : statement.optionalUnsigned(17) }

  /// Whether that session is missing from the file.
  mutating func lacksSession() throws(JournalError) -> Bool {
    guard let session else { return false }
    return isPacked ? try token(of: session) == nil : statement.isNull(24)
  }

  private mutating func token(of session: UInt64) throws(JournalError) -> SessionToken? {
    if let token = tokens[session] { return token }
    let known = try reader.connection.statement("SELECT token FROM session WHERE number = ?")
    defer { known.reset() }
    known.bind(1, session)
    let token = try known.step() ? SessionToken(known.bytes(0)) : nil
    if tokens.count == 10_000 { tokens = [:] }
    tokens[session] = .some(token)
    return token
  }

  var damage: JournalError { reader.damaged(damagedRow) }

  /// The name of the row, to report it as damaged.
  var damagedRow: String {
    "action \(position.sequence), of revision \(position.revision), or "
      + (statement.isNull(25) ? "the one before it" : "one of those before it")
  }

  /// The seal that a row should have.
  private mutating func seal(of row: Statement) -> UInt64 {
    seal.begin()
    seal.add(chain)
    for column: Int32 in [0, 1] { seal.add(row.unsigned(column)) }
    for column: Int32 in [2, 3] { seal.add(row.optionalUnsigned(column)) }
    for column: Int32 in [4, 5] { seal.add(row.unsigned(column)) }
    addBytes(6)
    for column: Int32 in 7...11 { seal.add(row.optionalUnsigned(column)) }
    addBytes(12)
    seal.add(row.bytes(13))
    addBytes(14)
    seal.add(row.optionalUnsigned(15))
    addBytes(16)
    for column: Int32 in 17...20 { seal.add(row.optionalUnsigned(column)) }
    addBytes(21)
    addBytes(22)
    // As `RowWriter.addPack`.
    if !row.isNull(25) {
      seal.add(row.unsigned(25))
      seal.add(row.optionalUnsigned(26))
      seal.add(row.bytes(27))
    }
    return seal.value
  }

  private mutating func addBytes(_ column: Int32) {
    seal.add(statement.isNull(column) ? nil : statement.bytes(column))
  }

  /// Read the row into `entry`.
  mutating func read() throws(JournalError) {
    if isPacked { return try readPacked() }
    entry.bytes.removeAll(keepingCapacity: true)
    entry.turn = statement.optionalUnsigned(2)
    entry.digest = statement.optionalUnsigned(3).map { Digest($0) }
    entry.row = JournalRow(
      sequence: statement.unsigned(0), time: Timestamp(nanoseconds: statement.integer(4)),
      cause: try cause(), name: statement.text(13), action: take(14),
      revision: statement.unsigned(1), change: nil, answer: try answer())
    if let base = statement.optionalUnsigned(15), let patch = take(16) {
      entry.row.change = JournalRow.Change(base: base, patch: patch)
    }
  }

  private mutating func readPacked() throws(JournalError) {
    var token: SessionToken?
    if let number = pack.session {
      token = try self.token(of: number)
      if token == nil && !isLenient {
        throw unreadable("is of session \(number), which is missing")
      }
    }
    guard let row = pack.row(token: token, salt: salt) else {
      throw unreadable("comes from nobody")
    }
    entry.bytes.removeAll(keepingCapacity: true)
    (entry.turn, entry.digest, entry.row) = (pack.turn, nil, row)
    if let action = row.action {
      let taken = take(pack.bytes[action])
      entry.row.action = taken
    }
    guard let change = row.change else { return }
    let patch = take(pack.bytes[change.patch])
    entry.row.change?.patch = patch
  }

  /// Append a blob to the entry's bytes.
  private mutating func take(_ column: Int32) -> Range<Int>? {
    statement.isNull(column) ? nil : take(statement.bytes(column))
  }

  private mutating func take(_ bytes: some Collection<UInt8>) -> Range<Int> {
    let start = entry.bytes.count
    entry.bytes.append(contentsOf: bytes)
    return start..<entry.bytes.count
  }

  private func cause() throws(JournalError) -> Cause {
    var cause = RowCause()
    guard let kind = OriginKind(rawValue: statement.integer(5)) else {
      throw unreadable("comes from nobody")
    }
    cause.kind = kind
    cause.actor = statement.text(6)
    cause.effect = statement.unsigned(7)
    if let connection = statement.optionalUnsigned(8) {
      cause.client = ClientOrigin(
        connection: connection, pid: statement.unsigned(9), uid: statement.unsigned(10),
        gid: statement.unsigned(11), label: statement.text(12))
    }
    guard let cause = cause.cause(session: session ?? 0, salt: salt) else {
      throw unreadable("comes from nobody")
    }
    return cause
  }

  private func answer() throws(JournalError) -> JournalRow.Answer? {
    guard !statement.isNull(17) else { return nil }
    guard let token = SessionToken(statement.bytes(24)) else {
      if isLenient { return nil }
      throw unreadable("is of session \(statement.unsigned(17)), which is missing")
    }
    return JournalRow.Answer(
      session: token, number: statement.unsigned(18), outcome: try outcome())
  }

  private func outcome() throws(JournalError) -> Acknowledgement.Outcome {
    guard let kind = OutcomeKind(rawValue: statement.integer(19)) else {
      throw unreadable("has an outcome that is none")
    }
    return kind.outcome(kind == .rejected ? try rejection() : nil)
  }

  private func rejection() throws(JournalError) -> RejectionMessage {
    var path: Path?
    if !statement.isNull(22) {
      do {
        path = try CBORDecoder.read(Array(statement.bytes(22))) { decoder throws(CBORError) in
          try Path(from: &decoder)
        }
      } catch {
        throw unreadable("was rejected at a place that is none")
      }
    }
    return RejectionMessage(code: statement.unsigned(20), message: statement.text(21), path: path)
  }

  /// The error of a row whose seal fits and whose contents do not: another program wrote them.
  private func unreadable(_ what: String) -> JournalError {
    reader.contradiction("action \(position.sequence) \(what)")
  }
}
