import CBOR
public import Lockstep
import Values

extension Server {
  /// Have a checkpoint of the state made, if one is due.
  mutating func keepPast(_ commands: inout [Command]) {
    let isDue = past.begin(
      publication.history, changedBytes: counters.changedBytes,
      stateBytes: memory.size.measured?.encoded, limit: limits.historyBytes)
    if isDue {
      commands.append(.makeCheckpoint)
    }
  }

  /// Whether a state of the present size can have a past; true as long as it was not measured.
  public var mayHavePast: Bool {
    memory.size.measured.map { $0.encoded <= limits.historyBytes / 2 } ?? true
  }

  /// Whether the state may be held for a while at the start: what changes in it meanwhile is copied once.
  /// O(the state, up to 64 KiB).
  public var isSmall: Bool {
    var encoder = CBOREncoder(upTo: 64 << 10)
    core.state.encode(into: &encoder)
    return !encoder.isOver
  }

  /// Note a checkpoint that the shell has made.
  mutating func checkpointMade(_ bytes: [UInt8], at revision: UInt64) {
    let isMislabelled = publication.faults.mislabelsCheckpoints && revision > 0
    past.note(
      bytes, at: isMislabelled ? revision - 1 : revision, publication.history,
      limit: limits.historyBytes)
  }

  /// The oldest revision whose state can be made again; nil if there is none.
  public var oldestRevision: UInt64? { past.oldest(in: publication.history)?.revision }

  /// The state at a revision; nil if that is too long ago, or not yet. O(the state, and the bytes of
  /// the patches since a checkpoint).
  public func state(at revision: UInt64) -> R.State? {
    guard revision <= core.revision,
      let checkpoint = past.checkpoint(for: revision, in: publication.history)
    else {
      return nil
    }
    let job = PastJob(
      checkpoint: checkpoint, past: past, history: publication.history, schema: schema,
      seed: core.seed, place: .init(path: .root, pointer: "", filter: nil),
      subject: .value(at: revision), revision: core.revision, newest: core.state, mostBytes: 0,
      ephemeral: journaling.ephemeral, scopes: publication.views)
    return (try? job.replay(through: revision)) as? R.State
  }
}
