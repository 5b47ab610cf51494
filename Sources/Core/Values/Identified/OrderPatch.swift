public import CBOR

/// Applies a patch to the order of a `SyncIdentifiedArray`, and records what it changed.
@usableFromInline
struct OrderPatch<ID: SyncKey & Synchronizable>: PatchableArray {
  @usableFromInline var ids: TreeArray<ID>
  /// The ids that were taken out of the order, though they may be in it again.
  @usableFromInline var removed: [ID] = []
  /// The positions of new ids in the final order, ascending and not adjacent, before the edits.
  @usableFromInline var inserted: [Range<Int>] = []
  /// The positions of replaced ids in the final order.
  @usableFromInline var replaced: [Int] = []
  /// The position that the splices have reached.
  @usableFromInline var end = 0
  /// Whether a splice was in front of the one before, so that the recorded positions are wrong. Our
  /// daemons write no such patch.
  @usableFromInline var isDisordered = false

  @inlinable
  init(_ ids: TreeArray<ID>) { self.ids = ids }

  @inlinable var count: Int { ids.count }

  @inlinable
  mutating func splice(
    _ range: Range<Int>, from decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    for index in range { removed.append(ids[index]) }
    let remaining = ids.count - range.count
    try ids.splice(range, from: &decoder, seed: seed)
    let new = range.lowerBound..<range.lowerBound + ids.count - remaining
    isDisordered = isDisordered || new.lowerBound < end
    end = new.upperBound
    if new.isEmpty { return }
    if let last = inserted.last, last.upperBound == new.lowerBound {
      inserted[inserted.count - 1] = last.lowerBound..<new.upperBound
    } else {
      inserted.append(new)
    }
  }

  @inlinable
  mutating func edit(
    at index: Int, by decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) {
    removed.append(ids[index])
    try ids.edit(at: index, by: &decoder, seed: seed)
    replaced.append(index)
  }

  /// The positions in the final order whose ids are new there, as ascending ranges that are not
  /// adjacent.
  @inlinable var changed: [Range<Int>] {
    if replaced.isEmpty { return inserted }
    let all = (inserted + replaced.map { $0..<$0 + 1 }).sorted { $0.lowerBound < $1.lowerBound }
    var result: [Range<Int>] = []
    for run in all {
      if let last = result.last, run.lowerBound <= last.upperBound {
        result[result.count - 1] =
          last.lowerBound..<Swift.max(last.upperBound, run.upperBound)
      } else {
        result.append(run)
      }
    }
    return result
  }
}
