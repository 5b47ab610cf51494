import ClientCore
import EventLoop
import Synchronization
import Values
import Wire

/// The shell around a `ClientSession`: one connection, shared by all mirrors on it.
///
/// The session is behind a mutex, so any thread may read a mirror or send an action. What the
/// session commands is queued under the same mutex and done on the loop, in order. What users are to
/// be told is queued under it, too (`State.deliveries`), and told while it is free, by one thread at a
/// time: so it comes in the order in which it happened, and what they do then may use the link.
final class Link: Sendable {
  typealias Session = ClientSession<AnyMirrored>

  struct State: Sendable {
    var session: Session
    /// What the session commanded and the loop has not done yet.
    var commands: [Session.Command] = []
    var isFlushScheduled = false
    var connection = Session.ConnectionState.connecting
    /// The error of the last attempt to connect.
    var connectError: LoopError?
    var hasBeenLive = false
    /// How many `Replica`s share the connection, and each subscription.
    var stores = 0
    var shares: [UInt64: Int] = [:]

    var actions: [ActionID: CheckedContinuation<Acknowledgement, any Error>] = [:]
    var reached: [(subscription: UInt64, revision: UInt64, waiter: Waiter)] = []
    /// Those who wait for the connection.
    var connecting: [Waiter] = []
    /// Subscriptions that the daemon refuses.
    var refusals: [UInt64: ServerMessage.Reason] = [:]
    /// Subscriptions that show what they could last read, and since when.
    var unreadable: [UInt64: (since: Instant, why: Goodbye)] = [:]
    var connectionObservers: [UInt64: ConnectionObserver] = [:]
    var pongs: [UInt64: CheckedContinuation<UInt64, any Error>] = [:]
    var reports: [UInt64: CheckedContinuation<Value, any Error>] = [:]
    /// Reports that go on.
    var reportStreams: [UInt64: AsyncThrowingStream<Value, any Error>.Continuation] = [:]
    var digests: [UInt64: [CheckedContinuation<(UInt64, Digest?), any Error>]] = [:]
    var observers: [UInt64: Observer] = [:]
    var nextNumber: UInt64 = 1
    /// Acknowledgements of actions that nobody waits for.
    var rejectedPosts: UInt64 = 0
    var divergences: UInt64 = 0
    var lastDivergence: String?

    /// What users are to be told, in order.
    var deliveries: [@Sendable () -> Void] = []
    /// Answers to senders, behind everything else that they are told: a sender that has its answer
    /// finds what was done in every sequence.
    var answers: [@Sendable () -> Void] = []
    /// Whether a thread tells them, or will.
    var isDelivering = false

    /// Where a subscription stands with the daemon.
    func connection(of subscription: UInt64) -> Session.ConnectionState {
      guard connection == .live, let (since, why) = unreadable[subscription] else {
        return connection
      }
      return .stale(since: since, why)
    }

    mutating func deliver(_ body: @escaping @Sendable () -> Void) { deliveries.append(body) }
  }

  struct ConnectionObserver: Sendable {
    let subscription: UInt64
    let stream: AsyncStream<ConnectionState>.Continuation
  }

  struct Waiter: Sendable {
    let continuation: CheckedContinuation<Void, any Error>
  }

  /// Someone who wants to know of changes.
  struct Observer: Sendable {
    let subscription: UInt64
    let onChange: (@Sendable (ClientSubscription<AnyMirrored>) -> Void)?
    let onRevision: (@Sendable (AnyMirrored?, UInt64, [UInt8]) -> Void)?
    let onConnection: (@Sendable (Session.ConnectionState) -> Void)?
    let onEnd: @Sendable () -> Void
  }

  let path: String
  let waitsForDaemon: Bool
  let loop: Loop
  let state: Mutex<State>

  /// The loop's own things.
  ///
  /// Unchecked: made on any thread, then used on the loop's thread only.
  final class Wire: @unchecked Sendable {
    var pipe: Pipe?
    var timer: EventLoop.Timer?
    var ticker: EventLoop.Timer?
    /// Runs out a moment after each tick, when what has come meanwhile has been read.
    var afterTick: EventLoop.Timer?
    var generation: UInt64 = 0

