import Values

/// Old states that lagging or joining mirrors are still at, with the number of these for each user.
struct HeldStates<State: Sendable>: Sendable {
  private struct Entry: Sendable {
    let revision: UInt64
    let state: State
    /// The number of subscriptions that hold the state, by user.
    var holders: [UInt64: Int]
  }

  /// Sorted by revision.
  private var entries: [Entry] = []
  /// States that no connection holds any more.
  var remains = Remains(areKept: false)
  private let limit: Int
  private let limitPerUser: Int

  init(_ limits: Limits) {
    limit = limits.heldStates
    limitPerUser = limits.heldStatesPerUser
  }

  var count: Int { entries.count }

  /// Hold a state for one more subscription of a user, or several. If too many are held then, by this user
  /// or in all, evict the oldest. O(the states held).
  mutating func hold(_ state: State, at revision: UInt64, by uid: UInt64, count: Int = 1) {
    if count == 0 { return }
    if let index = index(of: revision) {
      entries[index].holders[uid, default: 0] += count
    } else {
      let place = entries.firstIndex { $0.revision > revision } ?? entries.count
      entries.insert(Entry(revision: revision, state: state, holders: [uid: count]), at: place)
    }
    if entries.lazy.filter({ $0.holders[uid] != nil }).count > limitPerUser,
      let oldest = entries.firstIndex(where: { $0.holders[uid] != nil })
    {
      entries[oldest].holders[uid] = nil
      if entries[oldest].holders.isEmpty { drop(oldest) }
    }
    if entries.count > limit { drop(0) }
  }

  /// Release one hold on a state, which may have been evicted already.
  mutating func release(_ revision: UInt64, by uid: UInt64) {
    guard let index = index(of: revision), let count = entries[index].holders[uid] else { return }
    entries[index].holders[uid] = count > 1 ? count - 1 : nil
    if entries[index].holders.isEmpty { drop(index) }
  }

  /// What has been removed from the state since may be left in this one alone.
  private mutating func drop(_ index: Int) { remains.add(entries.remove(at: index).state) }

  subscript(revision: UInt64) -> State? { index(of: revision).map { entries[$0].state } }

  private func index(of revision: UInt64) -> Int? {
    entries.firstIndex { $0.revision == revision }
  }
}
