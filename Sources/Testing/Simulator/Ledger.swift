import Lockstep
import Values
import Wire

/// All that was ever true in a simulation: each state that each run of the daemon had, and what
/// became of each action.
struct Ledger<State: Synchronizable>: Sendable {
  struct RunKey: Hashable, Sendable {
    var epoch: UInt64
    var run: UInt64
  }

  struct Run: Sendable {
    let base: UInt64
    let seed: HashSeed
    /// The run from which it goes on, if that is one of the same history.
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
    /// Counts all that was done.
    var order: Int
    var outcome: Outcome
    /// The revision at which the state then stood.
    var revision: UInt64
  }

  private(set) var runs: [RunKey: Run] = [:]
  private(set) var current = RunKey(epoch: 0, run: 0)
  private(set) var applications: [Tag: Application] = [:]
  /// What was done and is lost, the last time each.
  private var lost: [Tag: Application] = [:]
  /// How much has been done.
  private(set) var order = 0
  /// The number of each client's action that was done last.
  private var last: [UInt64: UInt64] = [:]

  var newest: Run {
    // Invariant: a run has begun.
    get { runs[current].unsafelyUnwrapped }
    _modify { yield &runs[current]! }
  }

  /// A daemon starts.
  mutating func begin(
    _ run: RunKey, _ state: State, seed: HashSeed, at revision: UInt64, goesOn: Bool = false
  ) {
    let former = goesOn ? current : nil
    current = run
    runs[run] = Run(base: revision, seed: seed, former: former, states: [state])
  }

  /// What became of an action as a client of this run was told: it may be lost since.
  func application(of tag: Tag, toldBy run: RunKey) -> Application? {
    applications[tag] ?? lost[tag].flatMap { $0.run == run ? $0 : nil }
  }

  /// What was done behind this point is lost.
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

  /// Enter what an action came to, as far as the daemon says, and the state behind it if it was
  /// reduced. Returns what is wrong with that.
  mutating func enter(_ tag: Tag, _ reduction: Reduction?, after: State?) -> String? {
    let before = newest.states[newest.states.count - 1]
    let isChanged = after.map { !$0.isSame(as: before) } ?? false
    if let reduction, let fault = fault(reduction, isChanged) { return "\(tag) \(fault)" }
    if isChanged, let after { newest.states.append(after) }
    order += 1
    return tag == .inside ? nil : note(tag, outcome(reduction, isChanged))
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

  /// Note that a client's action was done, which must be once and in order.
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
  /// What an acknowledgement says of actions that were done; nil for any other.
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
