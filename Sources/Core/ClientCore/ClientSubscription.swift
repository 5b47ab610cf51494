import CBOR
import Schemas
public import Values
public import Wire

/// A subscription at a client: its copy of the value at a path, and how far its stream has come.
public struct ClientSubscription: Sendable {
  public let number: UInt64
  /// In the client's terms.
  public let path: Path
  var everyRevision: Bool
  /// What the path leads to in the daemon's state, and how values and patches from there become
  /// ours; nil when they are ours already.
  private(set) var translation: (by: Translation, place: Translation.Place)?
  /// The patch that was applied last, if it was translated.
  private(set) var translatedPatch: [UInt8] = []
  public internal(set) var value: MirroredValue
  /// Nil before the first snapshot.
  public internal(set) var position: Position?
  /// A snapshot is to come in place of what the mirror should not show any more. What is
  /// acknowledged meanwhile does not show yet.
  var isHealing = false
  /// The daemon's value holds something that is not known here: nothing comes any more.
  var isUnreadable = false
  /// The daemon's number for the path; nil until it answers.
  var scope: UInt64?
  private var phase = Phase.detached
  /// The parts of a snapshot that is coming.
  private var parts: [UInt8] = []
  /// A snapshot that is whole, while patches bring it to where the subscription is to stand.
  private var draft: MirroredValue?
  /// Snapshots and patches that came, and revisions that came only as part of a wider patch.
  public internal(set) var counters = Counters()

  public typealias Counters = MirrorCounters

  /// What the stream of the subscription does. The daemon announces the revision at which it will
  /// stand (`target`). Until then the mirror is not live, and a snapshot on the way is not shown:
  /// a mirror never goes back, nor shows less than an acknowledgement has promised.
  private enum Phase: Sendable {
    /// Nothing comes, or not yet.
    case detached
    /// The parts of a snapshot come; this one is next.
    case gathering(next: UInt64, target: UInt64)
    /// The draft stands at `revision`; patches come.
    case drafting(revision: UInt64, target: UInt64)
    /// The patches since `position` come.
    case catchingUp(target: UInt64)
    case live
  }

  init<T: Synchronizable>(number: UInt64, path: Path, as type: T.Type, everyRevision: Bool) {
    value = MirroredValue(absent: type)
    self.number = number
    self.path = path
    self.everyRevision = everyRevision
  }

  /// Whether the mirror follows the daemon: the stream continues from `position`.
  public var isLive: Bool { if case .live = phase { true } else { false } }

  /// The path in the daemon's terms. Where it names nothing that the daemon knows, one that leads
  /// nowhere: nothing stands there, as with any other path of which that is true.
  var sourcePath: Path { translation?.place.sourcePath ?? path }

  mutating func translate(by translation: Translation?) {
    self.translation = translation.map { ($0, $0.place(at: path, number: number)) }
  }

  /// Another run goes on from where this mirror stands.
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

  /// Keep showing what was last read. A patch that was not translated may have half changed that.
  mutating func freeze() {
    disconnect()
    isUnreadable = true
    if translation == nil { value.remove() }
  }

  /// The daemon refuses the subscription, or ends it: nothing shows.
  mutating func end() {
    disconnect()
    value.remove()
    position = nil
  }

  /// The daemon says how the subscription goes on. Returns whether another value shows.
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

  /// The mirror has come to a revision without a patch.
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

  /// Show the draft if it stands where it should. Returns whether it does.
  private mutating func publish(_ welcome: ServerMessage.Welcome) -> Bool {
    guard case .drafting(let revision, let target) = phase, revision >= target,
      let whole = draft.take()
    else { return false }
    value = whole
    isHealing = false
    position = Position(
      epoch: welcome.position.epoch, run: welcome.position.run, revision: revision)
    phase = .live
    return true
  }

  /// Take a part of a snapshot. Returns whether it was the last, and the mirror shows it.
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

  /// A case that is read by names takes two levels where it took one.
  private static var depth: Int { 2 * CBORDecoder.defaultDepth }

  enum PatchOutcome {
    case applied
    /// A snapshot is shown that this patch brought to where it should stand.
    case published
    /// The mirror has it already, or it does not show yet.
    case known
    /// The patch is based on a revision that the mirror does not have.
    case gap
    /// No patch says in our terms what this one does.
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

  /// Apply the next item, a patch in our terms.
  private mutating func apply(
    _ decoder: inout CBORDecoder, _ to: UInt64, _ welcome: ServerMessage.Welcome
  ) throws(CBORError) -> PatchOutcome {
    if case .drafting(_, let target) = phase {
      try draft?.apply(patch: &decoder, seed: welcome.seed)
      phase = .drafting(revision: to, target: target)
      return publish(welcome) ? .published : .known
    }
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

  /// A stream that stands at a revision says so.
  mutating func advance(to revision: UInt64) {
    guard isLive, let old = position?.revision, old < revision else { return }
    position?.revision = revision
  }
}

/// What came to a mirror.
public struct MirrorCounters: Hashable, Sendable {
  public var snapshots: UInt64 = 0
  public var patches: UInt64 = 0
  public var coalesced: UInt64 = 0
  public var bytes: UInt64 = 0
  public var resyncs: UInt64 = 0

  public init() {}
}
