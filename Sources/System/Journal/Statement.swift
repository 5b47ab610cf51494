import CSQLite

/// A prepared statement of SQLite.
final class Statement {
  private var pointer: OpaquePointer?
  private unowned let connection: Connection

  init(_ pointer: OpaquePointer, _ connection: Connection) {
    self.pointer = pointer
    self.connection = connection
  }

  deinit { finish() }

  func finish() {
    sqlite3_finalize(pointer)
    pointer = nil
  }

  /// Reset for the next use, with nothing bound. Any error has been reported already.
  func reset() {
    sqlite3_reset(pointer)
    sqlite3_clear_bindings(pointer)
  }

  // MARK: Parameters, counted from 1

  // The index is right and the statement is not running, so binding fails only when there is no
  // memory; then the parameter stays NULL, and the seal, which is bound last, reveals it.

  func bind(_ index: Int32, _ value: Int64?) {
    if let value { sqlite3_bind_int64(pointer, index, value) }
  }

  func bind(_ index: Int32, _ value: UInt64) {
    sqlite3_bind_int64(pointer, index, Int64(bitPattern: value))
  }

  func bind(_ index: Int32, _ text: String) {
    var text = text
    text.withUTF8 { utf8 in
      utf8.withMemoryRebound(to: CChar.self) { chars in
        if let base = chars.baseAddress {
          _ = lockstep_bind_text(pointer, index, base, Int32(chars.count))
        } else {
          _ = lockstep_bind_text(pointer, index, "", 0)
        }
      }
    }
  }

  /// Bind bytes without a copy: they must not move until the statement is reset.
  func bind(_ index: Int32, inPlace bytes: UnsafeRawBufferPointer) {
    if let base = bytes.baseAddress, !bytes.isEmpty {
      sqlite3_bind_blob64(pointer, index, base, UInt64(bytes.count), nil)
    } else {
      sqlite3_bind_zeroblob(pointer, index, 0)
    }
  }

  func bind(_ index: Int32, copying bytes: UnsafeRawBufferPointer) {
    if let base = bytes.baseAddress, !bytes.isEmpty {
      _ = lockstep_bind_blob(pointer, index, base, Int32(bytes.count))
    } else {
      sqlite3_bind_zeroblob(pointer, index, 0)
    }
  }

  // MARK: Rows

  /// Go on to the next row. Returns false when there is none.
  func step() throws(JournalError) -> Bool {
    switch sqlite3_step(pointer) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw connection.failure("cannot be read or written", code)
    }
  }

  /// Run a statement, and ignore its rows.
  func run() throws(JournalError) {
    while try step() {}
  }

  // Columns are counted from 0.

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

  func unsigned(_ column: Int32) -> UInt64 { UInt64(bitPattern: integer(column)) }

  func optional(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

  func optionalUnsigned(_ column: Int32) -> UInt64? { isNull(column) ? nil : unsigned(column) }

  /// The bytes of a text or blob, valid until the next step.
  func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let base = sqlite3_column_blob(pointer, column)
    return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(pointer, column)))
  }

  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }
}
