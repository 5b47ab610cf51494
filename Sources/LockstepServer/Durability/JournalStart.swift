import CBOR
import Glibc
import Journal
import Lockstep
import Logging
import Sessions
import Values
import Wire

/// A journal that a daemon goes on from, and what it found there.
struct JournalStart<State: Synchronizable> {
  let file: JournalFile
  let standing: StandingAction
  /// What to go on from; nil when nothing has been kept yet.
  let kept: Restoration<State>?
  /// Whether that is what the former process handed over.
  let isHandedOver: Bool
  let start: Start

  /// Open the journal of a state directory and make a state of it, checked against its digests.
  /// `progress` is called now and then, for it may take a while: O(the state + the changes).
  static func open(
    _ keeping: Keeping, image: HandOver<State>?, schema: Schema, limits: Limits, logger: Logger,
    progress: () -> Void
  ) throws -> JournalStart {
    if let revision = keeping.recoverTo {
      let recovery = try JournalFile.recover(directory: keeping.directory, to: revision)
      logger.warning(
        "gave up what was kept after a revision",
        metadata: ["revision": "\(revision)", "before": "\(recovery.backup)"])
    }
    if StandingAction.isThere(keeping.directory), !(try JournalFile.isThere(keeping.directory)) {
      logger.warning(
        "the journal that was kept here is gone, and a new one begins: put it back if it should not",
        metadata: ["directory": "\(keeping.directory)"])
    }
    let file = try JournalFile(
      directory: keeping.directory, mode: keeping.durability == .sync ? .sync : .async,
      create: true)
    let standing = try StandingAction(directory: keeping.directory)
    let handed = try matching(image, file)
    // Who goes on where the former process was looks no more often than if that had gone on: it takes
    // as long as all the rest, clients wait, and what it has does not come from the file.
    if handed == nil {
      try file.checkStructure()
      if keeping.durability == .sync { try file.checkLog() }
    }
    if try file.isUnused() {
      return JournalStart(
        file: file, standing: standing, kept: nil, isHandedOver: false, start: .first)
    }
    let began = Instant(nanoseconds: clock())
    let contents = try file.contents()
    var kept: Restoration<State>
    if let handed {
      kept = handed.next
    } else {
      kept = try recover(file, contents, schema, limits, keeping, logger, progress)
    }
    kept.poisoned = try poisoned(file, standing, logger)
    let run = JournalRun(run: kept.run, base: kept.revision)
    if let handed, handed.isTranslated { try keepCopy(file, handed.dropped, logger) }
    try file.begin(run: run, schema: encoded(schema), revision: kept.revision, time: .now)
    if let handed, handed.isTranslated {
      // What follows will be in the new form: so must be what it is based on.
      let server = KeptSnapshot(handing: kept, schema: schema, time: .now)
      try keepSnapshot(server, file)
    }
    // The image knows everyone who is connected, the journal those who have acted.
    kept.unheard = Set(kept.sessions.lazy.map(\.token).filter { !file.knows($0) })
    let wasClean = contents.runs.last?.ended != nil
    logger.notice(
      "state recovered",
      metadata: [
        "from": handed == nil ? "journal" : "former process", "revision": "\(kept.revision)",
        "run": "\(kept.run)", "sessions": "\(kept.sessions.count)",
        "former": wasClean ? "stopped" : "crashed",
        "ms": "\(Instant(nanoseconds: clock()).milliseconds(since: began))",
      ])
    return JournalStart(
      file: file, standing: standing, kept: kept, isHandedOver: handed != nil,
      start: wasClean ? .restarted : .crashed)
  }

  /// The image, if it is of the moment with which the journal ends.
  private static func matching(
    _ image: HandOver<State>?, _ file: JournalFile
  ) throws(JournalError) -> HandOver<State>? {
    guard let image, try file.identity() != nil else { return nil }
    let contents = try file.contents()
    guard let last = contents.runs.last, contents.identity.epoch == image.kept.epoch,
      last.run.run == image.kept.run, last.ended == image.kept.revision
    else { return nil }
    return image
  }

