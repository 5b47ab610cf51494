import DaemonCore
import Lockstep
import Values

extension Simulation {
  /// A state of the past, made again, is the one that the ledger has. One revision is looked at each
  /// time, another one the next time. The ephemeral fields of former runs are not known.
  mutating func checkPast() throws(SimulationFailure) {
    guard let daemon, let oldest = daemon.server.oldestRevision else { return }
    guard oldest <= daemon.server.revision else { return }
    // Fibonacci hashing: spread over the range, without a number of the seed's.
    looks += 1
    let revision = oldest + looks * 0x9E37_79B9 % (daemon.server.revision - oldest + 1)
    guard var known = ledger.state(at: revision) else { return }
    let isFormer = revision < ledger.newest.base
    count(isFormer ? "looks at the past of a former run" : "looks at the past")
    guard var again = daemon.server.state(at: revision) else {
      throw failure("the state at revision \(revision) is forgotten, and the past has \(oldest)")
    }
    if isFormer {
      EphemeralFields.reset(&known)
      EphemeralFields.reset(&again)
    }
    if !again.isSame(as: known) {
      throw failure("the state at revision \(revision), made again, is another one")
    }
  }
}
