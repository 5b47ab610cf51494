import DaemonCore
import Journal
import Lockstep
import Logging
import Records
import Schemas
import Values
import Wire

/// Makes a state of a journal: its snapshot, and the changes behind it.
struct Replay {
  let reader: JournalReader
  let snapshot: JournalSnapshot
  let bytes: [UInt8]
  let seed: HashSeed
  let schema: Schema
  let limits: Limits
  /// How well what is acknowledged was kept.
  let mark: Mark

  /// Returns what the journal leads to, and how many rows did. `progress` is called now and then.
  ///
  /// A change that this version of the feature cannot say need not be the last: the changes are
  /// then replayed without their types, and only the state at the end has to be known here.
  func run<State: Synchronizable>(
    _ type: State.Type, _ logger: Logger, _ progress: () -> Void
  ) throws -> (JournalReplay<State>, rows: Int) {
    do {
      return try read(State.self, progress)
    } catch let error as JournalReplayError where error.kind == .otherVersion {
      let (former, rows) = try read(UntypedState.self, progress)
      do throws(JournalReplayError) {
        let recovery = try JournalReplay<State>(translating: former, to: schema)
        logger.notice(
          "what another version kept on the way is not known here, and is gone by the end",
          metadata: ["first": "\(error)"])
        return (recovery, rows)
      } catch let last {
        // The first revision that is not known tells to which one can go back.
        throw JournalReplayError(lastGood: error.lastGood, kind: last.kind, last.description)
      }
    }
  }

  private func read<State: Synchronizable>(
    _ type: State.Type, _ progress: () -> Void
  ) throws -> (JournalReplay<State>, rows: Int) {
    // What became of their actions follows from the rows once more.
    let known = try reader.sessions(window: limits.window, mark: mark)
      .map { JournalSession(token: $0.token, uid: $0.uid, number: $0.number) }
    progress()
    var recovery = try JournalReplay<State>(
      from: snapshot, bytes, schema: schema, seed: seed, sessions: known, limits: limits)
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
