import ClientCore
import EventLoop
import Lockstep
import LockstepStore
import Synchronization
import Values

// Theory of operation
//
// The value that a mirror store shows is the connection's: it is read where the connection keeps
// it, so an observer that was notified of a value reads that value or a newer one. Observers are
// notified later, in the isolation in which `connect` was called: the first change schedules a
// notification, and changes that arrive before it runs are coalesced with it. It hands the newest
// state, and the one that was told last (`told`), to the observers, who compare.
//
//     patch -> mirror (shows) ... hop ... -> newest, told -> signals, sequences

/// Notifies a mirror store's observers of changes that they do not know yet.
///
/// The connection calls it in order. It holds the store weakly, and takes a strong reference only
/// while it notifies observers: a store that is released unregisters from the connection.
final class MirrorNotifier<F: Feature>: Sendable {
  struct Binding: Sendable {
    let owner: WeakReference
    /// Yields whenever the state of a new connection has arrived.
    let connections: AsyncStream<Void>.Continuation
  }

  private struct Progress: Sendable {
    weak var store: MirrorStore<F>?
    /// The state of which observers were last notified.
    var told: F.State
    var isTellingScheduled = false
    /// Whether the first state of the current connection has arrived.
    var isCurrent = false
    var hasEnded = false
    var bindings: [UInt64: Binding] = [:]
    var nextBinding: UInt64 = 1
    var stopWatching: (@Sendable () -> Void)?
  }

  private let progress: Mutex<Progress>
  private let loop: Loop
  /// Weak, because the actor is often the owner of the store.
  private weak let isolation: (any Actor)?

  init(told: F.State, _ isolation: (any Actor)?, _ loop: Loop) {
    progress = Mutex(Progress(told: told))
    self.loop = loop
    self.isolation = isolation
  }

  /// The state of which observers were last notified.
  var told: F.State { progress.withLock { $0.told } }

  // MARK: From the connection

  /// Observe the store's mirror.
  func watch(_ store: MirrorStore<F>) {
    progress.withLock { $0.store = store }
    let stop = store.subscription.link.observe(
      Link.Observer(
        subscription: store.subscription.number,
        onChange: { [self] mirror in changed(isLive: mirror.isLive) },
        onConnection: { [self] connection in
          if connection == .live { progress.withLock { $0.isCurrent = false } }
        },
        onEnd: { [self] in ended() }))
    progress.withLock { $0.stopWatching = stop }
  }

  /// Stop, because the store is released.
  func stop() {
    let (stop, bindings) = progress.withLock { ($0.stopWatching, $0.bindings.values) }
    stop?()
    for binding in bindings { binding.connections.finish() }
  }

  private func changed(isLive: Bool) {
    let (schedules, bindings) = progress.withLock { progress in
      let isNew = isLive && !progress.isCurrent
      if isNew { progress.isCurrent = true }
      defer { progress.isTellingScheduled = true }
      return (!progress.isTellingScheduled, isNew ? Array(progress.bindings.values) : [])
    }
    for binding in bindings { binding.connections.yield() }
    if schedules { schedule { $0.tell($1) } }
  }

  private func ended() {
    let bindings = progress.withLock { progress in
      progress.hasEnded = true
      defer { progress.bindings = [:] }
      return progress.bindings.values
    }
    for binding in bindings { binding.connections.finish() }
    // After the last change.
    schedule { news, store in
      news.tell(store)
      store.stateObservers.end()
    }
  }

  // MARK: To the observers

  /// Run a body in the isolation in which observers are notified.
  private func schedule(_ body: @escaping @Sendable (MirrorNotifier, MirrorStore<F>) -> Void) {
    // If the actor is gone, no observer depends on its isolation any more.
    guard let isolation else { return loop.execute { [self] in run(body) } }
    Task { await run(body, on: isolation) }
  }

  private func run(
    _ body: @Sendable (MirrorNotifier, MirrorStore<F>) -> Void, on isolation: isolated any Actor
  ) {
    run(body)
  }

  private func run(_ body: (MirrorNotifier, MirrorStore<F>) -> Void) {
    if let store = progress.withLock({ $0.store }) { body(self, store) }
  }

  private func tell(_ store: MirrorStore<F>) {
    // First, so that a change from here on schedules another notification.
    progress.withLock { $0.isTellingScheduled = false }
    let new = store.state
    let (old, abandoned) = progress.withLock { progress in
      defer { progress.told = new }
      let abandoned = progress.bindings.filter { !$0.value.owner.isAlive }
      for number in abandoned.keys { progress.bindings[number] = nil }
      return (progress.told, abandoned.values)
    }
    for binding in abandoned { binding.connections.finish() }
    store.stateObservers.tell(from: old, to: new)
  }

  // MARK: Bindings

  /// Register a binding: it is notified of this connection, if its state has arrived, and of later
  /// ones.
  func add(_ binding: Binding) {
    // Under the mutex, so that a new connection cannot come in between and yield twice. The reader
    // is a task of `bind`, so no user code runs here.
    progress.withLock { progress in
      if progress.hasEnded { return binding.connections.finish() }
      progress.bindings[progress.nextBinding] = binding
      progress.nextBinding += 1
      if progress.isCurrent { binding.connections.yield() }
    }
  }
}

/// Tells whether an object is still alive.
///
/// Unchecked: the object is never touched.
final class WeakReference: @unchecked Sendable {
  private weak let object: AnyObject?

  init(_ object: AnyObject) { self.object = object }

  var isAlive: Bool { object != nil }
}
