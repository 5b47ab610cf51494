import CBOR
import Schemas
public import Values
public import Wire

/// A client's subscription: its copy of the value at a path, and the progress of its stream.
public struct ClientSubscription: Sendable {
  public let number: UInt64
  /// The path in the client's schema, or by names.
  public let path: Path
  var everyRevision: Bool
  let notesPatches: Bool
  /// The translation of values and patches to our schema, or to names, and the place in the
  /// daemon's state that the path leads to; nil when no translation is needed.
  private(set) var translation: (by: Translation, place: Translation.Place)?
  /// The patch that was applied last, if it was translated.
  private(set) var translatedPatch: [UInt8] = []
  public internal(set) var value: MirroredValue
  /// Nil before the first snapshot.
  public internal(set) var position: Position?
  /// A snapshot will replace the mirror's outdated value. Changes that are acknowledged until then
  /// do not show yet.
  var isHealing = false
  /// The daemon's value contains something unknown here: the mirror receives nothing more on this
  /// connection.
  var isUnreadable = false
  /// Whether actions show here before they are decided.
  var isOptimistic = false
  /// What waiting actions are reduced on; nil while none waits.
  var basis: OptimisticBasis?
  /// Whether the value has changed since it became the basis.
  var isBasisDue = false
  /// The daemon's number for the scope of the path; nil until it answers.
  var scope: UInt64?
  private var phase = Phase.detached
  /// The parts received so far of a snapshot.
  private var parts: [UInt8] = []
  /// A complete snapshot that does not show yet: patches first bring it to the target revision.
  private var draft: MirroredValue?
  /// Counts of received snapshots and patches, and of revisions that were coalesced into a wider
  /// patch.
  public internal(set) var counters = Counters()

  public typealias Counters = MirrorCounters

  /// The phase of the subscription's stream. The daemon announces the revision from which the
  /// mirror is live (`target`). Until then an incoming snapshot is not shown: a mirror never goes
  /// back, nor shows less than an acknowledgement has promised.
  private enum Phase: Sendable {
    /// The daemon sends nothing, or not yet.
    case detached
    /// The parts of a snapshot are arriving; `next` is the next one.
    case gathering(next: UInt64, target: UInt64)
    /// The draft is at `revision`; patches are arriving.
    case drafting(revision: UInt64, target: UInt64)
    /// The patches since `position` are arriving.
    case catchingUp(target: UInt64)
    case live
  }

  init<T: Synchronizable>(
    number: UInt64, path: Path, as type: T.Type, everyRevision: Bool, notesPatches: Bool
  ) {
    value = MirroredValue(absent: type)
    self.number = number
    self.path = path
    self.everyRevision = everyRevision
    self.notesPatches = notesPatches
  }

  /// Whether the mirror follows the daemon: the stream continues from `position`.
  public var isLive: Bool { if case .live = phase { true } else { false } }

  /// The path in the daemon's schema. If it names nothing that the daemon knows, a path without a
  /// value: the mirror is absent, as for any other such path.
  var sourcePath: Path { translation?.place.sourcePath ?? path }

  mutating func translate(by translation: Translation?) {
    self.translation = translation.map { ($0, $0.place(at: path, number: number)) }
  }

  /// A new run of the daemon continues from this mirror's position.
  mutating func takeOver(_ new: Position) {
    if position?.epoch == new.epoch { position?.run = new.run }
  }

  mutating func disconnect() {
    phase = .detached
    isHealing = false
    scope = nil
    parts = []
    draft = nil
  }

  /// Keep showing the last value. Without a translation, the value is removed, because a failed
  /// patch may have changed a part of it.
  mutating func freeze() {
    disconnect()
    isUnreadable = true
    // It receives no decided action, so its basis would never change, and actions would show for ever.
    basis = nil
    guard translation == nil else { return }
    // Nothing can be applied to it: when the connection is made again, a snapshot must come.
    value.remove()
    position = nil
  }

  /// The daemon refuses or ends the subscription: the mirror becomes absent.
  mutating func end() {
    disconnect()
    value.remove()
    position = nil
    basis = nil
  }

  /// Process the daemon's answer, which says how the subscription continues. Returns whether the
  /// mirror shows another value.
  mutating func subscribed(
    _ message: ServerMessage.Subscribed, _ welcome: ServerMessage.Welcome
  ) -> Bool {
    switch message.continuation {
    case .current:
      scope = message.scope
      return stand(at: message.revision, welcome)
    case .patch:
      scope = message.scope
      position?.run = welcome.position.run
      phase = .catchingUp(target: message.revision)
      return false
    case .snapshot:
      scope = message.scope
      parts = []
      draft = nil
      phase = .gathering(next: 0, target: message.revision)
      return false
    case .refused: return false
    }
  }

  /// The mirror has reached a revision without a patch.
  private mutating func stand(at revision: UInt64, _ welcome: ServerMessage.Welcome) -> Bool {
    switch phase {
    case .drafting(let reached, let target):
      phase = .drafting(revision: max(reached, revision), target: target)
      return publish(welcome)
    case .detached, .catchingUp:
      // Only a mirror that has a position can be told that it is up to date.
      if position != nil { phase = .live }
      position?.run = welcome.position.run
    case .gathering, .live: break
    }
    advance(to: revision)
    return false
  }

