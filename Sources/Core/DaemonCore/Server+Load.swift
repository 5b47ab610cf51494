extension Server {
  /// The resources that the server holds for its peers: for tests of its limits.
  package struct Load: Equatable, Sendable {
    package var connections: Int
    /// Connections with unsent bytes.
    package var blocked: Int
    /// Connections that lack changes which are not yet sent.
    package var behind: Int
    /// Connections that are brought up to date over several turns, and are sent the rest even if they do not
    /// read.
    package var catchingUp: [ConnectionID]
    package var sessions: Int
    package var detachedSessions: Int
    package var scopes: Int
    package var heldStates: Int
    package var jobs: Int
    package var historyBytes: Int
    /// Frames of one turn that wait for its end.
    package var outputFrames: Int
    /// The connections that are composed first at the next turn's end.
    package var due: [ConnectionID]
  }

  /// Whether something that should be in the journal is not, or not yet.
  package var isKeeping: Bool {
    !journaling.inFlight.isEmpty || journaling.failure != nil || journaling.snapshotIsRunning
  }

  /// Whether a turn's batch is being written to the disk.
  public var isKeepingTurns: Bool { !journaling.inFlight.isEmpty }

  package var load: Load {
    Load(
      connections: connections.count,
      blocked: connections.sessions.count { $0.isBlocked },
      behind: connections.sessions.count { !$0.isCurrent },
      catchingUp: connections.sessions.filter(\.flow.isDelayed).map(\.id),
      sessions: sessions.count,
      detachedSessions: sessions.detachedCount,
      scopes: publication.scopes.count,
      heldStates: publication.held.count,
      jobs: publication.jobs.count,
      historyBytes: publication.history.byteCount,
      outputFrames: connections.sessions.reduce(0) { $0 + $1.outbox.frames.count },
      due: connections.due)
  }
}
