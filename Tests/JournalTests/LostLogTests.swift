import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

/// A write-ahead log that is damaged at its beginning, truncated, emptied or missing. Opening the
/// journal restores everything that was durable, or fails and says what to do. It never loses rows
/// silently.
@Suite struct LostLogTests {
  let directory = TemporaryDirectory(inMemory: true)

  private var log: String { directory.journal + "-wal" }

  /// The files of a directory at the moment its daemon is killed.
  private struct Remains {
    let files: [(name: String, bytes: [UInt8])]
    let story: Story
    var log: [UInt8] { files.first { $0.name == "journal.sqlite-wal" }?.bytes ?? [] }
  }

  /// A journal whose daemon was killed after `commits` durable commits since a checkpoint.
  private func killed(commits: Int, checkpointed: Bool = false) throws -> Remains {
    var story = Story(seed: 11)
    let directory = TemporaryDirectory(inMemory: true)
    let file = try directory.begun()
    if checkpointed {
      for _ in 0..<20 { try file.append([story.batch(6)]) }
      try file.keep(story.snapshot(sessions: story.keptSessions))
      try file.checkpoint()
    }
    for _ in 0..<commits { try file.append([story.batch(3)]) }
    defer { file.close() }
    return filesLeft(by: directory, story)
  }

  /// The files as they are on the disk while the journal is open.
  private func filesLeft(by directory: TemporaryDirectory, _ story: Story) -> Remains {
    let names = ["journal.sqlite", "journal.sqlite-wal", "standing"]
    return Remains(
      files: names.map { (name: $0, bytes: Files.read(directory.path + "/" + $0)) }, story: story)
  }

  private func restore(_ remains: Remains, log: [UInt8]?, marked: Bool = true) -> TemporaryDirectory
  {
    let place = TemporaryDirectory(inMemory: true)
    for (name, bytes) in remains.files where marked || name != "standing" {
      Files.write(bytes, to: place.path + "/" + name)
    }
    let path = place.journal + "-wal"
    if let log { Files.write(log, to: path) } else { unlink(path) }
    return place
  }

  private enum Verdict: Equatable {
    case whole
    case refused
    case silentlyLess
  }

