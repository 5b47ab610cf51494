import CBOR
import Lockstep
import Records
import Values
import Wire

/// Writes rows of the log, each with a seal that covers the row before.
struct RowWriter {
  private let statement: Statement
  private var seal: Seal
  /// The actions that the next row takes with it.
  private var pack = RowPack()
  /// The seal of the row before.
  private(set) var chain: UInt64

  /// Write to the log, or to a table of the same columns, after a row of this seal.
  init(
    _ connection: Connection, epoch: UInt64, chain: UInt64, table: String = "log"
  ) throws(JournalError) {
    statement = try connection.statement(
      """
      INSERT INTO \(table)(
        sequence, revision, turn, digest, time, kind, actor, effect, connection, pid, uid, gid,
        label, name, action, base, patch, session, number, outcome, code, reason, place, seal,
        packed, changed, pack)
      VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    seal = Seal(epoch: epoch)
    self.chain = chain
  }

  /// Have a row that names ranges of `bytes` stored with one that is written after it. Returns false,
  /// and does nothing, if that is impossible: then this one must be written.
  mutating func pack(
    _ row: UnsafePointer<JournalRow>, _ bytes: UnsafeRawBufferPointer, session: UInt64?,
    turn: UInt64?
  ) -> Bool {
    pack.add(row, bytes, session: session, turn: turn)
  }

  /// Write a row that names ranges of `bytes`, with those that were packed since the one before. The
  /// last row of a turn carries the turn's revision and, if there is one, the digest.
  mutating func write(
    _ row: UnsafePointer<JournalRow>, _ bytes: UnsafeRawBufferPointer, session: UInt64?,
    turn: UInt64?, digest: Digest?
  ) throws(JournalError) {
    defer { statement.reset() }
    // In the order of the columns; `RowReader.seal(of:)` does the same.
    seal.begin()
    seal.add(chain)
    add(1, row.pointee.sequence)
    add(2, row.pointee.revision)
    addOptional(3, turn)
    addOptional(4, digest?.rawValue)
    add(5, UInt64(bitPattern: row.pointee.time.nanoseconds))
    addCause(row.pointee.cause)
    seal.add(row.pointee.name)
    statement.bind(14, row.pointee.name)
    addBytes(15, row.pointee.action.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) })
    addOptional(16, row.pointee.change?.base)
    addBytes(17, row.pointee.change.map { UnsafeRawBufferPointer(rebasing: bytes[$0.patch]) })
    addAnswer(row.pointee.answer, session)
    addPack()
    chain = seal.value
    statement.bind(24, chain)
    try statement.run()
    if pack.count > 0 { pack.removeAll() }
  }

  /// A row without a pack has the seal that it had before there were packs.
  private mutating func addPack() {
    if pack.count == 0 { return }
    add(25, UInt64(pack.count))
    addOptional(26, pack.changed)
    pack.bytes.withUnsafeBytes { bytes in
      seal.add(bytes)
      statement.bind(27, copying: bytes)
    }
  }

  private mutating func addCause(_ cause: Cause) {
    let cause = RowCause(cause)
    add(6, UInt64(bitPattern: cause.kind.rawValue))
    addText(7, cause.actor)
    addOptional(8, cause.effect)
    addOptional(9, cause.client?.connection)
    addOptional(10, cause.client?.pid)
    addOptional(11, cause.client?.uid)
    addOptional(12, cause.client?.gid)
    addText(13, cause.client?.label)
  }

  private mutating func addAnswer(_ answer: JournalRow.Answer?, _ session: UInt64?) {
    let (kind, rejection) = answer.map { OutcomeKind.of($0.outcome) } ?? (nil, nil)
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
