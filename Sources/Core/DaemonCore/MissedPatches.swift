import Access
import Values
import Wire

/// The patches of a scope that a mirror has missed, in frames.
struct MissedPatches: Sendable {
  let frames: Frames
  /// The number of patches in the frames.
  let count: Int
  /// The revision of the last patch.
  let reached: UInt64
  /// The reason that they cannot be sent; nil if they can.
  let loss: ServerMessage.Reason?

  /// Those after a revision that the history covers, the first of them based on the revision that the mirror
  /// has by then: that one, or that of the scope's last change before it. O(the history after it).
  init(
    of scope: UInt64, at path: Path, by filter: ViewFilter?, in history: History,
    after revision: UInt64, base: UInt64, _ limits: FrameLimits
  ) {
    // A temporary scope collects them, like the patches of a turn. It cannot know whether the path
    // had a value at that revision; saying once more that it has none is harmless.
    var scope = Scope(
      id: scope, path: path, filter: filter, lastChange: base, isPresent: true)
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
///
/// They are looked for in rounds. Each begins at the revision where the former one ended, and the patches
/// follow each other without a gap: the first one of a round is based on the last one before, though nothing
/// of the scope may have changed in between. So a mirror needs to be told of no revision between them.
final class BegunPatches: Sendable {
  /// The revision of the mirror: that of a former connection, or of a snapshot.
  let position: UInt64
  /// The frames of that snapshot; none if no client begins with it.
  let snapshot: [[UInt8]]
  /// The frames of those that have been found, and their number.
  let frames: [[UInt8]]
  let count: UInt64
  /// The number of revisions that are in them only as a part of a difference over several.
  let coalesced: UInt64
  /// The number of rounds.
  let rounds: Int
  /// The revision up to which they have been found.
  let revision: UInt64
  /// The revision to which they lead: that one, or that of the scope's last change before it.
  let reached: UInt64

  /// None, of a mirror at a revision.
  convenience init(after position: UInt64, behind snapshot: [[UInt8]] = []) {
    self.init(
      after: position, behind: snapshot, [], count: 0, coalesced: 0, rounds: 0,
      through: position, reaching: position)
  }

  private init(
    after position: UInt64, behind snapshot: [[UInt8]], _ frames: [[UInt8]], count: UInt64,
    coalesced: UInt64, rounds: Int, through revision: UInt64, reaching reached: UInt64
  ) {
    (self.position, self.snapshot, self.frames, self.count) = (position, snapshot, frames, count)
    (self.coalesced, self.rounds) = (coalesced, rounds)
    (self.revision, self.reached) = (revision, reached)
  }

  /// Whether others lead from the same revision to the same one, behind a snapshot or not.
  func isSame(as other: BegunPatches) -> Bool {
    (position, revision, reached, snapshot.isEmpty) == (
      other.position, other.revision, other.reached, other.snapshot.isEmpty
    )
  }

  /// With the patches in these frames, which are all up to a revision, and lead to that of the last change.
  /// O(frames).
  func adding(
    _ more: [[UInt8]], reaching reached: UInt64, through revision: UInt64
  ) -> BegunPatches {
    adding(
      more, count: more.reduce(0) { $0 + StreamFrames.patchCount(of: $1) }, coalesced: 0,
      reaching: min(reached, revision), through: revision)
  }

  /// With the difference up to a revision: a frame, or nothing if nothing differs. O(frames).
  func adding(difference frame: [UInt8]?, through revision: UInt64) -> BegunPatches {
    guard let frame else { return addingNothing(through: revision) }
    return adding(
      [frame], count: 1, coalesced: revision > reached ? revision - reached - 1 : 0,
      reaching: revision, through: revision)
  }

  /// With nothing: there is no change of the scope up to a revision. O(1).
  func addingNothing(through revision: UInt64) -> BegunPatches {
    adding([], count: 0, coalesced: 0, reaching: reached, through: revision)
  }

  private func adding(
    _ more: [[UInt8]], count: UInt64, coalesced: UInt64, reaching reached: UInt64,
    through revision: UInt64
  ) -> BegunPatches {
    BegunPatches(
      after: position, behind: snapshot, more.isEmpty ? frames : frames + more,
      count: self.count + count, coalesced: self.coalesced + coalesced, rounds: rounds + 1,
      through: revision, reaching: reached)
  }
}