  /// Opens the files as a daemon does.
  private func verdict(_ place: TemporaryDirectory, _ story: Story) -> Verdict {
    do {
      let file = try place.open()
      try file.checkStructure()
      let (rows, last) = (try file.rows(), try file.contents().head.sequence)
      return rows == Array(story.rows.suffix(rows.count)) && last == story.sequence
        ? .whole : .silentlyLess
    } catch {
      #expect("\(error)".contains("-wal"), "\(error)")
      #expect(
        "\(error)".contains("Restore") || "\(error)".contains("--recover-to"),
        "it does not say what to do: \(error)")
      return .refused
    }
  }

  struct Damage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let change: @Sendable ([UInt8]) -> [UInt8]?
  }

  static let damages: [Damage] = [
    Damage(testDescription: "its first sector is zero") {
      [UInt8](repeating: 0, count: 512) + $0.dropFirst(512)
    },
    Damage(testDescription: "its head is zero") {
      [UInt8](repeating: 0, count: 32) + $0.dropFirst(32)
    },
    Damage(testDescription: "its head is noise") {
      (0..<32).map { UInt8($0 * 37 & 0xff) } + $0.dropFirst(32)
    },
    Damage(testDescription: "its first page is zero") {
      [UInt8](repeating: 0, count: 4096) + $0.dropFirst(4096)
    },
    Damage(testDescription: "all of it is zero") { [UInt8](repeating: 0, count: $0.count) },
    Damage(testDescription: "it is empty") { _ in [] },
    Damage(testDescription: "it is missing") { _ in nil },
  ]

  @Test(arguments: damages, [false, true])
  func `a log that lost its beginning is repaired or refused`(
    damage: Damage, checkpointed: Bool
  ) throws {
    for commits in [1, 2, 3, 10, 60] {
      let remains = try killed(commits: commits, checkpointed: checkpointed)
      let place = restore(remains, log: damage.change(remains.log))
      #expect(verdict(place, remains.story) != .silentlyLess, "\(commits) commits")
      // A refusal changes nothing: the next start has the same result.
      let again = restore(remains, log: damage.change(remains.log))
      let first = verdict(again, remains.story)
      #expect(verdict(again, remains.story) == first, "\(commits) commits")
    }
  }

  @Test func `all frames of a log that lost its header are restored`() throws {
    let remains = try killed(commits: 40, checkpointed: true)
    for lost in [1, 16, 32] {
      let place = restore(
        remains, log: [UInt8](repeating: 0, count: lost) + remains.log.dropFirst(lost))
      let damaged = Files.read(place.journal + "-wal")
      let file = try place.open()
      #expect(try file.rows().last?.row.sequence == remains.story.sequence)
      #expect(file.repair?.contains("frames were brought back") == true, "\(file.repair ?? "-")")
      #expect(Files.read(place.journal + "-wal.damaged") == damaged)
      file.close()
      #expect(JournalReader.fsck(place.journal).findings == [])
      // The repair is done once: the next start finds a sound log.
      #expect(try place.open().repair == nil)
    }
  }

  @Test func `a log truncated anywhere is whole or refused`() throws {
    let remains = try killed(commits: 12)
    let frame = 24 + 4096
    let cuts = stride(from: 32, through: remains.log.count, by: frame).flatMap { [$0, $0 + 100] }
    var (whole, refused) = (0, 0)
    for length in [0, 10, 31] + cuts where length <= remains.log.count {
      let place = restore(remains, log: Array(remains.log.prefix(length)))
      switch verdict(place, remains.story) {
      case .whole: whole += 1
      case .refused: refused += 1
      case .silentlyLess: Issue.record("\(length) of \(remains.log.count) bytes")
      }
    }
    #expect(whole == 1 && refused > 20, "\(whole) whole, \(refused) refused")
  }

  @Test func `without the mark the loss would be silent`() throws {
    // Proves that the other tests can fail.
    let remains = try killed(commits: 10)
    let place = restore(remains, log: nil, marked: false)
    #expect(verdict(place, remains.story) == .silentlyLess)
  }

  @Test func `a journal of an older program, which has no mark, is opened`() throws {
    let remains = try killed(commits: 10)
    let place = restore(remains, log: remains.log, marked: false)
    #expect(verdict(place, remains.story) == .whole)
    // From here on a missing log is detected.
    for suffix in ["-wal", "-shm"] { unlink(place.journal + suffix) }
    let file = try place.open()
    var story = remains.story
    try file.begin(
      run: JournalRun(run: 2, base: story.revision), schema: [1], revision: story.revision,
      time: Story.time(1))
    try file.append([story.batch(4)])
    let later = filesLeft(by: place, story)
    file.close()
    #expect(verdict(restore(later, log: later.log), story) == .whole)
    #expect(verdict(restore(later, log: []), story) == .refused)
  }

  @Test func `what a recovery gave up is not reported again`() throws {
    let remains = try killed(commits: 10, checkpointed: true)
    let place = restore(remains, log: nil)
    let refusal = error(.corrupt) { _ = try place.open() }
    #expect(
      refusal.contains("and revision \(remains.story.revision) was durable"), "\(refusal)")
    let advice = try #require(refusal.split(separator: "`").first { $0.contains("--recover-to") })
    let kept = try #require(advice.split(separator: " ").last.flatMap { UInt64($0) })
    #expect(try JournalFile.recover(directory: place.path, to: kept).revision == kept)
    let file = try place.open()
    #expect(try file.contents().head.revision == kept)
    file.close()
    _ = try place.open()
  }

  @Test func `a journal whose log is lost keeps its epoch where nothing was durable`() throws {
    let file = try directory.open()
    try file.create(epoch: 7, seed: HashSeed(1))
    // The epoch does not depend on the log.
    let bytes = Files.read(directory.journal)
    let place = TemporaryDirectory(inMemory: true)
    Files.write(bytes, to: place.journal)
    #expect(try place.open().identity()?.epoch == 7)
    withExtendedLifetime(file) {}
  }

  @Test func `a log without its journal is not applied to a new journal`() throws {
    let remains = try killed(commits: 4)
    let place = restore(remains, log: remains.log)
    unlink(place.journal)
    let refusal = error(.unreachable) { _ = try place.open() }
    #expect(refusal.contains("Put the journal back, or move the log away"), "\(refusal)")
    #expect(Files.size(place.journal) == -1)
    unlink(place.journal + "-wal")
    #expect(try place.open().identity() == nil)
  }

  @Test func `an emptied journal is refused by all that open it, and its log stays`() throws {
    let remains = try killed(commits: 4, checkpointed: true)
    let place = restore(remains, log: remains.log)
    Files.write([], to: place.journal)
    let attempts: [() throws -> Void] = [
      { _ = try place.open() }, { _ = try JournalReader(reading: place.journal) },
      { _ = try JournalReader(withoutRoomIn: place.path) },
      { _ = try JournalFile.recover(directory: place.path, to: .max) },
    ]
    for attempt in attempts {
      let refusal = error(.corrupt, of: attempt)
      #expect(
        refusal.contains("the file is empty") && refusal.contains("Restore both"), "\(refusal)")
      #expect(Files.read(place.journal + "-wal") == remains.log)
    }
    let report = JournalReader.fsck(place.journal)
    #expect(report.findings.count == 1 && report.soundRevision == nil)
    #expect(Files.read(place.journal + "-wal") == remains.log)
  }

  @Test func `a recovery that fails leaves journal and log, and does not advise itself`() throws {
    let remains = try killed(commits: 4, checkpointed: true)
    let whole = remains.files[0].bytes
    var failures = 0
    for page in 1..<(whole.count / 4096) {
      let place = restore(remains, log: remains.log)
      var bytes = whole
      for offset in 0..<8 { bytes[page * 4096 + offset] ^= 0x5a }
      Files.write(bytes, to: place.journal)
      do throws(JournalError) {
        _ = try JournalFile.recover(directory: place.path, to: .max)
      } catch {
        failures += 1
        #expect(!"\(error)".contains("REVISION"), "page \(page): \(error)")
        #expect(Files.read(place.journal) == bytes, "page \(page)")
        #expect(Files.read(place.journal + "-wal") == remains.log, "page \(page)")
      }
    }
    #expect(failures > 0)
  }

  // MARK: While it is written

  @Test(arguments: [0, 100, 32 + 24 + 4096, 5000])
  func `a log truncated under its writer is detected by the next commit`(length: Int) throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<5 { try file.append([story.batch(3)]) }
    #expect(truncate(log, off_t(length)) == 0)
    let refusal = error(.failed) { try file.append([story.batch(1)]) }
    #expect(refusal.contains("another program has cut it or written over it"), "\(refusal)")
    // The whole state is in memory: a snapshot makes the journal whole again.
    try file.reopen()
    try file.probe()
    try file.keep(story.snapshot(sessions: story.keptSessions))
    try file.append([story.batch(2)])
    #expect(JournalReader.fsck(directory.journal).findings == [])
    file.close()
    let again = try directory.open()
    #expect(try again.contents().head.sequence == story.sequence)
  }

  @Test func `a log truncated before a checkpoint is not copied into the file`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.keep(story.snapshot())
    try file.checkpoint()
    let before = Files.read(directory.journal)
    for _ in 0..<5 { try file.append([story.batch(3)]) }
    #expect(truncate(log, 32) == 0)
    #expect(error(.failed) { try file.checkpoint() }.contains("another program"))
    #expect(Files.read(directory.journal) == before)
    file.close()
    #expect(Files.read(directory.journal) == before)
  }

  @Test func `zeros in place of a frame are detected by the next commit`() throws {
    var story = Story()
    let file = try directory.begun()
    for _ in 0..<5 { try file.append([story.batch(3)]) }
    let size = Files.size(log)
    #expect(truncate(log, 32) == 0 && truncate(log, off_t(size)) == 0)
    #expect(error(.failed) { try file.append([story.batch(1)]) }.contains("another program"))
  }

  // MARK: fsck

  @Test(arguments: damages)
  func `fsck reports every log that is refused`(damage: Damage) throws {
    let remains = try killed(commits: 8, checkpointed: true)
    let place = restore(remains, log: damage.change(remains.log))
    let report = JournalReader.fsck(place.path)
    #expect(!report.findings.isEmpty)
    // fsck changes nothing.
    #expect(Files.read(place.journal + "-wal") == damage.change(remains.log) ?? [])
  }

  @Test func `fsck reports a hole in the log`() throws {
    let remains = try killed(commits: 20)
    var bytes = remains.log
    bytes[32 + 4120 * 6 + 1000] ^= 1
    let place = restore(remains, log: bytes)
    let findings = JournalReader.fsck(place.path).findings.map(\.description)
    #expect(findings.contains { $0.contains("-wal: damaged: frame 7 of") }, "\(findings)")
    #expect(verdict(place, remains.story) == .refused)
  }

  @Test func `fsck of a copy elsewhere ignores what was durable here`() throws {
    let remains = try killed(commits: 10, checkpointed: true)
    let place = restore(remains, log: nil)
    rename(place.journal, place.path + "/copy.sqlite")
    #expect(JournalReader.fsck(place.path + "/copy.sqlite").findings == [])
  }

  @Test func `fsck of a journal that is being written has no findings`() throws {
    var story = Story()
    let file = try directory.begun()
    for round in 0..<30 {
      try file.append([story.batch(5)])
      if round % 7 == 6 { try file.checkpoint() }
      #expect(JournalReader.fsck(directory.path).findings == [], "round \(round)")
    }
  }
}

