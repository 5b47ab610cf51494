/// The log record of an action that was taken from the queue. To write it is part of what every action
/// costs, so it keeps little, and makes the rest of it when it is asked.
public struct ActionRecord<Action: SynchronizableAction>: Sendable {
  /// Counts the actions of the store from 1.
  public private(set) var sequence: UInt64
  public private(set) var cause: Cause
  /// The time of the reduction, and the seed of its random numbers: with both, a replay of the
  /// action gives the same state.
  public private(set) var time: Timestamp
  public private(set) var seed: UInt64
  /// The revision after the action.
  public private(set) var revision: Revision
  /// The action as it was reduced; nil when it was too large to be kept.
  public private(set) var action: Action?
  /// Nil if it is the action's.
  private var otherName: OtherName?
  private var ending: Ending

  /// The record of an action that is kept.
  @inline(__always)
  init(
    _ action: consuming Action, sequence: UInt64, from cause: Cause, at time: Timestamp,
    seed: UInt64, _ outcome: Reduction, _ revision: Revision
  ) {
    (self.sequence, self.cause, self.time, self.seed) = (sequence, cause, time, seed)
    (self.revision, ending) = (revision, Ending(outcome))
    self.action = action
  }

  /// The record of one that is not kept, or had another name in a former process.
  init(
    _ action: Action?, named name: String, sequence: UInt64, from cause: Cause, at time: Timestamp,
    seed: UInt64, _ outcome: Reduction, _ revision: Revision
  ) {
    (self.sequence, self.cause, self.time, self.seed) = (sequence, cause, time, seed)
    (self.revision, ending) = (revision, Ending(outcome))
    self.action = action
    if action?.name != name { otherName = OtherName(name) }
  }

  public var name: String { otherName?.name ?? action?.name ?? "" }

  public var outcome: Reduction {
    switch ending {
    case .changed: .changed(revision)
    case .unchanged: .unchanged
    case .swallowed: .swallowed
    case .accepted: .accepted
    case .rejected(let refusal): .rejected(refusal.rejection)
    }
  }

  /// Write over this record with that of an action that is kept, and return the action that it had. What is
  /// as it was is left alone: most records of a log have the same few causes.
  @inline(__always)
  mutating func replace(
    by action: consuming Action, sequence: UInt64, from cause: Cause, at time: Timestamp,
    seed: UInt64, _ outcome: Reduction, _ revision: Revision
  ) -> Action? {
    var oldest: Action? = action
    swap(&oldest, &self.action)
    if otherName != nil { otherName = nil }
    (self.sequence, self.time, self.seed, self.revision) = (sequence, time, seed, revision)
    if !self.cause.isTriviallyIdentical(to: cause) { self.cause = cause }
    ending = Ending(outcome)
    return oldest
  }
}

/// The name of an action that is not kept, or had it in a former process.
private final class OtherName: Sendable {
  let name: String
  init(_ name: String) { self.name = name }
}

/// A `Reduction` without the revision, which the record has.
private enum Ending: Sendable {
  case changed
  case unchanged
  case swallowed
  case accepted
  case rejected(Refusal)

  final class Refusal: Sendable {
    let rejection: Rejection
    init(_ rejection: Rejection) { self.rejection = rejection }
  }

  @inline(__always)
  init(_ outcome: Reduction) {
    switch outcome {
    case .changed: self = .changed
    case .unchanged: self = .unchanged
    case .swallowed: self = .swallowed
    case .accepted: self = .accepted
    case .rejected(let rejection): self = .rejected(Refusal(rejection))
    }
  }
}

/// The latest actions of a store, each with its cause. A ring buffer of a fixed size.
public struct ActionLog<Action: SynchronizableAction>: Sendable {
  /// The maximum number of records.
  public let capacity: Int
  private var records: [ActionRecord<Action>] = []
  private var next = 0

  public init(capacity: Int) { self.capacity = capacity }

