import CBOR
import Lockstep
import Records
import Values
import Wire

/// Writes rows of the log, each with a seal that covers the row before.
struct RowWriter {
  private let statement: Statement
  private var seal: Seal
  /// The seal of the row before.
  private(set) var chain: UInt64

  init(_ connection: Connection, epoch: UInt64, chain: UInt64) throws(JournalError) {
    statement = try connection.statement(
      """
      INSERT INTO log(
        sequence, revision, turn, digest, time, kind, actor, effect, connection, pid, uid, gid,
        label, name, action, base, patch, session, number, outcome, code, reason, place, seal)
      VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    seal = Seal(epoch: epoch)
    self.chain = chain
  }

  /// Write a row that names ranges of `bytes`. The last row of a turn carries the turn's revision
  /// and, if there is one, the digest.
  mutating func write(
    _ row: JournalRow, _ bytes: UnsafeRawBufferPointer, session: UInt64?, turn: UInt64?,
    digest: Digest?
  ) throws(JournalError) {
    defer { statement.reset() }
    // In the order of the columns; `RowReader.seal(of:)` does the same.
    seal.begin()
    seal.add(chain)
    add(1, row.sequence)
    add(2, row.revision)
    addOptional(3, turn)
    addOptional(4, digest?.rawValue)
    add(5, UInt64(bitPattern: row.time.nanoseconds))
    addCause(row)
    seal.add(row.name)
    statement.bind(14, row.name)
    addBytes(15, row.action.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) })
    addOptional(16, row.change?.base)
    addBytes(17, row.change.map { UnsafeRawBufferPointer(rebasing: bytes[$0.patch]) })
    addAnswer(row.answer, session)
    chain = seal.value
    statement.bind(24, chain)
    try statement.run()
  }

  private mutating func addCause(_ row: JournalRow) {
    var (kind, actor, effect): (OriginKind, String?, EffectID?) = (.owner, nil, nil)
    var client = row.client
    switch row.origin {
    case .client(let origin): (kind, client) = (.client, origin)
    case .effect(let id, let name): (kind, actor, effect) = (.effect, name, id)
    case .timer(let id, let name): (kind, actor, effect) = (.timer, name, id)
    case .middleware(let name): (kind, actor) = (.middleware, name)
    case .owner: break
    }
    add(6, UInt64(bitPattern: kind.rawValue))
    addText(7, actor)
    addOptional(8, effect?.rawValue)
    addOptional(9, client?.connection)
    addOptional(10, client?.pid)
    addOptional(11, client?.uid)
    addOptional(12, client?.gid)
    addText(13, client?.label)
  }

  private mutating func addAnswer(_ answer: JournalRow.Answer?, _ session: UInt64?) {
    var (kind, rejection): (OutcomeKind?, RejectionMessage?) = (nil, nil)
    switch answer?.outcome {
    case nil: break
    case .reduced: kind = .reduced
    case .unchanged: kind = .unchanged
    case .swallowed: kind = .swallowed
    case .accepted: kind = .accepted
    case .rejected(let message): (kind, rejection) = (.rejected, message)
    case .outcomeUnknown: kind = .unknown
    }
    addOptional(18, session)
    addOptional(19, answer?.number)
    addOptional(20, kind.map { UInt64(bitPattern: $0.rawValue) })
    addOptional(21, rejection?.code)
    addText(22, rejection?.message)
    guard let path = rejection?.path else { return seal.add(UnsafeRawBufferPointer?.none) }
    var encoder = CBOREncoder()
    path.encode(into: &encoder)
    encoder.bytes.withUnsafeBytes { bytes in
      seal.add(Optional(bytes))
      statement.bind(23, copying: bytes)
    }
  }

  // Each adds a column to the seal, and binds it unless it is NULL.

  private mutating func add(_ column: Int32, _ value: UInt64) {
    seal.add(value)
    statement.bind(column, value)
  }

  private mutating func addOptional(_ column: Int32, _ value: UInt64?) {
    seal.add(value)
    if let value { statement.bind(column, value) }
  }

  private mutating func addText(_ column: Int32, _ text: String?) {
    seal.add(text)
    if let text { statement.bind(column, text) }
  }

  private mutating func addBytes(_ column: Int32, _ bytes: UnsafeRawBufferPointer?) {
    seal.add(bytes)
    if let bytes { statement.bind(column, inPlace: bytes) }
  }
}
