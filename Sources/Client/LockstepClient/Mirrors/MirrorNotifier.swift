import ClientCore
import EventLoop
import Lockstep
import LockstepStore
import Synchronization
import Values

// Theory of operation
//
// The value that a mirror store shows is the connection's: it is read where the connection keeps
// it, so whoever was told of something reads that or what came after. Observers are told later, in
// the isolation of whoever connected: the first change that comes schedules a notification, and
// those that come before it runs join it. It compares the newest state with the last that was told.
//
//     patch -> mirror (shows) ... hop ... -> newest against told -> signals, sequences

/// What a mirror store's observers know, and what they are still to be told.
///
/// The connection tells it in order. It holds the store weakly, and asks for it only where
/// observers are told: a store that is let go says so to the connection.
final class MirrorNotifier<F: Feature>: Sendable {
  struct Binding: Sendable {
    let owner: WeakReference
    /// Yields whenever the state of a new connection is here.
    let connections: AsyncStream<Void>.Continuation
  }

  private struct Progress: Sendable {
    weak var store: MirrorStore<F>?
    /// The state that observers know.
    var told: F.State
    var isTellingScheduled = false
    /// Whether the state has come that the connection began with.
    var isCurrent = false
    var hasEnded = false
    var bindings: [UInt64: Binding] = [:]
    var nextBinding: UInt64 = 1
    var stopWatching: (@Sendable () -> Void)?
  }

  private let progress: Mutex<Progress>
  private let loop: Loop
  /// Held weakly: it is often the owner of the store.
  private weak let isolation: (any Actor)?

  init(told: F.State, _ isolation: (any Actor)?, _ loop: Loop) {
    progress = Mutex(Progress(told: told))
    self.loop = loop
    self.isolation = isolation
  }

  /// The state that observers know.
  var told: F.State { progress.withLock { $0.told } }

  // MARK: From the connection

  /// Be told of what happens to the store's mirror.
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

  /// The store is no more.
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
    // Behind the last change.
    schedule { news, store in
      news.tell(store)
      store.stateObservers.end()
    }
  }

  // MARK: To the observers

  /// Do something where observers are told.
  private func schedule(_ body: @escaping @Sendable (MirrorNotifier, MirrorStore<F>) -> Void) {
    // An actor that is gone has left nobody behind who would mind.
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
    // First, so that what comes from here on schedules another notification.
    progress.withLock { $0.isTellingScheduled = false }
    let new = store.state
    let (old, abandoned) = progress.withLock { progress in
      defer { progress.told = new }
      let abandoned = progress.bindings.filter { !$0.value.owner.isAlive }
      for number in abandoned.keys { progress.bindings[number] = nil }
      return (progress.told, abandoned.values)
    }
    for binding in abandoned { binding.connections.finish() }
    if !new.isSame(as: old) { store.stateObservers.tell(from: old, to: new) }
  }

  // MARK: Bindings

  /// Have a binding told of this connection, if its state is here, and of those to come.
  func add(_ binding: Binding) {
    // Under the mutex, so that a new connection does not come in between and yields twice. The
    // reader is a task of `bind`, so nothing of a user's runs here.
    progress.withLock { progress in
      if progress.hasEnded { return binding.connections.finish() }
      progress.bindings[progress.nextBinding] = binding
      progress.nextBinding += 1
      if progress.isCurrent { binding.connections.yield() }
    }
  }
}

/// Whether an object is still there.
///
/// Unchecked: the object is never touched.
final class WeakReference: @unchecked Sendable {
  private weak let object: AnyObject?

  init(_ object: AnyObject) { self.object = object }

  var isAlive: Bool { object != nil }
}
