import DaemonCore
import Journal
import Records
import Values

/// How the journal is opened of a daemon that began without it, for there was no room on the disk.
///
/// Unchecked: it is made before the journal's thread begins, and used there alone.
final class JournalOpening: @unchecked Sendable {
  private let persistence: PersistenceOptions
  private let identity: JournalIdentity
  private let run: JournalRun
  private let revision: UInt64
  private let schema: [UInt8]
  /// Nil where not even that could be had.
  private var lock: JournalLock?

  /// `lock` is the directory's, if it could be taken.
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

  /// Open the journal, and begin this run in it. What has happened meanwhile it does not have: a
  /// snapshot must come first.
  func open() throws(JournalError) -> JournalFile {
    lock?.release()
    lock = nil
    do throws(JournalError) {
      return try begun()
    } catch {
      // Until the next attempt.
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
    // An attempt before this one may have come so far.
    if try file.contents().head.run < run.run {
      try file.begin(run: run, schema: schema, revision: revision, time: .now)
    }
    return file
  }
}

/// The journal that a daemon has, or is to have.
enum JournalAccess {
  case open(JournalFile)
  /// It is opened with the first attempt for which there is room.
  case later(JournalOpening, JournalError)
}
