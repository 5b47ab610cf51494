import Lockstep
import Records
import Values
import Wire

/// Something that is wrong with a journal.
public struct JournalFinding: Hashable, Sendable, CustomStringConvertible {
  /// A sentence for people.
  public var description: String
  /// The revision that it is about, if it is about one.
  public var revision: UInt64?

  public init(_ description: String, revision: UInt64? = nil) {
    self.description = description
    self.revision = revision
  }
}

/// What a check of a journal says.
public struct JournalReport: Equatable, Sendable {
  /// What is wrong; empty when nothing is. At most `findingLimit`, and then one that says so.
  public var findings: [JournalFinding] = []
  /// The newest revision up to which all is sound: where `lockstepd --recover-to` can go at most.
  /// Nil when there is none.
  public var soundRevision: UInt64?
  /// The rows that were read.
  public var rowCount = 0
  /// What to do, where that is something else than to go back to `soundRevision`.
  public var advice: String?

  public static let findingLimit = 100

  public init() {}

  /// Add what is wrong.
  public mutating func add(_ text: String, revision: UInt64? = nil) {
    let finding = JournalFinding(text, revision: revision)
    // One page that is damaged is met by everything that reads it.
    if findings.contains(finding) { return }
    if findings.count < Self.findingLimit {
      findings.append(finding)
    } else if findings.count == Self.findingLimit {
      findings.append(JournalFinding("and more"))
    }
  }

  /// Note an error as a finding. Returns whether there was one.
  @discardableResult
  mutating func attempt(_ body: (inout JournalReport) throws(JournalError) -> Void) -> Bool {
    do throws(JournalError) {
      try body(&self)
      return false
    } catch {
      // Not the advice: it is to look at this report.
      add(error.problem)
      return true
    }
  }
}

extension JournalReader {
  /// Check a journal, or a copy of one, without changing it: the structure of the file, its
  /// write-ahead log, every seal, and that rows, changes, revisions and runs follow each other. In
  /// its directory, also that it has what was durable there.
  ///
  /// If all of that is sound, `verify` may look further: whoever knows the feature's types can add
  /// up the state (`contents`, `forEachPart`, `forEachRow`), compare digests, and add to the report
  /// what does not fit. It sees the file as it was checked. O(the file); a daemon may go on
  /// writing.
  public static func fsck(
    _ path: String,
    verify: (JournalReader, inout JournalReport) throws(JournalError) -> Void = { _, _ in }
  ) -> JournalReport {
    var report = JournalReport()
    report.attempt { report throws(JournalError) in
      let reader = try JournalReader(reading: path)
      defer { reader.close() }
      // Before the file is looked at: a daemon may make more of it durable meanwhile.
      let mark = reader.markBeside
      report.attempt { report throws(JournalError) in try reader.checkLog(&report) }
      let (found, advice) = (report.findings, report.advice)
      let result = try reader.reading { () throws(JournalError) in
        var report = JournalReport()
        (report.findings, report.advice) = (found, advice)
        report.attempt { report throws(JournalError) in try reader.check(&report) }
        report.attempt { report throws(JournalError) in
          if let loss = try reader.loss(of: mark) { throw loss }
        }
        if report.findings.isEmpty {
          report.attempt { report throws(JournalError) in try verify(reader, &report) }
        }
        return report
      }
      report = result
    }
    return report
  }

  /// What of a file contradicts itself; nil when nothing does. O(the file).
  static func inconsistency(of path: String) -> String? {
    var report = JournalReport()
    report.attempt { report throws(JournalError) in
      let reader = try JournalReader(reading: path)
      defer { reader.close() }
      try reader.check(&report)
    }
    return report.findings.first?.description
  }

  /// What was durable in the directory of the file, if it is the journal there and no copy.
  var markBeside: DurableMark? {
    let name = "/journal.sqlite"
    return path.hasSuffix(name) ? MarkerFile.durable(in: String(path.dropLast(name.count))) : nil
  }

  /// Whether SQLite, and so a daemon, reads the write-ahead log to its end.
  private func checkLog(_ report: inout JournalReport) throws(JournalError) {
    guard let log = try WriteAheadLog(unchanging: path + "-wal") else { return }
    if log.lacksHead, let count = try LogRepair.salvageableFrames(path + "-wal") {
      report.add(
        "\(path)-wal: damaged: the head of the log is lost, and so nothing is read of its \(count) "
          + "frames, which agree")
      report.advice = "Start the daemon: it brings the frames of the log back."
    } else if let damage = log.damage(path + "-wal", isSure: true) {
      report.add(damage)
    }
  }

