import Glibc
import Lockstep
import Records
import Testing
import Values
import Wire

@testable import Journal

/// Small commits go to a log of their own, and the journal reads as if they were in SQLite.
@Suite struct CommitLogTests {
  let directory = TemporaryDirectory(inMemory: true)

  private var log: String { CommitLog.path(of: directory.journal) }

  /// Rows that a person finds with `sqlite3`.
  private var storedCount: String? {
    SQL.run(directory.journal, "SELECT coalesce(sum(1 + coalesce(packed, 0)), 0) FROM log").first
  }

  /// A journal in its first run, with a commit log, and one turn in SQLite.
  private func begun(_ story: inout Story) throws(JournalError) -> JournalFile {
    let file = try directory.begun()
    file.prepareCommitLog()
    try file.append([story.batch(40)])
    #expect(!file.hasPendingCommits)
    return file
  }

  /// A batch that brings no new session.
  private func small(_ count: Int, _ story: inout Story, digest: Digest? = nil) -> JournalBatch {
    while true {
      var next = story
      let batch = next.batch(count, digest: digest)
      if batch.sessions.isEmpty {
        story = next
        return batch
      }
      story.random = SplitMix64(story.random.next())
    }
  }

  /// The files of the directory as a process that is killed leaves them.
  private func remains(_ names: [String] = ["", "-wal", "-commits"]) -> TemporaryDirectory {
    let place = TemporaryDirectory(inMemory: true)
    for name in names {
      Files.write(Files.read(directory.journal + name), to: place.journal + name)
    }
    Files.write(Files.read(directory.path + "/standing"), to: place.path + "/standing")
    return place
  }

