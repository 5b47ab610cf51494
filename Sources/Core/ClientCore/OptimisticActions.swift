import Values
public import Wire

// Theory of operation
//
// An optimistic action shows before the daemon has decided it: the session's user reduces it on a
// copy of what the mirror shows. So the session says at any time what is to be reduced on what: a
// *basis*, which is a value that the daemon had, and the actions that are not in it.
//
// The daemon announces decided actions before it sends their changes (`decided`), so an action is in
// a mirror's value from the announced revision on, and in none before. The value is a basis if the
// mirror is live and has reached that revision. Until then the former basis stays, so that no action
// shows twice, and none disappears and comes back.
//
// A decided action waits on until it is acknowledged. A daemon that comes back after a crash may have
// lost it, and then it shows again, because it is sent again.
//
// While no optimistic action waits there is no basis: the mirror's value is shown, and patches
// change it in place.

/// The optimistic actions that show or may show again, and how far the daemon has decided.
struct OptimisticActions: Sendable {
  typealias Action = (id: ActionID, payload: [UInt8])

  /// Oldest first.
  private(set) var waiting: [Action] = []
  /// Actions up to `through` are decided; they are in the state from `revision` on.
  private(set) var decided = (through: ActionID(0), revision: UInt64(0))
  /// Rises with every change of what is to be shown.
  private(set) var version: UInt64 = 1
  /// How often actions were removed.
  private(set) var removals: UInt64 = 0

  var isEmpty: Bool { waiting.isEmpty }

  mutating func append(_ id: ActionID, _ payload: [UInt8]) {
    waiting.append((id, payload))
    version += 1
  }

  /// The daemon has decided the actions up to one, at a revision.
  mutating func decide(through id: ActionID, at revision: UInt64) {
    if id >= decided.through { decided = (id, revision) }
  }

  /// Another connection to a daemon that has decided the actions up to one, and perhaps more than it
  /// announced. Revisions of the former connection may mean nothing now. The daemon announces again
  /// what it has decided, before it sends anything of the state.
  mutating func reconnect(through id: ActionID) { decided = (min(decided.through, id), 0) }

  /// A basis has changed.
  mutating func rebase() { version += 1 }

  /// Remove actions that are not in the state, and never will be. Returns whether any waited.
  mutating func drop(_ ids: ClosedRange<ActionID>) -> Bool {
    remove { ids.contains($0) }
  }

  /// Forget actions that every basis contains, and that are acknowledged, so that they are never sent
  /// again. No view changes, unless none waits any more: returns whether that is so now.
  mutating func forget(before id: ActionID) -> Bool {
    guard let first = waiting.first, first.id < id else { return false }
    waiting = Array(waiting(from: id))
    guard waiting.isEmpty else { return false }
    version += 1
    removals += 1
    return true
  }

  /// Remove all. Returns whether any waited.
  mutating func dropAll() -> Bool { remove { _ in true } }

  private mutating func remove(_ isGone: (ActionID) -> Bool) -> Bool {
    let before = waiting.count
    waiting.removeAll { isGone($0.id) }
    guard waiting.count != before else { return false }
    version += 1
    removals += 1
    return true
  }

