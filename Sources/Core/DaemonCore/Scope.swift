import Access
import CBOR
import Values
import Wire

/// A part of the state that has subscribers, and its changes in this turn.
struct Scope: Sendable {
  let id: UInt64
  let path: Path
  /// Passes what its subscribers may see there; nil if they see all of it.
  let filter: ViewFilter?
  /// The connections that see it.
  var subscribers = Subscribers()
  /// The revision of the newest change, which is the base of the next patch.
  var lastChange: UInt64
  /// Whether the path has a value.
  private(set) var isPresent: Bool

  /// This turn's changes.
  private(set) var patches = TurnPatches()

  /// Bytes of the newest snapshot and all patches since: about what a snapshot would take.
  var snapshotBytes: Int?
  /// The same for the whole value at the path, visible or not; one more than
  /// `Limits.inlineSnapshotBytes` if it is only known to be more.
  var wholeBytes: Int?
  var snapshot: EncodedSnapshot?
  var job: SnapshotJobID?

  init(id: UInt64, path: Path, filter: ViewFilter?, lastChange: UInt64, isPresent: Bool) {
    self.id = id
    self.path = path
    self.filter = filter
    self.lastChange = lastChange
    self.isPresent = isPresent
  }

  var changedThisTurn: Bool { !patches.isEmpty }

  /// What a turn sends to live subscribers.
  struct Turn {
    let scope: UInt64
    let frames: Frames
    /// The bytes of the frames.
    let byteCount: Int
    /// The number of patches in the frames.
    let count: UInt64
    /// The reason that there are none.
    let loss: ServerMessage.Reason?
  }

  var turn: Turn {
    Turn(
      scope: id, frames: patches.frames, byteCount: patches.byteCount, count: patches.count,
      loss: patches.loss)
  }

  /// Note the effect of a patch of the whole state on this scope. Returns whether it had any.
  mutating func note(
    _ patch: UnsafeRawBufferPointer, revision: UInt64, limits: FrameLimits
  ) -> Bool {
    note(path.projection(of: patch), of: patch, revision: revision, limits: limits)
  }

  /// Note the effect of a patch of the whole state on this scope, which was foreseen. Returns whether it
  /// had any.
  @inline(never)
  mutating func noteForeseen(
    _ change: ForeseenChange, of patch: UnsafeRawBufferPointer, revision: UInt64,
    limits: FrameLimits
  ) -> Bool {
    guard let outcome = change.outcome else {
      return note(
        change.projection, of: patch, shared: change.bytes, revision: revision, limits: limits)
    }
    noteWhole(change.projection)
    return note(outcome, change.bytes ?? [], isShared: true, revision, limits)
  }

  /// Note the effect of a patch of the whole state on this scope, which is known. Returns whether it had
  /// any. `shared` has the same bytes, for all subscribers. Not inlined: it would be in four places, and is
  /// four kilobytes.
  @inline(never)
  mutating func note(
    _ projection: Projection, of patch: UnsafeRawBufferPointer, shared: [UInt8]? = nil,
    revision: UInt64, limits: FrameLimits
  ) -> Bool {
    if let filter { return note(projection, of: patch, by: filter, revision, limits) }
    let body: UnsafeRawBufferPointer
    var wraps = false
    switch projection {
    case .untouched: return false
    case .absent:
      guard isPresent else { return false }
      isPresent = false
      body = UnsafeRawBufferPointer(start: nil, count: 0)
    case .patch(let range):
      body = UnsafeRawBufferPointer(rebasing: patch[range])
      isPresent = body.first != 0xf7
    case .value(let range):
      body = UnsafeRawBufferPointer(rebasing: patch[range])
      isPresent = true
      if let first = body.first { wraps = first >> 5 == 4 || first >> 5 == 5 }
    }
    note(body, shared, isAbsent: projection == .absent, wraps: wraps, revision, limits)
    if let bytes = wholeBytes { wholeBytes = bytes + body.count }
    return true
  }

  /// Note the visible part of a patch's effect here.
  private mutating func note(
    _ projection: Projection, of patch: UnsafeRawBufferPointer, by filter: ViewFilter,
    _ revision: UInt64, _ limits: FrameLimits
  ) -> Bool {
    noteWhole(projection)
    let (outcome, visible) = filter.filtered(projection, of: patch)
    return note(outcome, visible, isShared: false, revision, limits)
  }

  private mutating func noteWhole(_ projection: Projection) {
    if let bytes = wholeBytes { wholeBytes = bytes + projection.byteCount }
  }

  /// Note what a filter has left of a patch's effect here.
  private mutating func note(
    _ outcome: ViewFilter.Outcome, _ visible: [UInt8], isShared: Bool, _ revision: UInt64,
    _ limits: FrameLimits
  ) -> Bool {
    switch outcome {
    case .untouched: return false
    case .absent:
      guard isPresent else { return false }
      isPresent = false
      note(UnsafeRawBufferPointer(start: nil, count: 0), isAbsent: true, revision, limits)
    case .patch:
      isPresent = true
      visible.withUnsafeBytes { note($0, isShared ? visible : nil, revision, limits) }
    case .resync:
      isPresent = true
      patches.lose(.view)
      lastChange = revision
    }
    return true
  }

