import CBOR
import DaemonCore
import Glibc
import Journal
import Lockstep
import Logging
import Records
import Values
import Wire

/// A journal that a daemon goes on from, and what it found there.
struct JournalStart<State: Synchronizable> {
  /// The journal; nil where it cannot be written, for the reason that `obstacle` is.
  let file: JournalFile?
  let obstacle: JournalError?
  /// The directory's, while there is no file.
  let lock: JournalLock?
  let marker: MarkerFile?
  /// What to go on from; nil when nothing has been kept yet.
  let kept: RestoredState<State>?
  /// Whether that is what the former process handed over.
  let isHandedOver: Bool
  let start: Start

  /// What opening depends on.
  struct Context {
    let persistence: PersistenceOptions
    /// What the former process has handed over.
    let image: HandOver<State>?
    let schema: Schema
    let limits: Limits
    let logger: Logger
    /// Called now and then, for it may take a while.
    let progress: () -> Void
  }

  /// Open the journal of a state directory and make a state of it, checked against its digests:
  /// O(the state + the changes).
  ///
  /// Where there is no room on the disk, what is there is read, and the journal is to be opened
  /// later: a daemon that runs survives that, and so must the one that follows it. One that goes on
  /// with what was handed over needs the journal for nothing else either.
  static func open(_ context: Context) throws -> JournalStart {
    let (persistence, logger) = (context.persistence, context.logger)
    if let revision = persistence.recoverTo {
      let recovery = try JournalFile.recover(directory: persistence.directory, to: revision)
      logger.warning(
        "gave up what was kept after a revision",
        metadata: ["revision": .number(revision), "before": "\(recovery.backup)"])
    }
    do {
      if MarkerFile.exists(in: persistence.directory),
        !(try JournalFile.exists(persistence.directory))
      {
        logger.warning(
          "the journal that was kept here is gone, and a new one begins: put it back if it should not",
          metadata: ["directory": "\(persistence.directory)"])
      }
      return try openToWrite(context)
    } catch let error as JournalError where context.goesOn(without: error) {
      return try openLater(context, error)
    }
  }

  private static func openToWrite(_ context: Context) throws -> JournalStart {
    let (persistence, schema) = (context.persistence, context.schema)
    let file = try JournalFile(
      directory: persistence.directory, mode: persistence.mode, create: true)
    if let repair = file.repair { context.logger.warning("\(repair)") }
    let began = Instant(nanoseconds: clock())
    let handed = try continuation(context.image, file)
    // Not where the former process is continued: the check takes as long as all the rest, clients
    // wait, and the state does not come from the file.
    if handed == nil { try file.checkStructure() }
    if handed == nil, try file.isUnused() {
      return JournalStart(
        file: file, obstacle: nil, lock: nil, marker: file.marker, kept: nil, isHandedOver: false,
        start: .first)
    }
    if let handed, try file.identity() == nil {
      try file.create(epoch: handed.image.kept.epoch, seed: handed.image.kept.seed)
    }
    let contents = try file.contents()
    var kept = try handed?.image.next ?? recover(file, contents, context, translatingInto: file)
    kept.poisoned = try poisoned(file, context.logger)
    if let handed, handed.image.isTranslated {
      try keepCopy(file, handed.image.dropped, context.logger)
    }
    if let handed, handed.image.isTranslated || handed.durable != nil {
      // What follows is based on what the file lacks, or has in another form.
      try keepSnapshot(PendingSnapshot(handing: kept, schema: schema, time: .now), file)
    }
    let run = JournalRun(run: kept.run, base: kept.revision)
    try file.begin(run: run, schema: encoded(schema), revision: kept.revision, time: .now)
    // The image knows everyone who is connected, the journal those who have acted.
    kept.unjournaledSessions = Set(kept.sessions.lazy.map(\.token).filter { !file.knows($0) })
    let wasClean = handed != nil || contents.runs.last?.ended != nil
    context.logger.notice(
      "state recovered",
      metadata: [
        "from": handed == nil ? "journal" : "former process", "revision": .number(kept.revision),
        "run": .number(kept.run), "sessions": .number(kept.sessions.count),
        "former": wasClean ? "stopped" : "crashed",
        "ms": .number(Instant(nanoseconds: clock()).milliseconds(since: began)),
      ])
    return JournalStart(
      file: file, obstacle: nil, lock: nil, marker: file.marker, kept: kept,
      isHandedOver: handed != nil, start: wasClean ? .restarted : .crashed)
  }