  private static func clock() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private static func recover(
    _ file: JournalFile, _ contents: JournalContents, _ schema: Schema, _ limits: Limits,
    _ keeping: Keeping, _ logger: Logger, _ progress: () -> Void
  ) throws -> Restoration<State> {
    guard let snapshot = contents.snapshot else {
      throw DaemonError("\(file.path): there is no snapshot")
    }
    let replay = Replay(
      file: file, snapshot: snapshot, bytes: try file.snapshotBytes(),
      seed: contents.identity.seed, schema: schema, limits: limits,
      mark: keeping.durability == .sync ? .durable : .applied)
    do {
      let (recovery, rows) = try replay.run(State.self, logger, progress)
      if recovery.isTranslated {
        try keepCopy(file, recovery.dropped, logger)
        // What follows will be in the new form: so must be what it is based on.
        try keepSnapshot(recovery.snapshot(schema: schema, time: .now), file)
      }
      var kept = recovery.restoration(
        epoch: contents.identity.epoch, runs: contents.runs.map(\.run),
        revision: contents.runs.last?.ended)
      kept.journaledBytes = rows * 256
      return kept
    } catch let error as RecoveryError {
      throw failure(error, file.path)
    }
  }

  /// Keep the file as it is, beside it, where this version leaves out what another has kept.
  private static func keepCopy(
    _ file: JournalFile, _ dropped: [String], _ logger: Logger
  ) throws {
    if dropped.isEmpty { return }
    warn(of: dropped, keptIn: try file.copy(suffix: ".before-dropping-fields"), logger)
  }

  /// Say what this version does not know of a state that another had.
  static func warn(of dropped: [String], keptIn copy: String, _ logger: Logger) {
    logger.warning(
      "what another version of the feature kept is not known to this one, which leaves it out",
      metadata: ["left out": "\(dropped.joined(separator: ", "))", "kept in": "\(copy)"])
  }

  /// What to do about a journal that cannot be gone on from.
  private static func failure(_ error: RecoveryError, _ path: String) -> DaemonError {
    let backTo =
      error.lastGood > 0
      ? "go on from there with --recover-to \(error.lastGood), which keeps a copy of the file" : ""
    switch error.kind {
    case .damaged:
      return DaemonError(
        """
        \(path): \(error). The state is right up to revision \(error.lastGood). \
        See what is there with `lockstep fsck \(path)`; \(backTo.isEmpty ? "restore a backup" : backTo).
        """)
    case .otherVersion:
      let remedy =
        backTo.isEmpty ? "" : " This version knows all of revision \(error.lastGood): \(backTo)."
      return DaemonError(
        """
        \(path): kept by another version of the feature: \(error). Start that version again, or \
        a newer one.\(remedy)
        """, status: DaemonError.otherVersion)
    }
  }

  /// Actions that stood there when a run ended, twice or more.
  private static func poisoned(
    _ file: JournalFile, _ standing: StandingAction, _ logger: Logger
  ) throws -> Set<SessionAction> {
    if let action = standing.action {
      let kills = try file.noteKill(action)
      standing.clear()
      logger.error(
        "an action was being done when the last run ended",
        metadata: [
          "session": "\(action.session)", "number": "\(action.number)", "times": "\(kills)",
        ])
    }
    return Set(try file.suspects().filter { $0.kills >= 2 }.map(\.action))
  }

  static func encoded(_ schema: Schema) -> [UInt8] {
    var encoder = CBOREncoder()
    schema.encode(into: &encoder)
    return encoder.bytes
  }

  /// Keep a snapshot before anybody is served.
  static func keepSnapshot(_ snapshot: KeptSnapshot<State>, _ file: JournalFile) throws {
    let (head, parts) = snapshot.encode()
    let id = try file.beginSnapshot(head)
    for part in parts { try file.addPart(id, part) }
    try file.finishSnapshot(id)
    while try file.cut(limit: 10_000) {}
  }
}