    func close() {
      generation += 1
      timer?.close()
      ticker?.close()
      afterTick?.close()
      timer = nil
      ticker = nil
      afterTick = nil
      pipe?.stopReading()
      pipe?.closeAfterWriting()
      pipe = nil
    }
  }
  let wire = Wire()

  init(
    path: String, configuration: Session.Configuration, waitsForDaemon: Bool, loop: Loop
  ) {
    self.path = path
    self.waitsForDaemon = waitsForDaemon
    self.loop = loop
    var random = SystemRandomNumberGenerator()
    state = Mutex(State(session: Session(configuration, seed: random.next())))
  }

  /// Nobody mirrors anything here any more, and nobody waits: the connection goes, too.
  deinit { loop.execute { [wire] in wire.close() } }

  func start() {
    loop.execute { [self] in
      let ticker = EventLoop.Timer(on: loop) { [weak self] in self?.tick() }
      ticker.start(after: .seconds(1), repeating: .seconds(1))
      wire.ticker = ticker
    }
    perform { $0.session.start(at: Self.now(), into: &$0.commands) }
  }

  static func now() -> Instant { Instant(nanoseconds: Loop.monotonicNanoseconds()) }

  // MARK: The session, from any thread

  /// Do something with the session, and have its commands done.
  @discardableResult
  func perform<R: Sendable>(_ body: (inout State) -> sending R) -> R {
    let (result, schedules, delivers) = state.withLock { state -> (R, Bool, Bool) in
      let result = body(&state)
      let schedules = settle(&state)
      let delivers = !state.deliveries.isEmpty && !state.isDelivering
      if delivers { state.isDelivering = true }
      return (result, schedules, delivers)
    }
    if schedules { loop.execute { [self] in flush() } }
    if delivers { deliver() }
    return result
  }

  /// Tell users what waits. What comes meanwhile is told by the loop, so that a thread which only sends
  /// is not kept.
  private func deliver() {
    let deliveries = state.withLock { state in
      defer { state.deliveries = [] }
      return state.deliveries
    }
    for delivery in deliveries { delivery() }
    let isDone = state.withLock { state in
      state.isDelivering = !state.deliveries.isEmpty
      return !state.isDelivering
    }
    if !isDone { loop.execute { [self] in deliver() } }
  }

  /// Tell users what the session has to say, and note whether the loop has work.
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

  private func wakeReached(_ state: inout State) {
    guard !state.reached.isEmpty else { return }
    state.reached.removeAll { item in
      guard let position = state.session.position(of: item.subscription),
        position.revision >= item.revision
      else { return false }
      state.deliveries.append { item.waiter.continuation.resume() }
      return true
    }
  }

  // MARK: Notices

