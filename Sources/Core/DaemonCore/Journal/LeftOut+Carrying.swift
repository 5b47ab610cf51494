import CBOR
import Records
import Schemas
import Values

extension [LeftOut] {
  /// So many versions, each of which the next did not know, are remembered.
  private static var most: Int { 8 }

  /// Continue beside a state that has been translated. What the translation leaves out of `former`
  /// is added; what the current schema knows of what was left out before is put into `state`, the
  /// translated one, and is not left out any more. Returns whether `state` has changed.
  ///
  /// The fields of an entry that is gone are not put back; those of one that was removed and made
  /// again under the same key are. What cannot be translated waits on, whole. O(the state + what was
  /// left out).
  @_optimize(size)
  mutating func carry(
    from former: [UInt8], of schema: Schema, by translation: Translation, into state: inout [UInt8],
    of current: Schema
  ) throws(CBORError) -> Bool {
    let bytes = state
    var untyped: UntypedState?
    var remaining: [LeftOut] = []
    for item in self {
      do throws(CBORError) {
        guard let (patch, rest) = try item.translated(to: current) else {
          remaining.append(item)
          continue
        }
        var next = untyped ?? UntypedState(bytes)
        try next.putBack(patch)
        untyped = next
        if let rest { remaining.append(LeftOut(schema: item.schema, patch: rest)) }
      } catch {
        // Values of another kind, or a case that is not known here: for a version that knows them.
        remaining.append(item)
      }
    }
    if let patch = try translation.leftOut(of: former) {
      remaining.append(LeftOut(schema: schema, patch: patch))
    }
    self = remaining.suffix(Self.most)
    guard let changed = untyped?.encoded else { return false }
    state = changed
    return true
  }
}

extension LeftOut {
  /// The patch by the current schema of what it knows, and the rest by this one; nil if none of it can be
  /// put back.
  @_optimize(size)
  fileprivate func translated(
    to current: Schema
  ) throws(CBORError) -> (patch: [UInt8], rest: [UInt8]?)? {
    let translation: Translation
    do throws(SchemaMismatch) {
      translation = try Translation(from: schema, to: .schema(current), root: .state)
    } catch {
      return nil
    }
    let rest = try translation.leftOut(ofPatch: patch)
    guard rest != patch else { return nil }
    let known = try CBORDecoder.read(patch) { (decoder) throws(CBORError) -> [UInt8]? in
      var encoder = CBOREncoder()
      let isWhole = try translation.patch(
        at: translation.place(at: .root), from: &decoder, into: &encoder)
      return isWhole ? encoder.bytes : nil
    }
    return known.map { ($0, rest) }
  }
}
