extension Server {
  /// What the server keeps on behalf of its peers: for tests of its limits.
  package struct Load: Equatable, Sendable {
    package var connections: Int
    /// Connections of which something is unsent.
    package var blocked: Int
    /// Connections that miss something that is not on its way.
    package var behind: Int
    package var sessions: Int
    package var detachedSessions: Int
    package var scopes: Int
    package var heldStates: Int
    package var jobs: Int
    package var historyBytes: Int
    /// Frames of one turn that wait for its end.
    package var outputFrames: Int
  }

  /// Whether something that was to be kept is not, or not yet.
  package var isKeeping: Bool {
    !journaling.inFlight.isEmpty || journaling.failure != nil || journaling.snapshotIsRunning
  }

  /// Whether a turn is on its way to the disk.
  public var isKeepingTurns: Bool { !journaling.inFlight.isEmpty }

  package var load: Load {
    Load(
      connections: connections.count,
      blocked: connections.sessions.count { $0.isBlocked },
      behind: connections.sessions.count { !$0.isCurrent },
      sessions: sessions.count,
      detachedSessions: sessions.detachedCount,
      scopes: publication.scopes.count,
      heldStates: publication.held.count,
      jobs: publication.jobs.count,
      historyBytes: publication.history.byteCount,
      outputFrames: connections.sessions.reduce(0) { $0 + $1.output.count })
  }
}
