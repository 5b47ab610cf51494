import CBOR
import DaemonCore
import Glibc
import Journal
import Lockstep
import Logging
import Records
import Values
import Wire

/// The journal that a daemon continues from, and the state that was found there.
struct JournalStart<State: Synchronizable> {
  /// The journal; nil if it cannot be written, for the reason in `obstacle`.
  let file: JournalFile?
  let obstacle: JournalError?
  /// The lock of the directory, while there is no file.
  let lock: JournalLock?
  let marker: MarkerFile?
  /// The state to continue from; nil when nothing has been stored yet.
  let kept: RestoredState<State>?
  /// Whether `kept` is what the former process handed over.
  let isHandedOver: Bool
  let start: Start

  /// The inputs of opening a journal.
  struct Context {
    let persistence: PersistenceOptions
    /// The image that the former process handed over.
    let image: HandOver<State>?
    let schema: Schema
    let limits: Limits
    let logger: Logger
    /// Called now and then, because opening may take a while.
    let progress: () -> Void
  }

  /// Open the journal of a state directory and replay it into a state, checked against its digests.
  /// O(the state + the changes).
  ///
  /// If the disk is full, the journal is only read, and opened for writing later: a running daemon
  /// survives a full disk, and so must its successor. A daemon that continues from a hand-over
  /// needs the journal only for writing, and can start without it.
  static func open(_ context: Context) throws -> JournalStart {
    let (persistence, logger) = (context.persistence, context.logger)
    if let revision = persistence.recoverTo {
      let recovery = try JournalFile.recover(directory: persistence.directory, to: revision)
      logger.warning(
        "gave up what was kept after a revision",
        metadata: ["revision": .number(revision), "before": "\(recovery.backup)"])
    }
    do {
      return try openToWrite(context)
    } catch let error as JournalError where context.goesOn(without: error) {
      return try openLater(context, error)
    }
  }

