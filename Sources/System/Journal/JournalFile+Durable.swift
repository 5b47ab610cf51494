import Lockstep
import Records
import Values

// Everything that was durable is present when the journal is opened again, or opening it fails.
extension JournalFile {
  /// Record that everything stored is durable. Does nothing with `.async`, where it may not be.
  func noteDurable() {
    guard mode == .sync, let identity = state.identity, let run = state.run else { return }
    marker?.noteDurable(
      DurableMark(
        epoch: identity.epoch, run: run.run.run, sequence: state.sequence,
        revision: state.revision))
  }

  /// Throw if the journal lacks anything that was durable, and say what to do.
  func checkDurable(_ marker: MarkerFile) throws(JournalError) {
    if let loss = try loss(of: marker.durable) { throw loss }
  }

  /// Repair a write-ahead log whose head is lost, if that makes the journal whole. Returns a
  /// description of the repair for people; nil if none was made. O(the log), or O(the file) if
  /// there is something to repair.
  static func restoreLog(
    of path: String, in directory: borrowing JournalDirectory
  ) throws(JournalError) -> String? {
    let log = path + "-wal"
    guard let outcome = try LogRepair.repair(log, in: directory) else { return nil }
    if let finding = inconsistency(of: path) {
      try LogRepair.undo(outcome, log, in: directory)
      let revision = try? JournalReader(reading: path).ownRevision
      throw JournalError(
        .corrupt,
        "\(log): damaged: the head of the log is lost, and its \(outcome.frameCount) frames do not "
          + "make the journal whole (\(finding)).",
        advice: "Restore both files from a backup, or "
          + (revision.map { "give up the log with `\(JournalError.recovery(of: path, to: $0))`." }
            ?? "move them away to begin anew."))
    }
    return "the head of the write-ahead log was lost, and its \(outcome.frameCount) frames were "
      + "brought back; the damaged log is kept as \(outcome.backup)"
  }
}

extension JournalReader {
  /// Throw if the journal, in its directory, lacks anything that was durable, and say what to do.
  public func checkDurable() throws(JournalError) {
    if let loss = try loss(of: markBeside) { throw loss }
  }

  /// Whether the mark is of this journal, and the journal has everything up to it.
  func holds(_ mark: DurableMark) throws(JournalError) -> Bool {
    guard let identity = try identity(), identity.epoch == mark.epoch else { return false }
    let head = try contents().head
    return head.sequence >= mark.sequence && head.run >= mark.run
  }

  /// The error for durable actions that the journal lacks; nil when it lacks none, or when the mark
  /// is of another journal.
  func loss(of mark: DurableMark?) throws(JournalError) -> JournalError? {
    guard let mark, mark.sequence > 0 else { return nil }
    guard let identity = try identity() else {
      return JournalError(
        .corrupt,
        "\(path): nothing is left of the journal, and revision \(mark.revision) was durable: its "
          + "write-ahead log (\(path)-wal) is missing or damaged.",
        advice: "Restore both files from a backup, or move them away to begin anew.")
    }
    let contents = try contents()
    // A later run than the mark's is of a program that does not record what is durable.
    guard identity.epoch == mark.epoch, contents.head.sequence < mark.sequence,
      contents.head.run <= mark.run
    else { return nil }
    return JournalError(
      .corrupt,
      "\(path): ends with revision \(contents.head.revision), and revision \(mark.revision) was "
        + "durable: its write-ahead log (\(path)-wal) is missing or damaged, or both are an older copy.",
      advice: "Restore the newest of both files (`lockstep fsck` checks them); or give up what is "
        + "missing with `\(JournalError.recovery(of: path, to: contents.head.revision))`.")
  }
}
