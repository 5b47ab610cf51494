import Access
import CBOR
import Lockstep
import Values
import Wire

/// A look into the past, made beside the loop from a checkpoint and the patches after it.
///
/// It does not name the type of the state: to look is to decode, apply and encode, which a witness does as
/// fast, and the code would be there once for each type.
struct PastJob: Sendable {
  let checkpoint: Past.Checkpoint
  let past: Past
  let history: History
  let schema: Schema
  let seed: HashSeed
  /// What is looked at.
  let place: ChangedPlaces.Place
  let subject: PastRequest.Subject
  /// The newest revision, and its state.
  let revision: UInt64
  let newest: any Synchronizable
  /// No more bytes of changes than this, and one change.
  let mostBytes: Int
  /// What a jump leaves as it is.
  let ephemeral: EphemeralPaths
  /// The scopes that a jump changes.
  let scopes: ScopeViews

  /// What is asked for. O(the state, and the bytes of the patches since the checkpoint, or of all of
  /// them for changes).
  func finding() -> Finding {
    do throws(CBORError) {
      switch subject {
      case .value(let revision): return .report(try value(at: revision))
      case .changes(let count, let before): return .report(try changes(count, before: before))
      case .change(let revision): return .change(try change(to: revision))
      }
    } catch {
      return .report(Self.failure(error).report.encoded)
    }
  }

  /// Not reached: the server's own states and patches decode.
  static func failure(_ error: CBORError) -> ReportError {
    ReportError(.refused, "the past cannot be made again: \(error)")
  }

  private typealias Step = (
    revision: UInt64, patch: UnsafeRawBufferPointer, before: any Synchronizable,
    after: any Synchronizable
  )

  /// The checkpoint's state with each patch through a revision.
  func replay(through last: UInt64) throws(CBORError) -> any Synchronizable {
    try replay(from: checkpoint, through: last, wanted: []) { _ in }
  }

  /// Calls `body` with the state before and after each of the `wanted` revisions; others change the
  /// state where it is.
  private func replay(
    from checkpoint: Past.Checkpoint, through last: UInt64, wanted: Set<UInt64>,
    _ body: (Step) throws(CBORError) -> Void
  ) throws(CBORError) -> any Synchronizable {
    let (seed, type) = (seed, Swift.type(of: newest))
    var state = try CBORDecoder.read(checkpoint.bytes) { (decoder) throws(CBORError) in
      try type.init(from: &decoder, seed: seed) as any Synchronizable
    }
    var problem: CBORError?
    history.forEach(after: checkpoint.revision) { made, patch in
      guard made <= last, problem == nil else { return }
      let before = wanted.contains(made) ? state : nil
      var decoder = CBORDecoder(patch)
      do throws(CBORError) {
        try state.apply(patch: &decoder, seed: seed)
        if let before { try body((made, patch, before, state)) }
      } catch {
        problem = error
      }
    }
    if let problem { throw problem }
    return state
  }

  /// The visible part of the value at a place, in value form.
  private func shown(_ state: any Synchronizable, _ place: ChangedPlaces.Place) -> [UInt8] {
    var encoder = CBOREncoder()
    state.encode(at: place.path, into: &encoder)
    return place.filter?.shown(encoder.bytes) ?? encoder.bytes
  }

  /// The value at the place, in value form and not filtered. O(the state, and the bytes of the
  /// patches since the checkpoint).
  func whole(at revision: UInt64) throws(CBORError) -> [UInt8] {
    var encoder = CBOREncoder()
    try replay(through: revision).encode(at: place.path, into: &encoder)
    return encoder.bytes
  }

  private func value(at revision: UInt64) throws(CBORError) -> [UInt8] {
    let bytes = shown(try replay(through: revision), place)
    var encoder = CBOREncoder(reservingCapacity: bytes.count + 64)
    encoder.map(2)
    encoder.encode("revision")
    encoder.encode(revision)
    encoder.encode("value")
    Self.encode(bytes, into: &encoder)
    return encoder.bytes
  }

  private static func encode(_ value: [UInt8], into encoder: inout CBOREncoder) {
    if value == [0xf7] { encoder.encodeNull() } else { encoder.encode(bytes: value) }
  }

  // MARK: Jumps

  private func change(to revision: UInt64) throws(CBORError) -> FoundChange {
    try FoundChange(
      difference(to: try replay(through: revision)), of: newest, without: ephemeral, seed: seed,
      seenIn: scopes)
  }

  private func difference<State: Synchronizable>(to state: State) -> [UInt8] {
    var patch = CBOREncoder()
    // Of the same type: it was made of it.
    if let newest = newest as? State {
      _ = state.encodeDifference(from: newest, into: &patch)
    }
    return patch.bytes
  }

  // MARK: Changes

  private func changes(_ count: Int, before: UInt64) throws(CBORError) -> [UInt8] {
    let touching = touching(before: before)
    let latest = touching.suffix(count)
    var rows: [(revision: UInt64, bytes: [UInt8])] = []
    var bytes = 0
    var next = latest.count < touching.count ? latest.first : nil
    if let first = latest.first, let last = latest.last {
      let near = past.checkpoint(for: first - 1, in: history) ?? checkpoint
      _ = try replay(from: near, through: last, wanted: Set(latest)) { step throws(CBORError) in
        guard let row = try row(step) else { return }
        rows.append((step.revision, row))
        bytes += row.count
        // The latest are wanted first.
        while bytes > mostBytes, rows.count > 1 {
          bytes -= rows.removeFirst().bytes.count
          next = rows.first?.revision
        }
      }
    }
    var encoder = CBOREncoder(reservingCapacity: bytes + 128)
    encoder.map(4)
    encoder.encode("revision")
    encoder.encode(revision)
    encoder.encode("since")
    encoder.encode(checkpoint.revision)
    encoder.encode("next")
    encoder.encodeOptional(next) { $0.encode($1) }
    encoder.encode("changes")
    encoder.array(rows.count)
    for row in rows { encoder.raw(row.bytes) }
    return encoder.bytes
  }

  /// What a revision changed, as far as it may be seen; nil if that is nothing.
  private func row(_ step: Step) throws(CBORError) -> [UInt8]? {
    var changed = ChangedPlaces(schema: schema)
    try changed.find(in: step.patch, below: place)
    var places = CBOREncoder()
    var count = 0
    for place in changed.places {
      let (from, to) = (shown(step.before, place), shown(step.after, place))
      if from == to { continue }
      places.map(3)
      places.encode("path")
      places.encode(place.pointer)
      places.encode("from")
      Self.encode(from, into: &places)
      places.encode("to")
      Self.encode(to, into: &places)
      count += 1
    }
    if count == 0 { return nil }
    var encoder = CBOREncoder(reservingCapacity: places.bytes.count + 32)
    encoder.map(2)
    encoder.encode("revision")
    encoder.encode(step.revision)
    encoder.encode("places")
    encoder.array(count)
    encoder.raw(places.bytes)
    return encoder.bytes
  }

  /// The revisions before one whose patches touch what is visible at the path, in order.
  private func touching(before: UInt64) -> [UInt64] {
    var revisions: [UInt64] = []
    history.forEach(after: checkpoint.revision) { made, patch in
      guard made < before else { return }
      let change = place.path.projection(of: patch)
      if change == .untouched { return }
      if let filter = place.filter {
        var seen = CBOREncoder()
        if filter.filter(change, of: patch, into: &seen) == .untouched { return }
      }
      revisions.append(made)
    }
    return revisions
  }
}
