import Records
import Wire

/// Decides which positions belong to the history of this server: the epoch, its runs, and the
/// revision at which each began.
///
/// A run resumes from the durable revision of the runs before it, so a mirror of a former run has
/// the state that this history had only if it is not ahead of that. Invariant: a position holds if
/// no later run began before the position's revision.
struct Timeline: Sendable {
  let epoch: UInt64
  /// The number of this run.
  let run: UInt64
  /// The runs of the epoch, this one included, ascending.
  let runs: [JournalRun]

  init(epoch: UInt64, run: UInt64, runs: [JournalRun]) {
    self.epoch = epoch
    self.run = run
    self.runs = runs
  }

  /// Whether other runs of the epoch came before this one.
  var hasFormerRuns: Bool { runs.count > 1 }

  func position(at revision: UInt64) -> Position {
    Position(epoch: epoch, run: run, revision: revision)
  }

  /// Whether a position's run is this one, or came before it. The epoch is not checked.
  func knows(_ position: Position) -> Bool {
    position.run == run
      || position.run < run && runs.contains { $0.run == position.run }
  }

  /// Whether a mirror at a position of this epoch has the state that the history had there: for a
  /// former run, if every later run began at or after it. O(the runs).
  func holds(_ position: Position) -> Bool {
    if position.run == run { return true }
    guard knows(position) else { return false }
    return runs.allSatisfy { $0.run <= position.run || position.revision <= $0.base }
  }
}
