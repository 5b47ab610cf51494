import DaemonCore
import Lockstep
import Records
import Values
import Wire

/// The daemon's simulated journal, and a start from it.
extension Simulation {
  /// Start the daemon's process from what the disk has.
  mutating func restart() throws(SimulationFailure) {
    guard let contents = disk.contents else { throw failure("nothing was ever kept") }
    count("restarts from the disk")
    let kept: RestoredState<R.State>
    do throws(JournalReplayError) {
      kept = try recover(contents)
    } catch {
      throw failure("what was kept is no state: \(error)")
    }
    ledger.lose(after: contents.order)
    let former = ledger.newest
    guard let before = former.state(at: kept.revision), before.isSame(as: kept.state) else {
      throw failure("the state of revision \(kept.revision) that was kept is not what it was")
    }
    durable = kept.revision
    disk.begin(JournalRun(run: kept.run, base: kept.revision))
    begin(kept)
    guard let server = daemon?.server else { return }
    ledger.begin(
      .init(epoch: kept.epoch, run: kept.run), server.state, seed: kept.seed,
      at: server.revision, goesOn: true)
    try tell(.started(hasCrashed ? .crashed : .restarted))
  }

  private func recover(
    _ contents: SimulatedDisk.Contents
  ) throws(JournalReplayError) -> RestoredState<R.State> {
    let schema = Witness<R>.schema
    var recovery = try JournalReplay<R.State>(
      from: contents.snapshot, contents.bytes, schema: schema, seed: contents.seed,
      sessions: Array(contents.sessions.values), limits: plan.limits)
    for batch in contents.batches {
      for row in batch.rows where row.sequence > contents.snapshot.sequence {
        let action = row.action.map { batch.bytes[$0] }
        if let range = row.change?.patch {
          let bytes = Array(batch.bytes[range])
          try bytes.withSpanOfBytes { (patch) throws(JournalReplayError) in
            try recovery.apply(row, patch: patch, action: action)
          }
        } else {
          try recovery.apply(row, patch: nil, action: action)
        }
      }
      if let digest = batch.digest { try recovery.check(digest, at: batch.revision) }
    }
    return recovery.restoredState(
      epoch: contents.epoch, runs: contents.runs, revision: contents.ended)
  }

  /// The disk completes or fails some of its work, and the daemon gets some of the events.
  mutating func deliverNews() throws(SimulationFailure) {
    guard plan.durability != .none, daemon != nil else { return }
    let isLucky = isKind || Int.random(in: 0..<1000, using: &diskRandom) >= plan.diskFaults
    if disk.isBroken, !isLucky {
      disk.refuse()
    } else if !isLucky {
      count("disk failures")
      disk.fail(after: Int.random(in: 0...disk.queue.count, using: &diskRandom))
    } else if isKind || Int.random(in: 0..<1000, using: &diskRandom) >= plan.diskDelay {
      disk.work(
        isKind ? disk.queue.count : Int.random(in: 0...disk.queue.count, using: &diskRandom))
    }
    while !disk.news.isEmpty, isKind || Int.random(in: 0..<4, using: &diskRandom) > 0 {
      served = nil
      try deliver(.journal(disk.news.removeFirst()))
    }
  }

  /// Check that an effect starts only after the change that led to it is durable.
  func checkKept(_ effect: RunningEffect) throws(SimulationFailure) {
    guard plan.durability == .sync, !disk.isBroken else { return }
    for case .batch(let batch, _) in disk.queue
    where batch.rows.contains(where: { $0.sequence == effect.sequence }) {
      throw failure("the effect \"\(effect.name)\" began before its action was kept")
    }
  }
}

extension [UInt8] {
  /// As `withUnsafeBytes`, with a typed error.
  func withSpanOfBytes<E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    let result: Result<Void, E> = withUnsafeBytes { bytes in
      do throws(E) {
        return .success(try body(bytes))
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}
