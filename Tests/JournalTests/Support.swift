import CSQLite
import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

/// A directory that is removed when the value is freed.
final class TemporaryDirectory {
  let path: String

  /// In memory, if the test does not need a disk.
  init(inMemory: Bool = false) {
    let parent = inMemory && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
    var name = Array("\(parent)/journal-test-XXXXXX".utf8CString)
    path = mkdtemp(&name).map { String(cString: $0) } ?? "/nowhere"
  }

  deinit { remove(path) }

  private func remove(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    if status.st_mode & S_IFMT == S_IFDIR, let stream = opendir(path) {
      while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != "." && name != ".." { remove(path + "/" + name) }
      }
      closedir(stream)
      rmdir(path)
    } else {
      unlink(path)
    }
  }

  var journal: String { path + "/journal.sqlite" }

  func open(
    _ mode: JournalFile.Mode = .sync, create: Bool = true, vfs: String? = nil
  ) throws(JournalError) -> JournalFile {
    try JournalFile(directory: path, mode: mode, create: create, vfs: vfs)
  }

  /// A journal in its first run.
  func begun(
    _ mode: JournalFile.Mode = .sync, vfs: String? = nil
  ) throws(JournalError) -> JournalFile {
    let file = try open(mode, vfs: vfs)
    try file.create(epoch: 0xf00d_0000_0000_0001, seed: HashSeed(42))
    try file.begin(
      run: JournalRun(run: 1, base: 0), schema: [0xa0], revision: 0, time: Story.time(0))
    return file
  }
}

/// Whole files, as bytes.
enum Files {
  static func read(_ path: String) -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
    }
  }

  static func write(_ bytes: [UInt8], to path: String) {
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      guard count > 0 else { return }
      offset += count
    }
  }

  static func size(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : -1
  }
}

/// SQL statements on a file, as a person would run them with `sqlite3`.
enum SQL {
  /// The rows, with columns separated by bars.
  @discardableResult
  static func run(_ path: String, _ sql: String) -> [String] {
    var (handle, statement): (OpaquePointer?, OpaquePointer?)
    guard sqlite3_open(path, &handle) == SQLITE_OK else { return ["cannot open"] }
    defer { sqlite3_close(handle) }
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
      return [String(cString: sqlite3_errmsg(handle))]
    }
    defer { sqlite3_finalize(statement) }
    var rows: [String] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      let columns = (0..<sqlite3_column_count(statement)).map { column in
        sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "NULL"
      }
      rows.append(columns.joined(separator: "|"))
    }
    return rows
  }
}

/// Makes batches with rows of every kind, one after the other.
struct Story {
  var sequence: UInt64 = 0
  var revision: UInt64 = 0
  var base: UInt64 = 0
  var batchCount: UInt64 = 0
  var random = SplitMix64(1)
  var sessions: [JournalSession] = []
  var numbers: [SessionToken: UInt64] = [:]
  /// All rows so far, in order.
  var rows: [JournalEntry] = []

  static func time(_ number: UInt64) -> Timestamp {
    Timestamp(nanoseconds: 1_700_000_000_123_000_000 + Int64(number) * 1_000_000_000)
  }

  static let client = ClientOrigin(connection: 3, pid: 812, uid: 1000, gid: 100, label: "panel")

  init(seed: UInt64 = 1) { random = SplitMix64(seed) }

  /// A batch of `count` rows, some of which belong to sessions, old and new.
  mutating func batch(_ count: Int, digest: Digest? = nil) -> JournalBatch {
    batchCount += 1
    var batch = JournalBatch(number: batchCount, revision: revision)
    for _ in 0..<count { addRow(&batch) }
    batch.revision = revision
    batch.digest = digest
    note(batch)
    return batch
  }

  private mutating func addRow(_ batch: inout JournalBatch) {
    sequence += 1 + random.next() % 2
    let kind = random.next() % 8
    var row = JournalRow(
      sequence: sequence, time: Self.time(sequence), cause: Cause(.client(Self.client)),
      name: "set", action: nil, revision: revision, change: nil, answer: nil)
    switch kind {
    case 0:
      row.cause = Cause(
        .effect(EffectID(random.next(), salt: 42), name: "fetch"), client: Self.client)
    case 1:
      row.cause = Cause(.timer(EffectID(random.next(), salt: 42), name: "tick"))
    case 2: row.cause = Cause(.middleware("log"))
    case 3: row.cause = .owner
    default:
      let answer = answer(&batch, refused: kind == 7)
      var client = Self.client
      client.session = sessions.first { $0.token == answer.session }?.number ?? 0
      (row.cause, row.answer) = (Cause(.client(client)), answer)
    }
    if kind != 7 {
      revision += 1
      row.revision = revision
      row.change = JournalRow.Change(base: base, patch: addBytes(&batch))
      base = revision
    }
    if random.next() % 4 != 0 { row.action = addBytes(&batch) }
    batch.rows.append(row)
  }

  private mutating func addBytes(_ batch: inout JournalBatch) -> Range<Int> {
    let start = batch.bytes.count
    for _ in 0..<(random.next() % 40) { batch.bytes.append(UInt8(random.next() & 0xff)) }
    return start..<batch.bytes.count
  }

