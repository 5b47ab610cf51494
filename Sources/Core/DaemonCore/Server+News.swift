import Lockstep
import Wire

// What became of sessions, for features that keep something for as long as a client is there.
//
// News is noted where it happens and reduced at the turn's end, before anything is composed: a
// connection may end while the commands of a turn are executed, and between turns the state stands
// still. A session that goes on hears what there is first, so news never overtakes its actions.

extension Server {
  /// Have the feature told what became of sessions.
  mutating func deliverNews() {
    guard sessions.hasEvents else { return }
    for item in sessions.takeEvents() {
      for action in core.reducer.composedLifecycle.actions(for: .session(item), in: core.state) {
        _ = reduce(action, from: .owner)
      }
    }
  }

  /// The process that made a connection has ended. Its socket may live on in a child.
  mutating func exited(_ id: ConnectionID) {
    connections[id]?.hasExited = true
    sessions.exited(id)
  }
}
