import Records

/// The latest actions of a journal that is replayed.
struct ReplayedLog: Sendable {
  private let capacity: Int
  /// No action up to this number will be among the latest.
  private let first: UInt64
  private var actions: [LoggedAction] = []

  /// `last` is the number of the last action, if it is known.
  init(capacity: Int, last: UInt64?) {
    self.capacity = capacity
    first = last.map { $0 - min($0, UInt64(clamping: capacity)) } ?? 0
  }

  /// Note an action that follows those before. Amortised O(its bytes).
  mutating func note(_ row: JournalRow, action: ArraySlice<UInt8>?) {
    guard row.sequence > first, let action = LoggedAction(row, action: action) else { return }
    if actions.count >= 2 * capacity { actions.removeFirst(actions.count - capacity) }
    actions.append(action)
  }

  /// The number of the newest action; 0 if there is none.
  var newest: UInt64 { actions.last?.sequence ?? 0 }

  var latest: [LoggedAction] { actions.suffix(capacity) }
}
