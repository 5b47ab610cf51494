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

  /// What a patch changes of a state; a jump leaves ephemeral fields as they are. Throws if it is no
  /// patch of this state. O(the patch · log n).
  init(
    _ patch: [UInt8], of state: any Synchronizable, without ephemeral: EphemeralPaths,
    seed: HashSeed, seenIn scopes: ScopeViews? = nil
  ) throws(CBORError) {
    var (patch, changed) = (patch, state)
    if ephemeral.isEmpty {
      if !patch.isEmpty { changed = try Self.change(state, by: patch, seed) }
    } else {
      var kept: [UInt8] = []
      let isAny = patch.withUnsafeBytes { ephemeral.appendKept(of: $0, to: &kept) }
      if isAny { changed = try Self.change(state, by: kept, seed) }
      // A part that comes back has its ephemeral fields, too: they are not in what was kept.
      patch = Self.difference(of: changed, from: state)
    }
    self.state = changed
    patch = patch.withUnsafeBytes { [UInt8]($0) }
    self.patch = ForeseenPatch(Foresight(patch: patch, hint: 0), scopes)
  }

  /// A state with a patch applied, and the notes of that settled.
  private static func change<State: Synchronizable>(
    _ state: State, by patch: [UInt8], _ seed: HashSeed
  ) throws(CBORError) -> any Synchronizable {
    var state = state
    try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
      try state.apply(patch: &decoder, seed: seed)
    }
    state.adopt(seed: seed)
    var ignored = CBOREncoder()
    _ = state.settle(since: state, seed: seed, into: &ignored)
    return state
  }

  private static func difference<State: Synchronizable>(
    of changed: any Synchronizable, from state: State
  ) -> [UInt8] {
    var patch = CBOREncoder()
    // Of the same type: it was made of it.
    if let changed = changed as? State { _ = changed.encodeDifference(from: state, into: &patch) }
    return patch.bytes
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
