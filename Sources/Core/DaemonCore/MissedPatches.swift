import Access
import Values
import Wire

/// The patches of a scope that a mirror has missed, in frames.
struct MissedPatches: Sendable {
  let frames: [[UInt8]]
  /// The number of patches in the frames.
  let count: Int
  /// The revision of the last patch.
  let reached: UInt64
  /// The reason that they cannot be sent; nil if they can.
  let loss: ServerMessage.Reason?

  /// Those after a revision that the history covers. O(the history after it).
  init(
    of scope: UInt64, at path: Path, by filter: ViewFilter?, in history: History,
    after revision: UInt64, _ limits: FrameLimits
  ) {
    // A temporary scope collects them, like the patches of a turn. It cannot know whether the path
    // had a value at that revision; saying once more that it has none is harmless.
    var scope = Scope(
      id: scope, path: path, filter: filter, lastChange: revision, isPresent: true)
    var count = 0
    history.forEach(after: revision) { made, patch in
      if scope.note(patch, revision: made, limits: limits) { count += 1 }
    }
    scope.cut()
    let turn = scope.turn
    (frames, loss, reached) = (turn.frames, turn.loss, scope.lastChange)
    self.count = count
  }
}

/// The patches that a mirror has missed, as far as they have been found. An object: jobs and their results
/// are copied.
final class BegunPatches: Sendable {
  struct Piece: Sendable {
    let frames: [[UInt8]]
    /// The revision up to which they are. The last patch need not lead there, and the next one leads on from
    /// it: so a mirror is to be told of it.
    let revision: UInt64
  }

  /// The revision of the mirror: that of a former connection, or of a snapshot.
  let position: UInt64
  /// The frames of that snapshot; none if no client begins with it.
  let snapshot: [[UInt8]]
  /// Those that have been found, and their number.
  let pieces: [Piece]
  let count: Int

  init(
    after position: UInt64, behind snapshot: [[UInt8]] = [], _ pieces: [Piece] = [],
    count: Int = 0
  ) {
    (self.position, self.snapshot, self.pieces, self.count) = (position, snapshot, pieces, count)
  }

  /// Whether others lead from the same revision to the same one, behind a snapshot or not.
  func isSame(as other: BegunPatches) -> Bool {
    (position, revision, snapshot.isEmpty) == (
      other.position, other.revision, other.snapshot.isEmpty
    )
  }

  /// The revision up to which they have been found.
  var revision: UInt64 { pieces.last?.revision ?? position }

  /// With more of them, up to a revision.
  func adding(_ frames: [[UInt8]], count more: Int, through revision: UInt64) -> BegunPatches {
    BegunPatches(
      after: position, behind: snapshot, pieces + [Piece(frames: frames, revision: revision)],
      count: count + more)
  }
}
