import CBOR
import DaemonCore
import EventLoop
import Glibc
import Lockstep
import Records
import Values
import Wire

// Work off the loop, on the global pool: encoding, measuring, effects. It computes or waits, and
// must not block the loop. Its results come back as events.
extension Daemon {
  // MARK: Snapshots

  func keepSnapshot(heals: Bool) {
    guard let journal else { return }
    let bytes = server.snapshotMemory
    memoryDesk.request(bytes) { [unowned self] in
      var number: UInt64?
      if heals {
        healings += 1
        number = healings
        journal.add(.holdForSnapshot(healings))
      }
      let snapshot = server.pendingSnapshot
      besideLoop(bytes) { [number] in
        let (head, bytes) = snapshot.encode()
        journal.add(.snapshot(head, bytes: bytes, heals: number))
      }
    } orElse: { [unowned self] in
      let reason =
        "no memory for a snapshot, which takes about \(bytes) bytes: let the process have more "
        + "(MemoryMax=, LimitAS=, LimitDATA=, ulimit)"
      tell(.journal(.snapshotImpossible(reason)))
    }
  }

  func encode(_ id: SnapshotJobID) {
    let bytes = server.memory(for: id)
    memoryDesk.request(bytes) { [unowned self] in
      guard let job = server.snapshot(for: id) else { return memoryDesk.finished(bytes) }
      let (loop, daemon) = (loop, Unchecked(self))
      besideLoop(bytes) {
        let (frames, wholeBytes) = job.measured()
        loop.execute { daemon.value?.tell(.snapshotEncoded(id, frames, wholeBytes: wholeBytes)) }
      }
    } orElse: { [unowned self] in
      tell(.snapshotImpossible(id))
    }
  }

  func measureState() {
    // Measuring a state that must be encoded needs as much memory as its estimate says, which may
    // not be available: then the estimate stays.
    let bytes = server.state is any Measurable ? 0 : server.snapshotMemory
    memoryDesk.request(bytes) { [unowned self] in
      let (state, loop, daemon) = (server.state, loop, Unchecked(self))
      besideLoop(bytes) {
        let measure = StateMeasure(of: state)
        loop.execute { daemon.value?.hear(measure) }
      }
    } orElse: { [unowned self] in
      // The known upper bound is good enough.
      hear(server.knownSize)
    }
  }

  private func hear(_ measure: StateMeasure) {
    tell(.stateMeasured(measure))
    if !server.mayHavePast { firstState = nil }
  }

  /// Do work that was granted memory on the global pool, because it computes and must not block the
  /// loop.
  private func besideLoop(_ bytes: Int, _ work: @escaping @Sendable () -> Void) {
    let (loop, daemon) = (loop, Unchecked(self))
    Scheduling.besideLoop {
      work()
      loop.execute {
        guard let daemon = daemon.value else { return }
        // The work that waited for the memory may be a snapshot: all rows of a turn must be before
        // it, or all after it.
        daemon.endTurn()
        daemon.memoryDesk.finished(bytes)
      }
    }
  }

  /// Measure memory off the loop, because it takes some system calls, and sometimes the allocator's
  /// time.
  func measureMemory() {
    let mayTrim = Self.now() > lastTrim + .seconds(2)
    let (loop, daemon) = (loop, Unchecked(self))
    Scheduling.besideLoop {
      let isTrimmed = mayTrim && Memory.mustTrim
      // Freed memory counts as taken until it is trimmed, in a control group all of it.
      if isTrimmed { Memory.trim() }
      let reading = Memory.reading
      loop.execute {
        guard let daemon = daemon.value else { return }
        if isTrimmed { daemon.lastTrim = Daemon.now() }
        daemon.tell(.memoryMeasured(reading))
      }
    }
  }

  /// Encode the state for its past, for the first time the one with which the process began. Without
  /// memory for it, there is less of the past.
  func makeCheckpoint() {
    let bytes = server.snapshotMemory
    memoryDesk.request(bytes) { [unowned self] in
      let (state, revision) = firstState ?? (server.state, server.revision)
      firstState = nil
      let (loop, daemon) = (loop, Unchecked(self))
      besideLoop(bytes) {
        var encoder = CBOREncoder()
        state.encode(into: &encoder)
        let bytes = encoder.bytes
        loop.execute { daemon.value?.tell(.checkpointMade(revision, bytes)) }
      }
    } orElse: { [unowned self] in
      firstState = nil
      tell(.checkpointMade(server.revision, []))
    }
  }

