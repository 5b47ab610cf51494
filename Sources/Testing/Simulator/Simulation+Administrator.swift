import Access
import DaemonCore
import Lockstep
import Values
import Wire

/// An administrator, who goes back to the past and has the daemon pause.
///
/// His connection is no link: nothing delays what he says, and what he is sent is not looked at. What he
/// asks for next is no number of the seed's.
struct Administrator: Sendable {
  static let id = ConnectionID(1 << 40)

  var isConnected = false
  /// Whether the daemon has closed his connection, and has not been told that it is.
  var isClosed = false
  /// The turns that he has watched, for he does not act in each.
  var turns: UInt64 = 0
  /// How often he has come and asked.
  var visits: UInt64 = 0
  var lastQuery: UInt64 = 0
  /// The revisions that he asked to jump to, by the numbers of the queries.
  var targets: [UInt64: UInt64] = [:]
  /// The query for which a change was found last; one that is found again has the same.
  var lastFound: UInt64?
  /// The change that was found for a jump, which the daemon has not got yet.
  var found: (query: UInt64, Finding)?
  /// What he has looked at, which the daemon has not got yet.
  var looked: [(query: UInt64, Finding)] = []
}

extension Simulation {
  /// Let the administrator come, ask for something, or go.
  mutating func administer() throws(SimulationFailure) {
    guard plan.isAdministered, let daemon, !isStopping else { return }
    administrator.turns += 1
    guard isKind || administrator.turns % 7 == 0 else { return }
    served = nil
    if administrator.isClosed {
      (administrator.isConnected, administrator.isClosed) = (false, false)
      return try deliver(.closed(Administrator.id))
    }
    if isKind {
      if administrator.isConnected { try say(.goodbye(.done, "done")) }
      return
    }
    administrator.visits += 1
    guard administrator.isConnected else {
      administrator.isConnected = true
      try deliver(
        .opened(
          Administrator.id, Peer(pid: 2, uid: 1000, gid: 1000),
          SessionToken(high: .max, low: administrator.visits)))
      return try say(.hello(.init(versions: 1...3, label: "administrator")))
    }
    try look()
    let number = Hashing.mix(administrator.visits)
    switch number % 8 {
    case 0, 1, 2:
      guard let oldest = daemon.server.oldestRevision else { return }
      let target = oldest + (number >> 8) % (daemon.server.revision - oldest + 1)
      administrator.targets[administrator.lastQuery + 1] = target
      try ask("jump", "\(target)")
    case 3, 4: try ask("undo", "\(1 + (number >> 8) % 3)")
    case 5: try ask("redo", "1")
    case 6: try ask("pause", "\(1 + (number >> 8) % 3)")
    default: try ask("resume")
    }
  }

  mutating func ask(_ name: String, _ arguments: String...) throws(SimulationFailure) {
    administrator.lastQuery += 1
    try say(.query(number: administrator.lastQuery, name, arguments: arguments))
  }

  private mutating func say(_ message: ClientMessage) throws(SimulationFailure) {
    try deliver(.received(Administrator.id, Frame.encode { message.encode(into: &$0) }))
  }

  /// Find what a query of the administrator asks for: the change for a jump, or what he looks at.
  mutating func find(_ asked: ShellQuery, for query: UInt64) {
    guard case .past(let request, _) = asked, case .change = request.subject else {
      switch daemon?.server.inspection(of: asked, for: Administrator.id) {
      case .success(let job)?: administrator.looked.append((query, job.finding()))
      case .failure(let error)?: administrator.looked.append((query, Finding(error)))
      case nil: break
      }
      return
    }
    if administrator.lastFound == query { count("jumps that were found again") }
    administrator.lastFound = query
    switch daemon?.server.inspection(of: asked, for: Administrator.id) {
    case .success(let job)?: administrator.found = (query, job.finding())
    case .failure(let error)?: administrator.found = (query, Finding(error))
    case nil: break
    }
  }

  /// Tell the daemon what was found, whatever has happened since. If it jumps, its contents are those
  /// of a former revision, and of the one that was asked for.
  mutating func deliverFound() throws(SimulationFailure) {
    guard let (query, finding) = administrator.found else { return }
    administrator.found = nil
    served = nil
    let commands = handle(finding.event(for: Administrator.id, query: query))
    guard let daemon else { return }
    // Actions that wait may have been done behind it.
    let state = log.entries.first { $0.before != nil }?.before ?? daemon.server.state
    if ledger.jump(to: state) {
      count("jumps")
      if let target = administrator.targets[query] {
        guard ledger.state(at: target)?.isSame(as: state) == true else {
          throw failure("a jump to revision \(target) leads elsewhere")
        }
      } else {
        guard ledger.hasSeen(state) else {
          throw failure("what was undone or redone leads to what never was")
        }
      }
    }
    try enterWork()
    for command in commands { try perform(command) }
  }
}