  /// Show the draft if it has reached the target revision. Returns whether it has.
  private mutating func publish(_ welcome: ServerMessage.Welcome) -> Bool {
    guard case .drafting(let revision, let target) = phase, revision >= target,
      let whole = draft.take()
    else { return false }
    value = whole
    isBasisDue = true
    isHealing = false
    position = Position(
      epoch: welcome.position.epoch, run: welcome.position.run, revision: revision)
    phase = .live
    return true
  }

  /// Process a part of a snapshot. Returns whether it was the last, and the mirror shows the
  /// snapshot.
  mutating func take(
    _ snapshot: ServerMessage.Snapshot, _ welcome: ServerMessage.Welcome
  ) throws(CBORError) -> Bool {
    guard case .gathering(let expected, let target) = phase else { return false }
    guard snapshot.index == expected else {
      throw CBORError(.notAllowed("part \(snapshot.index) of a snapshot, not \(expected)"), at: 0)
    }
    counters.bytes += UInt64(snapshot.bytes.count)
    if parts.isEmpty { parts = snapshot.bytes } else { parts.append(contentsOf: snapshot.bytes) }
    phase = .gathering(next: expected + 1, target: target)
    guard snapshot.isLast else { return false }
    let whole = parts
    parts = []
    draft = try decode(whole, welcome)
    counters.snapshots += 1
    phase = .drafting(revision: snapshot.revision, target: target)
    return publish(welcome)
  }

  private func decode(
    _ bytes: [UInt8], _ welcome: ServerMessage.Welcome
  ) throws(CBORError) -> MirroredValue {
    var bytes = bytes
    if let (translation, place) = translation {
      bytes = try CBORDecoder.read(bytes) { decoder throws(CBORError) in
        var encoder = CBOREncoder(reservingCapacity: bytes.count)
        try translation.value(at: place, from: &decoder, into: &encoder)
        return encoder.bytes
      }
    }
    return try CBORDecoder.read(bytes, depth: Self.depth) { decoder throws(CBORError) in
      try value.decoded(from: &decoder, seed: welcome.seed)
    }
  }

  /// A case that is translated to names takes two levels of nesting instead of one.
  private static var depth: Int { 2 * CBORDecoder.defaultDepth }

  enum PatchOutcome {
    case applied
    /// The patch brought the draft to the target revision, and the mirror now shows it.
    case published
    /// The mirror has the patch already, or the patch does not show yet.
    case known
    /// The patch is based on a revision that the mirror does not have.
    case gap
    /// The patch cannot be expressed in our schema.
    case untranslatable
  }

  /// Apply the next item, a patch from one revision to another.
  mutating func apply(
    _ decoder: inout CBORDecoder, from: UInt64, to: UInt64, _ welcome: ServerMessage.Welcome,
    skipsBaseCheck: Bool
  ) throws(CBORError) -> PatchOutcome {
    guard let revision = patchable else {
      try decoder.skip()
      return .known
    }
    if !skipsBaseCheck {
      if to <= revision {
        try decoder.skip()
        return .known
      }
      if from > revision {
        try decoder.skip()
        return .gap
      }
    }
    let start = decoder.offset
    counters.patches += 1
    if path.keys.isEmpty && to > from { counters.coalesced += to - from - 1 }
    defer { counters.bytes += UInt64(decoder.offset - start) }
    guard let (translation, place) = translation else { return try apply(&decoder, to, welcome) }
    var encoder = CBOREncoder()
    var patch = CBORDecoder(try decoder.rawItem())
    guard try translation.patch(at: place, from: &patch, into: &encoder) else {
      return .untranslatable
    }
    translatedPatch = encoder.bytes
    return try CBORDecoder.read(translatedPatch, depth: Self.depth) {
      (decoder) throws(CBORError) in try apply(&decoder, to, welcome)
    }
  }

  /// Apply the next item, a patch in our schema.
  private mutating func apply(
    _ decoder: inout CBORDecoder, _ to: UInt64, _ welcome: ServerMessage.Welcome
  ) throws(CBORError) -> PatchOutcome {
    if case .drafting(_, let target) = phase {
      try draft?.apply(patch: &decoder, seed: welcome.seed)
      phase = .drafting(revision: to, target: target)
      return publish(welcome) ? .published : .known
    }
    isBasisDue = true
    try value.apply(patch: &decoder, seed: welcome.seed)
    position?.revision = to
    if case .catchingUp(let target) = phase, to >= target { phase = .live }
    return .applied
  }

  /// The revision on which the next patch must be based; nil when none can be applied.
  var patchable: UInt64? {
    switch phase {
    case .detached, .gathering: nil
    case .drafting(let revision, _): revision
    case .catchingUp, .live: position?.revision
    }
  }

  /// Advance a live mirror's position to a revision that the stream has reached.
  mutating func advance(to revision: UInt64) {
    guard isLive, let old = position?.revision, old < revision else { return }
    position?.revision = revision
  }
}

/// Counters of a mirror's stream.
public struct MirrorCounters: Hashable, Sendable {
  public var snapshots: UInt64 = 0
  public var patches: UInt64 = 0
  public var coalesced: UInt64 = 0
  public var bytes: UInt64 = 0
  public var resyncs: UInt64 = 0

  public init() {}
}
