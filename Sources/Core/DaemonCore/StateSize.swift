import CBOR
import Lockstep
import Values

/// An upper bound of the state's size: the last measurement, and the most that the patches since
/// may have added. Measuring costs O(the state), so it is done off the loop, and only when the sum
/// comes near the limit.
struct StateSize: Sendable {
  private let limit: Int
  /// The bytes of the value form, or more, before the first measurement.
  private let read: Int
  /// The result of the last measurement; nil before the first.
  private(set) var measured: StateMeasure?
  /// The memory of the state when it was measured as too large, or the least measured since; nil
  /// while it is not too large.
  private var excess: Int?
  /// The most that patches may have added since the measured state, and since the state that is
  /// being measured.
  private var growth = StateMeasure(encoded: 0, memory: 0)
  private var growthMeanwhile = StateMeasure(encoded: 0, memory: 0)
  private var isMeasuring = false

  /// A state whose value form has at most as many bytes as were `read` for it: so work that encodes it is
  /// granted memory before the state is measured, a second after the start.
  init(limit: Int, read: Int) {
    self.limit = limit
    self.read = read
  }

  /// Whether all that is known is what was read.
  var isAsRead: Bool { measured == nil && read > 0 }

  /// Upper bounds of the bytes of the state's value form, and of its memory.
  var encoded: Int { (measured?.encoded ?? read) + growth.encoded }
  var memory: Int { (measured?.memory ?? 0) + growth.memory }

  /// Note a change of the state.
  @inline(__always)
  mutating func note(_ patch: [UInt8]) { grow(by: Self.growth(by: patch), patch.count) }

  mutating func note(_ weight: PatchWeight) { grow(by: weight.growth, weight.bytes) }

  @inline(__always)
  private mutating func grow(by memory: Int, _ bytes: Int) {
    growth.encoded += bytes
    growth.memory += memory
    growthMeanwhile.encoded += bytes
    growthMeanwhile.memory += memory
  }

  /// The most memory that a patch may add. O(its items).
  @inline(__always)
  static func growth(by patch: [UInt8]) -> Int {
    patch.withUnsafeBytes { MemoryEstimate.ofSmallReplacement($0) ?? estimate($0) }
  }

  private static func estimate(_ patch: UnsafeRawBufferPointer) -> Int {
    var estimate = MemoryEstimate()
    var decoder = CBORDecoder(patch)
    // The patch is our own: it can be read.
    try? estimate.addPatch(&decoder)
    return estimate.bytes
  }

  /// Whether the state should be measured now. `isTime` is true once a second. Only then is it
  /// measured for the first time, and is a state measured again that is too large, because the
  /// patches that make it smaller are small themselves; also one that is too large for the free
  /// memory (`isScarce`).
  func mustMeasure(isTime: Bool, isScarce: Bool) -> Bool {
    if isMeasuring { return false }
    if isTime, isScarce, growth.memory > 0 { return true }
    // The estimate is too large already: until it is measured, even actions that make the state
    // smaller are rejected.
    guard let measured else { return isTime || memory > limit }
    // Well before the limit: a state that is overwritten often is measured in time, so that nothing
    // is rejected.
    if memory > limit / 4 * 3, growth.memory > limit / 64 { return true }
    // And often enough that the sum is useful: as often as the measurement costs less than the
    // patches did.
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

  /// The rejection of a client's action if the state is too large and the action is not so small
  /// that it may be a removal; nil if it may run. When small actions have made the state an eighth
  /// of the limit larger, every action is rejected.
  @inline(__always)
  func refusal(ofActionWith bytes: Int) -> Rejection? {
    if excess == nil, memory <= limit + limit / 8 { return nil }
    return refusalNearLimit(ofActionWith: bytes)
  }

  private func refusalNearLimit(ofActionWith bytes: Int) -> Rejection? {
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
