import CSQLite
import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

@Suite struct JournalSnapshotTests {
  let directory = TemporaryDirectory()

  @Test func `A snapshot is read back, and replaces the rows before it`() throws {
    var story = Story()
    let file = try directory.begun()
    for size in [5, 30, 5, 5, 5, 50] { try file.append([story.batch(size)]) }
    let snapshot = story.snapshot(sessions: story.keptSessions)
    let id = try file.beginSnapshot(snapshot)
    try file.addPart(id, [1, 2, 3])
    // Appending continues meanwhile.
    try file.append([story.batch(30)])
    try file.addPart(id, [4, 5])
    try file.append([story.batch(30)])
    #expect(try file.contents().snapshot == nil)
    try file.finishSnapshot(id)
    #expect(try file.contents().snapshot == snapshot)
    #expect(try file.contents().snapshotBytes == 5)
    #expect(try file.snapshotBytes() == [1, 2, 3, 4, 5])
    #expect(try file.rows() == story.rows)

    var slices = 0
    while try file.cut(limit: 10) { slices += 1 }
    // 5 + 30, 5 + 5, 5 + 50: what is packed counts, and is cut as a whole.
    #expect(slices == 3)
    #expect(try file.rows() == Array(story.rows[100...]))
    #expect(try file.rows(after: snapshot.sequence) == Array(story.rows[100...]))
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
    file.close()

    let again = try directory.open()
    #expect(try again.contents().snapshot == snapshot)
    #expect(try again.snapshotBytes() == [1, 2, 3, 4, 5])
    try again.append([story.batch(10)])
    #expect(try again.rows() == Array(story.rows[100...]))
    #expect(try again.contents().head.base == story.base)
  }

  @Test(arguments: [false, true])
  func `The latest actions before a snapshot stay for the log`(isDamaged: Bool) throws {
    var story = Story()
    var file = try directory.begun()
    for size in [30, 12, 12, 12] { try file.append([story.batch(size)]) }
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    let covered = story.sequence
    try file.append([story.batch(4)])
    while try file.cut(limit: 3, keeping: 15) {}
    // The pack of which three are wanted stays as a whole.
    let kept = Array(story.rows[42...])
    #expect(try file.rows() == kept)
    file.close()

    file = try directory.open()
    #expect(try file.contents().head.base == story.base)
    // Another process, whose log is as long, removes nothing more.
    #expect(try !file.cut(limit: 3, keeping: 15))
    if isDamaged {
      SQL.run(
        directory.journal, "UPDATE log SET name = 'x' WHERE sequence = \(kept[11].row.sequence)")
    }
    var logged: [JournalEntry] = []
    try file.forEachLoggedRow(after: kept[1].row.sequence, through: covered) { logged.append($0) }
    // The last row of a turn has a seal, and with it those that are packed before it.
    #expect(logged == Array(isDamaged ? kept[12..<24] : kept[2..<24]))
    #expect(try file.rows(after: covered) == Array(kept[24...]))
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
    #expect(JournalReader.fsck(directory.journal).findings.isEmpty == !isDamaged)

    // Whose log is shorter, all but that. Then none is left.
    while try file.cut(limit: 100, keeping: 2) {}
    #expect(try file.rows() == Array(story.rows[54...]))
    while try file.cut(limit: 100) {}
    #expect(try file.rows() == Array(story.rows[66...]))
  }

