import Lockstep
import Wire

// What became of sessions, for features that keep something for as long as a client is there.
//
// News is noted where it happens and reduced at the turn's end, before anything is composed: a
// connection may end while the commands of a turn are executed, and between turns the state stands
// still. A session that goes on hears what there is first, so news never overtakes its actions.

extension Server {
  /// Note what became of a session.
  mutating func say(_ item: SessionEvent) {
    if watchesSessions { news.append(item) }
  }

  /// Have the feature told what became of sessions.
  mutating func deliverNews() {
    guard !news.isEmpty else { return }
    let items = news
    news = []
    for item in items {
      for action in core.reducer.lifecycle.actions(for: .session(item), in: core.state) {
        _ = reduce(action, from: .owner)
      }
    }
  }

  /// The process that made a connection has ended. Its socket may live on in a child.
  mutating func exited(_ id: ConnectionID) {
    connections[id]?.hasExited = true
    guard let token = processes.removeValue(forKey: id), var record = sessions[token] else {
      return
    }
    record.hasExited = true
    if record.connection == nil { end(&record, .exited) }
    sessions[token] = record
  }

  /// Say that a session is over, unless that was said.
  mutating func end(_ record: inout SessionRecord, _ reason: SessionEvent.EndReason) {
    guard !record.hasEnded else { return }
    record.hasEnded = true
    say(.ended(session: record.number, reason: reason))
  }

  /// A session goes on, or begins, on a connection: its process is the one to watch.
  mutating func watch(
    _ connection: ServerSession, for record: inout SessionRecord, _ token: SessionToken
  ) {
    guard watchesSessions else { return }
    if let maker = record.maker { unwatch(maker) }
    record.maker = connection.id
    record.hasExited = connection.hasExited
    if !record.hasExited { processes[connection.id] = token }
  }

  /// No session has the process of a connection any more.
  mutating func unwatch(_ maker: ConnectionID) {
    guard processes.removeValue(forKey: maker) != nil, connections[maker] == nil else { return }
    unwatched.append(maker)
  }
}
