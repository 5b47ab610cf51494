import CBOR
public import Lockstep
public import LockstepStore
import Schemas
public import Values
public import Wire

/// A live copy of a daemon's state with the types of its feature: shows the state, property by
/// property, and sends actions.
///
///     let mirror = try await MirrorStore<Todos>.connect()
///     try await mirror.send(.toggle(id))
///     print(mirror.todos[id]?.isDone)  // Reads its own write.
///
/// Only actions change the state; this copy is read-only. Observers are notified in the isolation
/// in which `connect` was called, on the connection's loop if there is none. The state that they
/// read is at least as new as the one they were notified of.
///
/// `mirror.name` is the state's own field, whatever its name, except for the members of this type:
/// `state`, `subscription` (position, digest, counters, status), `connection` (reports, session,
/// end), `send`, `post`, `failedPosts`, `observe`, `changes`, `pulses`, `scope`, `bind` and
/// `stateObservers`, and of a feature that is a reducer `confirmed` and `pending`. A field with one of
/// these names is `mirror.state.send`, or, to be observed, `mirror[dynamicMember: \.send]`.
@dynamicMemberLookup
public final class MirrorStore<F: Feature>: ObservableStore {
  public typealias State = F.State

  /// The subscription that the store shows, with its position and status.
  public let subscription: Subscription<F.State>
  let actions: ActionCoding<F.Action>
  public let stateObservers = StateObservers<F.State>()
  /// Shows actions before they are decided; nil for a store that does not.
  let predictor: (any StatePredictor<F.State>)?
  private let news: MirrorNotifier<F>

  /// Connect to a daemon, and return when its state has arrived.
  ///
  /// Throws `ClientError`: `.closed` with the code `schema` when the daemon's types and these are
  /// incompatible.
  public static func connect(
    isolation: isolated (any Actor)? = #isolation,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> MirrorStore {
    var options = options
    options.schemaUse = .expected(F.schema)
    let subscription = try await Subscription<F.State>.connect(options)
    return try MirrorStore(subscription, isolation, ActionCoding())
  }

  init(
    _ subscription: Subscription<F.State>, _ isolation: (any Actor)?,
    _ actions: ActionCoding<F.Action>, predictor: (any StatePredictor<F.State>)? = nil
  ) throws {
    guard let state = subscription.state ?? Self.absent else {
      throw AbsentState(path: subscription.path)
    }
    self.subscription = subscription
    self.actions = actions
    self.predictor = predictor
    news = MirrorNotifier(told: state, isolation, subscription.link.loop)
    news.watch(self)
  }

  deinit {
    news.stop()
    stateObservers.end()
  }

  // MARK: Reading

  /// The newest state received, with the optimistic actions that are not in it yet. A copy is a
  /// consistent snapshot, O(1); reading it is not observed.
  public var state: F.State { predictor?.state(of: subscription) ?? confirmedState }

  /// The newest state received.
  var confirmedState: F.State { subscription.state ?? Self.absent ?? news.told }

  /// The nil of an optional part, for an absent part; nil for other parts.
  static var absent: F.State? {
    (F.State.self as? any ExpressibleByNilLiteral.Type)?.init(nilLiteral: ()) as? F.State
  }

  /// The connection of the store: asks for reports, knows the session, and closes. Stores of parts
  /// share it.
  public var connection: Connection { subscription.connection }

  /// The value of a pulse each time it is assigned from now on, also across a reconnect: several
  /// assignments during the interruption count once. Ends with the connection.
  public func pulses<T: Synchronizable>(
    _ property: any KeyPath<F.State, Pulse<T>> & Sendable
  ) -> AsyncStream<T> {
    subscription.wantEveryRevision()
    let reader = PulseReader()
    return subscription.revisions { state, _, _ in
      state.flatMap { reader.value(of: $0[keyPath: property]) }
    }
  }

  // MARK: Sending

  /// Send an action, and return when this store shows its change. Throws `ClientError.rejected`
  /// when it was rejected, `.outcomeUnknown` when its outcome cannot be known.
  @discardableResult
  public func send(
    _ action: F.Action, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await connection.send(payload: actions.encode(action), mark)
  }

  /// Send an action without waiting. Like any other, it is kept until acknowledged, and retried
  /// after a reconnect. `failedPosts` tells if it is not done.
  public func post(_ action: F.Action) { connection.post(payload: actions.encode(action)) }

  /// The actions of this feature that are posted on this connection and not done, from now on, each
  /// with the reason: `ClientError.rejected`, `.swallowed`, `.outcomeUnknown`, or `.closed` for one that
  /// was never sent. A middleware that takes an action (`.swallowed`) may have added others in its place.
  /// What an optimistic one showed is gone by then. Ends with the connection; a reader that is more than
  /// 1,000 behind misses the oldest.
  ///
  ///     for await failed in mirror.failedPosts { show("\(failed.action): \(failed.error)") }
  public var failedPosts: AsyncStream<FailedPost<F.Action>> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1000)) { continuation in
      let stop = subscription.link.observe(
        Link.Observer(
          onFailure: { [actions] payload, error in
            guard let action = actions.decode(payload, .unseeded) else { return }
            continuation.yield(FailedPost(action: action, error: error))
          }, onEnd: { continuation.finish() }))
      continuation.onTermination(stop)
    }
  }

  // MARK: Binding

  /// Bind a view to this store: `body` is called now and after every reconnect, when the state has
  /// arrived, with a new bag for the tasks that live as long as the connection.
  ///
  ///     mirror.bind(to: view) { [weak view] mirror, bindings in
  ///       bindings.observe(\.count) { [weak view] in view?.show($0) }  // Store to view.
  ///       if let taps = view?.newTaps() { bindings.send(taps) }  // View to store.
  ///     }
  ///
  /// The contents of the bag end before the next call, when the store is closed, and when `owner`
  /// is released: nothing in it is called any more then. `body` and the closures that it adds to
  /// the bag run in the isolation in which they were written; they should hold the owner weakly.
  public func bind(
    to owner: AnyObject,
    @_inheritActorContext _ body:
      @escaping @isolated(any) @Sendable (MirrorStore, Bindings<F>) -> Void
  ) {
    let owner = WeakReference(owner)
    let (connections, continuation) = AsyncStream<Void>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    news.add(MirrorNotifier<F>.Binding(owner: owner, connections: continuation))
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

/// An action that was posted and not done.
public struct FailedPost<Action: Sendable>: Sendable {
  public let action: Action
  public let error: ClientError
}

/// The path has no value in the daemon's state, but the state of the store is not optional.
public struct AbsentState: Error, CustomStringConvertible {
  public let path: Path

  public var description: String { "nothing stands at \(path.pointer) in the daemon's state" }
}