/// A mark is the latest one noted or the one before it, whatever interrupts the write.
@Suite struct MarkerFileTests {
  let directory = TemporaryDirectory(inMemory: true)

  @Test func `an interrupted mark leaves the one before`() throws {
    let marker = try MarkerFile(directory: directory.path)
    #expect(marker.durable == nil)
    for sequence in 1...20 as ClosedRange<UInt64> {
      let mark = DurableMark(epoch: 9, run: 3, sequence: sequence, revision: sequence * 2)
      marker.noteDurable(mark)
      #expect(marker.durable == mark)
      #expect(MarkerFile.durable(in: directory.path) == mark)
      // Each word of the page may be older than the rest.
      let bytes = Files.read(directory.path + "/standing")
      for word in 8..<21 where sequence > 1 {
        var torn = bytes
        torn[8 * word] ^= 0xff
        let copy = TemporaryDirectory(inMemory: true)
        Files.write(torn, to: copy.path + "/standing")
        let found = try MarkerFile(directory: copy.path).durable
        #expect(found == mark || found?.sequence == sequence - 1, "word \(word): \(found as Any)")
      }
    }
    marker.clearDurable()
    #expect(marker.durable == nil && MarkerFile.durable(in: directory.path) == nil)
  }

  @Test func `other bytes are no action in flight, and no mark`() throws {
    let path = directory.path + "/standing"
    var random = SystemRandomNumberGenerator()
    let random4096 = (0..<4096).map { _ in UInt8.random(in: 1...255, using: &random) }
    for bytes in [random4096, Array(repeating: 0, count: 4096), Array(repeating: 1, count: 4096)] {
      Files.write(bytes, to: path)
      let marker = try MarkerFile(directory: directory.path)
      #expect(marker.actionInFlight == nil && marker.actionForeseen == nil && marker.durable == nil)
    }
  }

