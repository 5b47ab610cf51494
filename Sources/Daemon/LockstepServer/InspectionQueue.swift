import DaemonCore

/// The looks at the state, and its past, that clients wait for. One is taken at a time, and the users
/// take turns: a user with a thousand connections delays another by one look.
struct InspectionQueue {
  struct Entry {
    let connection: ConnectionID
    let query: UInt64
    let asked: ShellQuery
    let uid: UInt64
  }

  /// What each user waits for, the oldest first; no user waits for nothing.
  private var waiting: [UInt64: [Entry]] = [:]
  /// The users that wait, in the order of their turns.
  private var users: [UInt64] = []
  private var isBusy = false

  mutating func add(_ entry: Entry) {
    if waiting[entry.uid] == nil { users.append(entry.uid) }
    waiting[entry.uid, default: []].append(entry)
  }

  /// Take the oldest entry of the next user. Nil if there is none, or another look is being taken:
  /// call `end` when it has been.
  mutating func begin() -> Entry? {
    guard !isBusy, let uid = users.first, let entry = waiting[uid]?.first else { return nil }
    isBusy = true
    users.removeFirst()
    waiting[uid]?.removeFirst()
    if waiting[uid]?.isEmpty == false { users.append(uid) } else { waiting[uid] = nil }
    return entry
  }

  mutating func end() { isBusy = false }

  /// Forget what a connection that has gone waits for. O(what its user waits for, and all users).
  mutating func remove(_ connection: ConnectionID) {
    for uid in users where waiting[uid]?.contains(where: { $0.connection == connection }) == true {
      waiting[uid]?.removeAll { $0.connection == connection }
      if waiting[uid]?.isEmpty == true { waiting[uid] = nil }
    }
    users.removeAll { waiting[$0] == nil }
  }
}
