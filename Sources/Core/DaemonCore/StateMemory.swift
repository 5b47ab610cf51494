import Lockstep
import Values

/// The memory that the state takes, and the memory that is left: both are measured off the loop
/// from time to time, and estimated in between.
struct StateMemory: Sendable {
  private(set) var size: StateSize
  private(set) var budget = MemoryBudget()

  /// `read` bytes were read for the state, as in `StateSize`.
  init(limit: Int, read: Int) { size = StateSize(limit: limit, read: read) }

  /// More bytes of memory than it takes to encode a snapshot of the whole state: the bytes, what may be
  /// seen of them, and their frames, which the allocator rounds up by a quarter; or the bytes, and the
  /// array of twice their length in which they grow if more come than were expected.
  var snapshotBytes: Int { 3 * size.encoded }

  /// The bytes to reserve before the state is encoded: a gigabyte at most, from which the array grows by
  /// doubling. The estimate may be far more than there is, of a recording for example, and to reserve more
  /// than the system gives would end the process.
  var expectedBytes: Int { min(size.encoded, 1 << 30) }

  /// Note a change of the state.
  @inline(__always)
  mutating func note(_ patch: [UInt8]) {
    size.note(patch)
    budget.note(patch)
  }

  /// Note a change of the state whose patch has been weighed.
  mutating func note(_ weight: PatchWeight) {
    size.note(weight)
    budget.note(weight)
  }

  /// What is kept free for a snapshot. As many bytes as were read may be far more than there are, and actions
  /// are not rejected for that.
  private var keptBytes: Int { size.isAsRead ? 0 : snapshotBytes }

  mutating func take(_ measure: StateMeasure) {
    size.take(measure)
    budget.take(snapshotBytes: keptBytes)
  }

  mutating func take(_ reading: MemoryReading?) {
    budget.take(reading, snapshotBytes: keptBytes)
  }

  /// Commands for the measurements that are due; `isTime` is true once a second.
  mutating func measurements(isTime: Bool) -> [Command] {
    var commands: [Command] = []
    if budget.mustMeasure(isTime: isTime) {
      budget.begin()
      commands.append(.measureMemory)
    }
    if size.mustMeasure(isTime: isTime, isScarce: budget.isScarce) {
      size.begin()
      commands.append(.measureState)
    }
    return commands
  }
}

/// What the estimates of memory ask about a patch.
struct PatchWeight: Sendable {
  /// The bytes of the patch.
  let bytes: Int
  /// The most memory that it may add to the state.
  let growth: Int
  /// About how much memory it takes to make it and to send it.
  let cost: Int

  /// O(the patch).
  init(of patch: [UInt8]) {
    bytes = patch.count
    growth = StateSize.growth(by: patch)
    cost = MemoryBudget.cost(ofPatch: patch)
  }
}
