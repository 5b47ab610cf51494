import DaemonCore
import Files
import Glibc
import Journal
import Lockstep
public import Logging
import SystemPackage
import Values
import Wire

/// Records all events of a daemon, for `lockstep-replay`. Belongs to the loop's thread.
///
/// Each event is in the file before it is handled: an event that ends the process is the last in
/// it. If the file cannot be written, or an action cannot be encoded, the recording ends, and not
/// the daemon.
public final class RecordingFile {
  private let path: String
  private let logger: Logger
  /// Nil before the recording begins and after it has ended.
  private var file: FileDescriptor?
  private var buffer: [UInt8] = []

  public init(_ path: String, _ logger: Logger) {
    self.path = path
    self.logger = logger
  }

  deinit { close() }

  private func close() {
    if let file { FileLock.release(file.rawValue) }
    file = nil
    buffer = []
  }

  var isOpen: Bool { file != nil }

  /// Create the file, which only its owner may read, because it has all that the state has. An
  /// existing file, of a process before, is renamed with the suffix ".old", unless it is empty.
  func begin<State>(_ setup: ServerSetup<State>, schema: Schema) throws {
    // At the limit of a file's size, writing fails instead of ending the process. The signals are
    // watched later.
    signal(SIGXFSZ, SIG_IGN)
    var status = stat()
    if lstat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw DaemonError("cannot record in \(path): it exists, and is not a regular file")
      }
      try checkUnused()
      // The former recording may be the one that is needed.
      if status.st_size > 0 { rename(path, path + ".old") } else { unlink(path) }
    }
    do throws(Errno) {
      let file = try FileDescriptor.opening(
        path, .writeOnly, [.create, .exclusiveCreate, .noFollow], permissions: .ownerReadWrite)
      self.file = file
      guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else { throw Errno(rawValue: errno) }
    } catch {
      throw DaemonError("cannot record in \(path): \(error)")
    }
    buffer += Recording.head(setup, schema: schema)
  }

  /// Throws if another daemon records in the file: it has locked it.
  private func checkUnused() throws {
    guard
      let former = try? FileDescriptor.opening(path, .readOnly, [.noFollow, .nonBlocking])
    else { return }
    defer { FileLock.release(former.rawValue) }
    if flock(former.rawValue, LOCK_EX | LOCK_NB) != 0 {
      throw DaemonError("cannot record in \(path): another daemon does. Give another file.")
    }
  }

  /// Write an event that is about to be handled.
  func note<Action: SynchronizableAction>(_ event: Event<Action>, at now: Instant) {
    guard isOpen else { return }
    guard let bytes = Recording.event(event, at: now) else {
      return end("an action that has no encoding cannot be recorded")
    }
    buffer += bytes
    write()
  }

  /// Write the commands that an event led to.
  func note(_ commands: ArraySlice<Command>, revision: UInt64) {
    guard isOpen else { return }
    buffer += Recording.commands(commands, revision: revision)
    write()
  }

  /// Write the end. Nothing is written afterwards.
  func end(revision: UInt64, digest: Digest) {
    guard isOpen else { return }
    buffer += Recording.end(revision: revision, digest: digest)
    write()
    close()
  }

  private func end(_ reason: String) {
    logger.error("the recording ends", metadata: ["file": "\(path)", "reason": "\(reason)"])
    close()
  }

  private func write() {
    do throws(Errno) { try file?.write(buffer) } catch { return end("\(error)") }
    buffer.removeAll(keepingCapacity: buffer.count < 1 << 20)
  }
}