  /// The actions from one on. O(log n).
  func waiting(from id: ActionID) -> ArraySlice<Action> {
    var (low, high) = (0, waiting.count)
    while low < high {
      let middle = (low + high) / 2
      if waiting[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return waiting[low...]
  }
}

/// A value that the daemon had, on which waiting actions are reduced.
struct OptimisticBasis: Sendable {
  let value: MirroredValue
  let position: Position?
  /// Actions before this one are in the value, or never will be.
  let next: ActionID
  /// Differs between the bases of a mirror.
  let number: UInt64
}

/// What a mirror shows while optimistic actions wait.
public struct OptimisticView: Sendable {
  /// A value that the daemon had.
  public let confirmed: MirroredValue
  /// Its position; nil if the mirror has not arrived.
  public let position: Position?
  /// The actions that are not in it, oldest first: each with its encoded form, in the client's
  /// schema.
  public let actions: ArraySlice<(id: ActionID, payload: [UInt8])>
  /// Views of one lineage have the same confirmed value, and the later one has all actions of the
  /// earlier one, and perhaps more behind them.
  public let lineage: Lineage
  /// Rises with every change of a view of the session.
  public let version: UInt64

  /// Identifies a lineage of views of one mirror.
  public struct Lineage: Hashable, Sendable {
    let basis: UInt64
    let removals: UInt64
  }
}

extension ClientSession {
  /// Whether the daemon announces what it has decided, as far as is known.
  private var isAnnounced: Bool {
    configuration.wantsDecisions
      && welcome.map { $0.version >= ProtocolVersion.withDecisions } ?? true
  }

  /// What an optimistic mirror shows; nil if no optimistic action waits, so that it shows its value.
  /// O(log actions).
  public func optimisticView(of number: UInt64) -> OptimisticView? {
    guard !optimistic.isEmpty, let basis = mirror(number)?.basis else { return nil }
    return OptimisticView(
      confirmed: basis.value, position: basis.position,
      actions: optimistic.waiting(from: basis.next),
      lineage: .init(basis: basis.number, removals: optimistic.removals),
      version: optimistic.version)
  }

  /// Whether actions show in this mirror before they are decided.
  public func isOptimistic(_ number: UInt64) -> Bool { mirror(number)?.isOptimistic ?? false }

  /// Show actions in this mirror before they are decided.
  public mutating func showOptimistically(_ number: UInt64) {
    for index in mirrors.indices where mirrors[index].number == number {
      mirrors[index].isOptimistic = true
    }
    // It may have arrived while actions wait that were sent before.
    rebaseOptimistic()
  }

  /// Show an action that is being sent, if the daemon announces when it is decided.
  mutating func showAtOnce(_ id: ActionID, _ payload: [UInt8], _ commands: inout [Command]) {
    guard isAnnounced, !hasEnded else { return }
    let isFirst = optimistic.isEmpty
    optimistic.append(id, payload)
    for index in mirrors.indices where mirrors[index].isOptimistic {
      // One that became optimistic since the first may have none yet.
      if isFirst || mirrors[index].basis == nil {
        mirrors[index].beginBasis(before: id, number: optimistic.version)
      }
      commands.append(.notify(.changed(mirrors[index].number)))
    }
  }

  /// Note the daemon's announcement: actions up to this number of the session are decided.
  mutating func decided(through number: UInt64, at revision: UInt64) {
    optimistic.decide(through: action(ofNumber: number), at: revision)
  }

  /// The action with a number in this session, which may be any; at most the last one.
  private func action(ofNumber number: UInt64) -> ActionID {
    let (id, overflow) = number.addingReportingOverflow(numberOffset)
    return ActionID(overflow ? nextAction - 1 : min(id, nextAction - 1))
  }

  /// Note that the session continues on another connection, or that a new one begins, in which the
  /// actions that were sent before have no numbers. `last` is the number of the last action that the
  /// daemon has decided.
  mutating func reconnectOptimistic(isResumed: Bool, last: UInt64) {
    let decided = action(ofNumber: isResumed ? last : 0)
    optimistic.reconnect(through: decided)
    if !isResumed { optimistic.decide(through: decided, at: 0) }
    if !isAnnounced, optimistic.dropAll() { noteViews() }
  }

  /// Remove actions that will never be in the state.
  mutating func dropOptimistic(_ ids: ClosedRange<ActionID>) {
    if !keepsRejected, optimistic.drop(ids) { noteViews() }
  }

  mutating func dropAllOptimistic() {
    if optimistic.dropAll() { noteViews() }
  }

  /// Let every optimistic mirror that can show newer confirmed values.
  mutating func rebaseOptimistic() {
    guard !optimistic.isEmpty else { return }
    let skipsCheck = skipsDecisionCheck
    var contained = ActionID(
      min(optimistic.decided.through.rawValue + 1, firstUnacknowledged))
    for index in mirrors.indices where mirrors[index].isOptimistic {
      if mirrors[index].rebase(
        optimistic.decided, number: optimistic.version + 1, skipsCheck: skipsCheck)
      {
        optimistic.rebase()
        changed.insert(mirrors[index].number)
      }
      if let basis = mirrors[index].basis { contained = min(contained, basis.next) }
    }
    if optimistic.forget(before: contained) { noteViews() }
  }

  /// The views have changed; there are none if no action waits any more.
  private mutating func noteViews() {
    for index in mirrors.indices where mirrors[index].isOptimistic {
      if optimistic.isEmpty { mirrors[index].basis = nil }
      changed.insert(mirrors[index].number)
    }
  }
}

extension ClientSubscription {
  /// Keep the value as it is now: nothing that waits is in it.
  mutating func beginBasis(before id: ActionID, number: UInt64) {
    guard position != nil || isHealing, !isUnreadable else { return }
    basis = OptimisticBasis(value: value, position: position, next: id, number: number)
    isBasisDue = false
  }

  /// Make the value the basis, if it contains exactly what is decided: that may be less than the basis
  /// contains, after a crash of the daemon. Returns whether the basis has changed. O(1).
  mutating func rebase(
    _ decided: (through: ActionID, revision: UInt64), number: UInt64, skipsCheck: Bool
  ) -> Bool {
    guard let position, skipsCheck || isLive && position.revision >= decided.revision else {
      return false
    }
    let next = ActionID(decided.through.rawValue + 1)
    if let basis, basis.next == next, !isBasisDue { return false }
    basis = OptimisticBasis(value: value, position: position, next: next, number: number)
    isBasisDue = false
    return true
  }
}
