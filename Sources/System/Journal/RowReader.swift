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
      sequence: 0, time: Timestamp(nanoseconds: 0), origin: .owner, client: nil, name: "",
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

  init(
    _ reader: JournalReader, _ origin: JournalReader.Origin, after sequence: UInt64,
    isLenient: Bool = false
  ) throws(JournalError) {
    self.reader = reader
    self.isLenient = isLenient
    salt = origin.identity.seed.rawValue
    seal = Seal(epoch: origin.identity.epoch)
    let after = Int64(bitPattern: sequence)
    chain =
      try reader.connection.number(
        "SELECT seal FROM log WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1", after
      ).map { UInt64(bitPattern: $0) } ?? origin.cutSeal
    statement = try reader.connection.prepare(
      """
      SELECT sequence, revision, turn, digest, time, kind, actor, effect, connection, pid,
        log.uid, gid, label, name, action, base, patch, log.session, log.number, outcome,
        code, reason, place, log.seal, token
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
    guard try statement.step() else { return false }
    isIntact = seal(of: statement) == statement.unsigned(23)
    chain = statement.unsigned(23)
    return true
  }

  /// Whether the row is as it was written, after the row before.
  private(set) var isIntact = true

  /// The position that the row states.
  var position: (sequence: UInt64, revision: UInt64) {
    (statement.unsigned(0), statement.unsigned(1))
  }

  /// The number of the session that the row answers.
  var session: UInt64? { statement.optionalUnsigned(17) }

  /// Whether that session is missing from the file.
  var lacksSession: Bool { session != nil && statement.isNull(24) }

  var damage: JournalError { reader.damaged(damagedRow) }

  /// The name of the row, to report it as damaged.
  var damagedRow: String {
    "action \(statement.unsigned(0)), of revision \(statement.unsigned(1)), or the one before it"
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
    return seal.value
  }

  private mutating func addBytes(_ column: Int32) {
    seal.add(statement.isNull(column) ? nil : statement.bytes(column))
  }

  /// Read the row into `entry`.
  mutating func read() throws(JournalError) {
    entry.bytes.removeAll(keepingCapacity: true)
    entry.turn = statement.optionalUnsigned(2)
    entry.digest = statement.optionalUnsigned(3).map { Digest($0) }
    let (origin, client) = try cause()
    entry.row = JournalRow(
      sequence: statement.unsigned(0), time: Timestamp(nanoseconds: statement.integer(4)),
      origin: origin, client: client, name: statement.text(13), action: take(14),
      revision: statement.unsigned(1), change: nil, answer: try answer())
    if let base = statement.optionalUnsigned(15), let patch = take(16) {
      entry.row.change = JournalRow.Change(base: base, patch: patch)
    }
  }

  /// Append a blob to the entry's bytes.
  private mutating func take(_ column: Int32) -> Range<Int>? {
    if statement.isNull(column) { return nil }
    let start = entry.bytes.count
    entry.bytes.append(contentsOf: statement.bytes(column))
    return start..<entry.bytes.count
  }

  private func cause() throws(JournalError) -> (Origin, ClientOrigin?) {
    var client: ClientOrigin?
    if let connection = statement.optionalUnsigned(8) {
      client = ClientOrigin(
        connection: connection, pid: statement.unsigned(9), uid: statement.unsigned(10),
        gid: statement.unsigned(11), label: statement.text(12), session: session ?? 0)
    }
    let actor = statement.text(6)
    let effect = EffectID(statement.unsigned(7), salt: salt)
    switch (OriginKind(rawValue: statement.integer(5)), client) {
    case (.owner, _): return (.owner, client)
    case (.client, let client?): return (.client(client), client)
    case (.effect, _): return (.effect(effect, name: actor), client)
    case (.timer, _): return (.timer(effect, name: actor), client)
    case (.middleware, _): return (.middleware(actor), client)
    case (.client, nil), (nil, _): throw unreadable("comes from nobody")
    }
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
    switch OutcomeKind(rawValue: statement.integer(19)) {
    case .reduced: return .reduced
    case .unchanged: return .unchanged
    case .swallowed: return .swallowed
    case .accepted: return .accepted
    case .rejected:
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
      return .rejected(
        RejectionMessage(code: statement.unsigned(20), message: statement.text(21), path: path))
    case .unknown: return .outcomeUnknown
    case nil: throw unreadable("has an outcome that is none")
    }
  }

  /// The error of a row whose seal fits and whose contents do not: another program wrote them.
  private func unreadable(_ what: String) -> JournalError {
    reader.contradiction("action \(statement.unsigned(0)) \(what)")
  }
}

/// How origins are numbered in the file.
enum OriginKind: Int64 {
  case owner = 0
  case client = 1
  case effect = 2
  case timer = 3
  case middleware = 4
}

/// How outcomes are numbered in the file.
enum OutcomeKind: Int64 {
  case reduced = 0
  case unchanged = 1
  case swallowed = 2
  case accepted = 3
  case rejected = 4
  case unknown = 5
}
