import DaemonCore
import Lockstep
import Values

extension Simulation {
  /// A state of the past, made again, is the one that the ledger has. One revision is looked at each
  /// time, another one the next time.
  mutating func checkPast() throws(SimulationFailure) {
    guard let daemon, let oldest = daemon.oldestRevision else { return }
    let run = ledger.newest
    let first = max(oldest, run.base)
    guard first <= daemon.revision else { return }
    // Fibonacci hashing: spread over the range, without a number of the seed's.
    looks += 1
    let revision = first + looks * 0x9E37_79B9 % (daemon.revision - first + 1)
    guard let known = run.state(at: revision) else { return }
    count("looks at the past")
    guard let again = daemon.state(at: revision) else {
      throw failure("the state at revision \(revision) is forgotten, and the past has \(oldest)")
    }
    if !again.isSame(as: known) {
      throw failure("the state at revision \(revision), made again, is another one")
    }
  }
}
