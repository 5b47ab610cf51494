import Lockstep
import Wire

// Session events, for features that keep something while a client is there.
//
// Events are noted when they happen and reduced at the turn's end, before anything is composed: a
// connection may end while the commands of a turn are executed, and between turns the state does
// not change. Pending events are delivered before a session is resumed, so they never overtake its
// actions.

extension Server {
  /// Deliver the pending session events to the feature.
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
    connections[id]?.processExited()
    sessions.exited(id)
  }
}
