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
    /// The states from revision `base` on.
    var states: [State]

    var newest: UInt64 { base + UInt64(states.count) - 1 }

    func state(at revision: UInt64) -> State? {
      revision >= base && revision <= newest ? states[Int(revision - base)] : nil
    }
  }

  struct Application: Sendable {
    enum Outcome: Sendable {
      case reduced, unchanged, rejected
    }
    var run: RunKey
    var outcome: Outcome
    /// The revision at which the state then stood.
    var revision: UInt64
  }

  private(set) var runs: [RunKey: Run] = [:]
  private(set) var current = RunKey(epoch: 0, run: 0)
  private(set) var applications: [Tag: Application] = [:]
  /// The number of each client's action that was done last.
  private var last: [UInt64: UInt64] = [:]

  var newest: Run {
    // Invariant: a run has begun.
    get { runs[current].unsafelyUnwrapped }
    _modify { yield &runs[current]! }
  }

  /// A daemon starts.
  mutating func begin(_ run: RunKey, _ state: State, seed: HashSeed, at revision: UInt64) {
    current = run
    runs[run] = Run(base: revision, seed: seed, states: [state])
  }

  subscript(position: Position) -> (state: State, seed: HashSeed)? {
    guard let run = runs[RunKey(epoch: position.epoch, run: position.run)],
      let state = run.state(at: position.revision)
    else { return nil }
    return (state, run.seed)
  }

  /// Enter that an action turned the newest state into `after`. Returns what is wrong with that.
  mutating func enter(_ tag: Tag, isRejected: Bool, after: State) -> String? {
    let before = newest.states[newest.states.count - 1]
    let isChanged = !after.isSame(as: before)
    if isChanged && isRejected { return "\(tag) was rejected and changed the state" }
    if applications[tag] != nil { return "\(tag) was done twice" }
    if let last = last[tag.client], last >= tag.number {
      return "\(tag) was done after number \(last)"
    }
    last[tag.client] = tag.number
    if isChanged { newest.states.append(after) }
    applications[tag] = Application(
      run: current, outcome: isRejected ? .rejected : isChanged ? .reduced : .unchanged,
      revision: newest.newest)
    return nil
  }
}
