import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

/// Going back to an earlier revision.
@Suite struct JournalRecoveryTests {
  let directory = TemporaryDirectory()

  /// A journal with a snapshot and rows after it.
  private func write() throws -> (story: Story, snapshot: JournalSnapshot) {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(20)])
    let snapshot = story.snapshot(sessions: story.keptSessions)
    try file.keep(snapshot)
    try file.endRun(revision: story.revision)
    try file.begin(
      run: JournalRun(run: 2, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(9))
    for _ in 0..<10 { try file.append([story.batch(7, digest: Digest(5))]) }
    try file.endRun(revision: story.revision)
    _ = try file.noteKill(SessionAction(session: story.sessions[0].token, number: 3))
    return (story, snapshot)
  }

  @Test func `A copy is the whole journal, also while it is read and written`() throws {
    let (story, snapshot) = try write()
    let file = try directory.open(create: false)
    let reader = try JournalReader(reading: directory.journal)
    defer { reader.close() }
    // Part of the journal is only in the write-ahead log, and the reader keeps it there.
    _ = try reader.rows()
    try file.begin(
      run: JournalRun(run: 3, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(9))
    try file.endRun(revision: story.revision)
    let copy = try file.copy(suffix: ".as it's")
    #expect(copy == directory.journal + ".as it's")
    #expect(try file.copy(suffix: ".as it's") == copy + "-2")
    var status = stat()
    #expect(stat(copy, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(JournalReader.fsck(copy).findings == [])
    // The journal continues.
    try file.probe()
    let (rows, contents) = (try file.rows(), try file.contents())
    file.close()

    let other = TemporaryDirectory()
    Files.write(Files.read(copy), to: other.journal)
    let again = try other.open(create: false)
    #expect(try again.rows() == rows && rows.count == story.rows.count - 20)
    #expect(try again.contents() == contents && contents.snapshot == snapshot)
    #expect(contents.runs.count == 3 && contents.head.revision == story.revision)
    #expect(try again.suspects().map(\.kills) == [1])
    try again.begin(
      run: JournalRun(run: 4, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(9))
    try again.probe()
  }

  private func recover(_ revision: UInt64) throws(JournalError) -> JournalRecovery {
    try JournalFile.recover(directory: directory.path, to: revision)
  }

  @Test func `Rows after the revision are removed, and kept in the old file`() throws {
    let (story, snapshot) = try write()
    let before = Files.read(directory.journal)
    let target = story.rows[50].row.revision
    let result = try recover(target)
    let backup = "\(directory.journal).before-recovery-to-\(target)"
    #expect(result.revision == target && result.backup == backup && result.lostCount == 0)
    #expect(Files.read(backup) == before)
    #expect(Files.size(directory.journal + ".new") == -1)
    #expect(JournalReader.fsck(directory.journal).findings == [])

    let last = story.rows.lastIndex { $0.row.revision == target } ?? 0
    let file = try directory.open(create: false)
    var kept = Array(story.rows[20...last])
    if let turn = kept[kept.count - 1].turn { kept[kept.count - 1].turn = min(turn, target) }
    #expect(try file.rows() == kept)
    let contents = try file.contents()
    #expect(contents.snapshot == snapshot && contents.head.revision == target)
    #expect(contents.runs.map(\.run.run) == [1, 2])
    #expect(contents.runs.map(\.ended) == [snapshot.revision, nil])
    #expect(try file.suspects().map(\.kills) == [1])
    #expect(try file.snapshotBytes().count == 303)
    // The journal continues in a new run.
    try file.begin(
      run: JournalRun(run: 3, base: target), schema: [1], revision: target, time: Story.time(0))
    try file.probe()
  }

  @Test func `Recovery to the head loses nothing`() throws {
    let (story, _) = try write()
    let before = try JournalReader(reading: directory.path)
    let (contents, rows, sessions) = (
      try before.contents(), try before.rows(), try before.sessionsWithOutcomes()
    )
    #expect(try recover(.max).revision == story.revision)
    let after = try JournalReader(reading: directory.path)
    #expect(try after.contents() == contents)
    #expect(try after.rows() == rows)
    #expect(try after.sessionsWithOutcomes() == sessions)
    // A second recovery makes a second backup.
    #expect(try recover(.max).backup.hasSuffix("-2"))
  }

  @Test func `No recovery reaches a revision before the snapshot`() throws {
    let (_, snapshot) = try write()
    let before = Files.read(directory.journal)
    let first = snapshot.revision
    #expect(
      error(.failed) { _ = try recover(first - 1) }
        == "\(directory.journal): the journal begins with a snapshot of revision \(first): "
        + "\(first - 1) is gone. Name \(first) or a later revision, or restore the file from a "
        + "backup.")
    #expect(Files.read(directory.journal) == before)
    #expect(try recover(first).revision == first)
  }

  @Test func `Damage after the revision is removed, damage before it prevents recovery`() throws {
    let (story, _) = try write()
    let row = story.rows[60].row
    SQL.run(directory.journal, "UPDATE log SET patch = x'00' WHERE sequence = \(row.sequence)")
    let sound = try #require(JournalReader.fsck(directory.journal).soundRevision)
    #expect(sound == story.rows[59].row.revision)
    #expect(
      error(.corrupt) { _ = try recover(story.revision) }
        .contains("The newest revision to go back to is \(sound)."))
    #expect(try recover(sound).revision == sound)
    #expect(JournalReader.fsck(directory.journal).findings == [])
    #expect(try directory.open().rows().count == 40)
  }

  @Test
  func `Recovery reaches the revision that fsck calls sound, whatever page is damaged`() throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<40 { try file.append([story.batch(20)]) }
    file.close()
    let whole = Files.read(directory.journal)
    var recoveries = 0
    for page in 1..<(whole.count / 4096) {
      var bytes = whole
      for offset in 0..<8 { bytes[page * 4096 + offset] ^= 0x5a }
      Files.write(bytes, to: directory.journal)
      for suffix in ["-wal", "-shm"] { unlink(directory.journal + suffix) }
      guard let sound = JournalReader.fsck(directory.journal).soundRevision else { continue }
      do {
        #expect(try recover(sound).revision == sound, "page \(page)")
      } catch {
        Issue.record("page \(page), to \(sound): \(error)")
      }
      #expect(JournalReader.fsck(directory.journal).findings == [], "page \(page)")
      recoveries += 1
    }
    #expect(recoveries > 5)
  }

  @Test func `A sound revision is reached whatever turn a damaged last row claims`() throws {
    let (story, _) = try write()
    SQL.run(
      directory.journal,
      "UPDATE run SET ended = NULL WHERE run = 2; UPDATE log SET turn = 1, revision = 1 "
        + "WHERE sequence = \(story.rows[story.rows.count - 1].row.sequence)")
    let sound = story.rows[story.rows.count - 2].row.revision
    #expect(try recover(sound).revision == sound)
  }

  @Test func `A revision after the head cannot be recovered`() throws {
    let (story, _) = try write()
    #expect(
      error(.failed) { _ = try recover(story.revision + 1) }
        .contains("ends with revision \(story.revision)"))
  }

  @Test func `Damaged sessions, runs and suspects are removed`() throws {
    let (story, _) = try write()
    SQL.run(directory.journal, "UPDATE session SET uid = 7 WHERE number = 1")
    SQL.run(directory.journal, "UPDATE run SET base = 7 WHERE run = 1")
    SQL.run(directory.journal, "UPDATE suspect SET token = x'00'")
    #expect(error(.corrupt) { _ = try directory.open() }.contains("damaged: session 1"))
    #expect(try recover(.max).lostCount == 3)
    #expect(JournalReader.fsck(directory.journal).findings == [])
    let file = try directory.open()
    #expect(try file.contents().runs.map(\.run.run) == [2])
    #expect(try file.sessions(from: nil).allSatisfy { $0.number != 1 })
    let changes = story.rows[20...].filter { $0.row.change != nil }.map(\.row.revision)
    #expect(try file.rows().filter { $0.row.change != nil }.map(\.row.revision) == changes)
  }

  @Test func `A damaged snapshot prevents recovery`() throws {
    _ = try write()
    SQL.run(directory.journal, "UPDATE part SET bytes = x'00' WHERE number = 1")
    let before = Files.read(directory.journal)
    #expect(error(.corrupt) { _ = try recover(.max) }.contains("damaged: part 1 of the snapshot"))
    #expect(Files.read(directory.journal) == before)
    SQL.run(directory.journal, "DELETE FROM snapshot")
    #expect(error(.corrupt) { _ = try recover(.max) }.contains("the snapshot is missing"))
  }

  @Test func `A journal without a snapshot recovers to its beginning`() throws {
    var story = Story()
    do {
      let file = try directory.begun()
      try file.append([story.batch(9)])
    }
    #expect(try recover(0).revision == 0)
    #expect(try directory.open().rows().allSatisfy { $0.row.change == nil })
  }

  @Test func `The journal of a running daemon is refused`() throws {
    let file = try directory.begun()
    #expect(error(.locked) { _ = try recover(0) }.contains("has the journal"))
    withExtendedLifetime(file) {}
  }
}