  @Test func `the action in flight is known after the process ends`() throws {
    let action = SessionAction(session: SessionToken(high: 1, low: 2), number: 5)
    let foreseen = SessionAction(session: SessionToken(high: 3, low: 4), number: 6)
    do {
      let marker = try MarkerFile(directory: directory.path)
      #expect(marker.actionInFlight == nil && !marker.hasHadPolicy)
      marker.noteInFlight(action)
      marker.inFlight.noteForeseen(foreseen)
      marker.notePolicy()
    }
    let next = try MarkerFile(directory: directory.path)
    #expect(next.actionInFlight == action && next.hasHadPolicy)
    next.clearInFlight()
    #expect(try MarkerFile(directory: directory.path).actionInFlight == nil)
    #expect(next.actionForeseen == foreseen)
    next.inFlight.clearForeseen()
    #expect(try MarkerFile(directory: directory.path).actionForeseen == nil)
  }

  @Test func `links to other files are not followed`() throws {
    let other = directory.path + "/other"
    Files.write(Array("precious".utf8), to: other)
    for name in ["standing", "lock"] {
      let path = directory.path + "/" + name
      unlink(path)
      #expect(link(other, path) == 0)
      let refusal = error(.unreachable) { _ = try directory.open() }
      #expect(refusal.hasPrefix("\(path): has 2 names (hard links)"), "\(refusal)")
      #expect(refusal.hasSuffix("Remove it, or name another directory."), "\(refusal)")
      unlink(path)
      symlink(other, path)
      #expect(error(.unreachable) { _ = try directory.open() }.hasPrefix(path))
      unlink(path)
      mkfifo(path, 0o600)
      #expect(error(.unreachable) { _ = try directory.open() }.contains("not an ordinary file"))
      unlink(path)
    }
    #expect(Files.read(other) == Array("precious".utf8))
    _ = try directory.open()
  }
}
