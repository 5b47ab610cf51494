import CBOR
import EventLoop
public import Lockstep
public import Sessions
import Synchronization
public import Values
public import Wire

// Theory of operation
//
// The value that a mirror store shows is the connection's: it is read where the connection keeps
// it, so whoever was told of something reads that or what came after. Observers are told later, in
// the isolation of whoever connected: the first change that comes schedules a notification, and
// those that come before it runs join it. It compares the newest state with the last that was told.
//
//     patch -> mirror (shows) ... hop ... -> newest against told -> signals, sequences

/// A live copy of a daemon's state with the types of its feature: shows the state, property by
/// property, and sends actions.
///
///     let mirror = try await MirrorStore<Todos>.connect()
///     try await mirror.send(.toggle(id))
///     print(mirror.todos[id]?.isDone)  // Reads its own write.
///
/// Nothing but actions changes the state, and nothing here changes it at all. Observers are told in
/// the isolation in which `connect` was called, on the connection's loop if there is none. What
/// they read is at least as new as what they were told of.
@dynamicMemberLookup
public final class MirrorStore<F: Feature>: ObservableStore {
  public typealias State = F.State
  public typealias Options = Replica<F.State>.Options

  private struct Progress: Sendable {
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

  private struct Binding: Sendable {
    let owner: WeakReference
    let connections: AsyncStream<Void>.Continuation
  }

  let replica: Replica<F.State>
  /// The form of an action on the wire: embedded in the actions of those around.
  let encode: @Sendable (F.Action) -> [UInt8]
  public let observers = StateObservers<F.State>()
  let isIsolated: Bool
  /// Held weakly: it is often the owner of the store.
  weak let isolation: (any Actor)?
  private let progress: Mutex<Progress>

  /// Connect to a daemon, and return when its state is here.
  ///
  /// Throws `ClientError`; one that is `.closed` with the code `schema` when the daemon's types and
  /// these cannot meet.
  public static func connect(
    isolation: isolated (any Actor)? = #isolation, _ options: Options = Options()
  ) async throws -> MirrorStore {
    var options = options
    options.schemaUse = .expected(F.schema)
    options.subscribes = true
    let replica = try await Replica<F.State>.connect(options)
    return try MirrorStore(replica, isolation) { action in
      var encoder = CBOREncoder()
      action.encode(into: &encoder)
      return encoder.bytes
    }
  }

  init(
    _ replica: Replica<F.State>, _ isolation: (any Actor)?,
    _ encode: @escaping @Sendable (F.Action) -> [UInt8]
  ) throws {
    guard let state = replica.state ?? Self.absent else {
      throw AbsentState(path: replica.path)
    }
    self.replica = replica
    self.encode = encode
    self.isolation = isolation
    isIsolated = isolation != nil
    progress = Mutex(Progress(told: state))
    watch()
  }

  deinit {
    let (stop, bindings) = progress.withLock { ($0.stopWatching, $0.bindings.values) }
    stop?()
    for binding in bindings { binding.connections.finish() }
    observers.end()
  }

  // MARK: Reading

  /// The newest state that has come. A copy is a consistent snapshot, O(1); reading it is not
  /// observed.
  public var state: F.State { replica.state ?? Self.absent ?? progress.withLock { $0.told } }

  /// The state that stands for nothing, of a part that is optional.
  private static var absent: F.State? {
    (F.State.self as? any ExpressibleByNilLiteral.Type)?.init(nilLiteral: ()) as? F.State
  }

  /// Where the mirror stands.
  public var position: Position? { replica.position }

  /// The digest of the state, in the form in which it is held. O(what changed since it was last
  /// asked for).
  public var digest: Digest? { replica.digest }

  /// What the store shows: a path in the daemon's state.
  public var path: Path { replica.path }

  public var connection: ConnectionState { replica.connection }

  /// Where the connection stands, then each change of that. Ends with the connection.
  public var connections: AsyncStream<ConnectionState> { replica.connections }

  /// Snapshots, patches and bytes that came.
  public var counters: MirrorCounters { replica.counters }

