public import Lockstep
import Simulator
import Values
import Wire

/// A feature of yours under test with its daemon, several mirrors, its effects, and a bad network
/// between them, all in one process, on one thread, and in an invented time. One seed is one run.
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
/// Server and clients are the real ones. After every step it is checked, among much else, that
/// each mirror shows a state that the daemon had at the revision that it claims, that no mirror
/// goes back, that every action is done once and in order and answered with the truth after its
/// change has come, and that limits hold. What breaks a rule is thrown as a `SyncTestFailure`,
/// which says how to see it again. After one, the store is of no further use.
///
/// Effects run as tasks on an executor of the store: which of them goes on next, the seed decides.
/// The clock of their dependencies shows the store's time, in 1970; so does `date`; identifiers
/// count, and random numbers follow from the seed. An effect that does something which no seed
/// decides (`Task.detached`, `Task.sleep`, `ContinuousClock`, the network) fails the run. One that
/// nobody awaits is found out only if it comes back before the test is over.
///
/// Nothing happens outside of calls, and nothing is asynchronous: use a store in one function that
/// is neither. Not thread-safe.
public final class SyncTestStore<R: Reducer> {
  private var simulation: DrivenSimulation<R>
  private let mirrors: Int

  /// A daemon that has just started, and clients that are about to connect to it, each of which
  /// sees the whole state.
  ///
  /// - Parameters:
  ///   - misfortunes: What the network, and the daemon's process, have in store until `settle`.
  ///   - effectsMayWait: Whether effects may wait for something that only the test brings, such as
  ///     the events of a fake device.
  ///   - withDependencies: Changes what the reducer and its effects depend on: the test values of all
  ///     keys, if nothing else is said.
  public init<FeatureState, FeatureAction>(
    initialState: FeatureState, middleware: [any Middleware<FeatureState, FeatureAction>] = [],
    seed: UInt64, mirrors: Int = 2, misfortunes: Misfortunes = .some,
    effectsMayWait: Bool = false,
    @ReducerBuilder<FeatureState, FeatureAction> reducer: () -> R,
    withDependencies change: @escaping @Sendable (inout DependencyValues) -> Void = { _ in }
  ) throws(SyncTestFailure) where R: Reducer<FeatureState, FeatureAction> {
    precondition(mirrors > 0, "A store that nobody mirrors is for TestStore.")
    var feature = SimulatedFeature(
      reducer(), mirroredAs: R.State.self, initial: { initialState }, action: { _ in nil },
      path: { _ in .root })
    feature.middleware = middleware
    feature.dependencies = change
    self.mirrors = mirrors
    do throws(SimulationFailure) {
      simulation = try DrivenSimulation(
        feature, seed: seed, clients: mirrors, plan: misfortunes.plan,
        effectsMayWait: effectsMayWait)
    } catch {
      throw SyncTestFailure(error)
    }
  }

  // MARK: Acting

  /// Send an action from a client, now or as soon as it is connected. What becomes of it, `run` and
  /// `settle` show.
  @discardableResult
  public func send(
    _ action: R.Action, from client: Int
  ) throws(SyncTestFailure) -> SyncTestAction {
    precondition(0..<mirrors ~= client, "There is no client \(client).")
    let number = try simulate { (simulation) throws(SimulationFailure) in
      try simulation.send(action, from: client)
    }
    return SyncTestAction(client: client, number: number)
  }

  /// Let so many things happen, each of which the seed chooses: some bytes arrive somewhere, the
  /// daemon ends a turn, an effect goes on, a connection is cut. A little time passes with each.
  public func run(steps: Int) throws(SyncTestFailure) {
    for _ in 0..<steps {
      try simulate { (simulation) throws(SimulationFailure) in try simulation.advance() }
    }
  }

  /// Let time pass. Whoever sleeps on the effects' clock wakes on the way, in the order of their
  /// deadlines, and does all that it can before the next wakes. The network goes on meanwhile.
  public func advance(by duration: Duration) throws(SyncTestFailure) {
    try simulate { (simulation) throws(SimulationFailure) in
      try simulation.advance(by: duration)
    }
  }

  /// Let everything come to rest: misfortunes end, every client comes back and reads. Then every
  /// mirror equals the state, and every action is answered. Time passes only where nothing goes on
  /// without it; effects that sleep go on sleeping.
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

  /// The daemon's state; while the daemon is down, the one with which it will come back.
  public var state: R.State { simulation.state }

  /// What a client sees.
  public func mirror(_ client: Int) -> SyncTestMirror<R.State> {
    precondition(0..<mirrors ~= client, "There is no client \(client).")
    let (state, revision, isLive) = simulation.mirror(client)
    return SyncTestMirror(state: state, revision: revision, isLive: isLive)
  }

  /// What a client was told of an action; nil while it has not been told.
  public func outcome(of action: SyncTestAction) -> SyncTestOutcome? {
    simulation.outcome(of: action.number, from: action.client).map { SyncTestOutcome($0) }
  }

  /// The effects that run, in the order of their start.
  public var runningEffects: [RunningEffect] { simulation.runningEffects }

  /// The store's time.
  public var now: Timestamp { simulation.now }

  /// A hash of everything that happened: one seed and the same calls have one trace.
  public var trace: UInt64 { simulation.trace }

  /// How often what has happened, by name.
  public var counts: [String: Int] { simulation.counts }
}

/// An action that a client of a `SyncTestStore` sent.
public struct SyncTestAction: Hashable, Sendable {
  public let client: Int
  /// The how manyth action of its client it is.
  public let number: UInt64
}

/// What a client of a `SyncTestStore` sees.
public struct SyncTestMirror<State: Sendable>: Sendable {
  /// Nil before the first snapshot.
  public let state: State?
  public let revision: Revision?
  /// Whether the client is connected and gets every change.
  public let isLive: Bool
}

/// What a client was told of an action.
public enum SyncTestOutcome: Hashable, Sendable {
  /// It changed the state.
  case reduced
  case unchanged
  /// A middleware kept it from the reducer.
  case swallowed
  /// It changed nothing, but its work goes on.
  case accepted
  case rejected(Rejection)
  /// The daemon that could know is no more.
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