  private func check(_ report: inout JournalReport) throws(JournalError) {
    report.attempt { report throws(JournalError) in try checkStructure(&report) }
    guard let origin = try origin() else { throw noIdentity }
    report.attempt { report throws(JournalError) in try checkRuns(origin, &report) }
    report.attempt { report throws(JournalError) in try checkSessions(origin, &report) }
    var kept: PendingSnapshot?
    let isLost = report.attempt { report throws(JournalError) in
      kept = try snapshot(origin)
      try forEachPart { _ in }
    }
    report.attempt { report throws(JournalError) in
      try checkRows(origin, kept?.head, isLost: isLost, &report)
    }
    // Without the runs nobody knows the types of what is sound.
    if (try? runs(origin, isLenient: true)) == nil { report.soundRevision = nil }
  }

  /// SQLite's own view of the file.
  private func checkStructure(_ report: inout JournalReport) throws(JournalError) {
    let statement = try connection.prepare("PRAGMA quick_check(\(JournalReport.findingLimit))")
    defer { statement.finish() }
    while try statement.step() {
      // Headings and findings of SQLite's, a line each.
      for line in statement.text(0).split(separator: "\n")
      where line != "ok" && !line.hasPrefix("***") {
        report.add("\(path): the file is damaged: \(line)")
      }
    }
  }

  private func checkRuns(
    _ origin: Origin, _ report: inout JournalReport
  ) throws(JournalError) {
    for run in try runs(origin) {
      if let ended = run.ended, ended < run.began {
        report.add(
          "\(path): run \(run.run.run) began with revision \(run.began) and ended with \(ended)",
          revision: ended)
      }
    }
  }

  private func checkSessions(
    _ origin: Origin, _ report: inout JournalReport
  ) throws(JournalError) {
    var tokens: Set<SessionToken> = []
    for (session, _) in try liveSessions(origin) where !tokens.insert(session.token).inserted {
      report.add("\(path): session \(session.number) has the token of another")
    }
    _ = try suspects()
  }

  /// Read every row, and go on behind damaged ones.
  private func checkRows(
    _ origin: Origin, _ snapshot: JournalSnapshot?, isLost: Bool, _ report: inout JournalReport
  ) throws(JournalError) {
    var rows = try RowReader(self, origin, after: 0, isLenient: true)
    defer { rows.finish() }
    var chain = ChangeChain(snapshot)
    if !isLost { report.soundRevision = snapshot?.revision ?? 0 }
    var isSound = !isLost && (snapshot != nil || origin.cutSequence == 0)
    if !isSound { report.soundRevision = nil }
    while try rows.step() {
      report.rowCount += 1
      let row = rows.position
      let isCovered = row.sequence <= snapshot?.sequence ?? 0
      var complaint: String?
      if rows.isIntact {
        try rows.read()
        if rows.lacksSession {
          complaint = "action \(row.sequence) is of a session that is missing"
        } else if !isCovered {
          complaint = chain.add(rows.entry)
        }
      } else {
        complaint = "damaged: \(rows.damagedRow) (the seal does not fit)"
        chain.skip()
      }
      if let complaint {
        report.add("\(path): \(complaint)", revision: row.revision)
        if !isCovered { isSound = false }
      } else if isSound, !isCovered {
        report.soundRevision = max(report.soundRevision ?? 0, row.revision)
      }
    }
  }
}

/// Whether changes follow each other.
private struct ChangeChain {
  private var base: UInt64?
  private var revision: UInt64

  init(_ snapshot: JournalSnapshot?) {
    base = snapshot?.base
    revision = snapshot?.revision ?? 0
  }

  /// Behind a damaged row anything may follow.
  mutating func skip() { base = nil }

  /// Returns what is wrong with a row.
  mutating func add(_ entry: JournalEntry) -> String? {
    let row = entry.row
    defer { revision = max(revision, entry.turn ?? row.revision) }
    guard row.revision >= revision else {
      return
        "action \(row.sequence) is of revision \(row.revision), and one before it of \(revision)"
    }
    if let turn = entry.turn, turn < row.revision {
      return
        "action \(row.sequence) of revision \(row.revision) is of a turn that ended with \(turn)"
    }
    if entry.digest != nil, entry.turn == nil {
      return "action \(row.sequence) has a digest, and does not end a turn"
    }
    guard let change = row.change else { return nil }
    defer { base = row.revision }
    if let base, change.base != base {
      return "the change of revision \(row.revision) is based on revision \(change.base), and the "
        + "one before it is of revision \(base)"
    }
    if change.base >= row.revision {
      return "the change of revision \(row.revision) is based on revision \(change.base)"
    }
    return nil
  }
}
