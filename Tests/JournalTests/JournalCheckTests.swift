import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

/// Damage to a file is found and named, and is no reason to crash.
@Suite struct JournalCheckTests {
  let directory = TemporaryDirectory()

  /// A journal with two runs, a snapshot of three parts, and rows before and after it.
  private func write() throws -> (story: Story, snapshot: JournalSnapshot) {
    var story = Story()
    let file = try directory.begun()
    // So few at once that each has a row of its own.
    for _ in 0..<4 { try file.append([story.batch(5)]) }
    let snapshot = story.snapshot(sessions: story.keptSessions)
    try file.keep(snapshot, cutting: false)
    try file.begin(
      run: JournalRun(run: 2, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(9))
    try file.append([
      story.batch(5), story.batch(5), story.batch(5), story.batch(5, digest: Digest(5)),
    ])
    try file.endRun(revision: story.revision)
    _ = try file.noteKill(SessionAction(session: story.sessions[0].token, number: 3))
    return (story, snapshot)
  }

  private func damage(_ sql: String) {
    #expect(SQL.run(directory.journal, sql) == [])
  }

  private func check(_ path: String? = nil) -> JournalReport {
    JournalReader.fsck(path ?? directory.journal)
  }

  @Test func `A sound journal has no findings`() throws {
    let (story, _) = try write()
    let report = check()
    #expect(report.findings == [])
    #expect(report.soundRevision == story.revision)
    #expect(report.rowCount == 40)
    // Also while a daemon holds it, and by the directory's name.
    let file = try directory.open()
    try file.probe()
    #expect(check(directory.path) == report)
  }

  @Test func `A new journal is sound as far as it goes`() throws {
    let file = try directory.open()
    #expect(check().findings.map(\.description).first?.contains("has no epoch") == true)
    try file.create(epoch: 1, seed: HashSeed(1))
    #expect(check().findings == [])
    #expect(check().soundRevision == 0)
  }

  @Test func `A damaged row is named by its revision, with the way to recover`() throws {
    let (story, _) = try write()
    let row = story.rows[27].row
    damage("UPDATE log SET name = 'sat' WHERE sequence = \(row.sequence)")
    let report = check()
    #expect(
      report.findings == [
        JournalFinding(
          "\(directory.journal): damaged: action \(row.sequence), of revision \(row.revision), "
            + "or the one before it (the seal does not fit)", revision: row.revision)
      ])
    #expect(report.soundRevision == story.rows[26].row.revision)
    #expect(report.rowCount == 40)
    let file = try directory.open()
    #expect(
      error(.corrupt) { _ = try file.rows() }
        == "\(directory.journal): damaged: action \(row.sequence), of revision \(row.revision), or "
        + "the one before it (the seal does not fit). Run `lockstep fsck \(directory.journal)` to see what is "
        + "damaged, and `lockstepd --state-dir \(directory.path) --recover-to REVISION` to go back to a revision before the "
        + "damage; or restore the file from a backup.")
  }

  @Test func `A missing row is named`() throws {
    let (story, _) = try write()
    damage("DELETE FROM log WHERE sequence = \(story.rows[30].row.sequence)")
    let report = check()
    #expect(report.findings.first?.revision == story.rows[31].row.revision)
    #expect(report.soundRevision == story.rows[29].row.revision)
  }

  @Test func `Damage to rows before the snapshot is reported, and limits no recovery`() throws {
    let (story, _) = try write()
    let row = story.rows[3].row
    damage("UPDATE log SET time = 1 WHERE sequence = \(row.sequence)")
    #expect(check().findings.map(\.revision) == [row.revision])
    #expect(check().soundRevision == story.revision)
  }

  @Test func `Every table is checked`() throws {
    _ = try write()
    let whole = Files.read(directory.journal)
    for (sql, text) in [
      ("UPDATE journal SET seed = 1", "damaged: the epoch and the seed"),
      ("UPDATE run SET base = 77 WHERE run = 2", "damaged: run 2"),
      ("UPDATE schema SET bytes = x'00' WHERE id = 1", "damaged: schema 1 of the feature"),
      ("DELETE FROM schema", "damaged: run 1"),
      ("UPDATE session SET uid = 0 WHERE number = 1", "damaged: session 1"),
      ("UPDATE session SET token = x'00' WHERE number = 1", "damaged: session 1"),
      ("DELETE FROM session WHERE number = 1", "is of a session that is missing"),
      ("UPDATE outcomes SET runs = x'80' WHERE number = 1", "damaged: session 1 of the snapshot"),
      ("DELETE FROM outcomes WHERE number = 1", "and 0 are there"),
      ("UPDATE snapshot SET digest = 0", "damaged: the snapshot of revision"),
      ("UPDATE part SET bytes = x'00' WHERE number = 1", "damaged: part 1 of the snapshot"),
      ("DELETE FROM part WHERE number = 2", "has 3 parts of 303 bytes, and 2 of 201 bytes"),
      ("DELETE FROM part WHERE number = 0", "damaged: part 0 of the snapshot"),
      ("UPDATE suspect SET token = x'00'", "damaged: a suspect action"),
    ] {
      Files.write(whole, to: directory.journal)
      damage(sql)
      let findings = check().findings.map(\.description)
      #expect(findings.contains { $0.contains(text) }, "\(sql): \(findings)")
    }
  }

  @Test func `A damaged page is reported once by each check that reads it, in one line`() throws {
    _ = try write()
    var bytes = Files.read(directory.journal)
    for offset in 4096 * 4..<4096 * 4 + 100 { bytes[offset] = 0xff }
    Files.write(bytes, to: directory.journal)
    let findings = check().findings
    #expect(findings.contains { $0.description.contains("the file is damaged: ") })
    #expect(Set(findings).count == findings.count, "\(findings)")
    #expect(
      findings.allSatisfy { !$0.description.contains("\n") && !$0.description.contains("***") })
  }

  @Test func `A finding is reported once`() {
    var report = JournalReport()
    for revision in [1, 1, 2] as [UInt64] { report.add("wrong", revision: revision) }
    #expect(report.findings.map(\.revision) == [1, 2])
  }

  @Test func `Contradictions are found though their seals are valid`() throws {
    // Such rows come from a faulty program, not from a disk.
    let file = try directory.begun()
    var batch = JournalBatch(number: 1, revision: 3)
    func row(_ sequence: UInt64, _ revision: UInt64, base: UInt64) -> JournalRow {
      JournalRow(
        sequence: sequence, time: Story.time(0), cause: .owner, name: "",
        action: nil, revision: revision, change: .init(base: base, patch: 0..<0), answer: nil)
    }
    batch.rows = [row(1, 5, base: 7)]
    try file.append([batch])
    batch.rows = [row(2, 4, base: 5)]
    try file.append([batch])
    try file.endRun(revision: 3)
    try file.begin(run: .init(run: 2, base: 3), schema: [], revision: 9, time: Story.time(0))
    try file.endRun(revision: 8)
    #expect(
      check().findings.map { $0.description.dropFirst(directory.journal.count + 2) }
        == [
          "run 2 began with revision 9 and ended with 8",
          "action 1 of revision 5 is of a turn that ended with 3",
          "action 2 of revision 4 is of a turn that ended with 3",
        ].map { $0[...] })
    #expect(check().soundRevision == 0)
  }

  @Test func `A caller that knows the types checks further, if everything else is sound`() throws {
    let (story, snapshot) = try write()
    var seen = 0
    let report = JournalReader.fsck(directory.journal) { reader, report throws(JournalError) in
      #expect(try reader.contents().snapshot == snapshot)
      try reader.forEachRow(after: snapshot.sequence) { entry in
        seen += 1
        if entry.digest != nil { report.add("the digest is wrong", revision: entry.row.revision) }
      }
      report.soundRevision = 3
    }
    #expect(seen == 20)
    #expect(report.findings == [JournalFinding("the digest is wrong", revision: story.revision)])
    #expect(report.soundRevision == 3)
    damage("UPDATE part SET bytes = x'00' WHERE number = 1")
    let other = JournalReader.fsck(directory.journal) { _, _ in Issue.record("not sound") }
    #expect(other.findings.count == 1)
  }

  // MARK: Bits and lengths

  /// Everything that a journal contains, or the error of reading it.
  private func everything(_ reader: JournalReader) -> Result<String, JournalError> {
    do throws(JournalError) {
      let contents = try reader.contents()
      return .success(
        "\(contents) \(try reader.snapshotBytes()) \(try reader.rows()) "
          + "\(try reader.sessionsWithOutcomes()) \(try reader.suspects())")
    } catch {
      return .failure(error)
    }
  }

  @Test func `A flipped bit is found, or has no effect`() throws {
    _ = try write()
    let whole = Files.read(directory.journal)
    let truth = try everything(JournalReader(reading: directory.journal)).get()
    var random = SplitMix64(3)
    var (found, harmless) = (0, 0)
    for _ in 0..<150 {
      var bytes = whole
      // Mostly a byte that is not zero, and therefore in use.
      var offset = Int(random.next() % UInt64(bytes.count))
      while bytes[offset] == 0, random.next() % 8 != 0 {
        offset = Int(random.next() % UInt64(bytes.count))
      }
      bytes[offset] ^= 1 << UInt8(random.next() % 8)
      for suffix in ["-wal", "-shm"] { unlink(directory.journal + suffix) }
      Files.write(bytes, to: directory.journal)
      let report = check()
      let read = Result { () throws(JournalError) in
        try everything(JournalReader(reading: directory.journal)).get()
      }
      // The same by opening it as a daemon does, which may write.
      let opened = Result { () throws(JournalError) in
        let file = try directory.open(create: false)
        defer { file.close() }
        let all = try everything(file).get()
        try file.probe()
        return all
      }
      for result in [read, opened] {
        switch result {
        case .success(let all): #expect(all == truth, "byte \(offset)")
        case .failure(let error):
          #expect(error.description.hasPrefix(directory.journal), "byte \(offset): \(error)")
          #expect(
            [.corrupt, .foreign, .newer, .failed, .unreachable].contains(error.kind), "\(error)")
        }
      }
      if report.findings.isEmpty { harmless += 1 } else { found += 1 }
      if report.findings.isEmpty, case .failure(let error) = read {
        Issue.record("byte \(offset): a check finds nothing, and reading ends in \(error)")
      }
    }
    #expect(found > 40 && harmless > 0, "\(found) \(harmless)")
  }

  @Test func `A truncated file is found`() throws {
    _ = try write()
    let whole = Files.read(directory.journal)
    let truth = try everything(JournalReader(reading: directory.journal)).get()
    for size in stride(from: 0, to: whole.count, by: 1531) {
      Files.write(Array(whole[..<size]), to: directory.journal)
      #expect(!check().findings.isEmpty, "\(size) bytes")
      let opened = Result { () throws(JournalError) in
        try everything(directory.open(create: false)).get()
      }
      // The missing part may be an index that no read needed.
      if case .success(let all) = opened { #expect(all == truth, "\(size) bytes") }
    }
  }
}
