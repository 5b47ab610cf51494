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
  /// The connections that see it, in the order in which they subscribed.
  var subscribers: [ConnectionID] = []
  /// The revision of the newest change, which is the base of the next patch.
  var lastChange: UInt64
  /// Whether the path has a value.
  var isPresent: Bool

  /// The revision before the first of the pending pairs.
  private var pendingFrom: UInt64 = 0
  /// Spans and patches of this turn that are not framed yet.
  private var pending = CBOREncoder()
  private var pendingCount = 0
  /// The frames of this turn, for all live subscribers.
  private(set) var frames: [[UInt8]] = []
  /// The number of patches in the frames of this turn.
  private(set) var turnPatches: UInt64 = 0
  /// The reason that no patch can express this turn's changes; nil if patches do.
  private(set) var loss: ServerMessage.Reason?

  /// Bytes of the newest snapshot and all patches since: about what a snapshot would take.
  var snapshotBytes: Int?
  /// The same for the whole value at the path, visible or not.
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

  var changedThisTurn: Bool { pendingCount > 0 || !frames.isEmpty || loss != nil }

  /// Note the effect of a patch of the whole state on this scope. Returns whether it had any.
  mutating func note(
    _ patch: UnsafeRawBufferPointer, revision: UInt64, limits: Limits
  ) -> Bool {
    let projection = path.keys.isEmpty ? .patch(0..<patch.count) : path.projection(of: patch)
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
    note(body, isAbsent: projection == .absent, wraps: wraps, revision, limits)
    if let bytes = wholeBytes { wholeBytes = bytes + body.count }
    return true
  }

  /// Note the visible part of a patch's effect here.
  private mutating func note(
    _ projection: Projection, of patch: UnsafeRawBufferPointer, by filter: ViewFilter,
    _ revision: UInt64, _ limits: Limits
  ) -> Bool {
    if let bytes = wholeBytes { wholeBytes = bytes + projection.byteCount }
    var encoder = CBOREncoder()
    switch filter.filter(projection, of: patch, into: &encoder) {
    case .untouched: return false
    case .absent:
      guard isPresent else { return false }
      isPresent = false
      note(UnsafeRawBufferPointer(start: nil, count: 0), isAbsent: true, revision, limits)
    case .patch:
      isPresent = true
      encoder.bytes.withUnsafeBytes { note($0, revision, limits) }
    case .resync:
      isPresent = true
      loss = loss ?? .view
      lastChange = revision
    }
    return true
  }

  /// Append a patch of the visible part to the pending ones.
  private mutating func note(
    _ body: UnsafeRawBufferPointer, isAbsent: Bool = false, wraps: Bool = false,
    _ revision: UInt64, _ limits: Limits
  ) {
    // The pending patches and this one must fit a frame together.
    if pending.bytes.count + body.count + 64 > limits.frameBytes { cut() }
    if pendingCount == 0 { pendingFrom = lastChange }
    if body.count + 64 > limits.frameBytes {
      loss = .tooLarge
    } else if loss == nil {
      pending.encode(revision - lastChange)
      if isAbsent { pending.encodeUndefined() }
      if wraps { pending.array(1) }
      pending.bytes.append(contentsOf: body)
      pendingCount += 1
      turnPatches += 1
      if pending.bytes.count >= limits.patchFrameBytes { cut() }
    }
    if let bytes = snapshotBytes { snapshotBytes = bytes + body.count }
    lastChange = revision
  }

  /// Make a frame of the pending patches.
  mutating func cut() {
    guard pendingCount > 0 else { return }
    frames.append(
      StreamFrames.patches(pending.bytes, count: pendingCount, scope: id, from: pendingFrom))
    pending.bytes.removeAll(keepingCapacity: pending.bytes.count <= 64 << 10)
    pendingCount = 0
  }

  mutating func endTurn() {
    // A new list, because connections share the old one.
    frames = []
    pending.bytes.removeAll(keepingCapacity: true)
    pendingCount = 0
    turnPatches = 0
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

  var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}

