public import Lockstep
import Simulator
import Values
import Wire

/// A feature under test with its daemon, several mirrors, its effects, and a bad network between
/// them, all in one process, on one thread, and in simulated time. One seed gives one run.
///
///     @Test(arguments: 1...200 as ClosedRange<UInt64>)
///     func `every mirror gets what was loaded`(seed: UInt64) throws {
///       let store = try SyncTestStore(initialState: Todos.State(), seed: seed, mirrors: 3) {
///         Todos()
///       } withDependencies: {
///         $0.todoBackend = FakeBackend()
///       }
///       let load = try store.send(.loadTodos, from: 0)
///       try store.run(steps: 500)
///       try store.settle()
///       try store.advance(by: .seconds(2))
///       try store.settle()
///       #expect(store.outcome(of: load) == .reduced)
///       #expect(store.state.todos.count == 3)
///       #expect(store.mirror(1).state == store.state)
///     }
///
/// Server and clients are the real ones. Every step is followed by checks, among them that each
/// mirror shows a state that the daemon had at the mirror's revision, that no mirror goes back,
/// that every action is performed once and in order and acknowledged truthfully after its change
/// has arrived, and that limits hold. A violation is thrown as a `SyncTestFailure`, which says how
/// to reproduce it; the store cannot be used afterwards.
///
/// Effects run as tasks on an executor of the store, and the seed decides which of them continues
/// next. The clock of their dependencies shows the store's time, in 1970; so does `date`;
/// identifiers count, and random numbers derive from the seed. An effect whose timing no seed
/// decides (`Task.detached`, `Task.sleep`, `ContinuousClock`, the network) fails the run. If
/// nothing awaits such work, it is detected only if it returns before the test ends.
///
/// Nothing happens between calls, and nothing is asynchronous: use a store in one synchronous
/// function. Not thread-safe.
public final class SyncTestStore<R: Reducer> {
  private var simulation: DrivenSimulation<R>
  private let mirrors: Int

