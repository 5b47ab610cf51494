import CSQLite
import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

@Suite struct JournalFileTests {
  let directory = TemporaryDirectory()

  @Test func `A new journal is empty`() throws {
    let file = try directory.open()
    #expect(try file.identity() == nil)
    #expect(try file.rows().isEmpty)
    #expect(try file.suspects().isEmpty)
    #expect(try file.sessions(from: nil).isEmpty)
    #expect(
      error(.corrupt) { _ = try file.contents() }
        == "\(directory.journal): the journal has no epoch: it was made and never used. "
        + "Move it away to begin anew.")
    try file.create(epoch: .max, seed: HashSeed(7))
    #expect(try file.identity() == JournalIdentity(epoch: .max, seed: HashSeed(7)))
    let contents = try file.contents()
    #expect(contents.head == .init(run: 0, revision: 0, sequence: 0, base: nil))
    #expect(contents.runs.isEmpty && contents.snapshot == nil && contents.sessionCount == 0)
  }

  @Test func `Files are readable by their owner alone`() throws {
    let file = try JournalFile(
      directory: directory.path + "/state", mode: .sync, create: true)
    try file.create(epoch: 1, seed: HashSeed(2))
    for (name, mode): (String, mode_t) in [
      ("", 0o700), ("/journal.sqlite", 0o600), ("/journal.sqlite-wal", 0o600),
      ("/journal.sqlite-shm", 0o600), ("/lock", 0o600),
    ] {
      var status = stat()
      #expect(stat(directory.path + "/state" + name, &status) == 0)
      #expect(status.st_mode & 0o777 == mode, "\(name)")
    }
  }

  @Test func `Rows are read back unchanged, also after a restart`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(1)])
    try file.append([story.batch(50, digest: Digest(99)), story.batch(3), story.batch(20)])
    #expect(try file.rows() == story.rows)
    file.close()

    let again = try directory.open()
    #expect(try again.rows() == story.rows)
    let middle = story.rows[30].row.sequence
    #expect(try again.rows(after: middle) == Array(story.rows[31...]))
    #expect(
      try again.contents().head
        == .init(run: 1, revision: story.revision, sequence: story.sequence, base: story.base))
    // Appending continues.
    try again.append([story.batch(10)])
    #expect(try again.rows() == story.rows)
    #expect(try again.sessionsWithOutcomes() == story.keptSessions)
  }

  @Test func `Rows keep their order when the clock jumps`() throws {
    var story = Story()
    let file = try directory.begun()
    let times: [Int64] = [1_700_000_000_000_000_000, 0, -1, .max, .min, 5]
    var batches = times.map { _ in story.batch(1) }
    for index in times.indices {
      batches[index].rows[0].time = Timestamp(nanoseconds: times[index])
    }
    try file.append(batches)
    file.close()
    let again = try directory.open()
    #expect(try again.rows().map(\.row.time.nanoseconds) == times)
    try again.append([story.batch(1)])
    #expect(try again.rows().count == times.count + 1)
  }

  @Test func `The head is the turn's last revision, though the last row's is lower`() throws {
    var story = Story()
    let file = try directory.begun()
    var batch = story.batch(4)
    batch.revision = story.revision + 5
    try file.append([batch])
    #expect(try file.contents().head.revision == story.revision + 5)
    #expect(try file.contents().head.base == story.base)
  }

  @Test func `Many batches are written in one transaction`() throws {
    var story = Story()
    let file = try directory.begun()
    let batches = (0..<40).map { _ in story.batch(5) }
    let before = SQL.run(directory.journal, "PRAGMA data_version")
    let commits = try commitCount(file) { try file.append(batches) }
    #expect(commits == 1)
    #expect(before.count == 1)
    #expect(try file.rows() == story.rows)
  }

  /// The number of commits that `body` adds to the write-ahead log: each ends in a frame that has
  /// the size of the file.
  private func commitCount(_ file: JournalFile, _ body: () throws -> Void) throws -> Int {
    func count() -> Int {
      let log = Files.read(directory.journal + "-wal")
      return stride(from: 32, to: log.count, by: 24 + 4096).count { frame in
        log[(frame + 4)..<(frame + 8)].contains { $0 != 0 }
      }
    }
    let before = count()
    try body()
    return count() - before
  }

  @Test func `A batch is refused whole when one of its rows is`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(5)])
    let rows = story.rows
    var batch = story.batch(5)
    batch.rows[4].answer = .init(
      session: SessionToken(high: 1, low: 1), number: 1, outcome: .reduced)
    #expect(
      error(.failed) { try file.append([batch]) }
        == "\(directory.journal): a row names session 0…, which no batch has introduced: "
        + "a defect of the program. Please report it.")
    #expect(try file.rows() == rows)
    #expect(error(.failed) { try file.probe() }.contains("it must be opened anew"))
    try file.reopen()
    try file.probe()
    #expect(try file.rows() == rows)
  }

  @Test func `Rows must be consecutive`() throws {
    var story = Story()
    let file = try directory.begun()
    let first = story.batch(5)
    try file.append([first])
    #expect(error(.failed) { try file.append([first]) }.contains("does not follow action"))
    story.base += 1
    let gap = story.batch(9)
    #expect(
      error(.failed) { try file.append([gap]) }.contains("and the one before it is of revision"))
    // Nothing was written, so the journal need not be reopened.
    try file.probe()
    #expect(try file.rows() == Array(story.rows[..<5]))
  }

  // MARK: Runs

  @Test func `Runs are kept with their schemas and their ends`() throws {
    let file = try directory.begun()
    try file.endRun(revision: 12)
    try file.begin(
      run: JournalRun(run: 2, base: 12), schema: [1, 2, 3], revision: 12, time: Story.time(5))
    try file.begin(
      run: JournalRun(run: 3, base: 12), schema: [1, 2, 3], revision: 12, time: Story.time(6))
    let runs = try file.contents().runs
    #expect(runs.map(\.run.run) == [1, 2, 3])
    #expect(runs.map(\.run.base) == [0, 12, 12])
    #expect(runs.map(\.ended) == [12, nil, nil])
    #expect(runs.map(\.began) == [0, 12, 12])
    #expect(runs.map(\.schema) == [[0xa0], [1, 2, 3], [1, 2, 3]])
    #expect(runs[1].time == Story.time(5))
    #expect(SQL.run(directory.journal, "SELECT count(*) FROM schema") == ["2"])
    #expect(
      error(.failed) {
        try file.begin(
          run: JournalRun(run: 3, base: 12), schema: [], revision: 12, time: Story.time(6))
      }.contains("run 3 does not follow run 3"))
  }

  @Test func `A thousand runs are kept`() throws {
    let file = try directory.begun(.async)
    for run: UInt64 in 2...1005 {
      try file.begin(
        run: JournalRun(run: run, base: 0), schema: [UInt8(run % 2)], revision: 0,
        time: Story.time(run))
    }
    let runs = try file.contents().runs
    #expect(runs.count == 1000 && runs.first?.run.run == 6 && runs.last?.run.run == 1005)
    #expect(SQL.run(directory.journal, "SELECT count(*) FROM schema") == ["2"])
  }

  // MARK: Sessions

  @Test func `A forgotten session is not listed`() throws {
    var story = Story(seed: 4)
    let file = try directory.begun()
    try file.append([story.batch(60)])
    #expect(story.sessions.count > 2)
    var batch = story.batch(0)
    batch.forgotten = [story.sessions[0].token, SessionToken(high: 9, low: 9)]
    try file.append([batch])
    #expect(
      try file.sessions(from: nil).map(\.number)
        == Array(2...UInt64(story.sessions.count)))
    // Its rows can still be read.
    #expect(try file.rows() == story.rows)
    #expect(try file.contents().sessionCount == UInt64(story.sessions.count))
  }

  @Test func `Kills are counted, and forgotten with their session`() throws {
    var story = Story(seed: 4)
    let file = try directory.begun()
    try file.append([story.batch(20)])
    let action = SessionAction(session: story.sessions[0].token, number: 17)
    #expect(try file.noteKill(action) == 1)
    #expect(try file.noteKill(SessionAction(session: action.session, number: 18)) == 1)
    #expect(try file.noteKill(action) == 2)
    #expect(try file.suspects().map(\.action.number) == [18, 17])
    #expect(try file.suspects().map(\.kills) == [1, 2])
    var batch = story.batch(0)
    batch.forgotten = [action.session]
    try file.append([batch])
    #expect(try file.suspects().isEmpty)
  }

  @Test func `A thousand suspects are kept`() throws {
    let file = try directory.begun(.async)
    for number: UInt64 in 1...1010 {
      _ = try file.noteKill(SessionAction(session: SessionToken(high: 1, low: 1), number: number))
    }
    #expect(try file.suspects().map(\.action.number) == Array(11...1010))
  }

  // MARK: For people

  @Test func `sqlite3 shows the actions`() throws {
    let file = try directory.begun()
    var batch = JournalBatch(number: 1, revision: 2)
    let token = SessionToken(high: 1, low: 2)
    batch.sessions = [JournalSession(token: token, uid: 0, number: 1)]
    batch.bytes = [1, 2, 3, 4, 5]
    var row = JournalRow(
      sequence: 1, time: Timestamp(nanoseconds: 1_700_000_000_007_000_000),
      cause: Cause(.client(Story.client)), name: "increment", action: 0..<2,
      revision: 1, change: .init(base: 0, patch: 2..<5), answer: nil)
    batch.rows.append(row)
    (row.sequence, row.name, row.change) = (2, "", nil)
    row.answer = .init(
      session: token, number: 1,
      outcome: .rejected(.init(code: 1, message: "no such action", path: nil)))
    batch.rows.append(row)
    (row.sequence, row.cause, row.revision, row.answer) = (
      3, Cause(.timer(EffectID(1, salt: 42), name: "tick")), 2, nil
    )
    row.name = "tick"
    row.change = .init(base: 1, patch: 0..<1)
    batch.rows.append(row)
    try file.append([batch])
    #expect(
      SQL.run(
        directory.journal,
        "SELECT revision, time, origin, action, outcome, bytes, packed FROM actions")
        == [
          "1|2023-11-14T22:13:20.007Z|client 3 (pid 812, uid 1000)|increment|reduced|3|0",
          "1|2023-11-14T22:13:20.007Z|client 3 (pid 812, uid 1000)||rejected: no such action|0|0",
          "2|2023-11-14T22:13:20.007Z|timer tick|tick|reduced|1|0",
        ])
    #expect(row.time.description == "2023-11-14T22:13:20.007Z")
  }

  // MARK: Checkpoints

  @Test func `The log is copied into the file when it has grown, and not while appending`() throws {
    var count: UInt64 = 0
    func batch() -> JournalBatch {
      count += 1
      var batch = JournalBatch(number: count, revision: count)
      batch.bytes = [UInt8](repeating: 7, count: 9000)
      batch.rows = [
        JournalRow(
          sequence: count, time: Story.time(0), cause: .owner, name: "", action: nil,
          revision: count, change: .init(base: count - 1, patch: 0..<9000), answer: nil)
      ]
      return batch
    }
    let file = try directory.begun(.async)
    file.checkpointFrames = 100
    // A reader blocks the checkpoint: the next attempt waits until the log has grown as much again.
    try file.append([batch()])
    var reader: OpaquePointer?
    #expect(sqlite3_open(directory.journal, &reader) == SQLITE_OK)
    #expect(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM log", nil, nil, nil) == SQLITE_OK)
    while !file.isCheckpointDue { try file.append([batch()]) }
    try file.checkpointIfDue()
    #expect(!file.isCheckpointDue)
    let blocked = count
    while !file.isCheckpointDue { try file.append([batch()]) }
    #expect(count > blocked + 10)
    sqlite3_close(reader)
    try file.checkpointIfDue()
    #expect(!file.isCheckpointDue)
    let size = Files.size(directory.journal)
    while !file.isCheckpointDue { try file.append([batch()]) }
    #expect(count > 10)
    #expect(Files.size(directory.journal) == size)
    try file.checkpointIfDue()
    #expect(!file.isCheckpointDue)
    #expect(Files.size(directory.journal) > size)
    let log = Files.size(directory.journal + "-wal")
    for _ in 0..<10 { try file.append([batch()]) }
    // The log is reused from its start.
    #expect(Files.size(directory.journal + "-wal") <= log)
    // When the owner runs no checkpoint, the log is still copied, later.
    for _ in 0..<300 { try file.append([batch()]) }
    #expect(Files.size(directory.journal + "-wal") < 5 * log)
    #expect(try file.rows().count == Int(count))
  }

  @Test func `A journal can be handed to another thread`() async throws {
    let file = try JournalFile(directory: directory.path, mode: .sync, create: true)
    let task = Task {
      try file.create(epoch: 1, seed: HashSeed(2))
      return try file.identity()?.epoch
    }
    #expect(try await task.value == 1)
  }
}
