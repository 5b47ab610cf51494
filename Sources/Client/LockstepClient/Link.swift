import ClientCore
import EventLoop
import Synchronization
import Values
import Wire

// Theory of operation
//
// The session is behind a mutex, so any thread may read a mirror or send an action. The session's
// commands are queued under that mutex and executed on the loop, in order.
//
// No user code runs under the mutex: a closure is called, a task resumed, a stream's element
// yielded and an observer released while the mutex is free. `State.deliveries` is the queue of
// these calls. It is filled under the mutex and emptied by one thread at a time, so that the calls
// are made in the order of the session's commands, and may use the connection in any way. A thread
// that calls the connection makes only those that its call has led to; the loop makes all others.

/// The shell around a `ClientSession`: its socket, its mutex, and the tasks and observers that wait
/// for it.
final class Link: Sendable {
  typealias Session = ClientSession
  typealias Delivery = @Sendable () -> Void

  struct State: Sendable {
    var session: Session
    /// The daemon's socket; nil while it may be any standard one.
    var path: String?
    /// The session's commands that the loop has not executed yet.
    var commands: [Session.Command] = []
    var isFlushScheduled = false
    var connection = Session.ConnectionState.connecting
    /// Where the last attempt to connect failed, and why.
    var connectError: (path: String, error: LoopError)?
    var hasBeenLive = false
    /// The number of `Subscription`s that share each subscription of the session.
    var shares: [UInt64: Int] = [:]

    var actions: [ActionID: Waiter<Acknowledgement>] = [:]
    var reached: [(subscription: UInt64, revision: UInt64, waiter: Waiter<Void>)] = []
    /// The tasks that wait for the connection.
    var connecting: [Waiter<Void>] = []
    /// The subscriptions that the daemon refuses.
    var refusals: [UInt64: ServerMessage.Reason] = [:]
    /// The subscriptions that received something they cannot decode, and since when.
    var unreadable: [UInt64: (since: Instant, why: Goodbye)] = [:]
    var pongs: [UInt64: Waiter<UInt64>] = [:]
    var reports: [UInt64: Waiter<Value>] = [:]
    /// The streams of reports that the daemon keeps sending.
    var reportStreams: [UInt64: AsyncThrowingStream<Value, any Error>.Continuation] = [:]
    var digests: [UInt64: [Waiter<(UInt64, Digest?)>]] = [:]
    var observers: [UInt64: Observer] = [:]
    /// Numbers pings, queries and observers.
    var lastNumber: UInt64 = 1
    var rejections: UInt64 = 0
    var divergences: UInt64 = 0
    var lastDivergence: String?

    /// Calls of user code to be made, in order.
    var deliveries: [Delivery] = []
    /// Answers to senders, made after all other deliveries: a sender that has its answer finds its
    /// change in every sequence.
    var answers: [Delivery] = []
    /// Whether a thread makes the deliveries, or will.
    var isDelivering = false

    /// The state of the connection, or of one of its subscriptions.
    func connection(of subscription: UInt64?) -> Session.ConnectionState {
      guard connection == .live, let subscription, let (since, why) = unreadable[subscription]
      else {
        return connection
      }
      return .stale(since: since, why)
    }

    mutating func nextNumber() -> UInt64 {
      lastNumber += 1
      return lastNumber
    }

    mutating func deliver(_ body: @escaping Delivery) { deliveries.append(body) }

    /// Take the queued deliveries, to make them on this thread.
    mutating func takeDeliveries() -> [Delivery] {
      isDelivering = !deliveries.isEmpty
      defer { deliveries = [] }
      return deliveries
    }
  }

  /// An observer of changes.
  struct Observer: Sendable {
    /// Nil for an observer of the connection only.
    var subscription: UInt64?
    var onChange: (@Sendable (ClientSubscription) -> Void)?
    var onRevision: (@Sendable (MirroredValue, UInt64, [UInt8]) -> Void)?
    var onConnection: (@Sendable (Session.ConnectionState) -> Void)?
    /// An action that was posted and not done, encoded, and why.
    var onFailure: (@Sendable ([UInt8], ClientError) -> Void)?
    var onEnd: @Sendable () -> Void
  }

  let waitsForDaemon: Bool
  let loop: Loop
  let state: Mutex<State>
  let socket = Socket()

  init(
    path: String?, configuration: Session.Configuration, waitsForDaemon: Bool, loop: Loop
  ) {
    self.waitsForDaemon = waitsForDaemon
    self.loop = loop
    var random = SystemRandomNumberGenerator()
    state = Mutex(State(session: Session(configuration, seed: random.next()), path: path))
  }

  deinit { loop.execute { [socket] in socket.close() } }

  func start() {
    loop.execute { [self] in
      let ticker = EventLoop.Timer(on: loop) { [weak self] in self?.tick() }
      ticker.start(after: .seconds(1), repeating: .seconds(1))
      socket.ticker = ticker
    }
    perform { $0.session.start(at: Self.now(), into: &$0.commands) }
  }

  func close() { perform { $0.session.close(into: &$0.commands) } }

  static func now() -> Instant { Instant(nanoseconds: Loop.monotonicNanoseconds()) }

  // MARK: The session, from any thread

