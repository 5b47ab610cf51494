import CBOR
import Lockstep
import Values

/// How large the state is, as far as that is known: what it took when it was measured last, and
/// what the patches since may have added at most. To measure costs O(the state), so it is done
/// beside the loop, and only when the sum comes near the limit.
struct StateSize: Sendable {
  private let limit: Int
  /// What the last measurement found; nil before the first.
  private(set) var measured: StateMeasure?
  /// The memory that it took when it was found to be too large, or the least since; nil while it is
  /// not.
  private var excess: Int?
  /// What the patches since that state may have added, and those since the one that is being
  /// measured.
  private var growth = StateMeasure(encoded: 0, memory: 0)
  private var growthMeanwhile = StateMeasure(encoded: 0, memory: 0)
  private var isMeasuring = false

  init(limit: Int) { self.limit = limit }

  /// No less than the state takes: the bytes of its value form, and memory.
  var encoded: Int { (measured?.encoded ?? 0) + growth.encoded }
  var memory: Int { (measured?.memory ?? 0) + growth.memory }

  /// Note a change of the state.
  @inline(__always)
  mutating func note(_ patch: [UInt8]) {
    let memory = patch.withUnsafeBytes {
      MemoryEstimate.ofSmallReplacement($0) ?? Self.estimate($0)
    }
    growth.encoded += patch.count
    growth.memory += memory
    growthMeanwhile.encoded += patch.count
    growthMeanwhile.memory += memory
  }

  private static func estimate(_ patch: UnsafeRawBufferPointer) -> Int {
    var estimate = MemoryEstimate()
    var decoder = CBORDecoder(patch)
    // The patch is our own: it can be read.
    try? estimate.addPatch(&decoder)
    return estimate.bytes
  }

  /// Whether the state should be measured now. `isTime` once a second: only then is it measured for
  /// the first time, and one that is too large again, for what makes it smaller leaves small
  /// patches; also one that is too large for the memory there is (`isScarce`).
  func mustMeasure(isTime: Bool, isScarce: Bool) -> Bool {
    if isMeasuring { return false }
    if isTime, isScarce, growth.memory > 0 { return true }
    // Too large already: before it is measured, not even what makes it smaller is done.
    guard let measured else { return isTime || memory > limit }
    // Well before the limit: what is much overwritten is measured in time, and nothing is rejected.
    if memory > limit / 4 * 3, growth.memory > limit / 64 { return true }
    // And often enough that the sum says something: as often as it costs less than the patches did.
    return isTime
      && (measured.memory > limit && growth.memory > 0
        || growth.memory > max(measured.memory, 64 << 20))
  }

  mutating func begin() {
    isMeasuring = true
    growthMeanwhile = StateMeasure(encoded: 0, memory: 0)
  }

  mutating func take(_ measure: StateMeasure) {
    isMeasuring = false
    measured = measure
    growth = growthMeanwhile
    excess = measure.memory > limit ? min(excess ?? measure.memory, measure.memory) : nil
  }

  /// Why an action of a client is not done: the state is too large, and the action is not so small
  /// that it may be one that removes something. Once small ones have made it an eighth of the limit
  /// larger, none is done.
  func refusal(ofActionWith bytes: Int) -> Rejection? {
    let isSmall = bytes <= Self.smallActionBytes
    if memory > max(limit, isSmall ? excess ?? 0 : 0) + limit / 8 || !isSmall && excess != nil {
      return Rejection(
        .limit,
        "the state takes up to \(memory) bytes of memory, and stateBytes is \(limit): "
          + (isSmall
            ? "no action of clients is done"
            : "until it takes less, only actions of at most \(Self.smallActionBytes) bytes are "
              + "done, such as removals"))
    }
    return nil
  }

  private static let smallActionBytes = 128
}
