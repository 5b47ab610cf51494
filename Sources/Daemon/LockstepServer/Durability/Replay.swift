import DaemonCore
import Journal
import Lockstep
import Logging
import Records
import Schemas
import Values

/// Replays a journal into a state: its snapshot, then the changes after it.
struct Replay {
  let reader: JournalReader
  let snapshot: JournalSnapshot
  let bytes: [UInt8]
  let seed: HashSeed
  let schema: Schema
  let limits: Limits
  /// The number of the last action.
  let last: UInt64
  /// The runs before, by which the actions before the snapshot are read.
  let runs: [JournalContents.Run]

  /// Returns the replayed state, and the number of rows. `progress` is called now and then.
  ///
  /// A change that this version of the feature does not know may be superseded by later ones: the
  /// changes are then replayed without their types, and only the final state has to be known here.
  /// So they are where this version does not know all fields, which wait for one that does.
  func run<State: Synchronizable>(
    _ type: State.Type, _ logger: Logger, _ progress: () -> Void
  ) throws -> (JournalReplay<State>, rows: Int) {
    do {
      let (recovery, rows) = try read(State.self, progress)
      if !recovery.needsUntyped { return (recovery, rows) }
      let (former, _) = try read(UntypedState.self, progress)
      return (try JournalReplay(translating: former, to: schema), rows)
    } catch let error as JournalReplayError where error.kind == .otherVersion {
      let (former, rows) = try read(UntypedState.self, progress)
      do throws(JournalReplayError) {
        let recovery = try JournalReplay<State>(translating: former, to: schema)
        logger.notice(
          "what another version kept on the way is not known here, and is gone by the end",
          metadata: ["first": "\(error)"])
        return (recovery, rows)
      } catch let last {
        // The first unknown revision decides to which revision one can go back.
        throw JournalReplayError(lastGood: error.lastGood, kind: last.kind, last.description)
      }
    }
  }

  /// The revision up to which runs may have had another schema, by which their actions would be read
  /// wrong.
  private var lastOfOthers: UInt64 {
    let schema = JournalStart<UntypedState>.encoded(schema)
    guard let other = runs.lastIndex(where: { $0.schema != schema }) else { return 0 }
    return other + 1 < runs.count ? runs[other + 1].began : .max
  }

  private func read<State: Synchronizable>(
    _ type: State.Type, _ progress: () -> Void
  ) throws -> (JournalReplay<State>, rows: Int) {
    let live = try reader.sessions(from: snapshot)
    progress()
    let sameSchema = lastOfOthers
    var recovery = try JournalReplay<State>(
      from: snapshot, bytes, schema: schema, seed: seed, sessions: live, through: last,
      limits: limits)
    try reader.forEachLoggedRow(
      after: last - min(last, UInt64(clamping: limits.logEntries)), through: snapshot.sequence
    ) { recovery.note($0, isOfSameSchema: $0.row.revision > sameSchema) }
    var rows = 0
    var failure: JournalReplayError?
    try reader.forEachRow(after: snapshot.sequence) { entry in
      guard failure == nil else { return }
      do throws(JournalReplayError) {
        try recovery.apply(entry)
      } catch {
        failure = error
      }
      rows += 1
      if rows % 10_000 == 0 { progress() }
    }
    if let failure { throw failure }
    return (recovery, rows)
  }
}
