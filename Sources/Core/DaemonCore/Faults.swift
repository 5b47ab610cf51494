/// Deliberate faults, to prove that the tests would detect them. None is ever set outside tests:
/// `Server.plant` is `package`.
package struct Faults: Sendable, Equatable {
  /// Leave the patch of this revision out of every scope.
  package var droppedRevision: UInt64?
  /// Send acknowledgements before the patches.
  package var acknowledgesEarly = false
  /// Announce decided actions after the patches.
  package var announcesLate = false
  /// Reduce resent actions again.
  package var appliesTwice = false
  /// Treat a position of another run as one of this run.
  package var forgetsRun = false
  /// Serve clients in the order of a dictionary.
  package var followsDictionaryOrder = false
  /// Send every shared frame twice: harmless if mirrors check the base of a patch.
  package var repeatsFrames = false
  /// Treat a client that drains as if it had missed nothing.
  package var skipsCatchUp = false
  /// Keep reading from a client that does not read.
  package var neverPauses = false
  /// Never resume reading from a client after a pause.
  package var neverResumes = false
  /// Stop behind a large action and not before it: it is lost.
  package var readsBehindLargeActions = false
  /// Compose for a client that does not read.
  package var ignoresBackPressure = false
  /// Label snapshots with a revision that is one too high.
  package var mislabelsSnapshots = false
  /// Do not acknowledge resent actions.
  package var losesRepeatedAcknowledgements = false
  /// Never release the states that were held for clients that are gone.
  package var leaksHeldStates = false
  /// Do not hold the state of a lagging client: it then needs a snapshot each time, and gets it.
  package var forgetsHeldStates = false

  /// Start effects before the patch of their action is sent.
  package var startsEffectsEarly = false
  /// Do not cancel the effects that a client owns when it is gone.
  package var leaksOwnedEffects = false
  /// Put no limit on the actions of effects that run in a turn.
  package var neverYields = false

  /// Acknowledge actions as durable before they are committed.
  package var acknowledgesUncommitted = false
  /// Start effects before the change that led to them is committed.
  package var startsEffectsUncommitted = false
  /// Do not journal the outcomes of actions that changed nothing.
  package var forgetsAnswers = false
  /// Treat mirrors of any run as mirrors of this one.
  package var trustsFormerRuns = false

  /// Send unfiltered snapshots to clients that may see only a part.
  package var sendsWholeSnapshots = false
  /// Send the unfiltered difference to lagging clients that may see only a part.
  package var sendsWholeDifferences = false

  /// Send what was foreseen of a large patch unfiltered to clients that may see only a part.
  package var sendsWholeForeseen = false

  /// Label checkpoints with a revision that is one too low.
  package var mislabelsCheckpoints = false
  /// Likewise those that are taken up from a former process.
  package var mislabelsFormerCheckpoints = false

  /// Do a jump on the newest state, as if no action had overtaken it.
  package var jumpsFromLate = false
  /// Do actions of clients during a pause.
  package var actsWhilePaused = false
  /// Hear what effects tell during a pause.
  package var hearsWhilePaused = false
  /// Forget what effects tell during a pause.
  package var losesHeldNews = false
  /// Take a revision that undoing has made for a change.
  package var undoesUndoing = false

  package init() {}

  func dropsPatch(of revision: UInt64) -> Bool { droppedRevision == revision }
}
