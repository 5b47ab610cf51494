import Lockstep
import Values

extension Server {
  /// The server's metrics, in the text format of OpenMetrics 1.0, without its end.
  var metrics: String {
    let gauges: [(String, Int)] = [
      ("clients", connections.count), ("sessions", sessions.count),
      ("scopes", publication.scopes.count),
      ("held_states", publication.held.count), ("state_bytes", memory.size.encoded),
      ("state_memory_bytes", memory.size.memory),
      ("history_bytes", publication.history.byteCount), ("effects", core.effectCount),
    ]
    let totals: [(String, UInt64)] = [
      ("revisions", core.revision), ("actions_taken", counters.actions),
      ("actions_rejected", counters.rejected), ("connections", counters.connections),
      ("snapshots", counters.snapshots), ("coalesced_revisions", counters.coalesced),
      ("goodbyes", counters.goodbyes),
    ]
    var text = ""
    for (name, value) in gauges {
      text += OpenMetrics.family("lockstep_\(name)", .gauge, value)
    }
    for (name, value) in totals {
      text += OpenMetrics.family("lockstep_\(name)", .counter, value)
    }
    return text
  }
}
