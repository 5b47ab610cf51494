import DaemonCore
import Documents
import Glibc
import Journal
import Lockstep
import Logging
import Records
import Values

/// The state that a daemon starts with: the first available of the former process's hand-over, the
/// contents of the journal, and a state that begins an epoch.
final class Startup<State: Synchronizable> {
  let kept: RestoredState<State>
  let start: Start
  /// Whether the epoch begins with this start, and the journal needs its first snapshot.
  let isNew: Bool
  let journal: JournalStart<State>?
  let inheritance: InheritedConnections<State>?
  private let persistence: PersistenceOptions?
  private let schema: Schema

  init(
    _ state: () throws -> State, persistence: PersistenceOptions?, service: ServiceManager?,
    schema: Schema,
    limits: Limits, logger: Logger, progress: @escaping () -> Void
  ) throws {
    let stored = Self.stored(service, schema, logger)
    // The initial state is not requested if a state is stored: the file that it comes from may be
    // long gone. If none is stored, it is requested first: if that fails, no journal should record
    // the start. A directory that cannot be read is reported by the code that opens it.
    let isKept =
      persistence.map { (try? JournalFile.exists($0.directory)) ?? true } ?? (stored != nil)
    var first: State?
    do {
      if !isKept { first = try state() }
      journal = try persistence.map { persistence in
        try JournalStart.open(
          .init(
            persistence: persistence, image: stored?.image, schema: schema, limits: limits,
            logger: logger,
            progress: progress))
      }
    } catch {
      // Clients wait until a process can start.
      if let service { stored?.putBack(service, logger) } else { stored?.refuse() }
      throw error
    }
    self.persistence = persistence
    self.schema = schema
    if let journal, !journal.isHandedOver, let stored {
      logger.error("nothing is taken over: the journal does not end where the former process did")
      stored.refuse()
      inheritance = nil
    } else {
      inheritance = stored
      if journal == nil, let image = stored?.image {
        if !image.dropped.isEmpty {
          JournalStart<State>.warn(of: image.dropped, keptIn: "nothing", logger)
        }
        JournalStart<State>.tell(of: image.leftOutNames, hasPutBack: image.hasPutBack, logger)
      }
    }
    if let kept = journal?.kept ?? (journal == nil ? stored?.image.next : nil) {
      (self.kept, isNew) = (kept, false)
      start = journal?.start ?? .restarted
      return
    }
    kept = try Self.anew(try first ?? state(), journal?.file)
    (start, isNew) = (.first, true)
  }

  /// The state of a new epoch. It has the seed with which a document hashes already, if it is one.
  static func anew(
    _ state: State, _ file: JournalFile?
  ) throws(JournalError) -> RestoredState<State> {
    var random = SystemRandomNumberGenerator()
    // An earlier start may have got no further than making the file.
    let known = try file?.identity()
    let last = known == nil ? nil : try file?.contents().runs.last
    let run = JournalRun(run: (last?.run.run ?? 0) + 1, base: 0)
    let own = (state as? Document)?.seed ?? .unseeded
    var kept = RestoredState(
      state: state, epoch: known?.epoch ?? random.next(),
      seed: known?.seed ?? (own == .unseeded ? HashSeed(random.next()) : own),
      run: run.run, runs: [run], revision: 0, base: 0, sequence: 0)
    // It may also have served from memory, under a run number that the file does not know.
    if known != nil { kept.leaveRoomForRuns() }
    return kept
  }

  /// The journal to continue, in which this run has begun; nil without persistence. The first entry
  /// of a new epoch is a snapshot.
  func openJournal(
    _ snapshot: @autoclosure () -> PendingSnapshot<State>
  ) throws(JournalError) -> JournalAccess? {
    guard let persistence, let journal else { return nil }
    guard let file = journal.file else {
      guard let obstacle = journal.obstacle else { return nil }
      return .later(JournalOpening(persistence, kept, schema: schema, lock: journal.lock), obstacle)
    }
    do throws(JournalError) {
      if isNew { try begin(file, snapshot()) }
      return .open(file)
    } catch  where error.kind == .full {
      file.close()
      let lock = try? JournalLock(directory: persistence.directory)
      return .later(JournalOpening(persistence, kept, schema: schema, lock: lock), error)
    }
  }

  private func begin(
    _ file: JournalFile, _ snapshot: PendingSnapshot<State>
  ) throws(JournalError) {
    if try file.identity() == nil { try file.create(epoch: kept.epoch, seed: kept.seed) }
    try file.begin(
      run: JournalRun(run: kept.run, base: 0), schema: JournalStart<State>.encoded(schema),
      revision: 0, time: .now)
    try JournalStart.keepSnapshot(snapshot, file)
    // The first state of the epoch must not depend on a log that may be lost.
    try file.checkpoint()
  }

  private static func stored(
    _ service: ServiceManager?, _ schema: Schema, _ logger: Logger
  ) -> InheritedConnections<State>? {
    guard let stored = service?.takeStored(logger: logger) else { return nil }
    do throws(HandOverFailure) {
      return InheritedConnections(
        image: try HandOver(stored.image, schema: schema), memory: stored.memory,
        descriptors: stored.connections)
    } catch {
      logger.error("nothing is taken over", metadata: ["reason": "\(error)"])
      for descriptor in [stored.memory] + stored.connections.values { Glibc.close(descriptor) }
      return nil
    }
  }
}
