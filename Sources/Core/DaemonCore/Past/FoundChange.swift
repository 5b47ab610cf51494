import CBOR
import Lockstep
import Values

/// How a state changes so that it has the contents of another: worked out before it does.
///
/// A class, because it travels in an event and weighs more than any other. It does not name the type of
/// the state, as `PastJob` does not.
public final class FoundChange: Sendable {
  /// The state that it was worked out for, changed.
  let state: any Synchronizable
  /// The patch from the one to the other; empty if nothing changes.
  let patch: ForeseenPatch

  /// What a patch changes of a state, without its ephemeral fields: those are nobody's past. The notes
  /// of the change have ended. Throws if it is no patch of this state. O(the patch · log n).
  init(
    _ patch: [UInt8], of state: any Synchronizable, without ephemeral: EphemeralPaths,
    seed: HashSeed
  ) throws(CBORError) {
    var kept = patch
    if !ephemeral.isEmpty {
      kept = []
      let isAny = patch.withUnsafeBytes { ephemeral.appendKept(of: $0, to: &kept) }
      if !isAny { kept = [] }
    }
    var state = state
    if !kept.isEmpty { try Self.apply(kept, to: &state, seed) }
    self.state = state
    self.patch = ForeseenPatch(
      Foresight(patch: kept, hint: 0), weight: PatchWeight(of: kept))
  }

  private static func apply<State: Synchronizable>(
    _ patch: [UInt8], to state: inout State, _ seed: HashSeed
  ) throws(CBORError) {
    try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      try state.apply(patch: &decoder, seed: seed)
    }
    state.adopt(seed: seed)
    var ignored = CBOREncoder()
    _ = state.settle(since: state, seed: seed, into: &ignored)
  }

  var bytes: [UInt8] { patch.foresight.patch }
}

extension FoundChange: Equatable {
  /// Whether both change the same; of the same state, they are equal then.
  public static func == (first: FoundChange, second: FoundChange) -> Bool {
    first.bytes == second.bytes
  }
}

// MARK: As a report

extension FoundChange {
  /// The report of which `patch(in:)` reads the patch again.
  var report: [UInt8] {
    var encoder = CBOREncoder(reservingCapacity: bytes.count + 16)
    encoder.map(1)
    encoder.encode("change")
    encoder.encode(bytes: bytes)
    return encoder.bytes
  }

  /// The patch in the report of a change; nil if it reports an error.
  static func patch(in report: [UInt8]) -> [UInt8]? {
    try? CBORDecoder.read(report) { (decoder) throws(CBORError) in
      guard try decoder.map() == 1, try decoder.text() == "change" else {
        throw CBORError(.notAllowed("no change"), at: decoder.offset)
      }
      let patch = [UInt8](try decoder.byteString())
      decoder.close()
      return patch
    }
  }
}
