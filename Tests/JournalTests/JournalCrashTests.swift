import Glibc
import Journal
import Lockstep
import Records
import Testing
import Values
import Wire

/// After a crash at any call that writes, everything promised as kept is there, in order and once.
@Suite struct JournalCrashTests {
  /// `JOURNAL_SEEDS=1000` tries more seeds than a normal test run has time for.
  static let seeds: ClosedRange<UInt64> =
    1...(getenv("JOURNAL_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 1)

  @Test(arguments: seeds, [false, true])
  func `A crash of the machine loses nothing that was durable`(
    seed: UInt64, hasCommitLog: Bool
  ) throws {
    let count = try crashes(.sync, .machineCrash, seed, hasCommitLog)
    #expect(count > 250, "\(count)")
  }

  @Test(arguments: seeds)
  func `A crash of the process loses nothing in either mode`(seed: UInt64) throws {
    #expect(try crashes(.async, .processCrash, seed) > 150)
    #expect(try crashes(.sync, .processCrash, seed) > 250)
    #expect(try crashes(.sync, .processCrash, seed, true) > 250)
  }

  @Test(arguments: seeds)
  func `A crash of the machine leaves an asynchronous journal sound, though older`(
    seed: UInt64
  ) throws {
    #expect(try crashes(.async, .machineCrash, seed) > 150)
  }

  @Test(arguments: ["-commits", "-wal"])
  func `A log that is not synchronised is found out`(suffix: String) {
    withKnownIssue {
      _ = try crashes(.sync, .machineCrash, 1, true, neverSyncing: suffix)
    }
  }

  /// Crashes at every call in turn. Returns the number of calls.
  private func crashes(
    _ mode: JournalFile.Mode, _ misfortune: Misfortune, _ seed: UInt64,
    _ hasCommitLog: Bool = false, neverSyncing suffix: String? = nil
  ) throws -> Int {
    var call = 0
    while true {
      call += 1
      let disk = FaultyDisk(seed: seed &* 1_000_003 &+ UInt64(call))
      (disk.misfortune, disk.unluckyCall) = (misfortune, call)
      disk.neverSyncs = suffix
      var play = Play(disk, mode, seed: seed, hasCommitLog: hasCommitLog)
      play.perform()
      guard disk.hasStruck else { return call - 1 }
      if let error = play.error, !disk.hasCrashed { throw error }
      let losesMuch = mode == .async && misfortune == .machineCrash
      try play.verify("call \(call) of seed \(seed)", losesMuch: losesMuch)
    }
  }

  @Test(
    arguments: seeds,
    [(Misfortune.error, false), (.fullDisk, false), (.error, true), (.fullDisk, true)])
  func `After an error the journal is reopened, and what is kept then survives a crash`(
    seed: UInt64, form: (misfortune: Misfortune, hasCommitLog: Bool)
  ) throws {
    var call = 0
    while true {
      call += 1
      let disk = FaultyDisk(seed: seed &* 7_000_003 &+ UInt64(call))
      (disk.misfortune, disk.unluckyCall) = (form.misfortune, call)
      var play = Play(disk, .sync, seed: seed, hasCommitLog: form.hasCommitLog)
      play.perform(heals: true)
      if let error = play.error { throw error }
      guard disk.hasStruck else { return }
      disk.misfortune = .machineCrash
      disk.crash()
      try play.verify("call \(call) of seed \(seed)", losesMuch: false)
    }
  }
}

/// The life of a journal on a faulty disk, and what must survive of it.
private struct Play {
  let disk: FaultyDisk
  let mode: JournalFile.Mode
  let directory = TemporaryDirectory(inMemory: true)
  let hasCommitLog: Bool
  private var file: JournalFile?
  private var story: Story
  /// The error that ended it early.
  private(set) var error: JournalError?

  /// The states that may be found, one after each write, and the index of the first that is
  /// promised.
  private var candidates: [Story]
  private var promised = 0
  /// The snapshot that is promised, and one that may be found instead.
  private var snapshot: JournalSnapshot?
  private var attempt: JournalSnapshot?
  private var id: JournalSnapshotID?

  init(_ disk: FaultyDisk, _ mode: JournalFile.Mode, seed: UInt64, hasCommitLog: Bool) {
    self.disk = disk
    self.hasCommitLog = hasCommitLog
    self.mode = mode
    story = Story(seed: seed)
    candidates = [story]
  }

  mutating func perform(heals: Bool = false) {
    for step in Self.script {
      do throws(JournalError) {
        try take(step)
      } catch {
        guard heals else {
          self.error = error
          break
        }
        do throws(JournalError) {
          try heal(step)
        } catch {
          self.error = error
          break
        }
      }
    }
    // A process that dies cleans nothing up.
    if disk.hasCrashed { file = nil }
  }

  // MARK: The script

  private enum Step {
    case open, begin, append([Int]), checkpoint, transfer, beginSnapshot, addPart, finishSnapshot,
      forget
    case cut, close
  }

  private static let script: [Step] = {
    let round: [Step] =
      [1, 4, 0, 9].flatMap { [.append([$0]), .checkpoint] }
      + [.append([1]), .append([2, 1]), .transfer, .append([3]), .append([1])]
      + [.beginSnapshot, .addPart, .append([2, 3, 1]), .addPart, .forget, .finishSnapshot]
      + (0..<4).flatMap { _ in [.cut, .append([1])] }
    let restart: [Step] = [.close, .open, .begin]
    return [.open, .begin] + round + restart + round + [.close]
  }()

  private mutating func take(_ step: Step) throws(JournalError) {
    switch step {
    case .open: try open()
    case .begin: try begin()
    case .append(let sizes): try append(sizes)
    case .checkpoint: try file?.checkpointIfDue()
    case .transfer: try file?.transferCommits()
    case .beginSnapshot: try beginSnapshot()
    case .addPart: try addPart()
    case .finishSnapshot: try finishSnapshot()
    case .forget: try forget()
    case .cut: _ = try file?.cut(limit: 6, keeping: story.batchCount % 2 == 0 ? 9 : 0)
    case .close: try close()
    }
  }

  private mutating func open() throws(JournalError) {
    file = nil
    let opened = try directory.open(mode, vfs: disk.name)
    // A small number, so that checkpoints are part of the script.
    opened.checkpointFrames = 16
    opened.spareFreePages = 2
    if hasCommitLog { opened.prepareCommitLog() }
    file = opened
    if try opened.identity() == nil { try opened.create(epoch: 5, seed: HashSeed(42)) }
  }

  private func begin() throws(JournalError) {
    guard let file else { return }
    let head = try file.contents().head
    try file.begin(
      run: JournalRun(run: head.run + 1, base: head.revision), schema: [UInt8(head.run & 1)],
      revision: head.revision, time: Story.time(0))
  }

  private mutating func append(_ sizes: [Int]) throws(JournalError) {
    var batches: [JournalBatch] = []
    var between: [Story] = []
    for size in sizes {
      if !batches.isEmpty { between.append(story) }
      let batch = story.batch(size)
      if !batch.isEmpty { batches.append(batch) }
    }
    // In the commit log, which takes what has rows alone, each batch has a record of its own: a crash of
    // the machine may leave the first ones. All of them are written by one call.
    if hasCommitLog, disk.misfortune != .processCrash,
      batches.allSatisfy({ $0.sessions.isEmpty && $0.forgotten.isEmpty })
    {
      candidates += between
    }
    try attempt { file throws(JournalError) in try file.append(batches) }
  }

  private mutating func forget() throws(JournalError) {
    guard story.sessions.count > 1 else { return }
    var batch = story.batch(0)
    batch.forgotten = [story.sessions.removeFirst().token]
    try attempt { [batch] file throws(JournalError) in try file.append([batch]) }
  }

  /// Performs a write that brings the journal to the state of the story.
  private mutating func attempt(
    _ body: (JournalFile) throws(JournalError) -> Void
  ) throws(JournalError) {
    candidates.append(story)
    guard let file else { return }
    try body(file)
    promised = candidates.count - 1
  }

  private mutating func beginSnapshot() throws(JournalError) {
    let snapshot = story.snapshot(sessions: story.keptSessions)
    attempt = nil
    id = try file?.beginSnapshot(snapshot)
    attempt = snapshot
  }

  private static let part = [UInt8](repeating: 3, count: 6000)

  private mutating func addPart() throws(JournalError) {
    if let id { try file?.addPart(id, Self.part[...]) }
  }

  private mutating func finishSnapshot() throws(JournalError) {
    guard let id else { return }
    self.id = nil
    try file?.finishSnapshot(id)
    snapshot = attempt
  }

  private func close() throws(JournalError) {
    try file?.endRun(revision: story.revision)
    file?.close()
  }

  // MARK: Errors

  /// Repairs the journal as its owner does after an error: it reopens the file, and a snapshot of
  /// the whole state replaces what was lost.
  private mutating func heal(_ step: Step) throws(JournalError) {
    guard let file else { return try take(step) }
    id = nil
    try file.reopen()
    if hasCommitLog { file.prepareCommitLog() }
    if try file.identity() == nil { return try file.create(epoch: 5, seed: HashSeed(42)) }
    let found = try match(file)
    if found == nil { throw JournalError(.corrupt, "after reopening, the story is another") }
    let healing = story.snapshot(sessions: story.keptSessions)
    (attempt, snapshot) = (healing, healing)
    let id = try file.beginSnapshot(healing)
    for _ in 0..<2 { try file.addPart(id, Self.part[...]) }
    try file.finishSnapshot(id)
    candidates.append(story)
    promised = candidates.count - 1
  }

  // MARK: Afterwards

  /// Checks the surviving files with the system's own VFS.
  mutating func verify(_ comment: String, losesMuch: Bool) throws {
    file = nil
    let report = JournalReader.fsck(directory.path)
    let file: JournalFile
    do {
      file = try directory.open(mode)
    } catch {
      Issue.record("\(comment): \(error)")
      return
    }
    guard try file.identity() != nil else {
      #expect(promised == 0 || losesMuch, "\(comment): all is gone")
      return
    }
    // It is true that commits of an asynchronous journal are lost, and fsck does not know better.
    #expect(
      report.findings.allSatisfy {
        losesMuch && $0.description.contains("-wal: damaged: ")
      }, "\(comment): \(report.findings)")
    guard let found = try match(file, losesMuch: losesMuch) else {
      let (left, kept) = (try file.rows().count, candidates[promised].rows.count)
      Issue.record("\(comment): \(left) rows are left, and \(kept) were kept")
      return
    }
    try goOn(file, from: found, comment)
  }

  /// The state of the story that the journal holds.
  private func match(
    _ file: JournalFile, losesMuch: Bool = false
  ) throws(JournalError) -> Story? {
    let contents = try file.contents()
    guard contents.snapshot == snapshot || contents.snapshot == attempt || losesMuch else {
      return nil
    }
    if contents.snapshot != nil, try file.snapshotBytes() != Self.part + Self.part { return nil }
    let covered = contents.snapshot?.sequence ?? 0
    let (all, rows) = (try file.rows(), try file.rows(after: covered))
    let sessions = try file.sessionsWithOutcomes()
    return candidates[(losesMuch ? 0 : promised)...].last { story in
      if let last = rows.last, last.row.sequence != story.rows.last?.row.sequence { return false }
      let behind = story.rows.filter { $0.row.sequence > covered }
      return (story.sequence >= covered || story.rows.isEmpty) && rows == behind
        && isSubsequence(all.map(\.row.sequence), of: story.rows.map(\.row.sequence))
        && sessions == story.keptSessions
    }
  }

  /// Rows before the snapshot may be missing: cut, or lost before the snapshot repaired that.
  private func isSubsequence(_ rows: [UInt64], of all: [UInt64]) -> Bool {
    var rest = all[...]
    for row in rows {
      guard let place = rest.firstIndex(of: row) else { return false }
      rest = rest[(place + 1)...]
    }
    return true
  }

  /// Checks that the journal is writable too.
  private func goOn(_ file: JournalFile, from story: Story, _ comment: String) throws {
    var story = story
    while try file.cut(limit: 100) {}
    try file.append([story.batch(3)])
    try file.keep(story.snapshot(sessions: story.keptSessions))
    try file.append([story.batch(2)])
    #expect(try file.rows() == Array(story.rows.suffix(2)), "\(comment)")
    #expect(try file.sessionsWithOutcomes() == story.keptSessions)
  }
}
