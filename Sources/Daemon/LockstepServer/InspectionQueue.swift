import DaemonCore

/// The looks at the state, and its past, that clients wait for. One is taken at a time, and the users take turns: a user with
/// a thousand connections delays another by one.
struct InspectionQueue {
  struct Entry {
    let connection: ConnectionID
    let query: UInt64
    let asked: ShellQuery
    let uid: UInt64
  }

  private var waiting: [Entry] = []
  private var isBusy = false
  /// The users so far, each with the number of its last one.
  private var turns: [UInt64: Int] = [:]
  private var turn = 0

  mutating func add(_ entry: Entry) { waiting.append(entry) }

  /// Take the oldest entry of the user whose last turn was first. Nil if there is none, or another
  /// look is being taken: call `end` when it has been.
  mutating func begin() -> Entry? {
    guard !isBusy,
      let next = waiting.indices.min(by: { lastTurn(of: $0) < lastTurn(of: $1) })
    else { return nil }
    isBusy = true
    turn += 1
    let entry = waiting.remove(at: next)
    turns[entry.uid] = turn
    return entry
  }

  mutating func end() {
    isBusy = false
    if waiting.isEmpty { turns = [:] }
  }

  private func lastTurn(of index: Int) -> Int { turns[waiting[index].uid] ?? 0 }
}