  private mutating func answer(_ batch: inout JournalBatch, refused: Bool) -> JournalRow.Answer {
    if sessions.isEmpty || random.next() % 16 == 0 {
      let session = JournalSession(
        token: SessionToken(high: random.next(), low: random.next()), uid: 1000,
        number: UInt64(numbers.count) + 1)
      sessions.append(session)
      numbers[session.token] = 0
      batch.sessions.append(session)
    }
    let token = sessions[Int(random.next() % UInt64(sessions.count))].token
    let number = (numbers[token] ?? 0) + 1
    numbers[token] = number
    let outcomes: [Acknowledgement.Outcome] =
      refused
      ? [
        .unchanged, .swallowed, .accepted,
        .rejected(RejectionMessage(code: 4, message: "no number", path: ["a", 7])),
        .rejected(RejectionMessage(code: 8, message: "", path: nil)),
      ] : [.reduced]
    return JournalRow.Answer(
      session: token, number: number,
      outcome: outcomes[Int(random.next() % UInt64(outcomes.count))])
  }

  private mutating func note(_ batch: JournalBatch) {
    for (index, row) in batch.rows.enumerated() {
      var entry = JournalEntry(row: row, bytes: [])
      entry.row.action = nil
      if let action = row.action {
        entry.row.action = 0..<action.count
        entry.bytes += batch.bytes[action]
      }
      if let change = row.change {
        let start = entry.bytes.count
        entry.bytes += batch.bytes[change.patch]
        entry.row.change = .init(base: change.base, patch: start..<entry.bytes.count)
      }
      if index == batch.rows.count - 1 {
        entry.turn = batch.revision
        entry.digest = batch.digest
      }
      rows.append(entry)
    }
  }

  /// A snapshot of the current state.
  func snapshot(sessions: [JournalSession] = []) -> JournalSnapshot {
    JournalSnapshot(
      revision: revision, base: base, sequence: sequence, time: Self.time(sequence),
      digest: Digest(revision &* 3), sessions: sessions, sessionCount: UInt64(numbers.count))
  }

  /// The sessions, as a snapshot of the current state has them.
  var keptSessions: [JournalSession] {
    var sessions = sessions
    for entry in rows { sessions.note(entry.row) }
    return sessions
  }
}

extension [JournalSession] {
  /// Notes the outcome in a row, in the rows' order. Answers to unknown sessions are ignored.
  mutating func note(_ row: JournalRow) {
    guard let answer = row.answer,
      let index = firstIndex(where: { $0.token == answer.session })
    else { return }
    let run = Acknowledgement(
      first: answer.number, last: answer.number, revision: row.revision, mark: .durable,
      answer.outcome)
    guard let former = self[index].outcomes.last else {
      self[index].outcomes = [run]
      return
    }
    guard run.first > former.last else { return }
    if run.first > former.last + 1 {
      // Outcomes before a gap are of no use.
      self[index].outcomes = [run]
    } else if former.outcome == run.outcome, !run.isRejected {
      self[index].outcomes[self[index].outcomes.count - 1].last = run.last
      self[index].outcomes[self[index].outcomes.count - 1].revision = run.revision
    } else {
      self[index].outcomes.append(run)
    }
  }
}

extension Acknowledgement {
  fileprivate var isRejected: Bool { if case .rejected = outcome { true } else { false } }
}

extension JournalReader {
  func rows(after sequence: UInt64 = 0) throws(JournalError) -> [JournalEntry] {
    var rows: [JournalEntry] = []
    try forEachRow(after: sequence) { rows.append($0) }
    return rows
  }

  /// The sessions that have not been forgotten, with their outcomes: those of the snapshot, and of
  /// the rows after it.
  func sessionsWithOutcomes() throws(JournalError) -> [JournalSession] {
    let snapshot = try contents().snapshot
    var sessions = try sessions(from: snapshot)
    for index in sessions.indices {
      let kept = snapshot?.sessions.first { $0.token == sessions[index].token }
      sessions[index].outcomes = kept?.outcomes ?? []
    }
    try forEachRow(after: snapshot?.sequence ?? 0) { sessions.note($0.row) }
    return sessions
  }
}

extension JournalFile {
  /// Keeps a snapshot of so many parts, and cuts the rows before it.
  func keep(
    _ snapshot: JournalSnapshot, parts: Int = 3, cutting: Bool = true
  ) throws(JournalError) {
    let id = try beginSnapshot(snapshot)
    for part in 0..<parts {
      try addPart(id, [UInt8](repeating: UInt8(part), count: 100 + part)[...])
    }
    try finishSnapshot(id)
    if cutting { while try cut(limit: 7) {} }
  }
}

/// The error that `body` throws; the test fails if it throws none.
func error(
  _ kind: JournalError.Kind, sourceLocation: SourceLocation = #_sourceLocation,
  of body: () throws -> Void
) -> String {
  do {
    try body()
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
  } catch let error as JournalError {
    #expect(error.kind == kind, "\(error)", sourceLocation: sourceLocation)
    return error.description
  } catch {
    Issue.record("\(error)", sourceLocation: sourceLocation)
  }
  return ""
}