  /// Compute the digest of the state, whose parts keep theirs.
  func computeDigest() {
    let (state, seed, loop, daemon) = (server.state, server.seed, loop, Unchecked(self))
    Scheduling.besideLoop {
      _ = state.digest(seed: seed)
      loop.execute { daemon.value?.tell(.digestComputed) }
    }
  }

  // MARK: Inspections

  /// Begin the next look at the state that a client waits for, unless one is being taken: each may
  /// take as much memory, and as long, as a snapshot of the whole.
  func beginInspection() {
    guard let next = inspections.begin() else { return }
    let bytes = server.inspectionMemory(of: next.asked)
    memoryDesk.request(bytes) { [unowned self] in
      switch server.inspection(of: next.asked, for: next.connection) {
      case .success(let inspection)?:
        let (loop, daemon) = (loop, Unchecked(self))
        besideLoop(bytes) {
          let finding = inspection.finding()
          loop.execute {
            daemon.value?.tell(finding.event(for: next.connection, query: next.query))
            daemon.value?.endInspection()
          }
        }
      case .failure(let error)?:
        answer(next.connection, next.query, error.report)
        fallthrough
      case nil:
        memoryDesk.finished(bytes)
        endInspection()
      }
    } orElse: { [unowned self] in
      let error = ReportError(.limit, "the daemon has no memory to look at the state")
      answer(next.connection, next.query, error.report)
      endInspection()
    }
  }

  private func endInspection() {
    inspections.end()
    // In another turn: many may end at once, because there is nothing to look at.
    let daemon = Unchecked(self)
    loop.execute { daemon.value?.beginInspection() }
  }

  // MARK: Large actions

  /// Decode the large action that a connection holds.
  func decodeAction(_ id: ConnectionID) {
    // The job is of the state at the command, also if it has to wait: so a replay makes the same.
    guard let bytes = server.actionMemory(for: id), let job = server.action(for: id) else {
      return tell(.actionDecoded(id, nil))
    }
    memoryDesk.request(bytes) { [unowned self] in
      guard server.actionMemory(for: id) != nil else {
        memoryDesk.finished(bytes)
        return tell(.actionDecoded(id, nil))
      }
      let (loop, daemon) = (loop, Unchecked(self))
      besideLoop(bytes) {
        let action = job.decoded()
        loop.execute { daemon.value?.tell(.actionDecoded(id, action)) }
      }
    } orElse: { [unowned self] in
      tell(.actionDecoded(id, nil))
    }
  }

  // MARK: Remains

  /// Release what the turn has dropped on a thread of the global pool, beside the loop.
  func releaseRemains() {
    let taken = server.takeRemains()
    if taken.isEmpty { return }
    let remains = Locked(consume taken)
    Scheduling.besideLoop { remains.withLock { $0 = Remains() } }
  }

  // MARK: Effects

  // After input from the sockets, so that no client waits for it.
  func wake() { loop.turnAgain() }

  func execute(_ order: EffectOrder) {
    switch order {
    case .start(let id): start(id)
    case .cancel(let id): effects.cancel(id)
    case .cancelTasks(let name): effects.cancel(name)
    }
  }

  /// Run an effect on the global pool, where it cannot block the loop.
  private func start(_ id: EffectID) {
    guard let operation = server.operation(of: id) else { return }
    let loop = loop
    let daemon = Unchecked(self)
    let host = DaemonEffectHost(
      loop: loop, access: { change in daemon.value.map { change(&$0.effects) } },
      cancelNamed: { name, goOn in
        guard let daemon = daemon.value else { return goOn() }
        daemon.hear(.effectCancelled(name), then: goOn)
      },
      state: { daemon.value?.server.state })
    operation.enter(&effects.named)
    effects.tasks[id] = operation.start(host: host) { action, goOn in
      loop.execute(orElse: goOn) {
        guard let daemon = daemon.value else { return goOn() }
        daemon.hear(.effectSent(id, action), then: goOn)
      }
    } ended: { error in
      loop.execute { daemon.value?.effectEnded(id, error) }
    }
  }

  /// Hear what an effect tells, and let it go on when that has been done.
  private func hear(_ event: Event<R.Action>, then goOn: @escaping @Sendable () -> Void) {
    tell(event)
    if server.holdsEffects { effects.unheard.append(goOn) } else { goOn() }
  }

  private func effectEnded(_ id: EffectID, _ error: String?) {
    effects.tasks[id] = nil
    tell(.effectEnded(id, unhandled: error))
  }
}

/// A reference that crosses threads only to come back to the loop.
///
/// Unchecked: the daemon is used on its loop's thread only; other threads carry the reference from
/// one closure on the loop to another.
final class Unchecked<T: AnyObject>: @unchecked Sendable {
  private(set) weak var value: T?
  init(_ value: T) { self.value = value }
}