  /// Append a patch of the visible part to the pending ones.
  private mutating func note(
    _ body: UnsafeRawBufferPointer, _ shared: [UInt8]? = nil, isAbsent: Bool = false,
    wraps: Bool = false, _ revision: UInt64, _ limits: FrameLimits
  ) {
    patches.append(
      body, shared, isAbsent: isAbsent, wraps: wraps, from: lastChange, to: revision, scope: id,
      limits)
    if let bytes = snapshotBytes { snapshotBytes = bytes + body.count }
    lastChange = revision
  }

  /// Make a frame of the pending patches.
  mutating func cut() { patches.cut(scope: id) }

  mutating func endTurn() { patches.removeAll() }
}

/// The patches of a scope in one turn, for all live subscribers.
struct TurnPatches: Sendable {
  /// The revision before the first of the pending pairs.
  private var pendingFrom: UInt64 = 0
  /// Spans and patches that are not framed yet.
  private var pending = CBOREncoder()
  private var pendingCount = 0
  /// A large one may be in two pieces.
  private(set) var frames = Frames.none
  /// The bytes of the frames.
  private(set) var byteCount = 0
  /// The number of patches, framed or not.
  private(set) var count: UInt64 = 0
  /// The reason that no patch can express the turn's changes; nil if patches do.
  private(set) var loss: ServerMessage.Reason?

  var isEmpty: Bool { pendingCount == 0 && frames.isEmpty && loss == nil }

  /// No patch can express the turn's changes, for this reason.
  mutating func lose(_ reason: ServerMessage.Reason) { loss = loss ?? reason }

  /// Append a patch, or the absence of a value, between two revisions. `shared` has the same bytes, and
  /// is sent if they are many.
  mutating func append(
    _ body: UnsafeRawBufferPointer, _ shared: [UInt8]? = nil, isAbsent: Bool, wraps: Bool,
    from base: UInt64,
    to revision: UInt64, scope: UInt64, _ limits: FrameLimits
  ) {
    // The pending patches and this one must fit a frame together; a large one gets a frame of its own,
    // into which it is copied at once.
    let isLarge = body.count >= limits.patchFrameBytes
    if isLarge || pending.bytes.count + body.count + 64 > limits.frameBytes { cut(scope: scope) }
    if pendingCount == 0 { pendingFrom = base }
    if body.count + 64 > limits.frameBytes {
      loss = .tooLarge
    } else if isLarge, loss == nil {
      appendFrame(
        body, shared, isAbsent: isAbsent, wraps: wraps, from: base, to: revision, scope: scope)
    } else if loss == nil {
      pending.encode(revision - base)
      if isAbsent { pending.encodeUndefined() }
      if wraps { pending.array(1) }
      pending.bytes.append(contentsOf: body)
      pendingCount += 1
      count += 1
      if pending.bytes.count >= limits.patchFrameBytes { cut(scope: scope) }
    }
  }

  /// Make a frame of a large patch.
  @inline(never)
  private mutating func appendFrame(
    _ body: UnsafeRawBufferPointer, _ shared: [UInt8]?, isAbsent: Bool, wraps: Bool,
    from base: UInt64, to revision: UInt64, scope: UInt64
  ) {
    var frame = StreamFrames.patchHead(
      before: body.count, isAbsent: isAbsent, wraps: wraps, scope: scope, from: base, to: revision)
    count += 1
    byteCount += frame.count + body.count
    if let shared {
      frames.append(frame)
      frames.append(shared)
    } else {
      frame.append(contentsOf: body)
      frames.append(frame)
    }
  }

  /// Make a frame of the pending patches.
  mutating func cut(scope: UInt64) {
    guard pendingCount > 0 else { return }
    let frame = StreamFrames.patches(
      pending.bytes, count: pendingCount, scope: scope, from: pendingFrom)
    byteCount += frame.count
    frames.append(frame)
    pending.bytes.removeAll(keepingCapacity: pending.bytes.count <= 64 << 10)
    pendingCount = 0
  }

  mutating func removeAll() {
    frames = .none
    byteCount = 0
    pending.bytes.removeAll(keepingCapacity: true)
    pendingCount = 0
    count = 0
    loss = nil
  }
}

extension Projection {
  /// The number of bytes of the patch that it covers.
  fileprivate var byteCount: Int {
    switch self {
    case .untouched, .absent: 0
    case .patch(let range), .value(let range): range.count
    }
  }
}

/// A snapshot that may serve more than one client.
struct EncodedSnapshot: Sendable {
  let revision: UInt64
  let frames: [[UInt8]]
  var lastUsed: Instant
  /// If patches that mirrors lack were found, or a difference behind a snapshot: with what is sent before.
  var missed: BegunPatches?

  var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}
