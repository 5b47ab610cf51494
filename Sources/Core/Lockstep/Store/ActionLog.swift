/// The log record of an action that was taken from the queue.
public struct ActionRecord<Action: Sendable>: Sendable {
  /// Counts the actions of the store from 1.
  public var sequence: UInt64
  public var cause: Cause
  /// The action as it was reduced; nil when it was too large to be kept.
  public var action: Action?
  public var name: String
  /// The time of the reduction, and the seed of its random numbers: with both, a replay of the
  /// action gives the same state.
  public var time: Timestamp
  public var seed: UInt64
  public var outcome: Reduction
  /// The revision after the action.
  public var revision: Revision
}

/// The latest actions of a store, each with its cause. A ring buffer of a fixed size.
public struct ActionLog<Action: Sendable>: Sendable {
  /// The maximum number of records.
  public let capacity: Int
  private var records: [ActionRecord<Action>] = []
  private var next = 0

  public init(capacity: Int) { self.capacity = capacity }

  /// Append the record of the next action; when full, writes over the oldest, and returns its action.
  /// O(1).
  @discardableResult
  mutating func append(_ record: consuming ActionRecord<Action>) -> Action? {
    guard capacity > 0 else { return nil }
    guard records.count == capacity else {
      records.append(record)
      return nil
    }
    let oldest = records[next].action.take()
    records[next] = record
    next = next + 1 == capacity ? 0 : next + 1
    return oldest
  }

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

  /// Call `body` with the address of the newest record, if there is one: it is large to copy. The address
  /// holds until `body` returns. O(1).
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
