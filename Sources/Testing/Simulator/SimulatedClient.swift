import ClientCore
import DaemonCore
import Values
import Wire

/// A client process: a real session, and the records that its checks need.
struct SimulatedClient: Sendable {
  /// Identifies its actions. A clone continues with the same identity.
  let identity: UInt64
  let uid: UInt64
  var session: ClientSession
  var link: ConnectionID?
  var connectAt: Instant?
  /// The process lost its session to a clone, and does nothing by itself any more.
  var isGhost = false

  /// The number of actions sent.
  var sent: UInt64 = 0
  /// The numbers of malformed actions: they must be rejected, and never performed.
  var malformed: Set<UInt64> = []
  /// The numbers of the actions that show before they are decided.
  var optimistic: Set<UInt64> = []
  /// The numbers of actions that were rejected, or whose outcome is unknown.
  var failed: Set<UInt64> = []
  /// The numbers that each optimistic mirror showed when it was looked at last.
  var shown: [UInt64: Set<UInt64>] = [:]
  /// The numbers that show no more though the daemon has not done them, and where: the same run must
  /// reject them.
  var refused: [UInt64: Position] = [:]
  /// All actions up to this one have been answered.
  var answered: UInt64 = 0
  /// The outcomes in the acknowledgements, recorded for a test.
  var outcomes: [Acknowledgement.Outcome] = []
  /// The newest revision that an acknowledgement promised, in this run.
  var promised: Position?
  /// The latest position of each mirror.
  var seen: [UInt64: Position] = [:]
  /// The number of starts of the daemon when the session began.
  let starts: Int

  init(_ identity: UInt64, uid: UInt64, _ session: ClientSession, starts: Int) {
    self.identity = identity
    self.uid = uid
    self.session = session
    self.starts = starts
  }
}
