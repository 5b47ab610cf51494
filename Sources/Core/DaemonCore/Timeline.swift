import Records
import Wire

/// Which positions belong to the history of this server: the epoch, its runs, and where each began.
///
/// A run goes on from what was durable of the runs before it, so a mirror of a former run has what
/// this history had only if it is not ahead of that. Invariant: a position holds if no run behind its
/// own began before its revision.
struct Timeline: Sendable {
  let epoch: UInt64
  /// The number of this run.
  let run: UInt64
  /// The runs of the epoch, this one included, rising.
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

  /// Whether a position's run is this one, or came before it. The epoch is not looked at.
  func knows(_ position: Position) -> Bool {
    position.run == run
      || position.run < run && runs.contains { $0.run == position.run }
  }

  /// Whether a mirror at a position of this epoch has what the history had there: one of a former
  /// run, if all that follows goes on from what it has. O(the runs).
  func holds(_ position: Position) -> Bool {
    if position.run == run { return true }
    guard knows(position) else { return false }
    return runs.allSatisfy { $0.run <= position.run || position.revision <= $0.base }
  }
}
