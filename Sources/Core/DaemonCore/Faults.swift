/// Deliberate faults, so that the tests can show that they would notice. None is ever set outside
/// tests: `Server.plant` is `package`.
package struct Faults: Sendable, Equatable {
  /// Leave the patch of this revision out of every scope.
  package var droppedRevision: UInt64?
  /// Acknowledge before the patches.
  package var acknowledgesEarly = false
  /// Do again what was sent again.
  package var appliesTwice = false
  /// Take a position of another run for one of this.
  package var forgetsRun = false
  /// Serve clients in the order of a dictionary.
  package var followsDictionaryOrder = false
  /// Send every shared frame twice: harmless as long as mirrors check the base of a patch.
  package var repeatsFrames = false
  /// Take a client that drains for one that missed nothing.
  package var skipsCatchUp = false
  /// Read on from a client that does not read.
  package var neverPauses = false
  /// Never read again from a client that did not.
  package var neverResumes = false
  /// Compose for a client that does not read.
  package var ignoresBackPressure = false
  /// Say that snapshots are one revision newer than they are.
  package var mislabelsSnapshots = false
  /// Do not acknowledge actions that were sent again.
  package var losesRepeatedAcknowledgements = false
  /// Keep the states that were held for clients that are gone.
  package var leaksHeldStates = false
  /// Do not hold what a client that lags has: it needs a snapshot each time, and gets it.
  package var forgetsHeldStates = false

  /// Start effects before the patch of their action is on its way.
  package var startsEffectsEarly = false
  /// Let effects run on that should end with their client.
  package var leaksOwnedEffects = false
  /// Run what effects send as often as they like.
  package var neverYields = false

  /// Acknowledge as durable what is not committed.
  package var acknowledgesUncommitted = false
  /// Let effects begin before what led to them is committed.
  package var startsEffectsUncommitted = false
  /// Record nothing of actions that changed nothing.
  package var forgetsAnswers = false
  /// Take mirrors of any run for those of this one.
  package var trustsFormerRuns = false

  /// Send snapshots as they are to those who may see a part.
  package var sendsWholeSnapshots = false
  /// Send the difference as it is to those who lagged and may see a part.
  package var sendsWholeDifferences = false

  package init() {}

  func dropsPatch(of revision: UInt64) -> Bool { droppedRevision == revision }
}
