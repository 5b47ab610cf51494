import ArgumentParser
import DaemonCore
import Documents
import EventLoop
import Journal
import Lockstep
import Records
import Values
import Wire

struct CheckJournal: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fsck",
    abstract: "Check what a daemon has kept, without changing it.",
    discussion: """
      The structure of the file and of its write-ahead log, the seal of every part and row, that they \
      follow each other, and that all is there which a daemon has noted as durable. \
      Of a document also the state: it is made anew, and compared with the digests that were \
      kept; of other features their daemon does that when it starts. Status 11 if something is \
      wrong: then all is right up to 'soundRevision', and 'lockstepd --recover-to' goes on from \
      there. The daemon may run.

      EXAMPLES:
        lockstep fsck /var/lib/lockstep
      """)

  @Argument(
    help: "A journal, or the directory that it is in.", completion: .file(),
    transform: ArgumentOrder.unmarked)
  var path: String

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() throws {
    var file = path
    do {
      let reader = try JournalReader(reading: path)
      file = reader.path
      reader.close()
    } catch  where error.kind != .corrupt {
      throw Failure(error)
    } catch {
      // Damage to the file is reported as a finding.
    }
    var state: CheckedState?
    let report = JournalReader.fsck(path) { reader, report throws(JournalError) in
      state = try CheckedState(reader, &report)
    }
    try show(report, of: file, report.findings.isEmpty ? state : nil)
    guard report.findings.isEmpty else {
      throw Failure(.damaged, "what is kept in \(path) is damaged.")
    }
  }

  private func show(
    _ report: JournalReport, of file: String, _ state: CheckedState?
  ) throws(Failure) {
    let output = Output(options)
    let sound = report.soundRevision
    guard output.isPretty else {
      return try output.line([
        "actions": .integer(Int64(report.rowCount)),
        "advice": report.advice.map { .text($0) } ?? .null,
        "digest": state?.digest.map { .text($0.description) } ?? .null,
        "findings": .array(
          TreeArray(
            report.findings.map { finding in
              [
                "revision": finding.revision.map { Value($0) } ?? .null,
                "text": .text(finding.description),
              ]
            })),
        "revision": state.map { Value($0.revision) } ?? .null,
        "soundRevision": sound.map { Value($0) } ?? .null,
      ])
    }
    if let state {
      let digest = state.digest.map { ", digest \($0)" } ?? "; the digest is not known here"
      return try output.lines(
        "all is right: revision \(state.revision)\(digest)  "
          + output.faint("\(report.rowCount) actions since the snapshot"))
    }
    for finding in report.findings { try output.lines(finding.description.escapingControls) }
    if let advice = report.advice { return try output.lines(advice) }
    try output.lines(
      sound.map {
        "All is right up to revision \($0): '\(JournalError.recovery(of: file, to: $0))'."
      }
        ?? "Nothing of it can be used: restore the file from a backup.")
  }
}

/// The state that a journal replays to.
struct CheckedState {
  let revision: UInt64
  /// Nil if the types of the state are not known here.
  let digest: Digest?

  /// Replay the state, if it is a document, and report where it differs from what was stored.
  init(_ reader: JournalReader, _ report: inout JournalReport) throws(JournalError) {
    let contents = try reader.contents()
    let schema = contents.runs.last.flatMap { Schema(kept: $0.schema) }
    if contents.snapshot == nil, contents.head.sequence > 0 {
      report.add("\(reader.path): the snapshot is missing that the changes go on from")
    }
    guard let schema, schema.state == .value, let snapshot = contents.snapshot else {
      (revision, digest) = (contents.head.revision, nil)
      return
    }
    let seed = contents.identity.seed
    let bytes = try reader.snapshotBytes()
    var recovery: JournalReplay<Document>?
    var failure: JournalReplayError?
    func attempt(_ body: () throws(JournalReplayError) -> Void) {
      if failure != nil { return }
      do throws(JournalReplayError) { try body() } catch { failure = error }
    }
    attempt { () throws(JournalReplayError) in
      recovery = try JournalReplay<Document>(
        from: snapshot, bytes, schema: schema, seed: seed)
    }
    try reader.forEachRow(after: snapshot.sequence) { entry in
      attempt { () throws(JournalReplayError) in try recovery?.apply(entry) }
    }
    if let failure {
      // After the last digest that matched, anything may be wrong.
      report.add(failure.description, revision: failure.lastGood + 1)
      report.soundRevision = recovery == nil ? nil : failure.lastGood
    }
    revision = max(recovery?.revision ?? 0, contents.head.revision)
    digest = recovery.map { Digest($0.state.digest(seed: seed)) }
  }
}