  /// Run a body with the session, and have its commands executed. The body runs under the mutex: it
  /// must not call user code or release a user's object, but deliver or return it.
  @discardableResult
  func perform<R: Sendable>(_ body: (inout State) -> sending R) -> R {
    let (result, schedules, deliveries) = state.withLock { state -> (R, Bool, [Delivery]) in
      let result = body(&state)
      let schedules = settle(&state)
      // Taken at once, so that a thread makes only the deliveries that its own call has led to, and
      // never a closure that the loop has queued since: the thread may hold a lock that this needs.
      return (result, schedules, state.isDelivering ? [] : state.takeDeliveries())
    }
    if schedules { loop.execute { [self] in flush() } }
    if !deliveries.isEmpty { deliver(deliveries) }
    return result
  }

  /// Make deliveries that were taken. Those that are queued meanwhile are made by the loop.
  private func deliver(_ deliveries: [Delivery]) {
    for delivery in deliveries { delivery() }
    let isDone = state.withLock { state in
      state.isDelivering = !state.deliveries.isEmpty
      return !state.isDelivering
    }
    if !isDone { loop.execute { [self] in deliver(state.withLock { $0.takeDeliveries() }) } }
  }

  /// Turn notices into deliveries. Returns whether a flush must be scheduled on the loop.
  private func settle(_ state: inout State) -> Bool {
    defer {
      state.deliveries += state.answers
      state.answers.removeAll(keepingCapacity: true)
    }
    guard !state.commands.isEmpty else {
      wakeReached(&state)
      return false
    }
    var wireCommands: [Session.Command] = []
    for command in state.commands {
      if case .notify(let notice) = command {
        tell(notice, &state)
      } else {
        wireCommands.append(command)
      }
    }
    state.commands = wireCommands
    wakeReached(&state)
    guard !wireCommands.isEmpty, !state.isFlushScheduled else { return false }
    state.isFlushScheduled = true
    return true
  }

  // MARK: Subscriptions

  /// Subscribe to a path, or share the existing subscription to it. `release` undoes it.
  func subscribe<T: Synchronizable>(
    to path: Path, as type: T.Type, everyRevision: Bool
  ) -> UInt64 {
    perform { state in
      if let known = state.session.mirrors.first(where: { $0.path == path }) {
        precondition(
          known.value.isOf(type), "Mirrors of one path on one connection must be of one type.")
        state.shares[known.number, default: 0] += 1
        if everyRevision { state.session.wantEveryRevision(of: known.number) }
        return known.number
      }
      let number = state.session.subscribe(
        to: path, as: type, everyRevision: everyRevision, into: &state.commands)
      state.shares[number] = 1
      return number
    }
  }

  func release(_ subscription: UInt64) {
    perform { state in
      state.shares[subscription, default: 1] -= 1
      guard state.shares[subscription] == 0 else { return }
      state.shares[subscription] = nil
      state.session.unsubscribe(subscription, into: &state.commands)
    }
  }

  // MARK: Observers

  /// Register an observer and notify it of the current state. Returns a closure that removes it.
  func observe(_ observer: Observer) -> @Sendable () -> Void {
    let number = perform { state -> UInt64 in
      let number = state.nextNumber()
      if let onConnection = observer.onConnection {
        let connection = state.connection(of: observer.subscription)
        state.deliver { onConnection(connection) }
      }
      if case .closed = state.connection {
        state.deliver(observer.onEnd)
        return number
      }
      state.observers[number] = observer
      if let subscription = observer.subscription,
        let mirror = state.session.mirror(subscription), let position = mirror.position
      {
        state.deliver {
          observer.onChange?(mirror)
          observer.onRevision?(mirror.value, position.revision, [])
        }
      }
      return number
    }
    return { [self] in
      // Released when the mutex is free, because releasing the observer may release objects that
      // use the connection.
      _ = perform { $0.observers.removeValue(forKey: number) }
    }
  }

  /// The state of the connection, or of one of its subscriptions, then each change of it.
  func states(of subscription: UInt64?) -> AsyncStream<ConnectionState> {
    AsyncStream { continuation in
      let stop = observe(
        Observer(
          subscription: subscription,
          onConnection: { continuation.yield(ConnectionState($0, at: Self.now())) },
          onEnd: { continuation.finish() }))
      continuation.onTermination(stop)
    }
  }

  // MARK: Requests

  /// Send a request to the daemon, and wait for the answer. `body` stores the waiter.
  func request<R: Sendable>(_ body: (inout State, Waiter<R>) -> Void) async throws -> R {
    try await wait { state, waiter in
      guard state.session.isLive else {
        let error = downError(state)
        return state.deliver { waiter.resume(throwing: error) }
      }
      body(&state, waiter)
    }
  }

  /// Why no request can be sent now.
  func downError(_ state: State) -> ClientError {
    if case .closed(let goodbye) = state.connection { return closedError(goodbye, state) }
    return closedError(Goodbye(.done, "the connection is down"), state)
  }

  func closedError(_ goodbye: Goodbye, _ state: State) -> ClientError {
    if !state.hasBeenLive, let (path, error) = state.connectError {
      return .cannotConnect(path: path, error)
    }
    return .closed(goodbye)
  }
}

extension AsyncStream.Continuation {
  /// Call `body` when the reader is cancelled or released, not when the stream is finished.
  func onTermination(_ body: @escaping @Sendable () -> Void) {
    onTermination = { reason in if case .cancelled = reason { body() } }
  }
}
