import Access
import CBOR
import Values

/// How a large patch changes each scope, worked out beside the loop: otherwise the loop reads the whole
/// patch to project it on the scopes, filters it for each view, and copies it into frames.
struct ForeseenScopes: Sendable {
  /// Those that the patch changes.
  private(set) var changes: [ForeseenChange] = []
  /// Scopes of this number and higher were not there yet.
  let next: UInt64

  /// None is foreseen.
  init() { next = 0 }

  /// O(the patch, and what is visible of it in each of the scopes).
  init(_ views: ScopeViews, of patch: [UInt8]) {
    next = views.next
    var left = Self.mostBytes
    var found = ChangedScopes()
    patch.withUnsafeBytes { views.tree.find($0, into: &found) }
    for (scope, projection) in found.changes {
      var change = ForeseenChange(scope: scope, projection: projection)
      if left > 0 { left -= change.work(out: patch, views) }
      changes.append(change)
    }
  }

  /// The most bytes that are made for scopes, and one more scope's. The others are made on the loop,
  /// one after the other, as they are sent.
  private static let mostBytes = 64 << 20
}

/// How a patch of the whole state changes one scope.
struct ForeseenChange: Sendable {
  let scope: UInt64
  let projection: Projection
  /// The result of the scope's filter; nil if that was not worked out, or the scope has none.
  private(set) var outcome: ViewFilter.Outcome?
  /// The scope's patch, if it has memory of its own.
  private(set) var bytes: [UInt8]?

  fileprivate init(scope: UInt64, projection: Projection) {
    self.scope = scope
    self.projection = projection
  }

  /// Work out what subscribers are sent, if that is worth it. Returns the bytes of memory that it takes.
  fileprivate mutating func work(out patch: [UInt8], _ views: ScopeViews) -> Int {
    if let filter = views.filters[scope] {
      let (outcome, visible) = patch.withUnsafeBytes { filter.filtered(projection, of: $0) }
      // Without the room that the encoder has for more.
      (self.outcome, bytes) = (outcome, visible.withUnsafeBytes { [UInt8]($0) })
      return visible.count
    }
    switch projection {
    case .untouched, .absent: return 0
    case .patch(let range), .value(let range):
      // What has no frame of its own is copied into one with others, and what fits none is not sent.
      guard range.count >= views.limits.patchFrameBytes, range.count <= views.limits.frameBytes
      else {
        return 0
      }
      let isWhole = range == patch.indices
      bytes = isWhole ? patch : [UInt8](patch[range])
      return isWhole ? 0 : range.count
    }
  }
}

/// A copy of what foresight needs of the scopes.
struct ScopeViews: Sendable {
  let tree: ScopeTree
  /// Of the scopes of which not everything is visible.
  var filters: [UInt64: ViewFilter]
  /// No scope has this number yet, or a higher one.
  var next: UInt64
  let limits: FrameLimits
}

extension ViewFilter {
  /// The patch of the visible part, made from how a patch of the whole state changes the scope; empty
  /// with any outcome but `patch`.
  func filtered(
    _ projection: Projection, of patch: UnsafeRawBufferPointer
  ) -> (Outcome, [UInt8]) {
    var encoder = CBOREncoder()
    let outcome = filter(projection, of: patch, into: &encoder)
    return (outcome, encoder.bytes)
  }
}
