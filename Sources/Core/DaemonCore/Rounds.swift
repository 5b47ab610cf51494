/// What is looked at once a second: connections for their deadlines, sessions for the end of their grace
/// periods, scopes for snapshots that no client uses any more. Some of each in a turn, for there may be
/// tens of thousands.
struct Rounds: Sendable {
  /// Goes over indices, some at a time.
  struct Round: Sendable {
    /// The next index; nil when all have been looked at.
    private var start: Int?

    var isRunning: Bool { start != nil }

    mutating func begin() { if start == nil { start = 0 } }

    /// Take the next index, of so many as there are now; nil when all have been taken.
    mutating func next(of count: Int) -> Int? { next(1, of: count).first }

    /// Take the next indices, up to `most`, of so many as there are now.
    mutating func next(_ most: Int, of count: Int) -> Range<Int> {
      guard let start, start < count else {
        self.start = nil
        return 0..<0
      }
      let end = min(start + most, count)
      self.start = end < count ? end : nil
      return start..<end
    }
  }

  /// Whether there was one in this turn.
  var haveGone = false
  var connections = Round()
  var sessions = Round()
  var scopes = Round()

  var areRunning: Bool { connections.isRunning || sessions.isRunning || scopes.isRunning }

  /// Begin again with those that are done.
  mutating func begin() {
    connections.begin()
    sessions.begin()
    scopes.begin()
  }
}
