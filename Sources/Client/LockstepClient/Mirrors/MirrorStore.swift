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
/// Nothing but actions changes the state, and nothing here changes it at all. Observers are told in
/// the isolation in which `connect` was called, on the connection's loop if there is none. What
/// they read is at least as new as what they were told of.
///
/// `mirror.name` is the state's own field, whatever its name, except for the members of this type:
/// `state`, `subscription` (position, digest, counters, status), `connection` (reports, session, end),
/// `send`, `post`, `observe`, `changes`, `pulses`, `scope`, `bind` and `stateObservers`. A field with
/// one of these names is `mirror.state.send`, or, to be observed, `mirror[dynamicMember: \.send]`.
@dynamicMemberLookup
public final class MirrorStore<F: Feature>: ObservableStore {
  public typealias State = F.State

  /// What the store shows, and how far it follows the daemon.
  public let subscription: Subscription<F.State>
  /// The form of an action on the wire: embedded in the actions of those around.
  let encode: @Sendable (F.Action) -> [UInt8]
  public let stateObservers = StateObservers<F.State>()
  private let news: MirrorNotifier<F>

  /// Connect to a daemon, and return when its state is here.
  ///
  /// Throws `ClientError`; one that is `.closed` with the code `schema` when the daemon's types and
  /// these cannot meet.
  public static func connect(
    isolation: isolated (any Actor)? = #isolation,
    _ options: Connection.Options = Connection.Options()
  ) async throws -> MirrorStore {
    var options = options
    options.schemaUse = .expected(F.schema)
    let subscription = try await Subscription<F.State>.connect(options)
    return try MirrorStore(subscription, isolation) { Connection.payload($0) }
  }

  init(
    _ subscription: Subscription<F.State>, _ isolation: (any Actor)?,
    _ encode: @escaping @Sendable (F.Action) -> [UInt8]
  ) throws {
    guard let state = subscription.state ?? Self.absent else {
      throw AbsentState(path: subscription.path)
    }
    self.subscription = subscription
    self.encode = encode
    news = MirrorNotifier(told: state, isolation, subscription.link.loop)
    news.watch(self)
  }

  deinit {
    news.stop()
    stateObservers.end()
  }

  // MARK: Reading

  /// The newest state that has come. A copy is a consistent snapshot, O(1); reading it is not
  /// observed.
  public var state: F.State { subscription.state ?? Self.absent ?? news.told }

  /// The state for an absent part, of a part that is optional.
  static var absent: F.State? {
    (F.State.self as? any ExpressibleByNilLiteral.Type)?.init(nilLiteral: ()) as? F.State
  }

  /// What the store comes by: asks for reports, knows the session, and closes. Stores of parts share
  /// it.
  public var connection: Connection { subscription.connection }

  /// The value of a pulse each time that it is assigned from now on, a reconnection in between or
  /// not: what was assigned several times meanwhile counts once. Ends with the connection.
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

  /// Have an action done, and return when this store shows what it did. Throws
  /// `ClientError.rejected` when it was not done, `.outcomeUnknown` when that cannot be known.
  @discardableResult
  public func send(
    _ action: F.Action, _ mark: Mark = .applied
  ) async throws -> Acknowledgement {
    try await connection.send(payload: encode(action), mark)
  }

  /// Have an action done, without waiting. It is kept, and sent again after a reconnection, like
  /// any other.
  public func post(_ action: F.Action) { connection.post(payload: encode(action)) }

  // MARK: Binding

  /// Bind a view to this store: `body` is called now and after every reconnection, when the state
  /// is here, with a fresh bag in which it puts what lives as long as the connection.
  ///
  ///     mirror.bind(to: view) { [weak view] mirror, bindings in
  ///       bindings.observe(\.count) { [weak view] in view?.show($0) }  // Store to view.
  ///       if let taps = view?.newTaps() { bindings.send(taps) }  // View to store.
  ///     }
  ///
  /// What is in the bag ends before the next call, when the store is closed, and when `owner` is
  /// gone: nothing in it is called any more then. `body` and what it hands to the bag run in the
  /// isolation in which they were written; they should hold the owner weakly.
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

/// There is no such state: nothing is at the path of a store whose state is not optional.
public struct AbsentState: Error, CustomStringConvertible {
  public let path: Path

  public var description: String { "nothing stands at \(path.pointer) in the daemon's state" }
}
