import DaemonCore
import Journal
import Records
import Values

/// Opens the journal of a daemon that started without it, because the disk was full.
///
/// Unchecked: made before the journal's thread starts, and used on that thread only.
final class JournalOpening: @unchecked Sendable {
  private let persistence: PersistenceOptions
  private let identity: JournalIdentity
  private let run: JournalRun
  private let revision: UInt64
  private let schema: [UInt8]
  /// Nil if not even the lock could be taken.
  private var lock: JournalLock?

  /// `lock` is the lock of the directory, if it could be taken.
  init<State>(
    _ persistence: PersistenceOptions, _ kept: RestoredState<State>, schema: Schema,
    lock: JournalLock?
  ) {
    self.persistence = persistence
    identity = JournalIdentity(epoch: kept.epoch, seed: kept.seed)
    run = JournalRun(run: kept.run, base: kept.revision)
    revision = kept.revision
    self.schema = JournalStart<State>.encoded(schema)
    self.lock = lock
  }

  /// Open the journal, and begin this run in it. It lacks the changes since the daemon's start: a
  /// snapshot must come first.
  func open() throws(JournalError) -> JournalFile {
    lock?.release()
    lock = nil
    do throws(JournalError) {
      return try begun()
    } catch {
      // Hold the lock until the next attempt.
      lock = try? JournalLock(directory: persistence.directory)
      throw error
    }
  }

  private func begun() throws(JournalError) -> JournalFile {
    let file = try JournalFile(
      directory: persistence.directory, mode: persistence.mode, create: true)
    if let known = try file.identity() {
      guard known == identity else {
        throw JournalError(
          .foreign, "\(file.path): another journal has been put there since the daemon began.",
          advice:
            "Move it away. Until then the state is in memory alone: 'lockstep export' saves it.")
      }
    } else {
      try file.create(epoch: identity.epoch, seed: identity.seed)
    }
    // An earlier attempt may have begun the run already.
    if try file.contents().head.run < run.run {
      try file.begin(run: run, schema: schema, revision: revision, time: .now)
    }
    return file
  }
}

/// A daemon's journal, open or still to be opened.
enum JournalAccess {
  case open(JournalFile)
  /// To be opened by the first attempt for which there is room on the disk.
  case later(JournalOpening, JournalError)
}
