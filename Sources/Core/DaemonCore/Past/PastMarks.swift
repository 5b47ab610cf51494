import CBOR
import Values

/// States along the replay of a journal, of which the past of the daemon that starts is made.
///
/// They are held, and encoded only at the end: most are too old by then. A held state costs the replay a
/// copy of what changes behind it. They are as far from each other as checkpoints are (`Past`).
struct PastMarks: Sendable {
  private var marks: [(revision: UInt64, state: any Synchronizable)] = []
  /// The bytes of the patches since the last.
  private var changedBytes = 0
  private let limit: Int
  /// Whether the state is too large for a past. It may shrink later: then the past begins there.
  private let isTooLarge: Bool

  /// `limit` is that of the history, and `stateBytes` what the state takes at the beginning.
  init(limit: Int, stateBytes: Int) {
    self.limit = limit
    isTooLarge = stateBytes > limit / 2
  }

  /// Note the bytes of a patch that has been applied.
  mutating func note(_ patchBytes: Int) { changedBytes += patchBytes }

  /// Whether the state should be held.
  var isDue: Bool { !isTooLarge && changedBytes >= limit / 4 }

  /// Hold the state at a revision; forget those that the history does not go back to. O(1).
  mutating func note(_ state: any Synchronizable, at revision: UInt64, _ history: History) {
    if isTooLarge { return }
    changedBytes = 0
    marks.removeAll { !history.covers($0.revision) }
    marks.append((revision, state))
  }

  /// The checkpoints at the end of the replay. O(the states, of which there are no more than five).
  func past(in history: History) -> Past {
    var checkpoints: [Past.Checkpoint] = []
    // The newest first: if the state has grown too large, that is found at once.
    for mark in marks.reversed() where history.covers(mark.revision) {
      var encoder = CBOREncoder()
      mark.state.encode(into: &encoder)
      if encoder.bytes.count > limit / 2 { break }
      checkpoints.append(Past.Checkpoint(revision: mark.revision, bytes: encoder.bytes))
    }
    return Past(checkpoints.reversed(), changedBytes: changedBytes)
  }
}
