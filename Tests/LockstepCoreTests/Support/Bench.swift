import CBOR
import Lockstep
import Values

/// Drives a store as a shell does, except that the test decides what the effects do.
struct Bench<R: Reducer> {
  var core: StoreCore<R>
  /// The names of the started effects, in order.
  private(set) var started: [String] = []
  /// The names of the effects whose tasks were cancelled, in order.
  private(set) var cancelled: [String] = []
  private var ids: [String: EffectID] = [:]
  private var names: [EffectID: String] = [:]

  init(
    _ state: R.State, _ reducer: R, middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues()
  ) {
    core = StoreCore(
      state, reducer: reducer, middleware: middleware, seed: HashSeed(7),
      dependencies: dependencies)
  }

  /// Sends an action, and takes every action it causes at once. Returns their reductions.
  @discardableResult
  mutating func send(_ action: R.Action, from cause: Cause = .owner) -> [Reduction] {
    var patch = CBOREncoder()
    let first = core.send(action, from: cause, patch: &patch)
    return [first] + goOn()
  }

  /// Sends an action from the latest effect with this name. Returns nothing if the effect has
  /// ended.
  @discardableResult
  mutating func send(_ action: R.Action, by name: String) -> [Reduction] {
    var patch = CBOREncoder()
    guard let id = id(name), let first = core.send(action, from: id, patch: &patch) else {
      return []
    }
    return [first] + goOn()
  }

  /// Ends the latest effect with this name.
  mutating func finish(_ name: String, unhandled error: String? = nil) {
    if let id = id(name) { core.finished(id, unhandled: error) }
    goOn()
  }

  /// Calls the store from outside.
  mutating func change(_ body: (inout StoreCore<R>) -> Void) {
    body(&core)
    goOn()
  }

  func id(_ name: String) -> EffectID? { ids[name] }

  /// The names of the running effects.
  var running: [String] { core.runningEffects.map(\.name) }

  @discardableResult
  private mutating func goOn() -> [Reduction] {
    var patch = CBOREncoder()
    var reductions: [Reduction] = []
    while let reduction = core.sendNext(patch: &patch) { reductions.append(reduction) }
    for order in core.takeOrders() {
      switch order {
      case .start(let id):
        guard let operation = core.operation(of: id) else { continue }
        started.append(operation.name)
        ids[operation.name] = id
        names[id] = operation.name
      case .cancel(let id):
        if let name = names[id] { cancelled.append(name) }
      case .cancelTasks: break
      }
    }
    return reductions
  }
}

extension Bench<Script> {
  /// A store whose actions start the effects that `effects` returns.
  init(_ effects: @escaping @Sendable (Act) -> Effect<Act>) {
    self.init(Trace(), .script(effects))
  }

  var log: [String] { core.state.log }
}

extension Cause {
  /// The cause of an action that a client sent.
  static func client(_ connection: UInt64) -> Cause {
    Cause(.client(ClientOrigin(connection: connection, pid: 1, uid: 1, gid: 1)))
  }
}
