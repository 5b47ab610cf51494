import Access
import CBOR
import Lockstep
import Values
import Wire

/// A listing of parts, made from one state beside the loop: it takes as long as to encode the
/// listed whole.
struct ListingJob: Sendable {
  let request: ListingRequest
  let schema: Schema
  let revision: UInt64
  /// The path of the whole as it travels.
  let path: Path
  /// Passes what the client may see there; nil for all.
  let filter: ViewFilter?
  let history: History
  /// The keys of the part after which the rows begin, as they travel.
  let after: [PathKey]
  let mostBytes: Int
  let mostPathBytes: Int
  /// The whole in value form, `undefined` if it is absent.
  let value: @Sendable () throws(CBORError) -> [UInt8]

  /// The report as CBOR. O(the bytes of the whole, times the levels, and of the history).
  func report() -> [UInt8] {
    do {
      var bytes = try value()
      // What is not visible is not kept beside it.
      if let filter { bytes = filter.shown(bytes) }
      if bytes == [0xf7] {
        let place = request.path.description.prefix(bytes: 256)
        let when = request.revision.map { " at revision \($0)" } ?? ""
        return ReportError(.absent, "there is nothing at \(place)\(when)").report.encoded
      }
      let times = times()
      return try bytes.withUnsafeBytes {
        try report(of: .init(bytes: $0, kind: schema.kind(at: path), times: times))
      }
    } catch {
      // Not reached: the state's own encoding is valid.
      return ReportError(.refused, "the value cannot be listed: \(error)").report.encoded
    }
  }

  private func report(of whole: ListingWalk.Part) throws(CBORError) -> [UInt8] {
    var walk = ListingWalk(
      schema: schema, limit: request.limit, mostBytes: mostBytes, mostPathBytes: mostPathBytes)
    let pointer = request.path.pointer
    try walk.list(whole, at: pointer, depth: request.depth, after: after[...])
    var encoder = CBOREncoder(reservingCapacity: walk.rows.bytes.count + 256)
    encoder.map(5)
    encoder.encode("revision")
    encoder.encode(revision)
    encoder.encode("since")
    encoder.encode(history.base)
    encoder.encode("whole")
    try walk.describe(whole, at: pointer, into: &encoder)
    encoder.encode("parts")
    encoder.array(walk.count)
    encoder.raw(walk.rows.bytes)
    encoder.encode("hasMore")
    encoder.encode(walk.hasMore)
    return encoder.bytes
  }

  /// When the parts changed last, as far as the client could see it.
  private func times() -> ChangeTimes {
    var times = ChangeTimes()
    history.forEach(after: history.base) { revision, patch in
      guard revision <= self.revision else { return }
      switch path.projection(of: patch) {
      case .untouched: return
      case .absent: times.noteReplacement(at: revision)
      case .patch(let range):
        // The server's own patches decode.
        try? times.note(
          UnsafeRawBufferPointer(rebasing: patch[range]), seenBy: filter, at: revision,
          depth: request.depth)
      case .value(let range):
        let value = UnsafeRawBufferPointer(rebasing: patch[range])
        var seen = CBOREncoder()
        if filter.map({ $0.filter(value: value, into: &seen) }) ?? true {
          times.noteReplacement(at: revision)
        }
      }
    }
    return times
  }
}