  private static func openToWrite(_ context: Context) throws -> JournalStart {
    let (persistence, schema) = (context.persistence, context.schema)
    let isGone =
      try MarkerFile.exists(in: persistence.directory)
      && !JournalFile.exists(persistence.directory)
    let file = try JournalFile(
      directory: persistence.directory, mode: persistence.mode, create: true)
    if isGone {
      context.logger.warning(
        "the journal that was kept here is gone, and a new one begins: put it back if it should not",
        metadata: ["directory": "\(persistence.directory)"])
    }
    if let repair = file.repair { context.logger.warning("\(repair)") }
    let began = Instant(nanoseconds: clock())
    let handed = try continuation(context.image, file)
    // Skipped when the former process is continued: the check takes as long as all the rest,
    // clients wait, and the state does not come from the file.
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
    try countKills(file, context.logger)
    try judgeSuspects(of: file, &kept)
    if let image = handed?.image, image.isTranslated {
      try keepCopy(file, image.dropped, context.logger)
      tell(of: image.leftOutNames, hasPutBack: image.hasPutBack, context.logger)
    }
    if let handed, handed.image.isTranslated || handed.durable != nil {
      // Later changes are based on a state that the file lacks, or has in another form.
      try keepSnapshot(PendingSnapshot(handing: kept, schema: schema, time: .now), file)
    }
    let run = JournalRun(run: kept.run, base: kept.revision)
    try file.begin(run: run, schema: encoded(schema), revision: kept.revision, time: .now)
    // The image has the sessions of all connected clients, the journal those that have acted.
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

  // MARK: Hand-over

  /// The image, if the journal is that of the process that left it, with the revision up to which
  /// the journal has it (`durable`; nil if it has all of it).
  ///
  /// A process whose disk was full leaves an image that is newer than its journal. The journal may
  /// not even have its run, or may have been made and never used.
  private static func continuation(
    _ image: HandOver<State>?, _ reader: JournalReader
  ) throws(JournalError) -> (image: HandOver<State>, durable: UInt64?)? {
    guard let image else { return nil }
    guard try reader.identity() != nil else { return try reader.isUnused() ? (image, 0) : nil }
    let contents = try reader.contents()
    guard contents.identity.epoch == image.kept.epoch else { return nil }
    guard let last = contents.runs.last else { return try reader.isUnused() ? (image, 0) : nil }
    if last.run.run == image.kept.run, last.ended == image.kept.revision { return (image, nil) }
    // If the process's own run has ended, it ended at the image's revision.
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
      last: contents.head.sequence, runs: contents.runs)
    do {
      let (recovery, rows) = try replay.run(State.self, context.logger, context.progress)
      if recovery.isTranslated {
        try keepCopy(file, recovery.dropped, context.logger)
        tell(of: recovery.leftOutNames, hasPutBack: recovery.hasPutBack, context.logger)
        // Later changes will be in the new form, and so must be the snapshot that they are based
        // on.
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

  /// Copy the file, beside it, if this version leaves out data that another version stored.
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

  /// Log the parts of another version's state that this version does not know.
  static func warn(of dropped: [String], keptIn copy: String, _ logger: Logger) {
    logger.warning(
      "what another version of the feature kept is not known to this one, which leaves it out",
      metadata: ["left out": "\(dropped.joined(separator: ", "))", "kept in": "\(copy)"])
  }

  /// Log the fields of another version's state that wait for a version that knows them.
  static func tell(of leftOut: [String], hasPutBack: Bool, _ logger: Logger) {
    if !leftOut.isEmpty {
      logger.notice(
        "fields that another version of the feature kept are not known to this one: they wait for one that knows them",
        metadata: ["fields": "\(leftOut.joined(separator: ", "))"])
    }
    if hasPutBack {
      logger.notice("fields that waited for a version of the feature that knows them are back")
    }
  }

  /// The error of a journal that a daemon cannot continue from, with advice.
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

  /// Count the actions that were being reduced, or foreseen, when the last run ended.
  private static func countKills(
    _ file: JournalFile, _ logger: Logger
  ) throws(JournalError) {
    guard let marker = file.marker else { return }
    for action in [marker.actionInFlight, marker.actionForeseen].compactMap(\.self) {
      let kills = try file.noteKill(action)
      logger.error(
        "an action was being done when the last run ended",
        metadata: [
          "session": "\(action.session)", "number": .number(action.number), "times": .number(kills),
        ])
    }
    marker.clearInFlight()
    marker.inFlight.clearForeseen()
  }

  /// Actions that were being reduced when a run ended, twice or more, and those of one time.
  private static func judgeSuspects(
    of reader: JournalReader, _ kept: inout RestoredState<State>
  ) throws(JournalError) {
    for (action, kills) in try reader.suspects() {
      if kills >= 2 { kept.poisoned.insert(action) } else { kept.suspects.insert(action) }
    }
  }

  static func encoded(_ schema: Schema) -> [UInt8] {
    var encoder = CBOREncoder()
    schema.encode(into: &encoder)
    return encoder.bytes
  }

  /// Store a snapshot before any client is served.
  static func keepSnapshot(
    _ snapshot: PendingSnapshot<State>, _ file: JournalFile
  ) throws(JournalError) {
    let (head, bytes) = snapshot.encode()
    let id = try file.beginSnapshot(head)
    for start in stride(from: 0, to: bytes.count, by: JournalFile.partBytes) {
      try file.addPart(id, bytes[start...].prefix(JournalFile.partBytes))
    }
    try file.finishSnapshot(id)
    while try file.cut(limit: 10_000) {}
  }
}

// MARK: Full disk

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
        "from": found.isHandedOver ? "former process" : kept == nil ? "nothing" : "journal",
        "revision": .number(kept?.revision ?? 0), "reason": "\(obstacle)",
      ])
    return JournalStart(
      file: nil, obstacle: obstacle, lock: lock, marker: marker, kept: kept,
      isHandedOver: found.isHandedOver, start: found.start)
  }

  /// The lock of the directory, if it can be taken on a full disk. Throws when another process
  /// holds it.
  private static func lock(_ context: Context) throws(JournalError) -> JournalLock? {
    do throws(JournalError) {
      return try JournalLock(directory: context.persistence.directory)
    } catch {
      if error.kind == .locked { throw error }
      return nil
    }
  }

  /// The state to continue from.
  private struct Found {
    var kept: RestoredState<State>?
    var isHandedOver = false
    var start = Start.first

    init() {}

    init(kept: RestoredState<State>, start: Start) {
      self.kept = kept
      self.start = start
    }

    /// `durable` is the revision up to which a journal has the image; nil if it has all of it.
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
      // The journal may have more, which cannot be read.
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
    try judgeSuspects(of: reader, &kept)
    // The journal cannot count how often the action has ended the process: once is enough.
    if let action = marker?.actionInFlight { kept.poisoned.insert(action) }
    if let action = marker?.actionForeseen { kept.suspects.insert(action) }
    marker?.clearInFlight()
    marker?.inFlight.clearForeseen()
    return Found(kept: kept, start: contents.runs.last?.ended == nil ? .crashed : .restarted)
  }
}

extension JournalStart.Context {
  /// Whether a daemon starts although its journal cannot be opened.
  fileprivate func goesOn(without error: JournalError) -> Bool {
    switch error.kind {
    case .full: true
    case .failed, .unreachable: image != nil
    case .locked, .foreign, .newer, .corrupt: false
    }
  }
}

extension RestoredState {
  /// Number the new run far above the last: the journal does not know of it, and if the process
  /// ends before it does, the next process must not take the same number for other revisions.
  mutating func leaveRoomForRuns() {
    run += .random(in: 1...(1 << 30))
    if let last = runs.indices.last { runs[last].run = run }
  }
}