  /// The value of a pulse each time that it is assigned from now on, a reconnection in between or
  /// not: what was assigned several times meanwhile counts once. Ends with the connection.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<F.State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    replica.link.perform { [subscription = replica.subscription] state in
      state.session.wantEveryRevision(of: subscription)
    }
    return AsyncStream { continuation in
      let reader = PulseReader()
      replica.observe(
        continuation.onTermination(_:),
        onRevision: { value, _, _ in
          guard let state = value?.value(as: F.State.self) else { return }
          if let value = reader.value(of: state[keyPath: property]) { continuation.yield(value) }
        },
        onEnd: { continuation.finish() })
    }
  }

  // MARK: Sending

  /// Have an action done, and return when this store shows what it did. Throws
  /// `ClientError.rejected` when it was not done, `.outcomeUnknown` when nobody can know.
  @discardableResult
  public func send(
    _ action: F.Action, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await replica.send(payload: encode(action), mark)
  }

  /// Have an action done, without waiting. It is kept, and sent again after a reconnection, like
  /// any other.
  public func post(_ action: F.Action) { replica.post(payload: encode(action)) }

  /// What the daemon says of itself: "status", "clients" or "limits", or of what arguments name.
  public func report(_ name: String, arguments: [String] = []) async throws -> Value {
    try await replica.report(name, arguments: arguments)
  }

  /// Say goodbye. What waits ends with `ClientError.closed`.
  public func close() { replica.close() }

  /// Say goodbye, and return when it is on its way: the process may end then.
  public func finish() async { await replica.finish() }

  // MARK: Telling

  private func watch() {
    replica.observe(
      { stop in progress.withLock { $0.stopWatching = stop } },
      onChange: { [weak self] mirror in self?.changed(isLive: mirror.isLive) },
      onConnection: { [weak self] connection in
        if connection == .live { self?.progress.withLock { $0.isCurrent = false } }
      },
      onEnd: { [weak self] in self?.ended() })
  }

  /// The mirror has changed, or has found that it has not. Called under the connection's mutex, so
  /// it only takes note.
  private func changed(isLive: Bool) {
    let schedules = progress.withLock { progress in
      if isLive && !progress.isCurrent {
        progress.isCurrent = true
        for binding in progress.bindings.values { binding.connections.yield() }
      }
      defer { progress.isTellingScheduled = true }
      return !progress.isTellingScheduled
    }
    if schedules { schedule { $0.tell() } }
  }

  private func ended() {
    let bindings = progress.withLock { progress in
      progress.hasEnded = true
      defer { progress.bindings = [:] }
      return progress.bindings.values
    }
    for binding in bindings { binding.connections.finish() }
    // Behind the last change.
    schedule { store in
      store.tell()
      store.observers.end()
    }
  }

  /// Do something where observers are told.
  private func schedule(_ body: @escaping @Sendable (MirrorStore) -> Void) {
    guard isIsolated else {
      return replica.link.loop.execute { [weak self] in if let self { body(self) } }
    }
    guard let isolation else { return }
    Task { [weak self] in await self?.run(body, on: isolation) }
  }

  private func run(
    _ body: @Sendable (MirrorStore) -> Void, on isolation: isolated any Actor
  ) {
    body(self)
  }

  private func tell() {
    // First, so that what comes from here on schedules another notification.
    progress.withLock { $0.isTellingScheduled = false }
    let new = state
    let (old, abandoned) = progress.withLock { progress in
      defer { progress.told = new }
      let abandoned = progress.bindings.filter { !$0.value.owner.isAlive }
      for number in abandoned.keys { progress.bindings[number] = nil }
      return (progress.told, abandoned.values)
    }
    for binding in abandoned { binding.connections.finish() }
    if !new.isSame(as: old) { observers.tell(from: old, to: new) }
  }

  // MARK: Binding

  /// Bind a view to this store: `body` is called now and after every reconnection, when the state
  /// is here, with a fresh bag in which it puts what lives as long as the connection.
  ///
  ///     mirror.bind(to: view) { mirror, bindings in
  ///       bindings.observe(\.count) { view.show($0) }  // State (store -> view)
  ///       bindings.send(view.taps)                     // Action (view -> store)
  ///     }
  ///
  /// What is in the bag ends before the next call, when `owner` is gone (nothing in it is called any
  /// more then), and when the store is closed. `body` and what it hands to the bag run in the
  /// isolation in which they were written; they should hold the view weakly if it is the owner.
  public func bind(
    to owner: AnyObject,
    @_inheritActorContext _ body:
      @escaping @isolated(any) @Sendable (MirrorStore, Bindings<F>) -> Void
  ) {
    let owner = WeakReference(owner)
    let (connections, continuation) = AsyncStream<Void>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    progress.withLock { progress in
      if progress.hasEnded { return continuation.finish() }
      progress.bindings[progress.nextBinding] = Binding(owner: owner, connections: continuation)
      progress.nextBinding += 1
      if progress.isCurrent { continuation.yield() }
    }
    Task { [weak self] in
      var bindings: Bindings<F>?
      for await _ in connections {
        await bindings?.end()
        guard owner.isAlive, let self else { break }
        let fresh = Bindings(self, owner)
        bindings = fresh
        await body(self, fresh)
      }
      await bindings?.end()
    }
  }
}

/// There is no such state: nothing stands at the path of a store whose state is not optional.
public struct AbsentState: Error, CustomStringConvertible {
  public let path: Path

  public var description: String { "nothing stands at \(path.pointer) in the daemon's state" }
}

/// Whether an object is still there.
///
/// Unchecked: the object is never touched.
final class WeakReference: @unchecked Sendable {
  private weak let object: AnyObject?

  init(_ object: AnyObject) { self.object = object }

  var isAlive: Bool { object != nil }
}