  private func tell(_ notice: Session.Notice, _ state: inout State) {
    switch notice {
    case .connection(let connection):
      state.connection = connection
      // Every subscription begins anew with a connection.
      if connection == .live { (state.refusals, state.unreadable) = ([:], [:]) }
      for case let onConnection? in state.observers.values.map(\.onConnection) {
        state.deliver { onConnection(connection) }
      }
      for observer in state.connectionObservers.values {
        observer.stream.yield(ConnectionState(connection, at: Self.now()))
      }
      switch connection {
      case .live:
        state.hasBeenLive = true
        for waiter in state.connecting { state.deliver { waiter.continuation.resume() } }
        state.connecting = []
      case .closed(let goodbye): end(goodbye, &state)
      case .stale:
        // Answers to these never come: they belong to the connection, not to the session.
        failRequests(ClientError.closed(Goodbye(.done, "the connection was lost")), &state)
      case .connecting: break
      }
    case .changed(let subscription):
      guard let mirror = state.session.mirror(subscription) else { return }
      for observer in state.observers.values where observer.subscription == subscription {
        if let onChange = observer.onChange { state.deliver { onChange(mirror) } }
      }
    case .revised(let subscription, let value, let revision, let patch):
      for observer in state.observers.values where observer.subscription == subscription {
        if let onRevision = observer.onRevision {
          state.deliver { onRevision(value, revision, patch) }
        }
      }
    case .refused(let subscription, let reason):
      state.refusals[subscription] = reason
      fail(.refused(reason), subscription, &state)
    case .unreadable(let subscription, let why):
      state.unreadable[subscription] = (Self.now(), why)
      fail(.closed(why), subscription, &state)
      let stale = ConnectionState(state.connection(of: subscription), at: Self.now())
      for observer in state.connectionObservers.values
      where observer.subscription == subscription {
        observer.stream.yield(stale)
      }
    case .acknowledged(let actions, let acknowledgement):
      acknowledge(actions, acknowledgement, &state)
    case .pong(let number, let revision):
      if let waiter = state.pongs.removeValue(forKey: number) {
        state.deliver { waiter.resume(returning: revision) }
      }
    case .report(let number, let value):
      if let waiter = state.reports.removeValue(forKey: number) {
        state.deliver { waiter.resume(returning: value) }
      }
      state.reportStreams[number]?.yield(value)
    case .digest(let subscription, let revision, let digest):
      for waiter in state.digests.removeValue(forKey: subscription) ?? [] {
        state.deliver { waiter.resume(returning: (revision, digest)) }
      }
    case .diverged(_, let why):
      state.divergences += 1
      state.lastDivergence = why
    case .schema: break
    }
  }

  /// Tell what waits for a subscription that it comes no further.
  private func fail(_ error: ClientError, _ subscription: UInt64, _ state: inout State) {
    state.reached.removeAll { item in
      guard item.subscription == subscription else { return false }
      state.deliveries.append { item.waiter.continuation.resume(throwing: error) }
      return true
    }
  }

  private func acknowledge(
    _ actions: ClosedRange<ActionID>, _ acknowledgement: Acknowledgement, _ state: inout State
  ) {
    if case .rejected = acknowledgement.outcome {
      state.rejectedPosts += 1
    }
    guard !state.actions.isEmpty else { return }
    for number in actions.lowerBound.rawValue...actions.upperBound.rawValue {
      guard let waiter = state.actions.removeValue(forKey: ActionID(number)) else { continue }
      state.answers.append { waiter.resume(with: Self.result(acknowledgement)) }
    }
  }

  /// What the sender of an action is told of it.
  private static func result(
    _ acknowledgement: Acknowledgement
  ) -> Result<Acknowledgement, any Error> {
    switch acknowledgement.outcome {
    case .rejected(let rejection) where rejection.code == 0:
      .failure(ClientError.closed(Goodbye(.done, rejection.message)))
    case .rejected(let rejection): .failure(ClientError.rejected(rejection))
    case .outcomeUnknown: .failure(ClientError.outcomeUnknown)
    case .reduced, .unchanged, .swallowed, .accepted: .success(acknowledgement)
    }
  }

  private func failRequests(_ error: ClientError, _ state: inout State) {
    for waiter in state.pongs.values { state.deliver { waiter.resume(throwing: error) } }
    for waiter in state.reports.values { state.deliver { waiter.resume(throwing: error) } }
    for waiter in state.digests.values.joined() { state.deliver { waiter.resume(throwing: error) } }
    state.pongs = [:]
    for (_, stream) in state.reportStreams { stream.finish(throwing: error) }
    state.reports = [:]
    state.reportStreams = [:]
    state.digests = [:]
  }

  private func end(_ goodbye: Goodbye, _ state: inout State) {
    let error =
      if !state.hasBeenLive, let cause = state.connectError {
        ClientError.cannotConnect(path: path, cause)
      } else {
        ClientError.closed(goodbye)
      }
    failRequests(error, &state)
    for waiter in state.reached.map(\.waiter) + state.connecting {
      state.deliver { waiter.continuation.resume(throwing: error) }
    }
    state.reached = []
    state.connecting = []
    for waiter in state.actions.values { state.deliver { waiter.resume(throwing: error) } }
    state.actions = [:]
    for observer in state.observers.values { state.deliver(observer.onEnd) }
    state.observers = [:]
    for observer in state.connectionObservers.values { observer.stream.finish() }
    state.connectionObservers = [:]
  }