  /// Append the record of the next action, which is kept; when full, write over the oldest, and return its
  /// action. O(1).
  mutating func append(
    _ action: consuming Action, sequence: UInt64, from cause: Cause, at time: Timestamp,
    seed: UInt64, _ outcome: Reduction, _ revision: Revision
  ) -> Action? {
    guard records.count == capacity, capacity > 0 else {
      append(
        ActionRecord(
          action, sequence: sequence, from: cause, at: time, seed: seed, outcome, revision))
      return nil
    }
    let oldest = records[next].replace(
      by: action, sequence: sequence, from: cause, at: time, seed: seed, outcome, revision)
    advance()
    return oldest
  }

  /// Append the record of the next action; when full, write over the oldest. O(1).
  @inline(never)
  mutating func append(_ record: ActionRecord<Action>) {
    guard capacity > 0 else { return }
    guard records.count == capacity else { return records.append(record) }
    records[next] = record
    advance()
  }

  @inline(__always)
  private mutating func advance() { next = next + 1 == capacity ? 0 : next + 1 }

  /// The records, oldest first.
  public var all: [ActionRecord<Action>] { Array(records[next...] + records[..<next]) }

  /// The number of records.
  public var count: Int { records.count }

  /// A record by its position: 0 is the oldest. O(1).
  public subscript(position position: Int) -> ActionRecord<Action> { records[place(position)] }

  /// The position of the first record after a sequence number; `count` if there is none. O(log n),
  /// because numbers may be missing: those of actions that were rejected before they reached the
  /// store.
  public func position(after sequence: UInt64) -> Int {
    var (low, high) = (0, records.count)
    while low < high {
      let middle = (low + high) / 2
      if self[position: middle].sequence <= sequence { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The sequence number after which the latest `count` records begin.
  public func sequence(before count: Int) -> UInt64 {
    guard count > 0 else { return newest?.sequence ?? 0 }
    guard !records.isEmpty else { return 0 }
    return self[position: max(0, records.count - count)].sequence - 1
  }

  /// The records after a sequence number, oldest first. O(their number).
  public func since(_ sequence: UInt64) -> [ActionRecord<Action>] {
    (position(after: sequence)..<records.count).map { self[position: $0] }
  }

  /// The latest `count` records, oldest first. O(count).
  public func last(_ count: Int) -> [ActionRecord<Action>] {
    let count = max(0, min(count, records.count))
    return (records.count - count..<records.count).map { self[position: $0] }
  }

  /// The newest record.
  public var newest: ActionRecord<Action>? {
    records.isEmpty ? nil : records[place(records.count - 1)]
  }

  /// Call `body` with the address of the newest record, if there is one: to copy it counts references. The
  /// address holds until `body` returns. O(1).
  public func withNewest(_ body: (UnsafePointer<ActionRecord<Action>>) -> Void) {
    records.withUnsafeBufferPointer {
      guard let first = $0.baseAddress, !$0.isEmpty else { return }
      body(first + place($0.count - 1))
    }
  }

  /// The record of a sequence number, if there is one. O(log n).
  public subscript(sequence: UInt64) -> ActionRecord<Action>? {
    guard sequence > 0 else { return nil }
    let position = position(after: sequence - 1)
    guard position < records.count, self[position: position].sequence == sequence else {
      return nil
    }
    return self[position: position]
  }

  /// An action and its ancestors, back to the one that came from outside or to the oldest still in
  /// the log. O(the length of the chain).
  public func chain(of sequence: UInt64) -> [ActionRecord<Action>] {
    var chain: [ActionRecord<Action>] = []
    var searched: UInt64? = sequence
    while let sequence = searched, let record = self[sequence] {
      chain.append(record)
      // Invariant: a parent comes before its children, so this ends.
      searched = record.cause.parent
    }
    return chain
  }

  private func place(_ index: Int) -> Int { (next + index) % records.count }
}