/// The scopes that have subscribers.
struct ScopeTable: Sendable {
  private(set) var scopes: [Scope] = []
  private var indices: [UInt64: Int] = [:]
  private var byView: [SeenPath: UInt64] = [:]
  private var tree = ScopeTree()
  private var nextID: UInt64 = 0
  /// The scopes that this turn changed, by id.
  private var changed: [UInt64] = []

  var count: Int { scopes.count }

  subscript(index index: Int) -> Scope {
    _read { yield scopes[index] }
    _modify { yield &scopes[index] }
  }

  func index(of id: UInt64) -> Int? { indices[id] }

  /// A path and the view of it: nil for all of it.
  private struct SeenPath: Hashable {
    let path: Path
    let filter: ViewFilter?
  }

  /// The index of the scope of a path and a view of it, if it exists.
  func index(of path: Path, by filter: ViewFilter?) -> Int? {
    byView[SeenPath(path: path, filter: filter)].flatMap { indices[$0] }
  }

  /// Add the scope of a path and a view of it. It keeps the number from a former process if that is
  /// given and free.
  mutating func add(
    _ path: Path, by filter: ViewFilter?, id known: UInt64? = nil, lastChange: UInt64,
    isPresent: Bool
  ) -> Int {
    let id = known.flatMap { indices[$0] == nil ? $0 : nil } ?? nextID
    reserve(id)
    byView[SeenPath(path: path, filter: filter)] = id
    tree.insert(id, at: path.keys[...])
    indices[id] = scopes.count
    scopes.append(
      Scope(id: id, path: path, filter: filter, lastChange: lastChange, isPresent: isPresent))
    return scopes.count - 1
  }

  /// Reserve a number, so that no new scope gets it.
  mutating func reserve(_ id: UInt64) { nextID = max(nextID, id + 1) }

  /// Forget a connection's subscription to a scope, and the scope with its last one.
  mutating func remove(_ connection: ConnectionID, from id: UInt64) {
    guard let index = indices[id] else { return }
    scopes[index].subscribers.removeAll { $0 == connection }
    guard scopes[index].subscribers.isEmpty else { return }
    byView[SeenPath(path: scopes[index].path, filter: scopes[index].filter)] = nil
    tree.remove(id, at: scopes[index].path.keys[...])
    indices[id] = nil
    // The last scope moves to the free index, so that the others keep theirs.
    let last = scopes.removeLast()
    if index < scopes.count {
      scopes[index] = last
      indices[last.id] = index
    }
  }

  /// Note a patch of the whole state in every scope that it touches.
  mutating func note(_ patch: [UInt8], revision: UInt64, limits: Limits) {
    patch.withUnsafeBytes { bytes in
      if scopes.count <= Self.few {
        for index in scopes.indices { note(bytes, revision, limits, in: index) }
      } else {
        tree.visit(bytes) { id in
          if let index = indices[id] { note(bytes, revision, limits, in: index) }
        }
      }
    }
  }

  /// Up to this many scopes, asking each is faster than a lookup in the tree.
  private static let few = 4

  private mutating func note(
    _ patch: UnsafeRawBufferPointer, _ revision: UInt64, _ limits: Limits, in index: Int
  ) {
    let wasChanged = scopes[index].changedThisTurn
    guard scopes[index].lastChange < revision,
      scopes[index].note(patch, revision: revision, limits: limits)
    else { return }
    if !wasChanged { changed.append(scopes[index].id) }
  }

  /// The indices of the scopes that this turn changed, ascending.
  var changedPlaces: [Int] { changed.compactMap { indices[$0] }.sorted() }

  mutating func endTurn() {
    for id in changed {
      if let index = indices[id] { scopes[index].endTurn() }
    }
    changed.removeAll(keepingCapacity: true)
  }
}
