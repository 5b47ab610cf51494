import CBOR
import Lockstep
import Records
import Testing
import Values
import Wire

@testable import Journal

/// Many actions of one turn are stored as one row, and are read as if each had its own.
@Suite struct RowPackTests {
  let directory = TemporaryDirectory(inMemory: true)

  private func count(_ what: String = "count(*)") -> String? {
    SQL.run(directory.journal, "SELECT \(what) FROM log").first
  }

  @Test func `A busy turn is one row, and its actions read as they were appended`() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let directory = TemporaryDirectory(inMemory: true)
      var story = Story(seed: seed)
      let file = try directory.begun()
      let batches = [story.batch(60), story.batch(7), story.batch(8, digest: Digest(5))]
      try file.append(batches)
      #expect(SQL.run(directory.journal, "SELECT sum(packed), count(*) FROM log") == ["66|9"])
      #expect(try file.rows() == story.rows)
      #expect(try file.sessionsWithOutcomes() == story.keptSessions)
      #expect(try file.contents().head.base == story.base)
      #expect(JournalReader.fsck(directory.journal).rowCount == 75)
      #expect(JournalReader.fsck(directory.journal).findings == [])
      file.close()
      let again = try directory.open()
      try again.append([story.batch(20)])
      #expect(try again.rows() == story.rows)
    }
  }

  @Test func `Reading begins behind any action, in a pack or not`() throws {
    var story = Story()
    let file = try directory.begun()
    for size in [3, 30, 1, 12] { try file.append([story.batch(size)]) }
    for (index, entry) in story.rows.enumerated() {
      let sequence = entry.row.sequence
      #expect(try file.rows(after: sequence) == Array(story.rows[(index + 1)...]))
      #expect(
        try file.rows(after: sequence, limit: 5) == Array(story.rows[(index + 1)...].prefix(5)))
      #expect(try file.sequence(before: story.rows.count - 1 - index) == sequence)
    }
    for count in [story.rows.count, 1000] { #expect(try file.sequence(before: count) == 0) }
  }

  @Test func `A pack ends when it is full, and a large action is not packed`() throws {
    let file = try directory.begun()
    var batch = JournalBatch(number: 1, revision: 0)
    // The first is too large; of the others some twenty fill a pack.
    batch.bytes = [UInt8](repeating: 7, count: RowPack.limit)
    for number in 1...100 as ClosedRange<UInt64> {
      batch.rows.append(
        JournalRow(
          sequence: number, time: Story.time(0), cause: .owner, name: "set",
          action: nil, revision: number,
          change: .init(base: number - 1, patch: 0..<(number == 1 ? RowPack.limit : 3000)),
          answer: nil))
    }
    batch.revision = 100
    try file.append([batch])
    #expect(count("max(length(pack)) < \(RowPack.limit + 100)") == "1")
    #expect(SQL.run(directory.journal, "SELECT packed FROM log").first == "NULL")
    #expect(count() == "6")
    #expect(
      try file.rows().map(\.row)
        == batch.rows.map { row in
          var row = row
          let count = row.change?.patch.count ?? 0
          row.change?.patch = 0..<count
          return row
        })
  }

  @Test func `The newest change is found, though it is packed and the row's own action is none`()
    throws
  {
    var story = Story()
    let file = try directory.begun()
    var batch = story.batch(20)
    let token = try #require(batch.sessions.first).token
    for number in 1...10 as ClosedRange<UInt64> {
      batch.rows.append(
        JournalRow(
          sequence: story.sequence + number, time: Story.time(0), cause: .owner,
          name: "", action: nil, revision: story.revision, change: nil,
          answer: .init(session: token, number: 1000 + number, outcome: .unchanged)))
    }
    try file.append([batch])
    #expect(count() == "1")
    #expect(try file.contents().head.base == story.base)
    file.close()
    // So the next change must follow it.
    let again = try directory.open()
    var next = JournalBatch(number: 2, revision: story.revision + 1)
    next.rows = [
      JournalRow(
        sequence: story.sequence + 11, time: Story.time(0), cause: .owner, name: "",
        action: nil, revision: story.revision + 1,
        change: .init(base: story.base - 1, patch: 0..<0), answer: nil)
    ]
    #expect(error(.failed) { try again.append([next]) }.contains("is based on revision"))
    next.rows[0].change?.base = story.base
    try again.append([next])
  }

  // MARK: Damage

  @Test func `A damaged pack is named, and what came before it can be recovered`() throws {
    var story = Story()
    let file = try directory.begun()
    for size in [20, 5, 30, 5] { try file.append([story.batch(size)]) }
    file.close()
    let last = story.rows[54].row
    for damage in [
      "pack = x'00'", "packed = 28", "packed = 0", "packed = NULL", "changed = 1",
      "pack = substr(pack, 1, length(pack) - 1)",
    ] {
      let copy = TemporaryDirectory(inMemory: true)
      Files.write(Files.read(directory.journal), to: copy.journal)
      SQL.run(copy.journal, "UPDATE log SET \(damage) WHERE sequence = \(last.sequence)")
      let report = JournalReader.fsck(copy.journal)
      let others = damage == "packed = NULL" ? "the one before it" : "one of those before it"
      #expect(
        report.findings.first?.description
          == "\(copy.journal): damaged: action \(last.sequence), of revision \(last.revision), or "
          + "\(others) (the seal does not fit)", "\(damage)")
      #expect(report.soundRevision == story.rows[24].row.revision)
    }
  }

  @Test func `Recovery reaches a revision in the middle of a pack`() throws {
    var story = Story()
    let file = try directory.begun()
    for size in [20, 30] { try file.append([story.batch(size)]) }
    file.close()
    let revision = story.rows[35].row.revision
    #expect(try JournalFile.recover(directory: directory.path, to: revision).revision == revision)
    let kept = story.rows.prefix { $0.row.revision <= revision }
    #expect(try directory.open().rows().map(\.row) == kept.map(\.row))
    #expect(JournalReader.fsck(directory.journal).findings == [])
  }

  @Test func `A cause that actions share is in each pack, and again behind another one`() throws {
    var other = Story.client
    other.connection += 1
    let shared = [
      .owner, Cause(.client(Story.client)), Cause(.client(other)),
      Cause(.effect(EffectID(5, salt: 42), name: "fetch"), client: other),
    ]
    var (random, pack) = (SplitMix64(8), RowPack())
    for _ in 1...100 {
      let causes = (0..<6).map { _ in
        let cause = shared[Int(random.next() % 4)]
        // Equal, and not the same.
        return random.next() % 2 == 0 ? cause : Cause(cause.origin, client: cause.client)
      }
      pack.removeAll()
      for (index, cause) in causes.enumerated() {
        var row = JournalRow(
          sequence: UInt64(index) + 1, time: Story.time(0), cause: cause, name: "set", action: nil,
          revision: 1, change: nil, answer: nil)
        #expect(
          pack.add(&row, UnsafeRawBufferPointer(start: nil, count: 0), session: nil, turn: nil))
      }
      var reader = RowPackReader()
      pack.bytes.withUnsafeBytes { reader.begin($0, count: causes.count) }
      for cause in causes {
        try reader.next()
        let read = reader.row(token: nil, salt: 42)?.cause
        #expect(read?.origin == cause.origin && read?.client == cause.client)
      }
    }
  }

  @Test func `Any bytes are a pack, or an error`() throws {
    var random = SplitMix64(3)
    for seed in 1...200 as ClosedRange<UInt64> {
      var (story, pack) = (Story(seed: seed), RowPack())
      let batch = story.batch(Int(random.next() % 12) + 1)
      batch.bytes.withUnsafeBytes { bytes in
        for var row in batch.rows {
          let turn = random.next() % 3 == 0 ? row.revision + random.next() % 3 : nil
          let isAdded = pack.add(&row, bytes, session: 7, turn: turn)
          #expect(isAdded)
        }
      }
      var bytes = pack.bytes
      for _ in 0..<(random.next() % 4) {
        let place = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 3 {
        case 0: bytes[place] ^= UInt8(truncatingIfNeeded: 1 << (random.next() % 8))
        case 1: bytes.removeSubrange(place...)
        default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
        }
        if bytes.isEmpty { break }
      }
      var reader = RowPackReader()
      bytes.withUnsafeBytes { reader.begin($0, count: batch.rows.count) }
      do throws(CBORError) {
        while reader.left > 0 {
          try reader.next()
          _ = reader.row(token: nil, salt: 1)
          for range in [reader.row.action, reader.row.change?.patch] {
            if let range { #expect(range.upperBound <= bytes.count) }
          }
        }
      } catch {
        #expect(bytes != pack.bytes)
      }
    }
  }

  // MARK: The version before

  /// Take the columns of packs away, so that a file is as the first version left it.
  private func makeOld() {
    for sql in [
      "DROP VIEW actions", "ALTER TABLE log DROP COLUMN packed",
      "ALTER TABLE log DROP COLUMN changed", "ALTER TABLE log DROP COLUMN pack",
      "CREATE VIEW actions AS SELECT revision FROM log", "PRAGMA user_version = 1",
    ] { #expect(SQL.run(directory.journal, sql) == []) }
  }

  @Test func `A journal of the version before packs is read, and gets them when it is written`()
    throws
  {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<10 { try file.append([story.batch(6)]) }
    file.close()
    makeOld()
    let reader = try JournalReader(reading: directory.path)
    #expect(try reader.rows() == story.rows)
    #expect(try reader.contents().head.base == story.base)
    #expect(try reader.sequence(before: 10) == story.rows[49].row.sequence)
    #expect(JournalReader.fsck(directory.journal).findings == [])
    reader.close()
    let again = try directory.open()
    #expect(SQL.run(directory.journal, "PRAGMA user_version") == ["3"])
    #expect(try again.rows() == story.rows)
    try again.append([story.batch(30)])
    #expect(try again.rows() == story.rows)
    #expect(
      SQL.run(directory.journal, "SELECT packed FROM actions ORDER BY packed DESC LIMIT 1")
        == ["29"])
    #expect(JournalReader.fsck(directory.journal).findings == [])
  }

  @Test func `A journal of the version before commit logs is written as it is`() throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<10 { try file.append([story.batch(20)]) }
    file.close()
    #expect(SQL.run(directory.journal, "PRAGMA user_version = 2") == [])
    #expect(try JournalReader(reading: directory.path).rows() == story.rows)
    let again = try directory.open()
    #expect(SQL.run(directory.journal, "PRAGMA user_version") == ["3"])
    try again.append([story.batch(3)])
    #expect(try again.rows() == story.rows)
    #expect(JournalReader.fsck(directory.journal).findings == [])
  }

  @Test func `A journal of the version before packs can be recovered`() throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<10 { try file.append([story.batch(6)]) }
    file.close()
    makeOld()
    let revision = story.rows[35].row.revision
    #expect(try JournalFile.recover(directory: directory.path, to: revision).revision == revision)
    #expect(JournalReader.fsck(directory.journal).findings == [])
  }
}
