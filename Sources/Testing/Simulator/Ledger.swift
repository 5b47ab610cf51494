import Lockstep
import Values
import Wire

/// The true history of a simulation: each state of each run of the daemon, and the outcome of each
/// action.
struct Ledger<State: Synchronizable>: Sendable {
  struct RunKey: Hashable, Sendable {
    var epoch: UInt64
    var run: UInt64
  }

  struct Run: Sendable {
    let base: UInt64
    let seed: HashSeed
    /// The run that it continues, if that has the same history.
    let former: RunKey?
    /// The states from revision `base` on.
    var states: [State]

    var newest: UInt64 { base + UInt64(states.count) - 1 }

    func state(at revision: UInt64) -> State? {
      revision >= base && revision <= newest ? states[Int(revision - base)] : nil
    }
  }

  struct Application: Sendable {
    enum Outcome: Sendable {
      case reduced, unchanged, swallowed, accepted, rejected
    }
    var run: RunKey
    /// The position among all performed actions.
    var order: Int
    var outcome: Outcome
    /// The revision of the state after the action.
    var revision: UInt64
  }

  private(set) var runs: [RunKey: Run] = [:]
  private(set) var current = RunKey(epoch: 0, run: 0)
  private(set) var applications: [Tag: Application] = [:]
  /// The latest lost application of each action.
  private var lost: [Tag: Application] = [:]
  /// The number of actions performed so far.
  private(set) var order = 0
  /// The number of each client's latest performed action.
  private var last: [UInt64: UInt64] = [:]

  var newest: Run {
    // Invariant: a run has begun.
    get { runs[current].unsafelyUnwrapped }
    _modify { yield &runs[current]! }
  }

  /// Begin a run of the daemon.
  mutating func begin(
    _ run: RunKey, _ state: State, seed: HashSeed, at revision: UInt64, goesOn: Bool = false
  ) {
    let former = goesOn ? current : nil
    current = run
    runs[run] = Run(base: revision, seed: seed, former: former, states: [state])
  }

  /// The application of an action as a client of this run knows it; it may be lost since.
  func application(of tag: Tag, toldBy run: RunKey) -> Application? {
    applications[tag] ?? lost[tag].flatMap { $0.run == run ? $0 : nil }
  }

  /// Whether the state at a position has an action's change; nil if that cannot be said, because the
  /// position is of a run that may not continue the one that performed the action.
  func includes(_ application: Application, at position: Position) -> Bool? {
    var key: RunKey? = RunKey(epoch: position.epoch, run: position.run)
    while let run = key {
      if run == application.run { return application.revision <= position.revision }
      key = runs[run]?.former
    }
    return nil
  }

  /// Lose every application after this position.
  mutating func lose(after order: Int) {
    for (tag, application) in applications where application.order > order {
      applications[tag] = nil
      lost[tag] = application
      last[tag.client] = nil
    }
    for (tag, _) in applications { last[tag.client] = max(last[tag.client] ?? 0, tag.number) }
  }

  subscript(position: Position) -> (state: State, seed: HashSeed)? {
    var key: RunKey? = RunKey(epoch: position.epoch, run: position.run)
    while let run = key.flatMap({ runs[$0] }) {
      if let state = run.state(at: position.revision) { return (state, run.seed) }
      guard position.revision < run.base else { return nil }
      key = run.former
    }
    return nil
  }

  /// The state of a revision of the present history.
  func state(at revision: UInt64) -> State? {
    self[Position(epoch: current.epoch, run: current.run, revision: revision)]?.state
  }

  /// Whether the present history had this state before its newest revision.
  func hasSeen(_ state: State) -> Bool {
    var (key, end): (RunKey?, UInt64) = (current, newest.newest)
    while let run = key.flatMap({ runs[$0] }) {
      if run.base < end,
        run.states.prefix(Int(end - run.base)).contains(where: { $0.isSame(as: state) })
      {
        return true
      }
      (key, end) = (run.former, min(end, run.base))
    }
    return false
  }

  /// Record the result of an action as the daemon reports it, and the state after it if it was
  /// reduced. Returns a description of the fault if the result is wrong.
  mutating func enter(_ tag: Tag, _ reduction: Reduction?, after: State?) -> String? {
    let before = newest.states[newest.states.count - 1]
    let isChanged = after.map { !$0.isSame(as: before) } ?? false
    if let reduction, let fault = fault(reduction, isChanged) { return "\(tag) \(fault)" }
    if isChanged, let after { newest.states.append(after) }
    order += 1
    return tag == .inside ? nil : note(tag, outcome(reduction, isChanged))
  }

  /// Record the state to which the daemon has jumped. Returns whether it is another one.
  mutating func jump(to state: State) -> Bool {
    if state.isSame(as: newest.states[newest.states.count - 1]) { return false }
    newest.states.append(state)
    return true
  }

  private func fault(_ reduction: Reduction, _ isChanged: Bool) -> String? {
    switch reduction {
    case .changed(let revision):
      if !isChanged { return "made revision \(revision) and changed nothing" }
      return revision == newest.newest + 1 ? nil : "made revision \(revision) out of order"
    case .unchanged, .accepted: return isChanged ? "changed the state without a revision" : nil
    case .swallowed: return isChanged ? "was swallowed and changed the state" : nil
    case .rejected: return isChanged ? "was rejected and changed the state" : nil
    }
  }

  private func outcome(_ reduction: Reduction?, _ isChanged: Bool) -> Application.Outcome {
    switch reduction {
    case .changed: .reduced
    case .unchanged: .unchanged
    case .swallowed: .swallowed
    case .accepted: .accepted
    case .rejected: .rejected
    case nil: isChanged ? .reduced : .unchanged
    }
  }

  /// Record that a client's action was performed, which must be once and in order.
  private mutating func note(_ tag: Tag, _ outcome: Application.Outcome) -> String? {
    if applications[tag] != nil { return "\(tag) was done twice" }
    if let last = last[tag.client], last >= tag.number {
      return "\(tag) was done after number \(last)"
    }
    last[tag.client] = tag.number
    applications[tag] = Application(
      run: current, order: order, outcome: outcome, revision: newest.newest)
    return nil
  }
}

extension Ledger.Application.Outcome {
  /// The outcome in an acknowledgement of a performed action; nil for any other.
  init?(_ outcome: Acknowledgement.Outcome) {
    switch outcome {
    case .reduced: self = .reduced
    case .unchanged: self = .unchanged
    case .swallowed: self = .swallowed
    case .accepted: self = .accepted
    case .rejected, .outcomeUnknown: return nil
    }
  }
}
