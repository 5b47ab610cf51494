import Lockstep
import Records
import Values
import Wire

/// A fault in a journal.
public struct JournalFinding: Hashable, Sendable, CustomStringConvertible {
  /// A sentence for people.
  public var description: String
  /// The revision that it concerns, if any.
  public var revision: UInt64?

  public init(_ description: String, revision: UInt64? = nil) {
    self.description = description
    self.revision = revision
  }
}

/// The result of checking a journal.
public struct JournalReport: Equatable, Sendable {
  /// The faults; empty when there are none. At most `findingLimit`, and then "and more".
  public var findings: [JournalFinding] = []
  /// The newest revision up to which everything is sound: the latest that `lockstepd --recover-to`
  /// can reach. Nil when there is none.
  public var soundRevision: UInt64?
  /// The number of rows that were read.
  public var rowCount = 0
  /// What to do, if it is not to go back to `soundRevision`.
  public var advice: String?

  public static let findingLimit = 100

  public init() {}

  /// Add a finding, unless it is there already.
  public mutating func add(_ text: String, revision: UInt64? = nil) {
    let finding = JournalFinding(text, revision: revision)
    // Every read of a damaged page reports the same fault.
    if findings.contains(finding) { return }
    if findings.count < Self.findingLimit {
      findings.append(finding)
    } else if findings.count == Self.findingLimit {
      findings.append(JournalFinding("and more"))
    }
  }

  /// Run `body`, and add its error as a finding. Returns whether there was one.
  @discardableResult
  mutating func attempt(_ body: (inout JournalReport) throws(JournalError) -> Void) -> Bool {
    do throws(JournalError) {
      try body(&self)
      return false
    } catch {
      // The advice is left out: it is to look at this report.
      add(error.problem)
      return true
    }
  }
}

extension JournalReader {
  /// Check a journal, or a copy of one, without changing it: the structure of the file, its
  /// write-ahead log, every seal, and that rows, changes, revisions and runs follow each other. In
  /// its directory, also that it contains everything that was durable there.
  ///
  /// If all of that is sound, `verify` may check further: a caller that knows the feature's types
  /// can replay the state (`contents`, `forEachPart`, `forEachRow`), compare digests, and add
  /// mismatches to the report. It sees the file as it was checked. O(the file); a daemon may go on
  /// writing.
  public static func fsck(
    _ path: String,
    verify: (JournalReader, inout JournalReport) throws(JournalError) -> Void = { _, _ in }
  ) -> JournalReport {
    var report = JournalReport()
    report.attempt { report throws(JournalError) in
      let reader = try JournalReader(reading: path)
      defer { reader.close() }
      // Read before the file: a daemon may make more of it durable meanwhile.
      let mark = reader.markBeside
      report.attempt { report throws(JournalError) in try reader.checkLog(mark, &report) }
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

  /// The first inconsistency in a file; nil when there is none. O(the file).
  static func inconsistency(of path: String) -> String? {
    var report = JournalReport()
    report.attempt { report throws(JournalError) in
      let reader = try JournalReader(reading: path)
      defer { reader.close() }
      try reader.check(&report)
    }
    return report.findings.first?.description
  }

  /// The durable mark beside the file, if the file is the journal of its directory and not a copy.
  var markBeside: DurableMark? {
    let name = "/journal.sqlite"
    return path.hasSuffix(name) ? MarkerFile.durable(in: String(path.dropLast(name.count))) : nil
  }

  /// Check that SQLite, and so a daemon, reads the write-ahead log to its end. A log may lack its head
  /// if the file alone has everything that was durable: a crash of the machine can destroy the head
  /// just as the log is begun anew.
  private func checkLog(
    _ mark: DurableMark?, _ report: inout JournalReport
  ) throws(JournalError) {
    guard let log = try WriteAheadLog(unchanging: path + "-wal") else { return }
    // A commit log that does not fit is found out later.
    if log.lacksHead, let mark, (try? holds(mark)) == true { return }
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
    // Without the runs, the types of the sound rows are unknown.
    if (try? runs(origin, isLenient: true)) == nil { report.soundRevision = nil }
  }

  /// Check the file with SQLite's own `quick_check`.
  private func checkStructure(_ report: inout JournalReport) throws(JournalError) {
    let statement = try connection.prepare("PRAGMA quick_check(\(JournalReport.findingLimit))")
    defer { statement.finish() }
    while try statement.step() {
      // SQLite returns headings and findings, one per line.
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

  /// Read every row, and continue after damaged ones.
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
        if try rows.lacksSession() {
          complaint = "action \(row.sequence) is of a session that is missing"
        } else if !isCovered {
          complaint = chain.add(rows.entry)
        }
      } else {
        complaint = "damaged: \(rows.damagedRow) (the seal does not fit)"
        if !isCovered { chain.skip() }
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

/// Checks that changes follow each other.
private struct ChangeChain {
  private var base: UInt64?
  private var revision: UInt64

  init(_ snapshot: JournalSnapshot?) {
    base = snapshot?.base
    revision = snapshot?.revision ?? 0
  }

  /// After a damaged row, a change of any base may follow.
  mutating func skip() { base = nil }

  /// Returns the fault of a row; nil if it has none.
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
