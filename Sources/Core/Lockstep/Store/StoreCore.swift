public import CBOR
public import Values

// Theory of operation
//
// A store runs one action at a time: those from outside by `send`, those that effects and
// middleware sent by `sendNext`, which the owner calls until none waits. An action passes the
// middleware's first stage, the reducer, and the second stage; then its effects enter the table.
// The store runs no effect: its owner, a shell, executes `takeOrders` after the change is sent to
// the mirrors, and reports the actions of effects (`send(from:)`) and their end (`finished`).

/// The number of reductions that have changed the state in this epoch.
public typealias Revision = UInt64

/// The outcome of one action.
public enum Reduction: Equatable, Sendable {
  /// The state changed: this is its new revision, and the patch was appended.
  case changed(Revision)
  /// The action was reduced and changed nothing that travels.
  case unchanged
  /// A middleware did not pass it to the reducer.
  case swallowed
  /// The action was accepted, and its work goes on.
  case accepted
  case rejected(Rejection)
}

/// The authority over one state: runs actions through middleware and reducer, one at a time, makes
/// the patch of each change, and keeps the table of effects. It has no thread, no clock and no
/// sockets.
public struct StoreCore<R: Reducer>: Sendable {
  public let reducer: R
  public let middleware: [any Middleware<R.State, R.Action>]
  /// The newest state. A copy is a consistent snapshot, O(1).
  public private(set) var state: R.State
  public private(set) var revision: Revision
  /// The hash seed of the state's collections.
  public let seed: HashSeed
  /// The dependencies of the reducer, and of its effects.
  public var dependencies: DependencyValues
  /// The time with which the next actions are recorded; the owner updates it.
  public var time = Timestamp(nanoseconds: 0)
  /// The latest actions.
  public private(set) var log: ActionLog<R.Action>
  /// An action whose record was written over, for its memory
  /// (`SynchronizableAction.init(from:seed:reusing:)`).
  public var spare: R.Action?
  /// The number of actions so far in the epoch.
  public private(set) var sequence: UInt64 = 0

  private var effects: EffectTable<R.Action>
  private var waiting: [(action: R.Action, cause: Cause)] = []
  private var firstWaiting = 0
  private var warnings: [String] = []
  private var remains = Remains(areKept: false)
  /// The most bytes of each text of a rejection, because the log stores it.
  private let textBytes: Int

  /// A store whose state is at `revision`.
  public init(
    _ state: R.State, reducer: R, middleware: [any Middleware<R.State, R.Action>] = [],
    seed: HashSeed, revision: Revision = 0, sequence: UInt64 = 0, logCapacity: Int = 1024,
    textBytes: Int = 1024, dependencies: DependencyValues = DependencyValues()
  ) {
    self.reducer = reducer
    self.textBytes = textBytes
    self.middleware = middleware
    self.state = state
    self.state.adopt(seed: seed)
    self.revision = revision
    self.sequence = sequence
    self.seed = seed
    self.dependencies = dependencies
    log = ActionLog(capacity: logCapacity)
    effects = EffectTable(salt: seed.rawValue)
    // The edit notes of the initial state are history that no mirror has seen.
    var ignored = CBOREncoder()
    _ = self.state.settle(since: self.state, seed: seed, into: &ignored)
  }

  // MARK: Actions

  /// Run one action, and append the patch of its changes to `patch`.
  ///
  /// `isLogged` says whether the log may store the action itself; it always stores the name.
  @inline(__always)
  public mutating func send(
    _ action: consuming R.Action, from cause: Cause = .owner, isLogged: Bool = true,
    patch: inout CBOREncoder
  ) -> Reduction {
    sequence += 1
    let seed = randomSeed(of: sequence)
    let reduction = reduce(&action, cause, seed, &patch)
    if isLogged {
      spare = log.append(
        action, sequence: sequence, from: cause, at: time, seed: seed, reduction, revision)
    } else {
      log.append(
        ActionRecord(
          nil, named: action.name, sequence: sequence, from: cause, at: time, seed: seed, reduction,
          revision))
    }
    return reduction
  }

  /// Whether an action should be foreseen before it is performed.
  @inline(__always)
  public func takesLong(_ action: R.Action) -> Bool { reducer.takesLong(action, in: state) }

  /// Whether an action may change what was foreseen about another.
  @inline(never)
  public func mayChange(_ foresight: Foresight, by action: R.Action) -> Bool {
    reducer.mayChange(foresight, by: action, in: state)
  }

  /// Let the state know what was foreseen about the next action, or forget it. Returns false if that
  /// does not hold any more.
  @discardableResult
  public mutating func recall(_ foresight: Foresight?) -> Bool {
    reducer.recall(foresight, in: &state)
  }