  // MARK: The wire, on the loop

  private func flush() {
    let commands = state.withLock { state in
      state.isFlushScheduled = false
      defer { state.commands = [] }
      return state.commands
    }
    var frames: [[UInt8]] = []
    for command in commands {
      if case .send(let bytes) = command {
        frames.append(bytes)
        continue
      }
      write(&frames)
      switch command {
      case .connect(let delay): connect(after: delay)
      case .disconnect: disconnect()
      case .send, .notify: break
      }
    }
    write(&frames)
  }

  private func write(_ frames: inout [[UInt8]]) {
    guard !frames.isEmpty else { return }
    if let pipe = wire.pipe, case .failed(let error) = pipe.write(frames) { writingFailed(error) }
    frames.removeAll(keepingCapacity: true)
  }

  /// A daemon that has closed takes no more bytes, but why it has is still to be read, and the end
  /// comes behind it.
  private func writingFailed(_ error: LoopError) {
    if error.name != "EPIPE" && error.name != "ECONNRESET" { lost() }
  }

  private func connect(after delay: Duration) {
    guard delay > .zero else { return connect() }
    let timer = wire.timer ?? EventLoop.Timer(on: loop) { [weak self] in self?.connect() }
    wire.timer = timer
    timer.start(after: delay)
  }

  private func connect() {
    wire.generation += 1
    let generation = wire.generation
    Pipe.connect(path: path, on: loop) { [weak self] result in
      guard let self, wire.generation == generation else {
        if case .success(let pipe) = result { pipe.close() }
        return
      }
      switch result {
      case .success(let pipe): opened(pipe)
      case .failure(let error): failed(error)
      }
    }
  }

  private func opened(_ pipe: Pipe) {
    wire.pipe = pipe
    pipe.onWriteError = { [weak self, weak pipe] error in
      // A pipe that we have left already may still fail.
      if let self, let pipe, wire.pipe === pipe { writingFailed(error) }
    }
    pipe.startReading(
      onBytes: { [weak self] bytes in self?.received(bytes) },
      onEnd: { [weak self] _ in self?.lost() })
    perform { $0.session.connected(at: Self.now(), into: &$0.commands) }
  }

  private func failed(_ error: LoopError) {
    perform { state in
      state.connectError = error
      if !state.hasBeenLive && !waitsForDaemon {
        state.session.close(into: &state.commands)
      } else {
        state.session.disconnected(at: Self.now(), into: &state.commands)
      }
    }
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    // Unchecked: the bytes are read before this call returns, on this thread.
    nonisolated(unsafe) let bytes = bytes
    perform { $0.session.received(bytes, at: Self.now(), into: &$0.commands) }
  }

  private func lost() {
    guard let pipe = wire.pipe else { return }
    wire.pipe = nil
    pipe.close()
    perform { $0.session.disconnected(at: Self.now(), into: &$0.commands) }
  }

  private func disconnect() {
    wire.generation += 1
    if let pipe = wire.pipe {
      wire.pipe = nil
      pipe.stopReading()
      pipe.closeAfterWriting()
    }
    let hasEnded = perform { state in
      state.session.disconnected(at: Self.now(), into: &state.commands)
      return state.session.hasEnded
    }
    if hasEnded { wire.close() }
  }

  /// A process that was stopped, or got no time, wakes to a tick before it has read what came
  /// meanwhile: read first, for silence is the daemon's fault only if we have listened.
  private func tick() {
    let timer =
      wire.afterTick
      ?? EventLoop.Timer(on: loop) { [weak self] in
        self?.perform { $0.session.tick(at: Self.now(), into: &$0.commands) }
      }
    wire.afterTick = timer
    timer.start(after: .milliseconds(1))
  }
}

/// The loop on which every client of the process lives, on a thread of its own.
enum ClientLoop {
  static let shared: Result<Loop, LoopError> = Result { () throws(LoopError) in
    Signals.ignoreBrokenPipe()
    return try Loop.startThread(name: "lockstep-client")
  }
}
