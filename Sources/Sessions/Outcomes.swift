import Wire

/// What became of a session's latest actions, as runs of equal outcomes: the memory that makes an
/// action that is sent twice be done once.
struct Outcomes: Sendable, Equatable {
  /// The number of the last action that was decided.
  private(set) var last: UInt64 = 0
  /// In the order of their numbers, without gaps between them, ending with `last`.
  private var runs: [Acknowledgement] = []
  /// Runs before this index are forgotten; removed from the array now and then.
  private var start = 0
  private let window: UInt64

  init(window: Int) { self.window = UInt64(window) }

  /// Outcomes that were kept, of actions up to the last; those that do not fit the window, do not
  /// follow each other, or have numbers to which nobody counts, are forgotten.
  init(window: Int, kept: [Acknowledgement]) {
    self.init(window: window)
    for run in kept where run.first <= run.last && run.last < 1 << 62 {
      if run.first != last + 1 { runs = [] }
      runs.append(run)
      last = run.last
    }
    forget()
  }

  /// All that is known, as runs in order.
  var kept: [Acknowledgement] { Array(runs[start...]) }

  /// Note that actions behind a number could not be made durable.
  mutating func fail(after number: UInt64, _ reason: String) {
    for index in start..<runs.count where runs[index].mark == .durable && runs[index].last > number
    {
      if runs[index].first <= number {
        // The part that is safe stays so.
        var safe = runs[index]
        safe.last = number
        runs[index].first = number + 1
        runs.insert(safe, at: index)
        return fail(after: number, reason)
      }
      runs[index].mark = .applied
      runs[index].notDurable = reason
    }
  }

  /// The first number whose outcome is known.
  var oldest: UInt64 { start < runs.count ? runs[start].first : last + 1 }

  /// Note what became of the action after the last.
  mutating func append(
    _ outcome: Acknowledgement.Outcome, revision: UInt64, mark: Mark
  ) {
    last += 1
    let end = runs.count - 1
    if end >= start, runs[end].mark == mark, runs[end].notDurable == nil,
      Self.merges(runs[end].outcome, outcome)
    {
      runs[end].last = last
      runs[end].revision = revision
    } else {
      runs.append(
        Acknowledgement(first: last, last: last, revision: revision, mark: mark, outcome))
    }
    forget()
  }

  private static func merges(
    _ first: Acknowledgement.Outcome, _ second: Acknowledgement.Outcome
  ) -> Bool {
    switch (first, second) {
    case (.reduced, .reduced), (.unchanged, .unchanged), (.swallowed, .swallowed),
      (.accepted, .accepted):
      true
    default: false
    }
  }

  private mutating func forget() {
    while start < runs.count, last - runs[start].last >= window { start += 1 }
    if start > 64 && start > runs.count / 2 {
      runs.removeSubrange(..<start)
      start = 0
    }
  }

  /// Hand on what became of the actions from `first` to `last`, in order; `outcomeUnknown` for
  /// those that are forgotten. O(log runs + those handed on).
  func forEach(
    from first: UInt64, through last: UInt64, _ body: (Acknowledgement) -> Void
  ) {
    guard first <= last else { return }
    if first < oldest {
      let end = min(last, oldest - 1)
      body(Acknowledgement(first: first, last: end, revision: 0, .outcomeUnknown))
    }
    var index = firstRun(endingAtOrAfter: first)
    while index < runs.count, runs[index].first <= last {
      var run = runs[index]
      run.first = max(run.first, first)
      run.last = min(run.last, last)
      body(run)
      index += 1
    }
  }

  /// The last action that may be acknowledged, where those behind `committed` that should be
  /// durable must wait, and those behind them too. O(log runs + runs behind `number`).
  func lastToAcknowledge(after number: UInt64, _ committed: UInt64) -> UInt64 {
    guard committed < last else { return last }
    var index = firstRun(endingAtOrAfter: max(number, committed) + 1)
    while index < runs.count {
      if runs[index].mark == .durable { return max(runs[index].first - 1, committed) }
      index += 1
    }
    return last
  }

  private func firstRun(endingAtOrAfter number: UInt64) -> Int {
    var low = start
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].last < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