  @inline(__always)
  private mutating func reduce(
    _ action: inout R.Action, _ cause: Cause, _ seed: UInt64, _ patch: inout CBOREncoder
  ) -> Reduction {
    if !middleware.isEmpty, let early = askBefore(&action, cause) { return early }
    // A state that notes its edits is not held, so that nothing is copied.
    let old: R.State? = R.State.isJournaled ? nil : state
    let effect: Effect<R.Action>
    do throws(Rejection) {
      effect =
        R.usesContext
        ? try reduceInContext(action, cause, seed)
        : try reducer.reduce(into: &state, action: action)
    } catch {
      state.rollBack(to: old)
      remains.add(state.takeRemains())
      let reduction = Reduction.rejected(error.bounded(to: textBytes))
      if !middleware.isEmpty { askAfter(action, reduction, cause) }
      return reduction
    }
    let reduction: Reduction
    let length = patch.bytes.count
    let isChanged = state.settle(since: old, seed: self.seed, into: &patch)
    remains.add(state.takeRemains())
    if let old, patch.bytes.count - length > Self.largePatch { remains.add(old) }
    if isChanged {
      revision += 1
      reduction = .changed(revision)
    } else {
      reduction = effect.isAccepted ? .accepted : .unchanged
    }
    if effect.node != nil { start(effect, cause, action.name) }
    if !middleware.isEmpty { askAfter(action, reduction, cause) }
    return reduction
  }

  /// The length of a patch from which on the state before it may be the last that is left of many
  /// values.
  private static var largePatch: Int { 16 << 10 }

  private mutating func reduceInContext(
    _ action: R.Action, _ cause: Cause, _ seed: UInt64
  ) throws(Rejection) -> Effect<R.Action> {
    let context = ReductionContext(
      cause: cause, time: time, seed: seed, children: effects.children)
    var values = dependencies
    values.reduction = context
    defer { if !context.warnings.isEmpty { warnings += context.warnings } }
    return try values.run { () throws(Rejection) in
      try reducer.reduce(into: &state, action: action)
    }
  }

  private mutating func start(
    _ effect: Effect<R.Action>, _ cause: Cause, _ name: String, middleware: String? = nil
  ) {
    effects.start(
      effect,
      .init(
        cause: cause, sequence: sequence, actionName: name, middleware: middleware, time: time))
    takeSends()
  }

  /// Give the next number to an action that is not reduced.
  public mutating func skipSequence() { sequence += 1 }

  /// Begin a revision whose patch the caller knows, whether or not the state changes by it.
  public mutating func advance() { revision += 1 }

  /// Append to the log what a former process did, before any action of this one: `number` is no larger
  /// than `sequence`, and `action` is nil if it was not kept.
  public mutating func takeUp(
    _ action: R.Action?, named name: String, number: UInt64, from cause: Cause, at time: Timestamp,
    _ outcome: Reduction, _ revision: Revision
  ) {
    log.append(
      ActionRecord(
        action, named: name, sequence: number, from: cause, at: time, seed: randomSeed(of: number),
        outcome, revision))
  }

  @inline(__always)
  private func randomSeed(of sequence: UInt64) -> UInt64 {
    Hashing.mix(seed.rawValue &+ sequence)
  }

  // MARK: Other contents

  /// Replace the state by one for which the caller has a patch, or by itself. No action is reduced; the
  /// log has one of this name. The effects of children that are gone end. O(the running effects).
  public mutating func replaceState(
    by new: R.State, isOther: Bool, from cause: Cause, named name: String
  ) -> Reduction {
    sequence += 1
    var reduction = Reduction.unchanged
    if isOther {
      let old = state
      remains.add(old)
      state = new
      state.adopt(seed: seed)
      // The notes of how it was made are none of this change's.
      var ignored = CBOREncoder()
      _ = state.settle(since: state, seed: seed, into: &ignored)
      revision += 1
      reduction = .changed(revision)
      effects.cancelOrphans(of: old, in: state)
      takeSends()
    }
    log.append(
      ActionRecord(
        nil, named: name, sequence: sequence, from: cause, at: time, seed: randomSeed(of: sequence),
        reduction, revision))
    return reduction
  }

  // MARK: Middleware

  /// Returns the action's outcome, if it goes no further.
  private mutating func askBefore(_ action: inout R.Action, _ cause: Cause) -> Reduction? {
    for item in middleware {
      var context = MiddlewareContext<R.Action>(sequence: sequence, cause: cause, time: time)
      let verdict: MiddlewareVerdict
      do throws(Rejection) {
        verdict = try ask(item, &action, &context)
      } catch {
        return .rejected(error.bounded(to: textBytes))
      }
      for added in context.added {
        let cause = cause.following(sequence, .middleware(item.name))
        if let root = cause.root { effects.retain(root: root) }
        wait(added, cause)
      }
      if verdict == .swallow { return .swallowed }
    }
    return nil
  }

  private func ask<M: Middleware<R.State, R.Action>>(
    _ middleware: M, _ action: inout R.Action, _ context: inout MiddlewareContext<R.Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    try dependencies.run { () throws(Rejection) in
      try middleware.before(&action, state: state, context: &context)
    }
  }

  private mutating func askAfter(
    _ action: R.Action, _ reduction: Reduction, _ cause: Cause
  ) {
    for item in middleware {
      let context = MiddlewareContext<R.Action>(sequence: sequence, cause: cause, time: time)
      let effect = DependencyValues.$current.withValue(dependencies) {
        item.after(action, state: state, reduction: reduction, context: context)
      }
      if effect.node != nil { start(effect, cause, action.name, middleware: item.name) }
    }
  }

