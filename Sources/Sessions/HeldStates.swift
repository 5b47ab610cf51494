/// Old states that clients still stand at, counted by how many do.
struct HeldStates<State: Sendable>: Sendable {
  private struct Entry: Sendable {
    let revision: UInt64
    let state: State
    var holders: Int
  }

  /// In the order of their revisions.
  private var entries: [Entry] = []
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  var count: Int { entries.count }

  /// Hold a state once more. Returns the revision of the oldest if it had to go instead.
  mutating func hold(_ state: State, at revision: UInt64) -> UInt64? {
    if let index = index(of: revision) {
      entries[index].holders += 1
      return nil
    }
    let place = entries.firstIndex { $0.revision > revision } ?? entries.count
    entries.insert(Entry(revision: revision, state: state, holders: 1), at: place)
    guard entries.count > limit else { return nil }
    return entries.removeFirst().revision
  }

  /// Hold once less a state that may have gone already.
  mutating func release(_ revision: UInt64) {
    guard let index = index(of: revision) else { return }
    entries[index].holders -= 1
    if entries[index].holders == 0 { entries.remove(at: index) }
  }

  subscript(revision: UInt64) -> State? { index(of: revision).map { entries[$0].state } }

  private func index(of revision: UInt64) -> Int? {
    entries.firstIndex { $0.revision == revision }
  }
}