  @Test func `What is in the log alone is read by everybody, and survives the process`() throws {
    for seed in 1...10 as ClosedRange<UInt64> {
      let directory = TemporaryDirectory(inMemory: true)
      var story = Story(seed: seed)
      let file = try directory.begun()
      file.prepareCommitLog()
      try file.append([story.batch(40)])
      let stored = story.rows.count
      for size in [1, 3, 9, 1] { try file.append([small(size, &story), small(1, &story)]) }
      try file.append([small(2, &story, digest: Digest(7))])
      #expect(file.hasPendingCommits)
      let reader = try JournalReader(reading: directory.path)
      #expect(try reader.rows() == story.rows)
      #expect(
        try reader.rows(after: story.rows[stored + 1].row.sequence, limit: 3)
          == Array(story.rows[(stored + 2)...].prefix(3)))
      #expect(try reader.sequence(before: 2) == story.rows[story.rows.count - 3].row.sequence)
      #expect(try reader.contents().head.revision == story.revision)
      #expect(try reader.contents().head.base == story.base)
      #expect(try reader.sessionsWithOutcomes() == story.keptSessions)
      reader.close()
      let report = JournalReader.fsck(directory.path)
      #expect(report.findings == [])
      #expect(report.rowCount == story.rows.count)
      #expect(report.soundRevision == story.revision)
      // Reading has changed nothing.
      #expect(
        SQL.run(directory.journal, "SELECT sum(1 + coalesce(packed, 0)) FROM log") == ["\(stored)"])
      let killed = TemporaryDirectory(inMemory: true)
      for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-commits", "standing"] {
        Files.write(Files.read(directory.path + "/" + name), to: killed.path + "/" + name)
      }
      let again = try killed.open(create: false)
      #expect(try again.rows() == story.rows)
      try again.append([story.batch(3)])
      #expect(try again.rows() == story.rows)
      withExtendedLifetime(file) {}
    }
  }

  @Test func `Many small commits go to SQLite as few rows, which read as they were appended`()
    throws
  {
    var story = Story()
    let file = try begun(&story)
    var digests = 0
    for number in 1...300 {
      digests += number % 100 == 0 ? 1 : 0
      try file.append([small(1, &story, digest: number % 100 == 0 ? Digest(9) : nil)])
    }
    #expect(file.hasPendingCommits)
    try file.transferCommits()
    #expect(!file.hasPendingCommits)
    #expect(storedCount == "340")
    // Of at most 16 turns each, and one for each digest.
    #expect(SQL.run(directory.journal, "SELECT count(*) FROM log") == ["\(1 + digests + 300 / 16)"])
    #expect(try file.rows() == story.rows)
    // The log begins anew, and what it held before does not come back.
    try file.append([small(1, &story)])
    #expect(try remains().open(create: false).rows() == story.rows)
  }

  @Test func `Everything that SQLite stores comes behind what the log holds`() throws {
    var story = Story()
    let file = try begun(&story)
    try file.append([small(2, &story)])
    try file.append([story.batch(100)])
    #expect(storedCount == "142")
    try file.append([small(2, &story)])
    try file.keep(story.snapshot(sessions: story.keptSessions))
    try file.append([small(1, &story)])
    try file.begin(
      run: JournalRun(run: 2, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(9))
    #expect(storedCount == "1")
    try file.append([small(1, &story)])
    #expect(try file.rows() == Array(story.rows.suffix(2)))
    file.close()
    // An ordinary end leaves nothing that an older program could miss.
    #expect(storedCount == "2")
    #expect(JournalReader.fsck(directory.path).findings == [])
  }

  @Test func `A log that was damaged is never read as if it were whole`() throws {
    var story = Story(seed: 4)
    let file = try begun(&story)
    for _ in 0..<4 { try file.append([small(2, &story)]) }
    let bytes = Files.read(log)
    let end = (file.commits?.end ?? 0)
    var random = SplitMix64(5)
    for _ in 0..<60 {
      let place = remains()
      var damaged = bytes
      damaged[Int(random.next() % UInt64(end))] ^= 1 << (random.next() % 8)
      Files.write(damaged, to: CommitLog.path(of: place.journal))
      let report = JournalReader.fsck(place.path)
      #expect(report.findings.count == 1)
      #expect(
        error(.corrupt) { _ = try place.open(create: false) }.contains("was durable"))
      // A machine that has died may have lost the mark, and the end of the log.
      unlink(place.path + "/standing")
      let rows = try place.open(create: false).rows()
      #expect(rows == Array(story.rows.prefix(rows.count)))
      #expect(rows.count >= 40)
    }
    withExtendedLifetime(file) {}
  }

  @Test func `A log without what it goes on from is refused, and can be given up`() throws {
    var story = Story()
    let file = try begun(&story)
    try file.checkpoint()
    let older = Files.read(directory.journal)
    let (count, revision) = (story.rows.count, story.revision)
    try file.append([story.batch(100)])
    try file.append([small(1, &story)])
    let place = remains(["-commits"])
    Files.write(older, to: place.journal)
    for isMarked in [true, false] {
      if !isMarked { unlink(place.path + "/standing") }
      #expect(
        error(.corrupt) { _ = try place.open(create: false) }
          .contains("goes on from action \(story.rows[count + 99].row.sequence)"))
      #expect(!JournalReader.fsck(place.path).findings.isEmpty)
    }
    let recovery = try JournalFile.recover(directory: place.path, to: revision)
    #expect(recovery.revision == revision)
    #expect(Files.size(CommitLog.path(of: place.journal) + ".damaged") == CommitLog.byteCount)
    #expect(try place.open(create: false).rows().count == count)
    withExtendedLifetime(file) {}
  }

  @Test func `Going back leaves out what the log holds, for good`() throws {
    var story = Story()
    let file = try begun(&story)
    for _ in 0..<6 { try file.append([small(2, &story)]) }
    for index in [39, 44, 51] {
      let place = remains()
      let revision = story.rows[index].row.revision
      let kept = story.rows.filter { $0.row.revision <= revision }.map(\.row)
      #expect(try JournalFile.recover(directory: place.path, to: revision).revision == revision)
      #expect(try place.open(create: false).rows().map(\.row) == kept)
      #expect(JournalReader.fsck(place.path).findings == [])
    }
    withExtendedLifetime(file) {}
  }

  @Test func `A full log goes to SQLite with the commit that does not fit`() throws {
    var story = Story()
    let file = try begun(&story)
    var wasDue = false
    for _ in 0..<600 {
      try file.append([small(60, &story)])
      wasDue = wasDue || file.isTransferDue
      #expect(file.commits?.end ?? 0 <= CommitLog.byteCount)
    }
    #expect(wasDue)
    #expect(try file.rows() == story.rows)
    #expect(Files.size(log) == CommitLog.byteCount)
  }

  @Test
  func `A log that another program removes, replaces or cuts is noticed before it is relied on`()
    throws
  {
    for harm in [
      { unlink($0) == 0 },
      { path in
        Files.write([1, 2, 3], to: path + ".x"); return rename(path + ".x", path) == 0
      },
      { truncate($0, 20) == 0 },
      { path in
        Files.write([UInt8](repeating: 0, count: CommitLog.byteCount), to: path); return true
      },
    ] as [(String) -> Bool] {
      let directory = TemporaryDirectory(inMemory: true)
      var story = Story()
      let file = try directory.begun()
      file.prepareCommitLog()
      try file.append([story.batch(40)])
      try file.append([small(1, &story)])
      #expect(harm(CommitLog.path(of: directory.journal)))
      let before = story
      #expect(
        error(.failed) { try file.append([small(1, &story)]) }.contains("kept anew from memory"))
      #expect(error(.failed) { try file.append([small(1, &story)]) }.contains("opened anew"))
      try file.reopen()
      file.prepareCommitLog()
      // The owner's snapshot closes the gap.
      story = before
      try file.keep(story.snapshot(sessions: story.keptSessions))
      try file.append([small(1, &story)])
      #expect(file.hasPendingCommits)
      #expect(try file.rows() == Array(story.rows.suffix(1)))
    }
  }

  @Test func `Without room the log is read and nothing is written`() throws {
    var story = Story()
    let file = try begun(&story)
    try file.append([small(3, &story)])
    let place = remains()
    let reader = try JournalReader(withoutRoomIn: place.path)
    #expect(try reader.rows() == story.rows)
    reader.close()
    #expect(Files.read(place.journal) == Files.read(directory.journal))
    withExtendedLifetime(file) {}
  }

  @Test func `A link in the place of the log is not followed`() throws {
    let target = directory.path + "/target"
    Files.write([7], to: target)
    var story = Story()
    let file = try directory.begun()
    #expect(symlink(target, log) == 0)
    file.prepareCommitLog()
    try file.append([story.batch(40)])
    try file.append([small(1, &story)])
    #expect(!file.hasPendingCommits)
    #expect(Files.read(target) == [7])
  }

  @Test func `An asynchronous journal has no log`() throws {
    let file = try directory.begun(.async)
    #expect(!file.needsCommitLog)
    file.prepareCommitLog()
    #expect(Files.size(log) == -1)
  }

  @Test func `Any bytes are records, or fewer`() {
    var random = SplitMix64(3)
    for _ in 0..<2000 {
      let bytes = (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next())
      }
      #expect(CommitRecords(bytes)?.records.isEmpty ?? true)
      let head = CommitLogHead(epoch: 1, run: 2, sequence: 3, chain: 4)
      var whole: [UInt8] = []
      for word in head.words + [head.seal] { withUnsafeBytes(of: word) { whole += $0 } }
      let records = CommitRecords(whole + bytes)
      #expect(records?.head == head)
      #expect(records?.records.count == 0)
    }
  }
}
