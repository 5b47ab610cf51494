import Access
import DaemonCore
import Documents
import Lockstep
import Records
import Values
import Wire

extension Bench {
  /// The server of the next run, restored from a snapshot and the rows of a server.
  func restarted(
    from snapshot: PendingSnapshot<Document>, _ batches: [JournalBatch], limits: Limits = Limits(),
    policy: Policy? = nil, poisoned: Set<SessionAction> = []
  ) throws -> Bench {
    var kept = try restored(from: snapshot, batches, limits: limits)
    kept.poisoned = poisoned
    var next = self
    next.server = Server(
      restoring: kept, reducer: DocumentFeature(), limits: limits, durability: .sync,
      policy: policy, at: now)
    return next
  }

  /// What is restored from them.
  func restored(
    from snapshot: PendingSnapshot<Document>, _ batches: [JournalBatch], limits: Limits
  ) throws -> RestoredState<Document> {
    let (head, bytes) = snapshot.encode()
    let forgotten = Set(batches.flatMap(\.forgotten))
    let sessions = (head.sessions + batches.flatMap(\.sessions)).filter {
      !forgotten.contains($0.token)
    }
    var recovery = try JournalReplay<Document>(
      from: head, bytes, schema: DocumentFeature.schema, seed: server.seed,
      sessions: sessions, limits: limits)
    for batch in batches {
      for row in batch.rows where row.sequence > head.sequence {
        try batch.bytes.withUnsafeBytes { bytes in
          try recovery.apply(
            row, patch: row.change.map { UnsafeRawBufferPointer(rebasing: bytes[$0.patch]) },
            action: row.action.map { batch.bytes[$0] })
        }
      }
      if let digest = batch.digest { try recovery.check(digest, at: batch.revision) }
    }
    let position = server.position
    return recovery.restoredState(
      epoch: position.epoch, runs: [JournalRun(run: position.run, base: 0)], revision: nil)
  }
}
