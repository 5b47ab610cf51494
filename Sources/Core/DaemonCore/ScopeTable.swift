import Access
import Values
import Wire

/// The scopes that have subscribers.
struct ScopeTable: Sendable {
  private(set) var scopes: [Scope] = []
  private var indices: [UInt64: Int] = [:]
  private var byView: [SeenPath: UInt64] = [:]
  private var tree = ScopeTree()
  private var filters: [UInt64: ViewFilter] = [:]
  private var nextID: UInt64 = 0
  /// The scopes that this turn changed, by id.
  private var changed: [UInt64] = []
  /// The scopes that have a value since a patch that is being noted, or have none since, by index: the tree
  /// is told when it has been read.
  private var turned: [Int] = []
  /// Those that a patch changes, while it is noted.
  private var found = ChangedScopes()
  /// How many scopes of the tree, and keys of paths to them, all patches together have made it look at.
  private(set) var looked = 0
  /// The indices of those that this turn changed, ascending, since `findChangedPlaces` and until a scope is
  /// added or removed.
  private(set) var changedPlaces: [Int] = []

  var count: Int { scopes.count }

  subscript(index index: Int) -> Scope {
    @inline(__always) unsafeAddress { scopes.address(of: index) }
    @inline(__always) unsafeMutableAddress { scopes.mutableAddress(of: index) }
  }

  @inline(__always)
  func index(of id: UInt64) -> Int? {
    if scopes.count > Self.few { return indices[id] }
    for index in scopes.indices where scopes[index].id == id { return index }
    return nil
  }

  /// The path of a scope that exists.
  func path(of id: UInt64) -> Path { index(of: id).map { self[index: $0].path } ?? .root }

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
    tree.insert(id, at: path.keys[...], isPresent: isPresent)
    filters[id] = filter
    indices[id] = scopes.count
    scopes.append(
      Scope(id: id, path: path, filter: filter, lastChange: lastChange, isPresent: isPresent))
    return scopes.count - 1
  }

  /// Reserve a number, so that no new scope gets it.
  mutating func reserve(_ id: UInt64) { nextID = max(nextID, id + 1) }

  /// Forget a subscription to a scope, and the scope with its last one. O(the keys of its path), and
  /// amortised O(log subscribers).
  mutating func remove(_ subscription: Subscription) {
    let id = subscription.scope
    guard let index = indices[id] else { return }
    scopes[index].subscribers.remove(subscription.seat)
    guard scopes[index].subscribers.isEmpty else { return }
    byView[SeenPath(path: scopes[index].path, filter: scopes[index].filter)] = nil
    tree.remove(id, at: scopes[index].path.keys[...], wasPresent: scopes[index].isPresent)
    filters[id] = nil
    indices[id] = nil
    // The last scope moves to the free index, so that the others keep theirs.
    let last = scopes.removeLast()
    if index < scopes.count {
      scopes[index] = last
      indices[last.id] = index
    }
  }

  /// Note a patch of the whole state in every scope that it touches.
  mutating func note(_ patch: [UInt8], revision: UInt64, limits: FrameLimits) {
    patch.withUnsafeBytes { bytes in
      if scopes.count <= Self.few {
        for index in scopes.indices {
          note(scopes[index].path.projection(of: bytes), of: bytes, revision, limits, in: index)
        }
      } else {
        tree.find(bytes, into: &found)
        for place in found.changes.indices {
          let (id, projection) = found.changes[place]
          if let index = indices[id] { note(projection, of: bytes, revision, limits, in: index) }
        }
        looked &+= found.looked
        found.removeAll()
      }
    }
    if !turned.isEmpty { noteTurned() }
  }

  /// Tell the tree which scopes have a value now.
  @inline(never)
  private mutating func noteTurned() {
    for index in turned {
      tree.note(isPresent: scopes[index].isPresent, at: scopes[index].path.keys[...])
    }
    turned.removeAll(keepingCapacity: turned.count <= 64)
  }

  /// Note a patch of the whole state of which it was foreseen how it changes the scopes.
  mutating func note(
    _ patch: [UInt8], _ foreseen: ForeseenScopes, revision: UInt64, limits: FrameLimits
  ) {
    if foreseen.next == 0 { return note(patch, revision: revision, limits: limits) }
    patch.withUnsafeBytes { bytes in
      for change in foreseen.changes {
        guard let index = indices[change.scope] else { continue }
        note(in: index, revision) {
          $0.noteForeseen(change, of: bytes, revision: revision, limits: limits)
        }
      }
      let new = scopes.indices.filter { scopes[$0].id >= foreseen.next }
      if new.isEmpty { return }
      var tree = ScopeTree()
      for index in new {
        tree.insert(
          UInt64(index), at: scopes[index].path.keys[...], isPresent: scopes[index].isPresent)
      }
      var found = ChangedScopes()
      tree.find(bytes, into: &found)
      looked &+= found.looked
      for (index, projection) in found.changes {
        note(projection, of: bytes, revision, limits, in: Int(index))
      }
    }
    if !turned.isEmpty { noteTurned() }
  }

  /// The scopes as they are now. O(1).
  func views(_ limits: FrameLimits) -> ScopeViews {
    ScopeViews(tree: tree, filters: filters, next: nextID, limits: limits)
  }

  /// Up to this many scopes, asking each is faster than a lookup in the tree, or a hash.
  private static let few = 4

  private mutating func note(
    _ projection: Projection, of patch: UnsafeRawBufferPointer, _ revision: UInt64,
    _ limits: FrameLimits, in index: Int
  ) {
    note(in: index, revision) {
      $0.note(projection, of: patch, revision: revision, limits: limits)
    }
  }

  @inline(__always)
  private mutating func note(
    in index: Int, _ revision: UInt64, _ change: (inout Scope) -> Bool
  ) {
    let (wasChanged, wasPresent) = (scopes[index].changedThisTurn, scopes[index].isPresent)
    guard scopes[index].lastChange < revision, change(&scopes[index]) else { return }
    if !wasChanged { changed.append(scopes[index].id) }
    if wasPresent != scopes[index].isPresent { turned.append(index) }
  }

  /// Note the indices of the scopes that this turn changed.
  mutating func findChangedPlaces() {
    changedPlaces.clear()
    for id in changed {
      if let index = index(of: id) { changedPlaces.append(index) }
    }
    if changedPlaces.count > 1 { changedPlaces.sort() }
  }

  mutating func endTurn() {
    for id in changed {
      if let index = index(of: id) { scopes[index].endTurn() }
    }
    changed.clear()
  }
}