  @Test func `Of large actions as many stay for the log as take some megabytes`() throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<5 {
      var batch = story.batch(1)
      let start = batch.bytes.count
      batch.bytes += [UInt8](repeating: 1, count: 1 << 20)
      batch.rows[0].action = start..<batch.bytes.count
      try file.append([batch])
    }
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    while try file.cut(limit: 100, keeping: 2048) {}
    #expect(try file.rows().map(\.row.sequence) == story.rows.suffix(3).map(\.row.sequence))
  }

  @Test func `A forgotten session stays as long as an action in the log is of it`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(20)])
    let gone = try #require(story.sessions.first)
    var last = JournalBatch(number: story.batchCount + 1, revision: story.revision)
    last.forgotten = [gone.token]
    story.batchCount += 1
    try file.append([last, story.batch(1)])
    story.sessions.removeFirst()
    let live = story.sessions
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    while try file.cut(limit: 100, keeping: 50) {}
    #expect(try file.rows().map(\.row.answer) == story.rows.map(\.row.answer))
    while try file.cut(limit: 100) {}
    #expect(SQL.run(directory.journal, "SELECT count(*) FROM session") == ["\(live.count)"])
  }

  /// A client that acts and leaves: both may be stored at once.
  @Test func `A session that is forgotten in a batch without rows has the actions before it`()
    throws
  {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(3)])
    let acted = story.batch(30)
    let named = Set(acted.rows.compactMap(\.answer?.session))
    let gone = try #require(story.sessions.first { named.contains($0.token) })
    var forgets = JournalBatch(number: story.batchCount + 1, revision: story.revision)
    forgets.forgotten = [gone.token]
    story.batchCount += 1
    try file.append([acted, forgets])
    story.sessions.removeAll { $0.token == gone.token }
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    while try file.cut(limit: 1, keeping: 30) {}
    #expect(try file.rows() == Array(story.rows[3...]))
    #expect(JournalReader.fsck(directory.journal).findings.isEmpty)
  }

  @Test func `All rows can be cut, and the journal continues`() throws {
    var story = Story()
    var file = try directory.begun()
    for _ in 0..<3 {
      try file.append([story.batch(25)])
      try file.keep(story.snapshot(sessions: story.keptSessions))
      #expect(try file.rows().isEmpty)
      #expect(try file.contents().head.sequence == story.sequence)
      #expect(try file.contents().head.base == story.base)
      file.close()
      file = try directory.open()
    }
    let cut = story.rows.count
    try file.append([story.batch(5)])
    #expect(try file.rows() == Array(story.rows[cut...]))
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
    for table in ["snapshot", "part"] {
      let count = SQL.run(directory.journal, "SELECT count(DISTINCT rowid) FROM \(table)")
      #expect(count == [table == "snapshot" ? "1" : "3"])
    }
  }

  @Test func `An unfinished snapshot has no effect`() throws {
    var story = Story()
    do {
      let file = try directory.begun()
      try file.append([story.batch(10)])
      let id = try file.beginSnapshot(story.snapshot(sessions: story.keptSessions))
      for _ in 0..<9 { try file.addPart(id, [7, 7, 7]) }
    }
    let file = try directory.open()
    #expect(try file.contents().snapshot == nil)
    #expect(try file.snapshotBytes() == [])
    #expect(try file.rows() == story.rows)
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    #expect(try file.snapshotBytes().count == 303)
    while try file.cut(limit: 10) {}
    #expect(SQL.run(directory.journal, "SELECT count(*) FROM part") == ["3"])
    #expect(
      SQL.run(directory.journal, "SELECT count(*) FROM outcomes") == ["\(story.sessions.count)"])
  }

  @Test func `A new snapshot abandons the unfinished one`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(10)])
    let first = try file.beginSnapshot(story.snapshot())
    try file.addPart(first, [1])
    let second = try file.beginSnapshot(story.snapshot())
    #expect(error(.failed) { try file.addPart(first, [2]) }.contains("is not being written"))
    #expect(error(.failed) { try file.finishSnapshot(first) }.contains("is not being written"))
    try file.addPart(second, [3])
    try file.finishSnapshot(second)
    #expect(try file.snapshotBytes() == [3])
  }

  @Test func `After lost batches a snapshot closes the gap`() throws {
    var story = Story(seed: 3)
    let file = try directory.begun()
    try file.append([story.batch(40)])
    let gone = try #require(story.sessions.first)
    let kept = story.rows
    // Lost: in this batch one session was forgotten and others were added.
    _ = story.batch(60)
    story.sessions.removeFirst()
    let next = story.batch(4)
    #expect(error(.failed) { try file.append([next]) }.contains("a defect of the program"))
    try file.reopen()
    let snapshot = story.snapshot(sessions: story.keptSessions)
    try file.keep(snapshot, cutting: false)
    let count = story.rows.count
    try file.append([story.batch(15)])
    #expect(try file.rows() == kept + story.rows[count...])
    #expect(try file.rows(after: snapshot.sequence) == Array(story.rows[count...]))
    let sessions = try file.sessionsWithOutcomes()
    #expect(sessions == story.keptSessions)
    #expect(!sessions.contains { $0.token == gone.token })
    while try file.cut(limit: 1000) {}
    #expect(try file.rows() == Array(story.rows[count...]))
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
  }

  @Test func `A session forgotten while a snapshot is written stays forgotten`() throws {
    var story = Story(seed: 5)
    var file = try directory.begun()
    try file.append([story.batch(80)])
    #expect(story.sessions.count > 3)
    // Once before the first part of the snapshot is written, and once after it.
    for partFirst in [false, true] {
      let snapshot = story.snapshot(sessions: story.keptSessions)
      let id = try file.beginSnapshot(snapshot)
      if partFirst { try file.addPart(id, [1]) }
      var batch = story.batch(0)
      batch.forgotten = [story.sessions.removeFirst().token]
      try file.append([batch])
      if !partFirst { try file.addPart(id, [1]) }
      try file.finishSnapshot(id)
      while try file.cut(limit: 3) {}
      #expect(try file.sessionsWithOutcomes() == story.keptSessions)
      file.close()
      file = try directory.open()
      #expect(try file.sessionsWithOutcomes() == story.keptSessions)
    }
    try file.append([story.batch(20)])
    try file.keep(story.snapshot(sessions: story.keptSessions))
    #expect(
      SQL.run(directory.journal, "SELECT count(*) FROM session") == ["\(story.sessions.count)"])
  }

  @Test func `A snapshot with many sessions is kept`() throws {
    var story = Story()
    story.sessions = (1...5000).map { number in
      JournalSession(
        token: SessionToken(high: number, low: ~number), uid: number % 3, number: number,
        outcomes: number % 2 == 0
          ? [] : [Acknowledgement(first: 1, last: number, revision: 9, mark: .durable, .reduced)])
    }
    let file = try directory.begun(.async)
    try file.keep(story.snapshot(sessions: story.sessions), parts: 2)
    let snapshot = try file.contents().snapshot
    #expect(snapshot?.sessions == story.sessions)
    #expect(try file.sessions(from: snapshot).count == 5000)
  }

  @Test func `The file shrinks when most of its pages are free`() throws {
    var story = Story()
    var file = try directory.begun(.async)
    for _ in 0..<40 {
      var batch = story.batch(50)
      batch.bytes += [UInt8](repeating: 1, count: 4000)
      for index in batch.rows.indices { batch.rows[index].action = 0..<4000 }
      try file.append([batch])
    }
    try file.keep(story.snapshot(sessions: story.keptSessions), cutting: false)
    file.close()
    file = try directory.open()
    file.spareFreePages = 64
    let size = Files.size(directory.journal)
    var slices = 0
    while try file.cut(limit: 100) { slices += 1 }
    file.close()
    file = try directory.open()
    #expect(slices >= 2)
    #expect(size > 4_000_000)
    #expect(Files.size(directory.journal) < 1_500_000)
    #expect(try file.snapshotBytes().count == 303)
  }
}