  // MARK: What a former process has handed over

  /// The image, if the journal is that of the process that left it, and up to which revision the
  /// journal has it; nil if that is all of it.
  ///
  /// A process whose disk was full leaves an image that is newer than its journal, which may not
  /// even know of its run, or have been made and never used.
  private static func continuation(
    _ image: HandOver<State>?, _ reader: JournalReader
  ) throws(JournalError) -> (image: HandOver<State>, durable: UInt64?)? {
    guard let image else { return nil }
    guard try reader.identity() != nil else { return try reader.isUnused() ? (image, 0) : nil }
    let contents = try reader.contents()
    guard contents.identity.epoch == image.kept.epoch else { return nil }
    guard let last = contents.runs.last else { return try reader.isUnused() ? (image, 0) : nil }
    if last.run.run == image.kept.run, last.ended == image.kept.revision { return (image, nil) }
    // The run of the process itself, if it ended, ended where the image does.
    guard image.kept.runs.contains(where: { $0.run == last.run.run }),
      last.ended == nil || last.run.run != image.kept.run,
      contents.head.revision <= image.kept.revision,
      contents.head.sequence <= image.kept.sequence
    else { return nil }
    return (image, contents.head.revision)
  }

  private static func clock() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private static func recover(
    _ reader: JournalReader, _ contents: JournalContents, _ context: Context,
    translatingInto file: JournalFile?
  ) throws -> RestoredState<State> {
    guard let snapshot = contents.snapshot else {
      throw DaemonError("\(reader.path): there is no snapshot")
    }
    let replay = Replay(
      reader: reader, snapshot: snapshot, bytes: try reader.snapshotBytes(),
      seed: contents.identity.seed, schema: context.schema, limits: context.limits,
      mark: context.persistence.durability == .sync ? .durable : .applied)
    do {
      let (recovery, rows) = try replay.run(State.self, context.logger, context.progress)
      if recovery.isTranslated {
        try keepCopy(file, recovery.dropped, context.logger)
        // What follows will be in the new form: so must be what it is based on.
        if let file {
          try keepSnapshot(recovery.snapshot(schema: context.schema, time: .now), file)
        }
      }
      var kept = recovery.restoredState(
        epoch: contents.identity.epoch, runs: contents.runs.map(\.run),
        revision: contents.runs.last?.ended)
      kept.journaledBytes = rows * 256
      return kept
    } catch let error as JournalReplayError {
      throw failure(error, reader.path)
    }
  }

  /// Keep the file as it is, beside it, where this version leaves out what another has kept.
  private static func keepCopy(
    _ file: JournalFile?, _ dropped: [String], _ logger: Logger
  ) throws {
    if dropped.isEmpty { return }
    guard let file else {
      throw DaemonError(
        """
        this version of the feature does not know \(dropped.joined(separator: ", ")), which another \
        kept, and there is no room for a copy that still has it: make room on the disk, or start that \
        version again.
        """, status: DaemonError.otherVersion)
    }
    warn(of: dropped, keptIn: try file.copy(suffix: ".before-dropping-fields"), logger)
  }

  /// Say what this version does not know of a state that another had.
  static func warn(of dropped: [String], keptIn copy: String, _ logger: Logger) {
    logger.warning(
      "what another version of the feature kept is not known to this one, which leaves it out",
      metadata: ["left out": "\(dropped.joined(separator: ", "))", "kept in": "\(copy)"])
  }

