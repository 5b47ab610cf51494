/// The order in which `undo` and `redo` go through the revisions.
///
/// The daemon is always at the contents of some change. `undo` goes to those of the change before, and
/// `redo` back again, until something else changes the state: that forgets what was undone, as in a text
/// editor. Both make new revisions, which are no steps themselves: going back twice goes back two
/// changes. A jump is a change like any other, so it can be undone.
struct UndoLine: Sendable {
  /// Where in the past the state is.
  struct Place: Equatable, Sendable {
    /// The change whose contents the state has.
    var present: UInt64
    /// Those that were undone, the next to be redone last.
    var undone: [UInt64] = []
  }

  /// The last revision that was undone or redone to, and where that led.
  private var last: (revision: UInt64, place: Place)?
  /// For each revision that undoing or redoing has made: the change whose contents it has.
  private var contents: [UInt64: UInt64] = [:]
  /// How many of them there are when those that are forgotten are looked for.
  private var nextCleaning = 1000

  /// The most revisions that are looked at for one answer.
  static let mostRevisions: UInt64 = 2000

  /// Where the state is, which is at revision `newest`. `isChange` says whether a revision changed
  /// anything that can be undone.
  func place(at newest: UInt64, _ isChange: (UInt64) -> Bool) -> Place {
    let end = max(last?.revision ?? 0, newest - min(newest, Self.mostRevisions))
    var revision = newest
    while revision > end {
      if isChange(revision) { return Place(present: revision) }
      revision -= 1
    }
    if let last, last.revision == revision { return last.place }
    return Place(present: revision)
  }

  /// The place after so many changes have been undone, and a revision that has the contents then: none
  /// older than `oldest`, the first one whose contents are known. Nil if there are not so many.
  func undoing(
    _ count: Int, from place: Place, oldest: UInt64, _ isChange: (UInt64) -> Bool
  ) -> (place: Place, revision: UInt64)? {
    var (place, revision, looked) = (place, place.present, UInt64(0))
    for _ in 0..<count {
      guard place.present > oldest, isChange(place.present) else { return nil }
      var before = place.present - 1
      while before > oldest, !isChange(before) {
        before -= 1
        looked += 1
        if looked > Self.mostRevisions { return nil }
      }
      place.undone.append(place.present)
      place.present = contents[before] ?? before
      revision = before
    }
    return (place, revision)
  }

  /// The place after so many changes have been redone; nil if not so many were undone.
  func redoing(
    _ count: Int, from place: Place, oldest: UInt64
  ) -> (place: Place, revision: UInt64)? {
    guard count <= place.undone.count else { return nil }
    var place = place
    for _ in 0..<count { place.present = place.undone.removeLast() }
    return place.present >= oldest ? (place, place.present) : nil
  }

  /// Note that a revision was undone or redone to. `oldest` is the first revision whose contents are
  /// known.
  mutating func note(_ place: Place, at revision: UInt64, oldest: UInt64) {
    last = (revision, place)
    contents[revision] = place.present
    if contents.count >= nextCleaning {
      contents = contents.filter { $0.key >= oldest }
      nextCleaning = 2 * contents.count + 1000
    }
  }
}
