extension Server {
  /// The resources that the server holds for its peers: for tests of its limits.
  package struct Load: Equatable, Sendable {
    package var connections: Int
    /// Connections with unsent bytes.
    package var blocked = 0
    /// Connections that lack changes which are not yet sent.
    package var behind = 0
    /// Connections that are brought up to date over several turns, and are sent the rest even if they do not
    /// read.
    package var catchingUp: [ConnectionID] = []
    package var sessions: Int
    package var detachedSessions: Int
    package var scopes: Int
    package var heldStates: Int
    package var jobs: Int
    package var historyBytes: Int
    /// Frames of one turn that wait for its end.
    package var outputFrames = 0
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
    var load = Load(
      connections: connections.count,
      sessions: sessions.count,
      detachedSessions: sessions.detachedCount,
      scopes: publication.scopes.count,
      heldStates: publication.held.count,
      jobs: publication.jobs.count,
      historyBytes: publication.history.byteCount,
      due: connections.due)
    for place in 0..<connections.placeCount where connections.isTaken(place) {
      load.blocked += connections[place: place].isBlocked ? 1 : 0
      load.behind += connections[place: place].isCurrent ? 0 : 1
      if connections[place: place].flow.isDelayed {
        load.catchingUp.append(connections[place: place].id)
      }
      load.outputFrames += connections[place: place].outbox.frames.count
    }
    return load
  }
}