  /// What to do about a journal that cannot be gone on from.
  private static func failure(_ error: JournalReplayError, _ path: String) -> DaemonError {
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

  /// Actions that were being reduced when a run ended, twice or more.
  private static func poisoned(
    _ file: JournalFile, _ logger: Logger
  ) throws(JournalError) -> Set<SessionAction> {
    if let action = file.marker?.actionInFlight {
      let kills = try file.noteKill(action)
      file.marker?.clearInFlight()
      logger.error(
        "an action was being done when the last run ended",
        metadata: [
          "session": "\(action.session)", "number": .number(action.number), "times": .number(kills),
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
  static func keepSnapshot(
    _ snapshot: PendingSnapshot<State>, _ file: JournalFile
  ) throws(JournalError) {
    let (head, parts) = snapshot.encode()
    let id = try file.beginSnapshot(head)
    for part in parts { try file.addPart(id, part) }
    try file.finishSnapshot(id)
    while try file.cut(limit: 10_000) {}
  }
}

// MARK: Without room on the disk

extension JournalStart {
  private static func openLater(
    _ context: Context, _ obstacle: JournalError
  ) throws -> JournalStart {
    let lock = try lock(context)
    let marker = try? MarkerFile(directory: context.persistence.directory)
    let found = try found(context, marker)
    var kept = found.kept
    kept?.leaveRoomForRuns()
    let sessions = kept?.sessions.map(\.token) ?? []
    kept?.unjournaledSessions = Set(sessions)
    context.logger.notice(
      "state recovered, and the journal not opened",
      metadata: [
        "from": found.isHandedOver ? "former process" : "journal",
        "revision": .number(kept?.revision ?? 0), "reason": "\(obstacle)",
      ])
    return JournalStart(
      file: nil, obstacle: obstacle, lock: lock, marker: marker, kept: kept,
      isHandedOver: found.isHandedOver, start: found.start)
  }

  /// The right to the directory, if it can be had without room. Throws when another process has it.
  private static func lock(_ context: Context) throws(JournalError) -> JournalLock? {
    do throws(JournalError) {
      return try JournalLock(directory: context.persistence.directory)
    } catch {
      if error.kind == .locked { throw error }
      return nil
    }
  }

  /// What there is to go on from.
  private struct Found {
    var kept: RestoredState<State>?
    var isHandedOver = false
    var start = Start.first

    init() {}

    init(kept: RestoredState<State>, start: Start) {
      self.kept = kept
      self.start = start
    }

    /// `durable` is the revision up to which a journal has it; nil if that is all of it.
    init(handed image: HandOver<State>?, durable: UInt64?) {
      guard let image else { return }
      (kept, isHandedOver, start) = (image.next, true, .restarted)
      kept?.durable = durable
    }
  }

  private static func found(_ context: Context, _ marker: MarkerFile?) throws -> Found {
    do {
      guard try JournalFile.exists(context.persistence.directory) else {
        return Found(handed: context.image, durable: 0)
      }
      let reader = try JournalReader(withoutRoomIn: context.persistence.directory)
      defer { reader.close() }
      return try found(context, reader, marker)
    } catch let error as JournalError where context.image != nil && context.goesOn(without: error) {
      // It may have more, which cannot be seen.
      return Found(handed: context.image, durable: 0)
    }
  }

  private static func found(
    _ context: Context, _ reader: JournalReader, _ marker: MarkerFile?
  ) throws -> Found {
    if let handed = try continuation(context.image, reader) {
      return Found(handed: handed.image, durable: handed.durable)
    }
    try reader.checkStructure()
    try reader.checkDurable()
    if try reader.isUnused() { return Found() }
    let contents = try reader.contents()
    var kept = try recover(reader, contents, context, translatingInto: nil)
    kept.poisoned = Set(try reader.suspects().filter { $0.kills >= 2 }.map(\.action))
    // It cannot be counted how often it has ended the process: once is enough.
    if let action = marker?.actionInFlight { kept.poisoned.insert(action) }
    marker?.clearInFlight()
    return Found(kept: kept, start: contents.runs.last?.ended == nil ? .crashed : .restarted)
  }
}

extension JournalStart.Context {
  /// Whether a daemon begins although its journal cannot be opened.
  fileprivate func goesOn(without error: JournalError) -> Bool {
    switch error.kind {
    case .full: true
    case .failed, .unreachable: image != nil
    case .locked, .foreign, .newer, .corrupt: false
    }
  }
}

extension RestoredState {
  /// Number the new run far behind the last: the journal does not know of it, and if the process
  /// ends before it does, the next must not take the same number for other revisions.
  mutating func leaveRoomForRuns() {
    run += .random(in: 1...(1 << 30))
    if let last = runs.indices.last { runs[last].run = run }
  }
}
