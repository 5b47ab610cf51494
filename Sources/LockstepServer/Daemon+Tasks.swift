import EventLoop
import Lockstep
import Sessions

// What is done beside the loop, on the global pool: encoding, measuring, effects. It computes or
// waits, and the loop must go on. What comes of it is brought back as an event.
extension Daemon {
  // MARK: Snapshots

  func keepSnapshot(heals: Bool) {
    guard let journal else { return }
    let bytes = server.snapshotMemory
    guard Memory.isThere(bytes) else {
      let reason =
        "no memory for a snapshot, which takes about \(bytes) bytes: let the process have more "
        + "(MemoryMax=, LimitAS=, LimitDATA=, ulimit)"
      return tell(.journal(.snapshotImpossible(reason)))
    }
    var number: UInt64?
    if heals {
      healings += 1
      number = healings
      journal.add(.holdForSnapshot(healings))
    }
    let snapshot = server.keptSnapshot
    // The global pool, as for those of clients.
    Task.detached { [number] in
      let (head, parts) = snapshot.encode()
      journal.add(.snapshot(head, parts: parts, heals: number))
    }
  }

  func encode(_ id: SnapshotJobID) {
    guard let job = server.snapshot(for: id) else { return }
    guard Memory.isThere(server.snapshotMemory) else { return tell(.snapshotImpossible(id)) }
    let loop = loop
    let daemon = Unchecked(self)
    // The global pool: encoding computes, and the loop must go on.
    Task.detached {
      let (frames, wholeBytes) = job.measured()
      loop.execute { daemon.value?.tell(.snapshotEncoded(id, frames, wholeBytes: wholeBytes)) }
    }
  }

  func measureState() {
    guard Memory.isThere(server.snapshotMemory) else {
      // What is known will do: it takes no more.
      return tell(.stateMeasured(server.knownSize))
    }
    let state = server.state
    let loop = loop
    let daemon = Unchecked(self)
    // The global pool, as for snapshots.
    Task.detached {
      let measure = StateMeasure(of: state)
      loop.execute { daemon.value?.tell(.stateMeasured(measure)) }
    }
  }

  // MARK: Effects

  func wake() {
    let daemon = Unchecked(self)
    // Queued behind what the sockets bring, so that nobody waits for it.
    loop.execute { daemon.value?.hasNews = true }
  }

  func execute(_ order: EffectOrder) {
    switch order {
    case .start(let id): start(id)
    case .cancel(let id): effects.cancel(id)
    case .cancelTasks(let name): effects.cancel(name)
    }
  }

  /// Run an effect on the global pool: what it does there cannot hold up the loop.
  private func start(_ id: EffectID) {
    guard let operation = server.operation(of: id) else { return }
    let loop = loop
    let daemon = Unchecked(self)
    let host = DaemonEffectHost(
      loop: loop, access: { change in daemon.value.map { change(&$0.effects) } },
      cancelNamed: { name in daemon.value?.effectCancels(name) })
    effects.tasks[id] = Task.detached(priority: operation.priority) {
      let error = await operation.run(host: host) { action in
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
          loop.execute(orElse: { continuation.resume() }) {
            daemon.value?.effectSent(action, id)
            continuation.resume()
          }
        }
      }
      loop.execute { daemon.value?.effectEnded(id, error) }
    }
  }

  private func effectSent(_ action: R.Action, _ id: EffectID) {
    hasNews = true
    server.effectSent(action, id, at: Self.now())
  }

  private func effectCancels(_ name: ScopedEffectKey) {
    hasNews = true
    server.effectCancels(name, at: Self.now())
  }

  private func effectEnded(_ id: EffectID, _ error: String?) {
    hasNews = true
    effects.tasks[id] = nil
    server.effectEnded(id, unhandled: error, at: Self.now())
  }
}

/// A reference that crosses threads only to come back.
///
/// Unchecked: the daemon is touched on its loop's thread alone; other threads carry the reference
/// from one closure on the loop to another.
final class Unchecked<T: AnyObject>: @unchecked Sendable {
  private(set) weak var value: T?
  init(_ value: T) { self.value = value }
}