  /// A daemon that has just started, and clients that are about to connect to it, each of which
  /// mirrors the whole state.
  ///
  /// - Parameters:
  ///   - optimistic: Whether the mirrors are as those of `MirrorStore.connect(optimistic:)`.
  ///   - misfortunes: The faults of the network and of the daemon's process, until `settle`.
  ///   - effectsMayWait: Whether effects may wait for input that only the test provides, such as
  ///     the events of a fake device.
  ///   - withDependencies: Changes the dependencies of the reducer and its effects: those that are
  ///     set for the code that makes the store, and the test values of the other keys. The use of a
  ///     live dependency is a failure, once for each key.
  public init<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    seed: UInt64, mirrors: Int = 2, optimistic: Bool = false, misfortunes: Misfortunes = .some,
    effectsMayWait: Bool = false,
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R,
    withDependencies change: @escaping @Sendable (inout DependencyValues) -> Void = { _ in },
    fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
    column: UInt = #column
  ) throws(SyncTestFailure) where R: Reducer<FeatureState, FeatureAction> {
    precondition(mirrors > 0, "A store that nobody mirrors is for TestStore.")
    var feature = SimulatedFeature(
      reducer(), mirroredAs: R.State.self, initial: { initialState }, action: { _ in nil },
      path: { _ in .root })
    feature.middleware = middleware
    let (around, place) = (
      DependencyValues.current, SourcePlace(fileID, filePath, line, column)
    )
    feature.dependencies = { values in
      values.test(reportingTo: place)
      values = around.over(values)
      change(&values)
    }
    self.mirrors = mirrors
    do throws(SimulationFailure) {
      simulation = try DrivenSimulation(
        feature, seed: seed, clients: mirrors, plan: misfortunes.plan, optimistic: optimistic,
        effectsMayWait: effectsMayWait)
    } catch {
      throw SyncTestFailure(error)
    }
  }

  // MARK: Acting

  /// Send an action from a client, now or as soon as it is connected. `run` and `settle` bring its
  /// outcome.
  ///
  ///     try store.settle()
  ///     let toggle = try store.send(.toggle(2), from: 0, optimistically: true)
  ///     #expect(store.mirror(0).state?.todos[2]?.isDone == true)
  ///     #expect(store.mirror(0).pending == [toggle])
  ///     #expect(store.mirror(0).confirmed?.todos[2]?.isDone == false)
  ///
  /// - Parameter optimistically: Whether the mirror of the client shows it at once, if its first
  ///   snapshot has come, as `.optimistic` does in a `MirrorStore`: reduced there, without effects, with
  ///   dependencies as the daemon's but of its own. Only in a store whose mirrors are `optimistic`.
  @discardableResult
  public func send(
    _ action: R.Action, from client: Int, optimistically: Bool = false
  ) throws(SyncTestFailure) -> SyncTestAction {
    precondition(0..<mirrors ~= client, "There is no client \(client).")
    precondition(
      !optimistically || simulation.isOptimistic,
      "Only the mirrors of SyncTestStore(optimistic: true) show actions before their answer.")
    let number = try simulate { (simulation) throws(SimulationFailure) in
      try simulation.send(action, from: client, optimistically: optimistically)
    }
    return SyncTestAction(client: client, number: number)
  }

  /// Let `steps` events happen, each chosen by the seed: some bytes arrive, the daemon ends a turn,
  /// an effect continues, a connection is cut. A little time passes with each.
  public func run(steps: Int) throws(SyncTestFailure) {
    for _ in 0..<steps {
      try simulate { (simulation) throws(SimulationFailure) in try simulation.advance() }
    }
  }

  /// Let time pass. Tasks that sleep on the effects' clock wake in the order of their deadlines,
  /// and each runs as far as it can before the next wakes. The network continues meanwhile.
  public func advance(by duration: Duration) throws(SyncTestFailure) {
    try simulate { (simulation) throws(SimulationFailure) in
      try simulation.advance(by: duration)
    }
  }

  /// Let everything come to rest: faults end, and every client reconnects and reads. Then every
  /// mirror equals the state, and every action is answered. Time passes only where nothing
  /// continues without it; sleeping effects stay asleep.
  public func settle() throws(SyncTestFailure) {
    try simulate { (simulation) throws(SimulationFailure) in try simulation.pause() }
  }

  private func simulate<T>(
    _ body: (inout DrivenSimulation<R>) throws(SimulationFailure) -> T
  ) throws(SyncTestFailure) -> T {
    do throws(SimulationFailure) { return try body(&simulation) } catch {
      throw SyncTestFailure(error)
    }
  }

  // MARK: Looking

  /// The daemon's state; while the daemon is down, the state with which it will restart.
  public var state: R.State { simulation.state }

  /// The mirror of a client.
  public func mirror(_ client: Int) -> SyncTestMirror<R.State> {
    precondition(0..<mirrors ~= client, "There is no client \(client).")
    let (confirmed, revision, isLive) = simulation.mirror(client)
    let shown = simulation.prediction(client)
    return SyncTestMirror(
      state: shown?.state ?? confirmed, confirmed: confirmed,
      pending: shown?.actions.map { SyncTestAction(client: client, number: $0) } ?? [],
      revision: revision, isLive: isLive)
  }

  /// The outcome of an action as its client knows it; nil before the acknowledgement.
  public func outcome(of action: SyncTestAction) -> SyncTestOutcome? {
    simulation.outcome(of: action.number, from: action.client).map { SyncTestOutcome($0) }
  }

  /// The running effects, in the order of their start.
  public var runningEffects: [RunningEffect] { simulation.runningEffects }

  /// The store's time.
  public var now: Timestamp { simulation.now }

  /// A hash of everything that happened: one seed and the same calls have one trace.
  public var trace: UInt64 { simulation.trace }

  /// The number of events of each kind, by name.
  public var counts: [String: Int] { simulation.counts }
}

/// An action that a client of a `SyncTestStore` sent.
public struct SyncTestAction: Hashable, Sendable {
  public let client: Int
  /// The action's ordinal among its client's actions.
  public let number: UInt64
}

/// The mirror of one client of a `SyncTestStore`.
public struct SyncTestMirror<State: Sendable>: Sendable {
  /// What it shows: the confirmed state, with the optimistic actions that are pending. Nil before the
  /// first snapshot.
  public let state: State?
  /// A state that the daemon had.
  public let confirmed: State?
  /// The optimistic actions that the confirmed state does not contain yet, oldest first.
  public let pending: [SyncTestAction]
  /// That of the confirmed state.
  public let revision: Revision?
  /// Whether the client is connected and receives every change.
  public let isLive: Bool
}

/// The outcome of an action, as its client knows it.
public enum SyncTestOutcome: Hashable, Sendable {
  /// It changed the state.
  case reduced
  case unchanged
  /// A middleware stopped it before the reducer.
  case swallowed
  /// It changed nothing, but its effect continues.
  case accepted
  case rejected(Rejection)
  /// The daemon that knew the outcome is gone.
  case unknown

  init(_ outcome: Acknowledgement.Outcome) {
    switch outcome {
    case .reduced: self = .reduced
    case .unchanged: self = .unchanged
    case .swallowed: self = .swallowed
    case .accepted: self = .accepted
    case .rejected(let message):
      self = .rejected(
        Rejection(Rejection.Code(rawValue: message.code), message.message, at: message.path))
    case .outcomeUnknown: self = .unknown
    }
  }
}
