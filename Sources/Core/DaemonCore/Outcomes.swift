import Access
import Lockstep
import Values
import Wire

/// The outcomes of a session's latest actions, as runs of equal outcomes: with them, a resent
/// action is applied exactly once.
struct Outcomes: Sendable, Equatable {
  /// The number of the last action that has an outcome.
  private(set) var last: UInt64 = 0
  /// Sorted by number, without gaps between them, ending with `last`.
  private var runs: [Acknowledgement] = []
  /// Runs before this index are forgotten; they are removed from the array from time to time.
  private var start = 0
  private let window: UInt64
  /// The bytes of the rejection texts in `runs`, and their limit.
  private var textBytes = 0
  private let textLimit: Int
  /// The most bytes of one text.
  private let longestText: Int
  /// Rejections before this index have been shortened to the sentences of their codes.
  private var shortened = 0

  init(_ limits: Limits) {
    window = UInt64(limits.window)
    textLimit = limits.rejectionBytes
    longestText = limits.textBytes
  }

  /// Restored outcomes, of actions up to the last. Outcomes are dropped if they do not fit the
  /// window, do not follow each other, or have numbers that no client can reach.
  init(_ limits: Limits, kept: [Acknowledgement]) {
    self.init(limits)
    for run in kept where run.first <= run.last && run.last < 1 << 62 {
      if run.first != last + 1 {
        runs = []
        (textBytes, shortened) = (0, 0)
      }
      var run = run
      run.outcome = run.outcome.bounded(to: longestText)
      runs.append(run)
      last = run.last
      textBytes += run.outcome.textBytes
    }
    shorten()
    forget()
  }

  /// The revision of the last action's outcome; 0 if there is none.
  var lastRevision: UInt64 { runs.last?.revision ?? 0 }

  /// All known outcomes, as runs in order.
  var kept: [Acknowledgement] { start == 0 ? runs : Array(runs[start...]) }

  /// Mark the actions after a number as not durable, with the reason.
  mutating func fail(after number: UInt64, _ reason: String) {
    for index in start..<runs.count where runs[index].mark == .durable && runs[index].last > number
    {
      if runs[index].first <= number {
        // The committed part of the run stays durable.
        var safe = runs[index]
        safe.last = number
        runs[index].sequence = runs[index].sequence(after: number)
        runs[index].first = number + 1
        runs.insert(safe, at: index)
        if index < shortened { shortened += 1 }
        return fail(after: number, reason)
      }
      runs[index].mark = .applied
      runs[index].notDurable = reason
    }
  }

  /// The first number whose outcome is known.
  var oldest: UInt64 { start < runs.count ? runs[start].first : last + 1 }

  /// Append the outcome of the next action.
  mutating func append(
    _ outcome: Acknowledgement.Outcome, revision: UInt64, mark: Mark, sequence: UInt64?
  ) {
    last += 1
    let end = runs.count - 1
    if end >= start, runs[end].mark == mark, runs[end].notDurable == nil,
      runs[end].sequence(after: last - 1) == sequence, Self.merges(runs[end].outcome, outcome)
    {
      runs[end].last = last
      runs[end].revision = revision
    } else {
      let outcome = outcome.bounded(to: longestText)
      runs.append(
        Acknowledgement(
          first: last, last: last, revision: revision, mark: mark, outcome, sequence: sequence))
      if case .rejected = outcome {
        textBytes += outcome.textBytes
        shorten()
      }
      mergeOlder()
    }
    // The newest is never too old.
    if start < runs.count - 1 { forget() }
  }

  /// The number of newest runs that have sequence numbers. Actions of other clients come between
  /// two actions of one client, so each has a run of its own until it is no longer among these.
  private static var sequenced: Int { 6 }

  /// Merge the run that has just become too old for its sequence number with the one before it, if
  /// they differ in nothing else. So a client's outcomes take a few hundred bytes, and not a
  /// hundred for each action of the window. O(`sequenced`).
  private mutating func mergeOlder() {
    let index = runs.count - 1 - Self.sequenced
    guard index > start else { return }
    let (before, run) = (runs[index - 1], runs[index])
    guard before.mark == run.mark, before.notDurable == run.notDurable,
      Self.merges(before.outcome, run.outcome)
    else { return }
    runs[index - 1].last = run.last
    runs[index - 1].revision = run.revision
    runs[index - 1].sequence = nil
    runs.remove(at: index)
    if index < shortened { shortened -= 1 }
  }

  /// Replace the texts of the oldest rejections by the sentences of their codes, while all texts
  /// together exceed the limit.
  private mutating func shorten() {
    while textBytes > textLimit, shortened < runs.count {
      textBytes -= runs[shortened].outcome.textBytes
      runs[shortened].outcome = runs[shortened].outcome.shortened
      shortened += 1
    }
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
    while start < runs.count, last - runs[start].last >= window {
      if start >= shortened {
        textBytes -= runs[start].outcome.textBytes
        shortened = start + 1
      }
      start += 1
    }
    if start > 64 && start > runs.count / 2 {
      runs.removeSubrange(..<start)
      shortened -= start
      start = 0
    }
  }

  /// Call `body` with the outcomes of the actions from `first` to `last`, in order; with
  /// `outcomeUnknown` for those that are forgotten. O(log runs + runs in the range). What `body` adds to
  /// is passed to it: a captured variable would be in a box, and each access be checked.
  func forEach<Target>(
    from first: UInt64, through last: UInt64, into target: inout Target,
    _ body: (Acknowledgement, inout Target) -> Void
  ) {
    guard first <= last else { return }
    if first < oldest {
      let end = min(last, oldest - 1)
      body(Acknowledgement(first: first, last: end, revision: 0, .outcomeUnknown), &target)
    }
    var index = firstRun(endingAtOrAfter: first)
    while index < runs.count, runs[index].first <= last {
      var run = runs[index]
      if run.first < first {
        run.sequence = run.sequence(after: first - 1)
        run.first = first
      }
      run.last = min(run.last, last)
      body(run, &target)
      index += 1
    }
  }

  /// The number of the last action that may be acknowledged: an action after `committed` that
  /// should be durable must wait, and so must all after it. O(log runs + runs after `number`).
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

extension Acknowledgement {
  /// The sequence number of the action after `number` in the run, if the run is in the log and has
  /// no gap there.
  fileprivate func sequence(after number: UInt64) -> UInt64? {
    sequence.map { $0 &+ (number - first + 1) }
  }
}

extension Acknowledgement.Outcome {
  /// The bytes of a rejection's texts.
  fileprivate var textBytes: Int {
    guard case .rejected(let rejection) = self else { return 0 }
    return rejection.message.utf8.count + (rejection.path?.byteCount ?? 0)
  }

  /// The outcome, with a rejection's texts cut to this many bytes.
  fileprivate func bounded(to bytes: Int) -> Self {
    guard case .rejected(let message) = self else { return self }
    let rejection = Rejection(
      .init(rawValue: message.code), message.message, at: message.path)
    return .rejected(RejectionMessage(rejection.bounded(to: bytes)))
  }

  /// The outcome, with a rejection's text replaced by the sentence of its code.
  fileprivate var shortened: Self {
    guard case .rejected(let message) = self else { return self }
    let sentence = Rejection.Code(rawValue: message.code).sentence
    return .rejected(RejectionMessage(code: message.code, message: sentence, path: nil))
  }
}
