import Glibc
import Journal
import Lockstep
import Logging
import Sessions
import Values

/// What a daemon begins with: the first of these that there is. What a former process has handed
/// over; what a journal has kept; a state that begins an epoch.
struct Beginnings<State: Synchronizable> {
  let kept: Restoration<State>
  let start: Start
  /// Whether the epoch begins here, and the journal needs its first snapshot.
  let isNew: Bool
  let journal: JournalStart<State>?
  let inheritance: Inheritance<State>?

  init(
    _ state: () throws -> State, keeping: Keeping?, service: ServiceManager?, schema: Schema,
    limits: Limits, logger: Logger, progress: () -> Void
  ) throws {
    let stored = Self.stored(service, schema, logger)
    // Not asked for where something has been kept: the file that it comes from may be long gone.
    // Where nothing has, it comes first: if there is none, no journal should tell of the start.
    // A directory that cannot be looked into is told of by who opens it.
    let isKept = keeping.map { (try? JournalFile.isThere($0.directory)) ?? true } ?? (stored != nil)
    var first: State?
    do {
      if !isKept { first = try state() }
      journal = try keeping.map { keeping in
        try JournalStart.open(
          keeping, image: stored?.image, schema: schema, limits: limits, logger: logger,
          progress: progress)
      }
    } catch {
      stored?.refuse()
      throw error
    }
    if let journal, !journal.isHandedOver, let stored {
      logger.error("nothing is taken over: the journal does not end where the former process did")
      stored.refuse()
      inheritance = nil
    } else {
      inheritance = stored
      if journal == nil, let dropped = stored?.image.dropped, !dropped.isEmpty {
        JournalStart<State>.warn(of: dropped, keptIn: "nothing", logger)
      }
    }
    if let kept = journal?.kept ?? (journal == nil ? stored?.image.next : nil) {
      (self.kept, isNew) = (kept, false)
      start = journal?.start ?? .restarted
      return
    }
    var random = SystemRandomNumberGenerator()
    // A former start may have come no further than its file.
    let file = journal?.file
    let known = try file?.identity()
    let (seed, epoch) = (known?.seed ?? HashSeed(random.next()), known?.epoch ?? random.next())
    let last = known == nil ? nil : try file?.contents().runs.last
    let run = JournalRun(run: (last?.run.run ?? 0) + 1, base: 0)
    kept = Restoration(
      state: try first ?? state(), epoch: epoch, seed: seed, run: run.run, runs: [run], revision: 0,
      base: 0,
      sequence: 0)
    (start, isNew) = (.first, true)
    guard let file else { return }
    if known == nil { try file.create(epoch: epoch, seed: seed) }
    try file.begin(
      run: run, schema: JournalStart<State>.encoded(schema), revision: 0, time: .now)
  }

  private static func stored(
    _ service: ServiceManager?, _ schema: Schema, _ logger: Logger
  ) -> Inheritance<State>? {
    guard let (bytes, descriptors) = service?.takeStored(logger: logger) else { return nil }
    do throws(HandOverFailure) {
      return Inheritance(
        image: try HandOver(bytes, schema: schema), descriptors: descriptors)
    } catch {
      logger.error("nothing is taken over", metadata: ["reason": "\(error)"])
      for descriptor in descriptors.values { Glibc.close(descriptor) }
      return nil
    }
  }
}
