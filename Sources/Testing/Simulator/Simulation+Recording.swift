import DaemonCore
import Lockstep
import Records

/// Records all events of the daemon, and replays them on another server.
extension Simulation {
  /// A daemon's process begins.
  mutating func begin(_ kept: RestoredState<R.State>) {
    var setup = ServerSetup(kept, at: now)
    setup.limits = plan.limits
    setup.durability = plan.durability
    setup.policy = plan.policy
    let isGated = isDriven || !feature.middleware.isEmpty
    var server = Server(
      setup, reducer: Witness(base: feature.reducer, log: log, isGated: isGated),
      middleware: isGated ? middleware : [], dependencies: dependencies)
    #if FAULTS
      server.plant(plan.faults)
    #else
      precondition(plan.faults == Faults(), "only a debug build has faults to plant")
    #endif
    daemon = SimulatedDaemon(server)
    recording = plan.isRecorded ? Recording.head(setup, schema: Witness<R>.schema) : nil
  }

  /// The only entry point of the daemon.
  mutating func handle(_ event: Event<Tagged<R.Action>>) -> [Command] {
    var commands: [Command] = []
    guard daemon != nil else { return [] }
    if recording != nil {
      if let bytes = Recording.event(event, at: now) {
        recording?.append(contentsOf: bytes)
      } else {
        count("replayed up to what never travels")
        endRecording()
      }
    }
    let paused = daemon.flatMap { $0.server.isPaused ? $0.server.revision : nil }
    daemon?.server.handle(event, at: now, into: &commands)
    if let paused, event.bringsActions, let daemon, daemon.server.isPaused,
      daemon.server.revision != paused
    {
      hasChangedWhilePaused = true
    }
    if recording != nil, let daemon {
      recording?.append(
        contentsOf: Recording.commands(commands, revision: daemon.server.revision))
    }
    return commands
  }

  /// End the recording, because the process ends or an event cannot be encoded.
  mutating func endRecording() {
    guard var bytes = recording, let daemon else { return }
    recording = nil
    bytes += Recording.end(revision: daemon.server.revision, digest: daemon.server.digest())
    recordings.append(bytes)
  }

  /// Replay the recordings, and compare.
  mutating func replay() throws(SimulationFailure) {
    endRecording()
    for bytes in recordings {
      let log = WitnessLog<R.State>()
      let isGated = isDriven || !feature.middleware.isEmpty
      let gate = WitnessGate<R.State, R.Action>(log: log)
      let report: Replay<Witness<R>>.Report
      do throws(RecordingError) {
        let replay = try Replay(
          bytes, reducer: Witness(base: feature.reducer, log: log, isGated: isGated),
          middleware: isGated
            ? [gate] + feature.middleware.map { WitnessMiddleware(base: $0, log: log) } : [],
          dependencies: dependencies)
        report = try replay.run()
      } catch {
        throw failure("a recording cannot be replayed: \(error)")
      }
      if let difference = report.difference { throw failure("replayed, \(difference)") }
      guard report.isWhole else { throw failure("a recording has no end") }
      count("replayed events", report.events)
      count("replayed commands", report.commands)
    }
    recordings = []
  }
}

extension Event {
  /// Whether it brings actions of clients or effects, and no facts, such as that a client has gone.
  fileprivate var bringsActions: Bool {
    switch self {
    case .received, .effectSent, .effectCancelled, .effectEnded: true
    default: false
    }
  }
}