  // MARK: Actions that wait

  /// Whether actions of effects or middleware wait.
  public var hasWaiting: Bool { firstWaiting < waiting.count }

  private mutating func wait(_ action: R.Action, _ cause: Cause) {
    waiting.append((action, cause))
  }

  private mutating func takeSends() {
    guard !effects.sends.isEmpty else { return }
    for (action, cause) in effects.sends { wait(action, cause) }
    effects.sends.removeAll(keepingCapacity: true)
  }

  /// Run the action that has waited longest. Nil if none waits.
  public mutating func sendNext(patch: inout CBOREncoder) -> Reduction? {
    guard hasWaiting else { return nil }
    let (action, cause) = waiting[firstWaiting]
    firstWaiting += 1
    if firstWaiting == waiting.count {
      waiting.removeAll(keepingCapacity: firstWaiting < 4096)
      firstWaiting = 0
    } else if firstWaiting >= 4096, firstWaiting * 2 > waiting.count {
      waiting.removeSubrange(..<firstWaiting)
      firstWaiting = 0
    }
    let reduction = send(action, from: cause, patch: &patch)
    if let root = cause.root { effects.release(root: root) }
    return reduction
  }

  // MARK: Effects

  /// Take the orders for effects since the last call.
  public mutating func takeOrders() -> [EffectOrder] {
    guard !effects.orders.isEmpty else { return [] }
    defer { effects.orders = [] }
    return effects.orders
  }

  /// Whether there are orders for effects.
  public var hasOrders: Bool { !effects.orders.isEmpty }

  /// The operation of an effect that was ordered to start; nil if it has been cancelled since.
  public func operation(of id: EffectID) -> EffectOperation<R.Action>? {
    effects.leaf(id).map { leaf in
      EffectOperation(
        id: id, work: leaf.work, actionName: leaf.actionName, scope: effects.scope(of: id))
    }
  }

  /// Run an action that an effect sent. Nil if the effect is not running any more.
  public mutating func send(
    _ action: R.Action, from effect: EffectID, patch: inout CBOREncoder
  ) -> Reduction? {
    guard let cause = effects.send(from: effect) else {
      if let leaf = effects.endedLeaf(effect) {
        warnings.append(
          """
          An action was sent by an effect that had ended, and is ignored. Action: \(action.name). \
          Effect "\(leaf.name)", \(leaf.place), returned for: \(leaf.actionName).
          """)
      }
      return nil
    }
    return send(action, from: cause, patch: &patch)
  }

  /// Note that an effect's task has ended, with the error that it did not catch, if any.
  public mutating func finished(_ id: EffectID, unhandled error: String? = nil) {
    if let error, let leaf = effects.leaf(id) {
      warnings.append(
        """
        The effect "\(leaf.work.name)", \(leaf.work.place), returned for \(leaf.actionName), threw \
        an error that it does not catch: \(error)
        """)
    }
    effects.finished(id)
    takeSends()
  }

  /// The running effects, in the order of their start.
  public var runningEffects: [RunningEffect] { effects.running }

  /// The first `limit` effects from a number on, in the order of their start.
  public func runningEffects(from first: UInt64, limit: Int) -> [RunningEffect] {
    effects.running(from: first, limit: limit)
  }

  /// The names under which effects run or wait, and the same names in the enclosing features.
  var effectNames: [ScopedEffectKey] { effects.namesAround }

  /// The number of running effects.
  public var effectCount: Int { effects.count }

  /// Cancel the effects that have this UUID, name or key. Returns their number.
  public mutating func cancelEffects(_ text: String) -> Int {
    defer { takeSends() }
    return effects.cancel(named: text)
  }

  /// Cancel the effects under a name, in its feature and in those inside, because an effect asks
  /// for it.
  public mutating func cancelEffects(under name: ScopedEffectKey) {
    effects.cancel(name)
    takeSends()
  }

  /// Cancel the effects that end with a client.
  public mutating func cancelEffects(ownedBy connection: UInt64) {
    effects.cancel(ownedBy: connection)
    takeSends()
  }

  /// The connections of the clients that own effects.
  public var effectOwners: [UInt64] { effects.owners }

  /// Cancel the effects that the action of this number began, and those that followed from them.
  public mutating func cancelCascade(of root: UInt64) {
    effects.cancel(cascade: root)
    takeSends()
  }

  /// Whether all consequences of the action of this number have ended: its effects, the actions
  /// that they sent, and so on.
  public func isDone(_ root: UInt64) -> Bool { effects.isDone(root) }

  /// Keep from now on what the state drops, for an owner that calls `takeRemains` after each turn.
  public mutating func keepRemains() { remains = Remains() }

  /// Take what the state has dropped since the last call and what takes long to release.
  @inline(__always)
  public mutating func takeRemains() -> Remains { remains.take() }

  /// Take the warnings since the last call: sentences for the log about faults without harm.
  public mutating func takeWarnings() -> [String] {
    guard !warnings.isEmpty else { return [] }
    defer { warnings = [] }
    return warnings
  }
}
