import CBOR
public import Values
public import Wire

/// A client's copy of what stands at a path.
public struct Mirror<Mirrored: Synchronizable>: Sendable {
  public let number: UInt64
  public let path: Path
  let everyRevision: Bool
  /// Nil when nothing stands at the path.
  public internal(set) var value: Mirrored?
  /// Nil before the first snapshot.
  public internal(set) var position: Position?
  /// The daemon's number for the path; nil until it answers.
  var scope: UInt64?
  private var phase = Phase.detached
  /// The parts of a snapshot that is coming.
  private var parts: [UInt8] = []
  /// A snapshot that is whole, while patches bring it to where the subscription is to stand.
  private var draft: Mirrored?
  /// Snapshots and patches that came, and revisions that came only as part of a wider patch.
  public internal(set) var counters = Counters()

  public struct Counters: Hashable, Sendable {
    public var snapshots: UInt64 = 0
    public var patches: UInt64 = 0
    public var coalesced: UInt64 = 0
    public var bytes: UInt64 = 0
    public var resyncs: UInt64 = 0

    public init() {}
  }

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

  init(number: UInt64, path: Path, everyRevision: Bool) {
    self.number = number
    self.path = path
    self.everyRevision = everyRevision
  }

  /// Whether the mirror follows the daemon: the stream continues from `position`.
  public var isLive: Bool { if case .live = phase { true } else { false } }

  mutating func disconnect() {
    phase = .detached
    scope = nil
    parts = []
    draft = nil
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
    case .gathering, .live: break
    }
    advance(to: revision)
    return false
  }

  /// Show the draft if it stands where it should. Returns whether it does.
  private mutating func publish(_ welcome: ServerMessage.Welcome) -> Bool {
    guard case .drafting(let revision, let target) = phase, revision >= target else {
      return false
    }
    value = draft
    draft = nil
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
    draft = try CBORDecoder.read(whole) { decoder throws(CBORError) in
      try Mirrored?(from: &decoder, seed: welcome.seed)
    }
    counters.snapshots += 1
    phase = .drafting(revision: snapshot.revision, target: target)
    return publish(welcome)
  }

  enum PatchOutcome {
    case applied
    /// A snapshot is shown that this patch brought to where it should stand.
    case published
    /// The mirror has it already, or it does not show yet.
    case known
    /// The patch is based on a revision that the mirror does not have.
    case gap
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
    if case .drafting(_, let target) = phase {
      try draft.apply(patch: &decoder, seed: welcome.seed)
      draft.adopt(seed: welcome.seed)
      phase = .drafting(revision: to, target: target)
      return publish(welcome) ? .published : .known
    }
    try value.apply(patch: &decoder, seed: welcome.seed)
    // A mirror never settles: this ends its transaction, so that no notes pile up.
    value.adopt(seed: welcome.seed)
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
