import ClientCore
import DaemonCore
import Values
import Wire

/// A client process: a real session, and what its user remembers in order to check it.
struct SimulatedClient: Sendable {
  /// Names its actions. A clone goes on with the name.
  let identity: UInt64
  let uid: UInt64
  var session: ClientSession
  var link: ConnectionID?
  var connectAt: Instant?
  /// The process lost its session to a clone, and does nothing of its own any more.
  var isGhost = false

  /// How many actions it has sent.
  var sent: UInt64 = 0
  /// Those that were no actions: they must be rejected, and never done.
  var malformed: Set<UInt64> = []
  /// All actions up to this one have been answered.
  var answered: UInt64 = 0
  /// What the answers said, if a test asks.
  var outcomes: [Acknowledgement.Outcome] = []
  /// The newest revision that an acknowledgement promised, in this run.
  var promised: Position?
  /// Where each mirror was seen.
  var seen: [UInt64: Position] = [:]
  /// How many times the daemon had started when the session began.
  let starts: Int

  init(_ identity: UInt64, uid: UInt64, _ session: ClientSession, starts: Int) {
    self.identity = identity
    self.uid = uid
    self.session = session
    self.starts = starts
  }
}
