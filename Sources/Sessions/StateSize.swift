import CBOR
import Lockstep
public import Values

/// How large the state is, as far as that is known: what it took when it was measured last, and the
/// patches since, for no change adds more than its patch. To measure costs O(the state), so it is
/// done beside the loop, and only when the sum comes near the limit.
struct StateSize: Sendable {
  private let limit: Int
  /// Bytes of the whole in value form; nil before the first measurement.
  private(set) var measured: Int?
  /// What it took when it was found to be too large, or the least since; nil while it is not.
  private var excess: Int?
  /// Bytes of patches since that state, and since the one that is being measured.
  private var patchBytes = 0
  private var patchBytesMeanwhile = 0
  private var isMeasuring = false

  init(limit: Int) { self.limit = limit }

  /// No less than the state takes.
  var estimate: Int { (measured ?? 0) + patchBytes }

  mutating func note(patchBytes count: Int) {
    patchBytes += count
    patchBytesMeanwhile += count
  }

  /// Whether the state should be measured now. `isTime` once a second: only then is it measured for the
  /// first time, and one that is too large again, for what makes it smaller leaves small patches.
  func mustMeasure(isTime: Bool) -> Bool {
    if isMeasuring { return false }
    // Too large already: before it is measured, not even what makes it smaller is done.
    guard let measured else { return isTime || estimate > limit }
    // Well before the limit: what is much overwritten is measured in time, and nothing is rejected.
    if estimate > limit / 4 * 3, patchBytes > limit / 64 { return true }
    // And often enough that the sum says something: as often as it costs less than the patches did.
    return isTime && (measured > limit && patchBytes > 0 || patchBytes > max(measured, 64 << 20))
  }

  mutating func begin() {
    isMeasuring = true
    patchBytesMeanwhile = 0
  }

  mutating func take(_ bytes: Int) {
    isMeasuring = false
    measured = bytes
    patchBytes = patchBytesMeanwhile
    excess = bytes > limit ? min(excess ?? bytes, bytes) : nil
  }

  /// Why an action of a client is not done: the state is too large, and the action is not so small
  /// that it may be one that removes something. Once small ones have made it an eighth of the limit
  /// larger, none is done.
  func refusal(ofActionWith bytes: Int) -> Rejection? {
    let isSmall = bytes <= Self.smallActionBytes
    if estimate > max(limit, isSmall ? excess ?? 0 : 0) + limit / 8 || !isSmall && excess != nil {
      return Rejection(
        .limit,
        "the state takes up to \(estimate) bytes, and stateBytes is \(limit): "
          + (isSmall
            ? "no action of clients is done"
            : "until it takes less, only actions of at most \(Self.smallActionBytes) bytes are done, "
              + "such as removals"))
    }
    return nil
  }

  private static let smallActionBytes = 128
}

extension Synchronizable {
  /// The bytes of its value form. O(the state).
  public var valueFormBytes: Int {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes.count
  }
}
